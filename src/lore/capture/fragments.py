"""Fragments on their way in, and what people do to them by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from lore import clock
from lore.errors import InvalidInput, NotFound
from lore.records import EDGE_KINDS, FRAGMENT_KINDS, ORIGINS, EdgeKind, FragmentKind, Origin
from lore.store import actions, edges, fragments, items, sessions
from lore.store.db import Connection, Database
from lore.text import entities, lines, words

BATCH = 200
"""Fragments that share one transaction when many are stored."""

MOST_CHARS = 200_000
"""A fragment is one unit of knowledge; a longer text is a document."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A fragment as someone asks for it to be stored."""

    content: str
    summary: str = ""
    kind: FragmentKind = "fact"
    parent_id: str = ""
    depth: int | None = None
    importance: float = 0.5
    confidence: float = 0.7
    origin: Origin = "user"
    project: str = ""
    session: str = ""
    source_messages: tuple[str, ...] = ()
    payload: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


def store(database: Database, draft: Draft, *, key: str = "") -> str:
    """Store a fragment and return its id; the same key again returns the same id."""
    work = _storing(database, draft)
    return database.write(work, key=key)


def store_all(database: Database, drafts: Iterable[Draft]) -> list[str]:
    """Store many fragments in few transactions and return their ids in order."""
    ids: list[str] = []
    stream = iter(drafts)
    while works := [_storing(database, draft) for draft in islice(stream, BATCH)]:
        ids += database.write(lambda db, works=works: [work(db) for work in works])
    return ids


def _storing(database: Database, draft: Draft) -> Callable[[Connection], str]:
    """Check a draft and return the work that stores it."""
    content = _checked(draft)
    now = database.now()
    summary = words.clean(draft.summary).strip() or lines.summary(content)
    mentioned = entities.extract(content, title=draft.summary)

    def work(db: Connection) -> str:
        parent = items.resolve(db, draft.parent_id, type="fragment") if draft.parent_id else None
        new = fragments.NewFragment(
            id=clock.new_id(now),
            content=content,
            summary=lines.summary(summary, 400),
            kind=draft.kind,
            created_at=now,
            depth=fragments.get(db, parent.n).depth + 1 if parent else 0,
            payload=draft.payload,
            importance=draft.importance,
            confidence=draft.confidence,
            origin=draft.origin,
            project_n=sessions.ensure_project(db, draft.project, now=now) if draft.project else None,
            session_n=sessions.get_number(db, draft.session) if draft.session else None,
            source_messages=tuple(
                items.resolve(db, id_, type="message").id for id_ in draft.source_messages
            ),
            mentions=mentioned,
            metadata=draft.metadata,
        )
        n = fragments.add(db, new, now=now)
        if parent:
            edges.put(db, parent.n, n, "hierarchical", now=now)
        actions.record(db, "store", n, {}, now=now)
        return new.id

    return work


def _checked(draft: Draft) -> str:
    content = words.clean(draft.content).strip()
    if not content:
        msg = "There is nothing to remember: the text is empty."
        raise InvalidInput(msg)
    if len(content) > MOST_CHARS:
        msg = f"The text has {len(content):,} characters; a fragment takes {MOST_CHARS:,}."
        raise InvalidInput(msg, hint="Bring a conversation or document in as messages instead.")
    if draft.kind not in FRAGMENT_KINDS:
        msg = f"'{draft.kind}' is no kind of fragment."
        raise InvalidInput(msg, hint=f"Kinds: {', '.join(FRAGMENT_KINDS)}.")
    if draft.origin not in ORIGINS:
        msg = f"'{draft.origin}' is no origin."
        raise InvalidInput(msg, hint=f"Origins: {', '.join(ORIGINS)}.")
    if not (0 <= draft.importance <= 1 and 0 <= draft.confidence <= 1):
        msg = "Importance and confidence lie between 0 and 1."
        raise InvalidInput(msg)
    if draft.depth is not None and draft.depth != 0 and not draft.parent_id:
        msg = "A fragment below depth 0 needs a parent."
        raise InvalidInput(msg, hint="Give parent_id, or leave the depth out.")
    return content


def update(
    database: Database, id_: str, content: str, *, summary: str = "", reason: str = "", key: str = ""
) -> int:
    """Give a fragment new words and return its new version; the old ones stay readable."""
    text = _checked(Draft(content))
    summary = words.clean(summary).strip() or lines.summary(text)
    now = database.now()

    def work(db: Connection) -> int:
        n = _living(db, id_)
        old = fragments.get(db, n)
        actions.record(
            db, "update", n, {"content": old.content, "summary": old.summary}, now=now
        )
        return fragments.update(
            db,
            n,
            content=text,
            summary=summary,
            mentioned=entities.extract(text, title=summary),
            now=now,
            reason=reason,
        )

    return database.write(work, key=key)


