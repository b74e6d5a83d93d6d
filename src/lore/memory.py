"""Memory: opens everything once; each method is a few lines that delegate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Self

from lore import clock, settings
from lore.capture import (
    embedding,
    episodes,
    exchange,
    fragments,
    gathering,
    messages,
    revoking,
    undoing,
)
from lore.capture.adapters import registry
from lore.capture.episodes import Kept
from lore.capture.files import FileReading
from lore.capture.messages import Conversation
from lore.capture.redaction import open_redactor
from lore.capture.revoking import Suspect
from lore.checking import Count, Seconds, Whole, checked, checked_class
from lore.embed import Embedder, open_embedder
from lore.errors import InvalidInput, LoreError, NotFound, StoreError
from lore.recall import answering, health, moments, reading, searching, session_search
from lore.recall.answering import Request
from lore.recall.reading import Direction
from lore.recall.searching import SearchRequest
from lore.recall.sources import Sources
from lore.records import (
    Answer,
    Captured,
    CaptureEstimate,
    Channel,
    Check,
    Draft,
    EdgeKind,
    Episode,
    Fragment,
    FragmentKind,
    FragmentVersion,
    Hit,
    Message,
    Names,
    NewMessage,
    Origin,
    Outline,
    Provenance,
    Reading,
    Revocation,
    Scope,
    Session,
    SessionHit,
    Stats,
    Title,
)
from lore.settings import Settings
from lore.store import figures, forgetting, items, sessions, upkeep
from lore.store import fragments as fragment_store
from lore.store import messages as message_store
from lore.store.db import Database, open_database
from lore.text.secrets import Redactor

_CATCH_UP_S = 0.5
"""A recall first embeds what waits, for so long at most."""


@checked_class
@dataclass(slots=True)
class Memory:
    """All that one database holds, and the object that opens it."""

    settings: Settings
    database: Database
    sources: Sources
    redactor: Redactor
    notice: str = ""

    @classmethod
    def open(
        cls,
        home: Path | str | None = None,
        *,
        config: Settings | None = None,
        embedder: Embedder | None = None,
        now: clock.Clock = clock.now,
        create: bool = True,
    ) -> Self:
        """Open the memory in a home folder, made if it is not there."""
        warning = ""
        if config is None:
            loaded = settings.load(home=Path(home) if home else None, project_dir=Path.cwd())
            config, warning = loaded.settings, loaded.warning
        path = config.database
        if not create and not path.exists():
            msg = f"There is no memory at {path} yet."
            raise NotFound(msg, hint="'lore remember' or 'lore import' makes one.")
        database = open_database(
            path, busy_timeout_s=config.store_busy_timeout_s, backups=config.backups, now=now
        )
        try:
            redactor = open_redactor(config)
            opened, notice = (embedder, "") if embedder else _open_embedder(config)
            embedding.adopt_embedder(database, opened)
            _do_chores(database)
            sources = Sources(database, opened, config, owns_embedder=embedder is None)
        except BaseException:
            database.close()
            raise
        degraded = _joined(warning, notice, _why_read_only(database))
        return cls(config, database, sources, redactor, degraded)

    def close(self) -> None:
        """Finish what is queued and close everything."""
        self.sources.close()
        self.database.close()

    def __enter__(self) -> Self:
        """Return the memory itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the memory."""
        self.close()

    def store(
        self,
        content: str,
        *,
        summary: str = "",
        kind: FragmentKind = "fact",
        parent_id: str = "",
        depth: Whole | None = None,
        importance: float = 0.5,
        confidence: float = 0.7,
        origin: Origin = "user",
        project: str = "",
        session: str = "",
        source_messages: Sequence[str] = (),
        payload: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> str:
        """Store a fragment and return its id; the same key again returns the same id."""
        draft = Draft(
            content, summary, kind, parent_id, depth, importance, confidence, origin, project,
            session, tuple(source_messages), payload or {},
        )  # fmt: skip
        return fragments.store(self.database, draft, key=key, redactor=self.redactor)

    def store_all(self, drafts: Iterable[Draft]) -> list[str]:
        """Store many fragments at once and return their ids in order."""
        return fragments.store_all(self.database, drafts, redactor=self.redactor)

    def capture(
        self, session: str, new: Sequence[NewMessage], *, agent: str = "library",
        project: str = "", title: str = "", branch: str = "", parent: str = "",
        files: Sequence[str] = (), channel: Channel = "push",
    ) -> list[str]:  # fmt: skip
        """Store messages of a session, each once, and return their ids in order.

        A session stays in the project that was named first; `lore doctor` names the sessions
        for which another one was named later.
        """
        named = (title, branch, parent, tuple(files), channel)
        conversation = Conversation(session, agent, project, *named)
        return messages.capture(self.database, conversation, new, redactor=self.redactor)

    def estimate_capture(self, paths: Sequence[Path] = (), *, since: str = "") -> CaptureEstimate:
        """Return how much `capture_files` would read, and how long that may take."""
        return gathering.estimate(self.database, self._transcripts(paths, since))

    def capture_files(
        self, paths: Sequence[Path] = (), *, since: str = "", dry_run: bool = False,
        progress: gathering.Progress | None = None,
    ) -> Captured:  # fmt: skip
        """Bring in transcript files and folders, by default all that agents keep here."""
        how = FileReading(
            self.database, registry.find_adapter, redactor=self.redactor, dry_run=dry_run
        )
        return gathering.capture_files(how, self._transcripts(paths, since), progress=progress)

    def _transcripts(self, paths: Sequence[Path], since: str) -> list[gathering.Found]:
        after = moments.since(since, self.database.now()) if since else None
        return gathering.find_files(paths, registry.ADAPTERS, Path.home(), since=after)

    def update(
        self,
        id: str,
        content: str,
        *,
        summary: str = "",
        reason: str = "",
        origin: Origin = "user",
        key: str = "",
    ) -> int:
        """Give a fragment new words and return its new version; the old ones are kept."""
        return fragments.update(
            self.database, id, content,
            summary=summary, reason=reason, origin=origin, key=key, redactor=self.redactor,
        )  # fmt: skip

    def delete(self, id: str, *, key: str = "") -> str:
        """Hide a fragment until `undo` brings it back; return its whole id."""
        deleted = fragments.delete(self.database, id, key=key)
        self.sources.drop_hidden([deleted])
        return deleted

    def undo(self, id: str = "", *, key: str = "") -> tuple[str, str]:
        """Undo the last change by hand, of all or of one fragment; return verb and id."""
        return undoing.undo(self.database, id, key=key)

    def redo(self, id: str = "", *, key: str = "") -> tuple[str, str]:
        """Do again what was last undone; return verb and id."""
        return undoing.redo(self.database, id, key=key)

    def next_undo(self, id: str = "", *, redo: bool = False) -> tuple[str, str] | None:
        """Return verb and id of what `undo`, or `redo`, would act on."""
        with self.database.read() as db:
            return undoing.find_next(db, id, redo=redo)

    def link(
        self, source: str, target: str, kind: EdgeKind, *,
        weight: float = 1.0, note: str = "", key: str = "",
    ) -> None:  # fmt: skip
        """Draw an edge between two fragments."""
        fragments.link(
            self.database, source, target, kind,
            weight=weight, note=note, key=key, redactor=self.redactor,
        )  # fmt: skip

    def supersede(self, old: str, new: str, *, key: str = "") -> None:
        """Let a newer fragment replace an older one; both are kept."""
        fragments.supersede(self.database, old, new, key=key)
        self.sources.drop_hidden([old])

    def recall(
        self,
        query: str,
        *,
        scope: Scope = "all",
        session: str = "",
        project: str = "",
        limit: Count | None = None,
        budget_tokens: Count | None = None,
        recipe: str = "",
        explain: bool = False,
        why_not: Sequence[str] = (),
        trusted_only: bool = False,
        now: datetime | None = None,
        log: bool = True,
    ) -> Answer:
        """Answer a question from messages, distillations and fragments, best first.

        `trusted_only` is for what is put into a prompt that did not ask for it: only what the
        person or the assistant said.
        """
        started = time.perf_counter()
        query = self.redactor.redact(query)
        request = Request(
            query=query,
            scope=scope,
            session=self.redactor.redact(session),
            project=self.redactor.redact(project),
            limit=self.settings.recall_max_hits if limit is None else limit,
            budget_tokens=(
                self.settings.recall_budget_tokens if budget_tokens is None else budget_tokens
            ),
            recipe=recipe or self.settings.search_recipe,
            explain=explain,
            why_not=tuple(why_not),
            trusted_only=trusted_only,
            now=now or self.database.now(),
        )
        self._catch_up()
        answer = answering.recall(self.sources, request)
        if log:
            took_ms = (time.perf_counter() - started) * 1000
            self.sources.log_retrieval("recall", query, [h.id for h in answer.hits], took_ms)
        return answering.with_notice(answer, self.notice)

    def search(
        self,
        query: str,
        *,
        parent_id: str = "",
        depth: Whole | None = None,
        limit: Count = 10,
        deep: bool = False,
        kind: str = "",
        origin: str = "",
        since: str = "",
        project: str = "",
        log: bool = True,
    ) -> list[Hit]:
        """Search the fragments; `deep` follows the graph to what they are related to."""
        query, project = self.redactor.redact(query), self.redactor.redact(project)
        request = SearchRequest(
            query, parent_id, depth, limit, deep, kind, origin, since, project, self.database.now()
        )
        started = time.perf_counter()
        self._catch_up()
        hits = searching.search(self.sources, request)
        if log:
            took_ms = (time.perf_counter() - started) * 1000
            self.sources.log_retrieval("search", query, [hit.id for hit in hits], took_ms)
        return hits

    def find_sessions(
        self,
        query: str,
        *,
        project: str = "",
        limit: Count = 5,
        now: datetime | None = None,
        recipe: str = "",
    ) -> list[SessionHit]:
        """Find the sessions in which something was said or done."""
        self._catch_up()
        return session_search.find_sessions(
            self.sources,
            self.redactor.redact(query),
            project=self.redactor.redact(project),
            limit=limit,
            now=now or self.database.now(),
            recipe=recipe or self.settings.search_recipe,
        )

    def standing(self, *, project: str = "", question: str = "") -> list[Hit]:
        """Return the standing instructions of a project, those near a question first."""
        return answering.standing(self.sources, self.redactor.redact(project), question)

    def read(self, ids: Sequence[str], *, reinforce: bool = True) -> list[Reading]:
        """Return items whole; reading a fragment makes it stronger."""
        with self.database.read() as db:
            found = [reading.read(db, id_) for id_ in ids]
        strengthened = [r.id for r in found if r.fragment and not r.deleted]
        if reinforce and strengthened and not self.database.read_only:
            self.database.write(
                lambda db: fragment_store.reinforce_all(db, strengthened, now=self.database.now())
            )
        return found

    def explore(self, what: str, *, max_depth: Whole = 2) -> list[Outline]:
        """Return the tree below a fragment, or below the best hits for a question."""
        if items.looks_like_id(what):
            with self.database.read() as db:
                return [reading.explore(db, what, max_depth=max_depth)]
        hits = self.search(what, limit=3)
        with self.database.read() as db:
            return [reading.explore(db, hit.id, max_depth=max_depth) for hit in hits]

    def traverse(self, id: str, direction: Direction = "children") -> list[Title]:
        """Return what lies one step from a fragment."""
        if direction not in ("children", "parent", "associations"):
            msg = f"'{direction}' is no direction: children, parent or associations."
            raise InvalidInput(msg)
        with self.database.read() as db:
            return reading.traverse(db, id, direction)

    def roots(self, *, query: str = "", limit: Count = 20, project: str = "") -> list[Title]:
        """Return the roots, strongest first, or those that fit a question."""
        query, project = self.redactor.redact(query), self.redactor.redact(project)
        if query:
            return searching.roots(self.sources, query, limit=limit, project=project)
        with self.database.read() as db:
            project_n = sessions.get_project(db, project) if project else None
            return reading.roots(db, project_n=project_n, limit=limit)

    def log(self, id: str) -> tuple[Fragment, list[FragmentVersion]]:
        """Return a fragment and what it said before, oldest first."""
        with self.database.read() as db:
            n = items.resolve(db, id, type="fragment").n
            return fragment_store.get(db, n), fragment_store.versions(db, n)

    def diff(self, id: str, version: Count | None = None) -> tuple[FragmentVersion, Fragment]:
        """Return a former version of a fragment, by default the last one, and the present."""
        current, former = self.log(id)
        chosen = [v for v in former if version is None or v.version == version]
        if not chosen:
            which = f"version {version}" if version is not None else "former version"
            msg = f"This fragment has no {which}."
            raise NotFound(msg)
        return chosen[-1], current

    def why(self, id: str) -> Provenance:
        """Return where an item comes from, and the numbers behind it."""
        with self.database.read() as db:
            return reading.why(db, id, now=self.database.now())

    def messages(self, session: str, *, first: Whole = 0, limit: Count = 10_000) -> list[Message]:
        """Return the messages of a session in order."""
        with self.database.read() as db:
            n = sessions.get_number(db, self.redactor.redact(session))
            return message_store.of_session(db, n, first=first, limit=limit)

    def sessions(self, *, project: str = "", limit: Count = 20) -> list[Session]:
        """Return the latest sessions, newest first."""
        project = self.redactor.redact(project)
        with self.database.read() as db:
            project_n = sessions.get_project(db, project) if project else None
            return sessions.recent(db, project_n=project_n, limit=limit)

    def stats(self) -> Stats:
        """Count what the memory holds."""
        with self.database.read() as db:
            return figures.stats(db, embedder=self.sources.embedder.identity, notice=self.notice)

    def short_ids(self, ids: Sequence[str]) -> dict[str, str]:
        """Return for each id the shortest prefix that names it alone."""
        with self.database.read() as db:
            return items.short_ids(db, ids)

    def embed_waiting(
        self, *, within_s: Seconds | None = None, progress: embedding.Progress | None = None
    ) -> int:
        """Give vectors to the items that wait for one; return how many that were."""
        if not self.sources.embedder.dimension:
            return 0
        index = self.sources.vector_index()
        return embedding.embed_waiting(
            self.database, self.sources.embedder, index, within_s=within_s, progress=progress
        )

    def backup(self, target: Path | str | None = None) -> Path:
        """Write a consistent copy of the database and return its path."""
        if target is None:
            self.settings.backups.mkdir(mode=0o700, parents=True, exist_ok=True)
            target = self.settings.backups
        return upkeep.backup(self.database, Path(target))

    def export(self, target: Path | str | BinaryIO) -> int:
        """Write everything as JSON lines and return how many records that were."""
        place = Path(target) if isinstance(target, str) else target
        return exchange.export(self.database, place)

    def import_lines(
        self, lines: Iterable[bytes], *, progress: Callable[[int], None] | None = None
    ) -> dict[str, int]:
        """Bring in an export and count what was added and what was skipped."""
        return exchange.import_lines(
            self.database, lines, redactor=self.redactor, progress=progress
        )

    def episode(self, session: str) -> Episode | None:
        """Tell a session as an episode, kept as a fragment; None if there is nothing to tell."""
        session = self.redactor.redact(session)
        told = episodes.derive(self.database, session)
        if told and not self.database.read_only:
            episodes.keep(self.database, session, told)
        return told

    def episodes(self, *, project: str = "", limit: int = 20) -> list[Kept]:
        """Return the latest episodes that were kept, newest first."""
        with self.database.read() as db:
            return episodes.newest(db, project=self.redactor.redact(project), limit=limit)

    def revoke(
        self,
        *,
        session: str = "",
        origin: str = "",
        file: str = "",
        project: str = "",
        dry_run: bool = False,
    ) -> Revocation:
        """Hide what was derived from a session, an origin or a file; the messages stay."""
        named = map(self.redactor.redact, (session, origin, file, project))
        suspect = Suspect(*named)
        if dry_run:
            return revoking.preview(self.database, suspect)
        gone = revoking.revoke(self.database, suspect)
        self.sources.drop_hidden([title.id for title in gone.fragments])
        return gone

    def count_forgettable(
        self, *, id: str = "", session: str = "", project: str = "", match: str = ""
    ) -> int:
        """Count what `forget` would delete."""
        session, project = self.redactor.redact(session), self.redactor.redact(project)
        with self.database.read() as db:
            doomed = forgetting.collect(db, id, session, project, match)
            found = forgetting.with_derived(db, doomed)
        return len(found.item_ns) + len(found.session_ns) + len(found.project_ns)

    def names_with(self, text: str) -> Names:
        """Return the sessions and projects that have a text in their names.

        `forget(match=…)` takes it out of the names of sessions; a project keeps its path until
        the project itself is forgotten.
        """
        with self.database.read() as db:
            return forgetting.names_with(db, text)

    def forget(
        self, *, id: str = "", session: str = "", project: str = "", match: str = ""
    ) -> list[str]:
        """Delete on a person's request, without a trace; return the ids that are gone."""
        session, project = self.redactor.redact(session), self.redactor.redact(project)
        with self.database.read() as db:
            doomed = forgetting.collect(db, id, session, project, match)
            doomed = forgetting.with_derived(db, doomed)
        gone = upkeep.forget(self.database, doomed, match, self.settings.backups)
        self.sources.forget_vectors(doomed.item_ns)
        return gone

    def _catch_up(self) -> None:
        """Embed what waits, for a moment, so that what was just stored is found by meaning."""
        if not self.database.read_only:
            with suppress(StoreError):
                self.embed_waiting(within_s=_CATCH_UP_S)


