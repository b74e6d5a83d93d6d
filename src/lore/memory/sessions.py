"""Sessions, messages, episodes and projects: capture, import, export and lists.

Transcript adapters are imported on first use: they would cost every command a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from lore import clock, local_files, projects
from lore.capture import exclusion, export_import, message_capture, quotes
from lore.capture.message_capture import Conversation
from lore.errors import InvalidInput, NotFound
from lore.memory import context
from lore.memory.context import LIVE, MemoryPart, PageSize
from lore.projects import ProjectFinder
from lore.recall import time_spans, turns
from lore.records import (
    CaptureEstimate,
    CaptureResult,
    Channel,
    Distillation,
    Episode,
    ImportResult,
    Message,
    ModelPrice,
    NewMessage,
    Page,
    Project,
    Session,
    SessionLog,
    SessionPage,
    SessionSummary,
    StoredEpisode,
    Turn,
)
from lore.redaction.redactor import home_key
from lore.store import (
    distillations,
    history,
    items,
    message_dedup,
    pages,
    project_rows,
    replacements,
    session_turns,
    sessions,
)
from lore.store import fragments as fragment_store
from lore.store import messages as message_store
from lore.store.database import Connection
from lore.store.session_turns import SessionFilter
from lore.text.instructions import typed_text
from lore.validation import Count, Whole, validate_methods

if TYPE_CHECKING:
    from lore.capture.transcript_capture import TranscriptFile


def _claim(db: Connection, session: str, keys: Sequence[str], now: datetime) -> int:
    from lore.capture.message_batches import make_title

    n = sessions.find_session(db, session, agent="specstory")
    if n is None:
        return 0
    ns = message_store.claim(db, n, message_dedup.find_seen(db, n, "file", keys).values())
    history.log_change(db, "change", ns, now)
    message_store.restore_instructions(db, ns, partial(quotes.typed_instructions, db))
    replacements.queue(db, ns)  # as a repository's words they could replace nothing
    if ns and not sessions.has_title(db, n):  # a repository's words make no title
        typed = (typed_text(one) for _, one in sorted(message_store.get_messages(db, ns).items()))
        sessions.describe_session(db, n, title=make_title(typed))
    return len(ns)


Progress = Callable[[int, int], None]
"""Called with the bytes read and the total."""

LONG_SESSION_TOKENS = 20_000
"""A longer session is searched first when it asks: the gateway shortens prompts from here on, and
agents compact what does not fit into their window."""


@validate_methods
class Sessions(MemoryPart):
    """Capture, import, export and list sessions, messages, episodes and projects."""

    def sessions(self, *, project: str = "", limit: Count = 20) -> list[Session]:
        """Return the latest sessions, newest first."""
        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            return sessions.recent_sessions(db, project_n=project_n, limit=limit)

    __call__ = sessions

    def capture(
        self, session: str, new: Sequence[NewMessage], *, agent: str = "library",
        project: str = "", title: str = "", branch: str = "", parent: str = "",
        files: Sequence[str] = (), channel: Channel = "push",
    ) -> list[str]:  # fmt: skip
        """Store messages of a session, each once, and return their ids in order.

        A session stays in the project that was named first; `lore doctor` lists sessions for which
        another was named later.
        """
        if self.is_excluded(agent, project):
            return []
        details = (title, branch, parent, tuple(files), channel)
        conversation = Conversation(session, agent, project, *details)
        return message_capture.capture(self._database, conversation, new, redactor=self._redactor)

    def is_excluded(self, agent: str, folder: str) -> bool:
        """Return whether a folder is kept out of memory: by `capture.exclude`, or as Lore's own."""
        return bool(folder) and exclusion.covers_folder(self._excluded, agent, folder)

    @property
    def _excluded(self) -> tuple[str, ...]:
        """The patterns of excluded folders; Lore must not digest its own digests."""
        own = exclusion.folder_patterns(self._settings.agent_chats)
        return (*self._settings.capture_exclude, *own)

    def estimate_capture(self, paths: Sequence[Path] = (), *, since: str = "") -> CaptureEstimate:
        """Return how much `capture_files` would read, and how long that may take."""
        from lore.capture import transcript_capture

        return transcript_capture.estimate_capture(
            self._database, self._transcripts(paths, since), self._redactor
        )

    def capture_files(
        self, paths: Sequence[Path] = (), *, since: str = "", dry_run: bool = False,
        progress: Progress | None = None, stopping: Callable[[], bool] = lambda: False,
    ) -> CaptureResult:  # fmt: skip
        """Capture transcript files and folders, by default those of all agents on this machine."""
        from lore.capture import transcript_capture
        from lore.capture.adapters import adapter_registry
        from lore.capture.transcript_capture import ReadOptions

        how = ReadOptions(
            self._database, adapter_registry.find_adapter,
            redactor=self._redactor, dry_run=dry_run, stopping=stopping,
            exclude=self._excluded,
        )  # fmt: skip
        return transcript_capture.capture_files(
            how, self._transcripts(paths, since), progress=progress
        )

    def _transcripts(self, paths: Sequence[Path], since: str) -> list[TranscriptFile]:
        from lore.capture import transcript_capture
        from lore.capture.adapters import adapter_registry

        if local_files.are_withheld():
            return []
        after = time_spans.since(since, self._database.now()) if since else None
        return transcript_capture.find_files(
            paths, adapter_registry.ADAPTERS, Path.home(), since=after
        )

    def claim_files(self, paths: Sequence[Path]) -> int:
        """Make captured SpecStory histories the person's own; return how many messages change.

        Only what is in these files now is claimed, not what others wrote for the same session.
        """
        from lore.capture import transcript_capture
        from lore.capture.adapters import specstory

        claimed = 0
        for chunk in transcript_capture.read_histories(self._transcripts(paths, ""), specstory):
            name = self._redactor.redact(chunk.context.session)
            keys = [message.key for message in chunk.messages]
            claimed += self._database.write(
                partial(_claim, session=name, keys=keys, now=self._database.now())
            )
        return claimed

    def import_lines(
        self, lines: Iterable[bytes], *, trust: bool | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> ImportResult:  # fmt: skip
        """Import an export and count the added and skipped records.

        An export of another home is refused unless `trust` is given; if it is False, records are
        stored as a peer's words and delete nothing.
        """
        return export_import.import_lines(
            self._database, lines, key=home_key(self._settings, "export"), trust=trust,
            redactor=self._redactor, progress=progress,
        )  # fmt: skip

    def import_memory(self, kind: str, path: Path, *, trust: bool = False) -> ImportResult:
        """Import the knowledge of another memory: claude-mem, mem0 or basic-memory.

        Without `trust` it is stored as a peer's words, which are found only by asking.
        """
        from lore.capture import foreign_memories

        return export_import.import_records(
            self._database, foreign_memories.read_records(kind, path),
            foreign=not trust, redactor=self._redactor,
        )  # fmt: skip

    def episode(self, session: str) -> Episode | None:
        """Derive the episode of a session and store it as a fragment; None if nothing was done.

        The episode is not stored if the memory is read-only or a person has deleted or revoked it.
        The id of an episode's fragment also names its session.
        """
        from lore.digest import episodes

        with self._database.read() as db:
            session = episodes.session_of(db, self._redactor.redact(session))
        derived = episodes.derive_episode(self._database, session)
        if derived and not self._database.read_only:
            episodes.store_episode(self._database, session, derived)
        return derived

    def episodes(self, *, project: str = "", limit: Count = 20) -> list[StoredEpisode]:
        """Return the latest stored episodes, newest first."""
        from lore.digest import episodes

        with self._database.read() as db:
            return episodes.recent_episodes(db, project=self._redactor.redact(project), limit=limit)

    def export(self, target: Path | str | BinaryIO) -> int:
        """Write everything as JSON lines and return the number of records."""
        place = Path(target) if isinstance(target, str) else target
        return export_import.export(self._database, place, key=home_key(self._settings, "export"))

    def messages(self, session: str, *, first: Whole = 0, limit: Count = 10_000) -> list[Message]:
        """Return the messages of a session in order."""
        with self._database.read() as db:
            n = sessions.get_session_number(db, self._redactor.redact(session))
            return message_store.messages_of_session(db, n, first=first, limit=limit)

    def log(self, session: str) -> SessionLog:
        """Return the log of a session, in the order of the conversation."""
        with self._database.read() as db:
            n = sessions.get_session_number(db, self._redactor.redact(session))
            logs, new_messages = distillations.current_log(db, n)
            return SessionLog(sessions.get_session(db, n), tuple(logs), new_messages)

    def has_session(self, session: str) -> bool:
        """Return whether a session with this id, or this name at its agent, is stored."""
        try:
            with self._database.read() as db:
                sessions.get_session_number(db, self._redactor.redact(session))
        except NotFound:
            return False
        return True

    def is_long(self, session: str) -> bool:
        """Return whether a session is longer than what an agent may still see of it."""
        try:
            with self._database.read() as db:
                n = sessions.get_session_number(db, self._redactor.redact(session))
                return sessions.count_tokens(db, n) > LONG_SESSION_TOKENS
        except (NotFound, InvalidInput):  # two agents may give their sessions the same name
            return False

    def find_live_session(self, folder: str) -> Session | None:
        """Return the latest live session in a folder's project, or None."""
        project = self.find_project(folder) if folder else None
        newest = self.sessions(project=project.id, limit=1) if project else []
        since = self._database.now() - LIVE
        return next((one for one in newest if one.last_message_at >= since), None)

    def projects(self) -> list[Project]:
        """Return all projects, by path."""
        with self._database.read() as db:
            return list(project_rows.all_projects(db).values())

    def project(self, name: str) -> Project:
        """Return a project by its path, name or id."""
        with self._database.read() as db:
            n = project_rows.get_project(db, self._redactor.redact(name))
            return project_rows.all_projects(db)[n]

    def find_project(self, folder: str) -> Project | None:
        """Return the project that a folder belongs to, or None if it is unknown."""
        folder = self._redactor.redact(folder)
        place = ProjectFinder().find(folder) if folder else None
        with self._database.read() as db:
            n = projects.find_project_number(db, folder, place)
            return project_rows.all_projects(db)[n] if n is not None else None

    def message(self, id: str) -> Message:
        """Return one message."""
        with self._database.read() as db:
            return message_store.get_message(db, items.resolve(db, id, type="message").n)

    def page_of_sessions(
        self, *, project: str = "", query: str = "", agent: str = "", since: str = "",
        limit: PageSize = 50, cursor: str = "",
    ) -> Page[SessionSummary]:  # fmt: skip
        """Return a page of sessions, those with the latest messages first.

        `query` is a part of the title, of a file's path or of the agent's name for the session.
        """
        after = context.decode_cursor(cursor, int, int)
        since_us = None
        if since:
            since_us = clock.to_us(time_spans.since(since, self._database.now()))
        with self._database.read() as db:
            criteria = SessionFilter(
                self._redactor.redact(query.strip()), agent,
                self._find_project_n(db, project), since_us,
            )  # fmt: skip
            keys = session_turns.page_of_sessions(db, after, criteria, limit=limit)
            by_n = self._summaries(db, [n for _, n in keys])
        return context.page_of([(key, by_n[key[1]]) for key in keys], limit)

    def _summaries(self, db: Connection, ns: Sequence[int]) -> dict[int, SessionSummary]:
        figures, paths = session_turns.session_figures(db, ns), project_rows.names_by_id(db)
        return {
            n: SessionSummary(
                **{one.name: getattr(session, one.name) for one in fields(session)},
                **figures[n]._asdict(),
                project=paths.get(session.project_id or "", ""),
                opening="" if session.title else session_turns.find_opening(db, n),
            )
            for n, session in sessions.get_sessions(db, ns).items()
        }

    def page(self, session: str) -> SessionPage:
        """Return a session with its totals and the state of its prompt."""
        with self._database.read() as db:
            n = sessions.get_session_number(db, self._redactor.redact(session))
            summary = self._summaries(db, [n])[n]
            paths = [one.path for one in project_rows.all_projects(db).values()
                     if one.id == summary.project_id]  # fmt: skip
            prompt = turns.find_prompt_layers(db, summary, paths)
            return SessionPage(summary, session_turns.count_turns(db, n), prompt)

    def page_of_turns(self, session: str, *, limit: PageSize = 20, cursor: str = "") -> Page[Turn]:
        """Return a page of a session's turns in order, with their cost and what memory gave."""
        (after,) = context.decode_cursor(cursor, int) or (-1,)
        ledger = self._context.open_ledger()

        def price(model: str) -> ModelPrice | None:
            return ledger.catalogue.find(model, "", wait_s=0)

        with self._database.read() as db:
            n = sessions.get_session_number(db, self._redactor.redact(session))
            rows, has_more = turns.list_turns(
                db, n, sessions.get_session(db, n), after=after, limit=limit, price=price
            )
        cursor = context.encode_cursor(rows[-1][0]) if has_more and rows else ""
        return Page(tuple(turn for _, turn in rows), cursor or None)

    def page_of_messages(
        self,
        session: str,
        *,
        first: int = 0,
        last: int | None = None,
        limit: PageSize = 50,
        cursor: str = "",
    ) -> Page[Message]:
        """Return a page of a session's messages in order, from the ordinal `first` to `last`."""
        (after,) = context.decode_cursor(cursor, int) or (first - 1,)
        with self._database.read() as db:
            n = sessions.get_session_number(db, self._redactor.redact(session))
            page = message_store.messages_of_session(
                db, n, first=int(after) + 1, last=last, limit=limit
            )
        return context.page_of([((one.ordinal,), one) for one in page], limit)

    def page_of_distillations(
        self, *, session: str = "", project: str = "", limit: PageSize = 50, cursor: str = ""
    ) -> Page[Distillation]:
        """Return a page of distillations, newest first."""
        after = context.decode_cursor(cursor, int)
        with self._database.read() as db:
            session_name = self._redactor.redact(session)
            ns = pages.distillations(
                db,
                after,
                session_n=sessions.get_session_number(db, session_name) if session_name else None,
                project_n=self._find_project_n(db, project),
                limit=limit,
            )
            by_n = distillations.get_distillations(db, ns)
        return context.page_of([((n,), by_n[n]) for n in ns], limit)

    def page_of_episodes(
        self, *, project: str = "", limit: PageSize = 50, cursor: str = ""
    ) -> Page[StoredEpisode]:
        """Return a page of episodes, those whose sessions ended last first."""
        from lore.digest import episodes

        after = context.decode_cursor(cursor, int, int)
        with self._database.read() as db:
            keys = pages.episodes(
                db, after, project_n=self._find_project_n(db, project), limit=limit
            )
            by_n = fragment_store.by_number(db, [n for _, n in keys])
            rows = [(key, episodes.load_episode(db, by_n[key[1]])) for key in keys]
        return context.page_of(rows, limit)

    def page_of_projects(self, *, limit: PageSize = 50, cursor: str = "") -> Page[Project]:
        """Return a page of projects in the order of their creation."""
        after = context.decode_cursor(cursor, int)
        with self._database.read() as db:
            return context.page_of(pages.projects(db, after, limit=limit), limit)