def delete(database: Database, id_: str, *, key: str = "") -> str:
    """Hide a fragment everywhere until it is brought back by undo; return its id."""
    now = database.now()

    def work(db: Connection) -> str:
        n = _living(db, id_)
        fragments.set_deleted(db, n, now, now=now)
        actions.record(db, "delete", n, {}, now=now)
        return fragments.get(db, n).id

    return database.write(work, key=key)


def link(
    database: Database,
    source: str,
    target: str,
    kind: EdgeKind,
    *,
    weight: float = 1.0,
    note: str = "",
) -> None:
    """Draw an edge between two fragments."""
    if kind not in EDGE_KINDS:
        msg = f"'{kind}' is no kind of edge."
        raise InvalidInput(msg, hint=f"Kinds: {', '.join(EDGE_KINDS)}.")
    if not 0 <= weight <= 1:
        msg = "The weight of an edge lies between 0 and 1."
        raise InvalidInput(msg)
    now = database.now()

    def work(db: Connection) -> None:
        a, b = _living(db, source), _living(db, target)
        if a == b:
            msg = "A fragment cannot be linked to itself."
            raise InvalidInput(msg)
        if kind == "supersedes":
            msg = "Use supersede for that: it also hides the older one."
            raise InvalidInput(msg)
        if kind == "hierarchical":
            _adopt(db, a, b)
        edges.put(db, a, b, kind, now=now, weight=weight, note=words.clean(note))
        actions.record(db, "link", a, {"target": b, "kind": kind}, now=now)

    database.write(work)


def _adopt(db: Connection, parent: int, child: int) -> None:
    """Move a child with its subtree below a parent; a tree stays a tree."""
    below = edges.subtree(db, child)
    if parent in {n for n, _ in below}:
        msg = "That would make a fragment its own ancestor."
        raise InvalidInput(msg)
    former = edges.find_parent(db, child)
    if former is not None:
        edges.remove(db, former, child, "hierarchical")
    depth = fragments.get(db, parent).depth + 1
    for n, distance in below:
        fragments.set_depth(db, n, depth + distance)


def supersede(database: Database, old: str, new: str) -> None:
    """Let a newer fragment replace an older one; both are kept, the newer is shown."""
    now = database.now()

    def work(db: Connection) -> None:
        older, newer = _living(db, old), _living(db, new)
        if older == newer:
            msg = "A fragment cannot supersede itself."
            raise InvalidInput(msg)
        a, b = fragments.get(db, older), fragments.get(db, newer)
        if b.superseded_by == a.id:
            msg = "The newer one is itself superseded by the older one."
            raise InvalidInput(msg)
        if b.trust < a.trust:
            msg = f"What a '{b.origin}' said does not supersede what a '{a.origin}' said."
            raise InvalidInput(msg)
        edges.put(db, newer, older, "supersedes", now=now)
        fragments.set_superseded(db, older, b.id, now=now)
        actions.record(db, "supersede", older, {"newer": newer}, now=now)

    database.write(work)


def undo(database: Database, id_: str = "") -> tuple[str, str]:
    """Undo the last thing done by hand, of all or of one fragment; return verb and id."""
    now = database.now()

    def work(db: Connection) -> tuple[str, str]:
        n = items.resolve(db, id_, type="fragment").n if id_ else None
        action = actions.find_last(db, fragment_n=n)
        if action is None:
            msg = "There is nothing to undo."
            raise NotFound(msg)
        _reverse(db, action, now)
        actions.mark_undone(db, action.n)
        return action.verb, fragments.get(db, action.fragment_n).id

    return database.write(work)


def _reverse(db: Connection, action: actions.Action, now: clock.datetime) -> None:
    n, before = action.fragment_n, action.before
    if action.verb == "store":
        fragments.set_deleted(db, n, now, now=now)
    elif action.verb == "delete":
        fragments.set_deleted(db, n, None, now=now)
    elif action.verb == "update":
        fragments.update(
            db,
            n,
            content=before["content"],
            summary=before["summary"],
            mentioned=entities.extract(before["content"], title=before["summary"]),
            now=now,
            reason="undo",
        )
    elif action.verb == "link":
        edges.remove(db, n, before["target"], before["kind"])
    else:
        edges.remove(db, before["newer"], n, "supersedes")
        fragments.set_superseded(db, n, None, now=now)


def _living(db: Connection, id_: str) -> int:
    """Return the number of a fragment that is not deleted."""
    n = items.resolve(db, id_, type="fragment").n
    if fragments.is_deleted(db, n):
        msg = f"Fragment '{id_}' was deleted."
        raise NotFound(msg, hint=f"'lore undo {id_}' brings it back.")
    return n
