"""The review queue: what waits for a person's decision, of all kinds in one list."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from lore import clock, local_files
from lore.digest import project_page, replacement
from lore.digest.consolidation import merge, pairs
from lore.digest.consolidation.prune import ANY_LIMIT, ROOT_LIMIT, UNREAD_LIMIT
from lore.errors import InvalidInput, StoreError
from lore.recall import answer
from lore.records import (
    Fragment,
    Project,
    ReviewDecision,
    ReviewItem,
    ReviewKind,
    ReviewText,
    SharedChange,
)
from lore.redaction.redactor import Redactor
from lore.store import (
    consolidation,
    fragments,
    items,
    pages,
    project_rows,
    review_rows,
    standing_instructions,
    vectors,
)
from lore.store.consolidation import ActiveEmbedder
from lore.store.database import Connection, Database
from lore.text import sentences, shared_page

log = logging.getLogger("lore.digest")

KINDS: tuple[ReviewKind, ...] = (
    "instruction", "conflict", "replacement", "shared", "promotion", "untrusted", "merge", "prune",
)  # fmt: skip
"""In the order of the queue: first what changes what agents are told."""

OPTIONS: dict[ReviewKind, tuple[ReviewDecision, ...]] = {
    "instruction": ("approve", "reject"),
    "conflict": ("keep_newer", "keep_older", "both", "dismiss"),
    "replacement": ("keep_newer", "dismiss"),
    "shared": ("approve",),
    "promotion": ("approve",),
    "untrusted": ("approve", "reject"),
    "merge": ("approve", "keep"),
    "prune": ("keep", "delete"),
}
"""What can be decided about each kind of entry."""

MOST = 500
"""Entries of one kind that are listed; the rest follows once these are decided."""

_TITLE_CHARS = 120
_TEXT_CHARS = 4_000

Key = tuple[int, int]
Entry = tuple[Key, ReviewItem]
"""An entry with its place in the list of its kind: smaller keys come first."""


def _title(text: str) -> str:
    return sentences.one_line(text, _TITLE_CHARS)


def _fragment_text(one: Fragment) -> ReviewText:
    return ReviewText(
        one.id, one.content[:_TEXT_CHARS], one.created_at, one.origin, "fragment", one.kind,
        one.session_id or "", one.project_id,
    )  # fmt: skip


def _newest_first(at: datetime, n: int) -> Key:
    return -clock.to_us(at), -n


def list_instructions(db: Connection, project_n: int | None) -> Iterator[Entry]:
    """Yield the sentences that may be rules."""
    suggested = standing_instructions.current_suggestions(
        db, project_n, everywhere=project_n is None, limit=MOST
    )
    for one in answer.describe_instructions(db, suggested):
        text = ReviewText(
            one.id, one.text, one.created_at, "user", one.type, "preference", one.session_id,
            one.project_id or None,
        )  # fmt: skip
        yield (
            _newest_first(one.created_at, one.number),
            ReviewItem(
                id=f"instruction:{one.id}:{one.number}",
                kind="instruction",
                title=_title(one.text),
                why="It may be a rule that you want every agent to follow.",
                at=one.created_at,
                texts=(text,),
                options=OPTIONS["instruction"],
                project_id=one.project_id or None,
            ),
        )


def list_conflicts(db: Connection, project_n: int | None) -> Iterator[Entry]:
    """Yield the fragments that contradict each other."""
    keys = pages.conflicts(db, (), project_n=project_n, limit=MOST)
    by_n = fragments.by_number(db, sorted({n for _, *pair in keys for n in pair}))
    for at, newer_n, older_n in keys:
        newer, older = by_n[newer_n], by_n[older_n]
        yield (
            # One fragment may contradict several, all found at the same time.
            (-at, -(newer_n << 31 | older_n)),
            ReviewItem(
                id=f"conflict:{newer.id}:{older.id}",
                kind="conflict",
                title=_title(newer.summary),
                why="Both cannot hold.",
                at=clock.from_us(at),
                texts=(_fragment_text(newer), _fragment_text(older)),
                options=OPTIONS["conflict"],
                project_id=newer.project_id,
            ),
        )


def list_replacements(db: Connection, project_n: int | None) -> Iterator[Entry]:
    """Yield the statements of which the newer may replace the older."""
    doubtful = replacement.doubtful_pairs(db, project_n=project_n)
    sources = items.find_sources(
        db, [id_ for one in doubtful for id_ in (one.newer.id, one.older.id)]
    )
    for place, one in enumerate(doubtful):
        newer, older = (sources[stated.id] for stated in (one.newer, one.older))
        yield (-clock.to_us(one.newer.at), place), ReviewItem(
            id=f"replacement:{one.newer.id}:{one.older.id}",
            kind="replacement",
            title=_title(one.newer.text),
            why="The newer statement may replace the older one.",
            at=one.newer.at,
            texts=tuple(
                ReviewText(
                    stated.id, stated.text, stated.at, item.origin, item.type,
                    session_id=item.session_id, project_id=item.project_id,
                )
                for stated, item in ((one.newer, newer), (one.older, older))
            ),
            options=OPTIONS["replacement"],
            certainty=one.certainty,
            project_id=newer.project_id,
        )  # fmt: skip


def find_untrusted(
    db: Connection, project_n: int | None, *, after: Key | None = None, limit: int = MOST
) -> list[int]:
    """Return the numbers of fragments of sources that are not trusted, the newest first."""
    before = -after[0] if after else pages.BEFORE_NEWEST
    return review_rows.untrusted_fragments(db, project_n=project_n, before=before, limit=limit)


def list_untrusted(db: Connection, ns: Sequence[int]) -> Iterator[Entry]:
    """Yield fragments of sources that are not trusted."""
    by_n = fragments.by_number(db, ns)
    for n in ns:
        one = by_n[n]
        yield (
            (-n, 0),
            ReviewItem(
                id=f"untrusted:{one.id}",
                kind="untrusted",
                title=_title(one.summary),
                why=_SOURCES[one.origin],
                at=one.created_at,
                texts=(_fragment_text(one),),
                options=OPTIONS["untrusted"],
                project_id=one.project_id,
            ),
        )


_SOURCES = {
    "peer": "It comes from another memory: agents get it only when they ask.",
    "web": "It comes from a web page: agents get it only when they ask.",
    "repo": "It comes from a file of the repository: agents get it only when they ask.",
}


def find_prunable(
    db: Connection,
    project_n: int | None,
    *,
    now: datetime,
    after: Key | None = None,
    limit: int = MOST,
) -> list[int]:
    """Return the numbers of fragments that the next cycle hides because they faded."""
    ns = consolidation.prunable_fragments(
        db, unread=UNREAD_LIMIT, any_=ANY_LIMIT, root=ROOT_LIMIT, now=now
    )
    scopes = items.scopes_of(db, ns) if project_n is not None else {}
    ns = [n for n in ns if project_n is None or scopes.get(n) == project_n][:MOST]
    return sorted(n for n in ns if after is None or n > after[0])[:limit]


def list_prunable(db: Connection, ns: Sequence[int]) -> Iterator[Entry]:
    """Yield fragments that the next cycle hides because they faded."""
    by_n = fragments.by_number(db, ns)
    for n in (n for n in ns if n in by_n):
        one = by_n[n]
        yield (
            (n, 0),
            ReviewItem(
                id=f"prune:{one.id}",
                kind="prune",
                title=_title(one.summary),
                why=f"It faded to {one.relevance:.2f} and will be hidden by the next cycle.",
                at=one.created_at,
                texts=(_fragment_text(one),),
                options=OPTIONS["prune"],
                project_id=one.project_id,
            ),
        )


class MergeState(NamedTuple):
    """What the pairs that a cycle merges depend on: its progress, vectors and decisions."""

    since: int
    newest: int
    exemptions: int


class MergeFinder:
    """Finds the pairs of roots that the next cycle merges, again whenever something changed.

    In a large memory this takes a while: then it is done in the background, and what was found
    before is listed until it is done.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._state: MergeState | None = None
        self._pairs: tuple[tuple[int, int], ...] = ()

    def find(self) -> tuple[tuple[int, int], ...]:
        """Return pairs (survivor, victim)."""
        with self._database.read() as db:
            embedding = consolidation.find_active_embedder(db)
            since = consolidation.get_progress(db, merge.MERGE_MARK)
            exemptions = consolidation.count_judgements(db, "merge")
            state = MergeState(since, vectors.newest_seq(db), exemptions)
            if embedding is None or since >= state.newest:
                return ()
            roots = consolidation.count_roots(db) if state != self._state else 0
        if state == self._state or not self._lock.acquire(blocking=False):
            return self._pairs
        compare = partial(self._compare, embedding, state)
        if roots <= _FEW_ROOTS:
            compare()
        else:
            threading.Thread(target=compare, name="lore-merges", daemon=True).start()
        return self._pairs

    def _compare(self, embedding: ActiveEmbedder, state: MergeState) -> None:
        try:
            similar = pairs.compare_roots(self._database, embedding, state.since)
            near = [pair for pair in similar.pairs if pair.cosine > merge.MERGE_ABOVE][:MOST]
            with self._database.read() as db:
                planned, _ = merge.plan_merges(db, near)
            self._state, self._pairs = state, tuple(planned)
        except StoreError as error:  # it is closed, or the next look finds them
            log.warning("merges not found", extra={"error": type(error).__name__})
        finally:
            self._lock.release()