def _do_chores(database: Database) -> None:
    """Do the daily upkeep in the background, if it is due."""
    if database.read_only:
        return
    with database.read() as db:
        due = upkeep.chores_are_due(db, database.now())
    if due:
        database.submit(partial(upkeep.do_chores, now=database.now()))


def _joined(*notices: str) -> str:
    return " ".join(notice for notice in notices if notice)


def _why_read_only(database: Database) -> str:
    if database.full:
        return "The disk is full: the memory is open for reading only."
    if database.read_only:
        return "The memory is open for reading only: 'lore doctor' says why."
    return ""


def _open_embedder(config: Settings) -> tuple[Embedder, str]:
    opened = open_embedder(config)
    return opened.embedder, opened.notice


@checked
def restore_backup(source: Path, *, home: Path | None = None) -> Path | None:
    """Put a backup in the place of the database; return where the former one was kept."""
    config = settings.load(home=home).settings
    return upkeep.restore(config.database, source, config.backups)


@checked
def examine(*, home: Path | None = None, fix: bool = False) -> list[Check]:
    """Check everything that can be wrong with a home, and mend what is derived."""
    config = settings.load(home=home).settings
    checks = health.check_home(config)
    try:
        memory = Memory.open(config=config, create=False)
    except NotFound as error:
        return [*checks, Check("database", "degraded", str(error), error.hint)]
    except LoreError as error:
        return [*checks, Check("database", "broken", str(error), error.hint)]
    with memory:
        return [*checks, *health.check_memory(memory.sources, memory.notice, fix=fix)]