_FEW_ROOTS = 1_000
"""As many are compared at once: a million pairs take some 15 ms."""


def list_merges(
    db: Connection, project_n: int | None, planned: Sequence[tuple[int, int]]
) -> Iterator[Entry]:
    """Yield the pairs of fragments that the next cycle merges."""
    by_n = fragments.by_number(db, sorted({n for pair in planned for n in pair}))
    ns = [victim for _, victim in planned]
    scopes = items.scopes_of(db, ns) if project_n is not None else {}
    for survivor, victim in planned:
        is_there = survivor in by_n and victim in by_n and by_n[victim].superseded_by is None
        if not is_there or (project_n is not None and scopes.get(victim) != project_n):
            continue
        stays, goes = by_n[survivor], by_n[victim]
        yield (
            (survivor, victim),
            ReviewItem(
                id=f"merge:{stays.id}:{goes.id}",
                kind="merge",
                title=_title(stays.summary),
                why="They say the same; the next cycle keeps the first.",
                at=goes.created_at,
                texts=(_fragment_text(stays), _fragment_text(goes)),
                options=OPTIONS["merge"],
                project_id=stays.project_id,
            ),
        )


def list_promotions(db: Connection, project_n: int | None) -> Iterator[Entry]:
    """Yield fragments of one project that enough others confirmed."""
    projects = project_rows.all_projects(db)
    wanted = projects[project_n].id if project_n in projects else None
    for place, offer in enumerate(project_page.promotion_offers(db)[:MOST]):
        one = offer.fragment
        if project_n is None or one.project_id == wanted:
            yield (
                (place, 0),
                ReviewItem(
                    id=f"promotion:{one.id}",
                    kind="promotion",
                    title=_title(one.summary),
                    why=f"{len(offer.projects)} projects confirmed it: it may hold for all.",
                    at=one.created_at,
                    texts=(_fragment_text(one),),
                    options=OPTIONS["promotion"],
                    project_id=one.project_id,
                ),
            )


_MAX_PROJECTS = 200
"""Project folders that are looked into for a shared page, the newest first."""

_VERBS = {"add": "added", "change": "changed", "remove": "removed"}


def list_shared(db: Connection, project_n: int | None, redactor: Redactor) -> Iterator[Entry]:
    """Yield what people changed on the shared pages of projects on this machine."""
    projects = sorted(project_rows.all_projects(db).items(), reverse=True)[:_MAX_PROJECTS]
    for n, project in projects:
        if project_n is None or n == project_n:
            for place, change in enumerate(read_shared_changes(db, project, redactor)[:MOST]):
                yield (n, place), _shared_item(project, change)


def read_shared_changes(db: Connection, project: Project, redactor: Redactor) -> list[SharedChange]:
    """Return the changes on the shared page in a project's folder; none if it cannot be read."""
    if local_files.are_withheld():
        return []
    file = Path(project.path) / shared_page.FILE_NAME
    with suppress(OSError, InvalidInput):
        page = project_page.read_page(file, redactor) if file.is_absolute() else None
        if page is not None:
            return project_page.read_changes(db, project.id, page)
    return []


def shared_digest(change: SharedChange) -> str:
    """Return what names a change on a shared page."""
    parts = (change.verb, change.entry, change.kind, change.before, change.after)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _shared_item(project: Project, change: SharedChange) -> ReviewItem:
    hidden = " It has invisible text." if change.hidden else ""
    texts = [
        ReviewText(change.fragment_id, text, None, "repo", "page", change.kind,
                   project_id=project.id)
        for text in (change.after, change.before)
        if text
    ]  # fmt: skip
    return ReviewItem(
        id=f"shared:{project.id}:{shared_digest(change)}",
        kind="shared",
        title=_title(change.after or change.before),
        why=f"It was {_VERBS[change.verb]} in {shared_page.FILE_NAME} of {project.name}.{hidden}",
        at=None,
        texts=tuple(texts),
        options=OPTIONS["shared"],
        project_id=project.id,
    )


def page_of(
    lists: Iterable[tuple[int, Iterable[Entry]]], after: Sequence[int], limit: int
) -> list[tuple[tuple[int, int, int], ReviewItem]]:
    """Return the entries after a key: the place of the kind, and the place in its list."""
    rows: list[tuple[tuple[int, int, int], ReviewItem]] = []
    start = tuple(after) or (-1, 0, 0)
    for place, entries in lists:
        if place < start[0]:
            continue
        own = sorted(((place, *key), item) for key, item in entries)
        rows += [(key, item) for key, item in own if key > start]
        if len(rows) >= limit:
            break
    return rows[:limit]


def check_option(decision: ReviewDecision, options: Sequence[ReviewDecision], kind: str) -> None:
    """Refuse a decision that does not fit a kind of entry."""
    if decision not in options:
        msg = f"'{decision}' does not decide this: use {', '.join(options)}."
        raise InvalidInput(msg, hint=f"It is of the kind '{kind}'.")
