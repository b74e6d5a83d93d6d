"""Fragments on their way in, and what people do to them by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice

import orjson

from lore import clock, projects
from lore.checking import check_origin, check_tree
from lore.curate import trust
from lore.errors import InvalidInput, NotFound
from lore.projects import Projects
from lore.records import (
    EDGE_KINDS,
    FRAGMENT_KINDS,
    TRUST,
    UNASKED_TRUST,
    Draft,
    EdgeKind,
    Fragment,
    Origin,
)
from lore.redaction import UNKEPT, redact_tree
from lore.store import actions, edges, fragments, items, sessions, superseding, trees, trusting
from lore.store.befores import NOTHING, Before, Link, Successor, Words
from lore.store.db import Connection, Database
from lore.text import entities, hidden, lines, words
from lore.text.secrets import Redactor

BATCH = 200
"""Fragments that share one transaction when many are stored."""

SUMMARY_CHARS = 400
"""A given summary may say more than a derived one."""

Storing = Callable[[Connection], str]

MOST_CHARS = 200_000
"""A fragment is one unit of knowledge; a longer text is a document."""


def store(database: Database, draft: Draft, *, key: str = "", redactor: Redactor = UNKEPT) -> str:
    """Store a fragment and return its id; the same key again returns the same id."""
    work = storing(database, draft, redactor)
    return database.write(work, key=scoped("store", key))


def scoped(verb: str, key: str) -> str:
    """Return a caller's key for one verb: the same key may be used for another."""
    return f"{verb}\0{key}" if key else ""


def store_all(
    database: Database, drafts: Iterable[Draft], *, redactor: Redactor = UNKEPT
) -> list[str]:
    """Store many fragments in few transactions and return their ids in order."""
    ids: list[str] = []
    stream = iter(drafts)
    while works := [storing(database, draft, redactor) for draft in islice(stream, BATCH)]:
        ids += database.write(partial(_run_all, works))
    return ids


def _run_all(works: list[Storing], db: Connection) -> list[str]:
    return [work(db) for work in works]


def storing(
    database: Database, draft: Draft, redactor: Redactor, *, approved: bool = False
) -> Storing:
    """Check a draft and return the work that stores it.

    What a person approved is trusted like the assistant's words, whatever its origin.
    """
    return storing_prepared(database, prepared(draft, redactor), approved=approved)


def storing_prepared(database: Database, draft: Draft, *, approved: bool = False) -> Storing:
    """Return the work that stores a draft in the words that it has now."""
    content, now = draft.content, database.now()
    title = lines.one_line(draft.summary, SUMMARY_CHARS)
    mentioned = entities.extract(content, title=title)
    project = draft.project
    place = Projects().find(project)

    def work(db: Connection) -> str:
        parent = _living(db, draft.parent_id) if draft.parent_id else None
        sources = [items.resolve(db, id_, type="message") for id_ in draft.source_messages]
        depth = fragments.get(db, parent).depth + 1 if parent else 0
        if draft.depth not in (None, depth):
            msg = f"A fragment at this place has depth {depth}, not {draft.depth}."
            raise InvalidInput(msg, hint="Leave the depth out, or give another parent.")
        new = fragments.NewFragment(
            id=clock.new_id(now),
            content=content,
            summary=title or lines.summary(content),
            kind=draft.kind,
            created_at=now,
            depth=depth,
            payload=dict(draft.payload),
            importance=draft.importance,
            confidence=draft.confidence,
            origin=draft.origin,
            trust=max(
                TRUST[trusting.lowest(db, draft.origin, [source.n for source in sources])],
                UNASKED_TRUST if approved else 0,
            ),
            project_n=projects.ensure(db, project, place, now=now),
            session_n=sessions.get_number(db, draft.session) if draft.session else None,
            source_messages=tuple(source.id for source in sources),
            mentions=mentioned,
            metadata=dict(draft.metadata),
        )
        n = fragments.add(db, new, now=now)
        if parent:
            edges.put(db, parent, n, "hierarchical", now=now)
        actions.record(db, "store", n, now=now)
        return new.id

    return work


def prepared(draft: Draft, redactor: Redactor) -> Draft:
    """Return a draft in the words in which it is stored, or refuse it."""
    _checked(draft)

    def kept(text: str) -> str:
        return words.clean(redactor.redact(words.clean(text)))

    return replace(
        draft,
        content=kept(draft.content).strip(),
        summary=kept(draft.summary),
        project=kept(draft.project),
        session=kept(draft.session),
        payload=redact_tree(redactor, draft.payload),
        metadata=redact_tree(redactor, draft.metadata),
    )


def _checked(draft: Draft) -> str:
    content = words.clean(draft.content).strip()
    if not hidden.without_hidden(content).strip():
        msg = "There is nothing to remember: the text is empty."
        raise InvalidInput(msg)
    if len(content) > MOST_CHARS:
        msg = f"The text has {len(content):,} characters; a fragment takes {MOST_CHARS:,}."
        raise InvalidInput(msg, hint="Bring a conversation or document in as messages instead.")
    if draft.kind not in FRAGMENT_KINDS:
        msg = f"'{draft.kind}' is no kind of fragment."
        raise InvalidInput(msg, hint=f"Kinds: {', '.join(FRAGMENT_KINDS)}.")
    check_origin(draft.origin)
    if not (0 <= draft.importance <= 1 and 0 <= draft.confidence <= 1):
        msg = "Importance and confidence lie between 0 and 1."
        raise InvalidInput(msg)
    check_tree("payload", draft.payload)
    check_tree("metadata", draft.metadata)
    try:
        orjson.dumps((dict(draft.payload), dict(draft.metadata)))
    except TypeError as error:
        msg = f"Payload and metadata hold plain values only: {error}."
        raise InvalidInput(msg) from error
    if draft.depth is not None and draft.depth != 0 and not draft.parent_id:
        msg = "A fragment below depth 0 needs a parent."
        raise InvalidInput(msg, hint="Give parent_id, or leave the depth out.")
    return content


def update(  # noqa: PLR0913 - what a change has, and how it is written
    database: Database,
    id_: str,
    content: str,
    *,
    summary: str = "",
    reason: str = "",
    origin: Origin = "user",
    key: str = "",
    redactor: Redactor = UNKEPT,
) -> int:
    """Give a fragment new words and return its new version; the old ones stay readable.

    `origin` says whose words they are: less trust does not change what more trust said.
    """
    text = redactor.redact(_checked(Draft(content)))
    title = lines.one_line(redactor.redact(words.clean(summary)), SUMMARY_CHARS)
    because = redactor.redact(words.clean(reason))
    now = database.now()

    def work(db: Connection) -> int:
        n = _living(db, id_)
        old = fragments.get(db, n)
        trust.check_may_change(origin, old)
        said = Words(old.content, old.summary)
        actions.record(db, "update", n, Before(words=said), now=now)
        return fragments.update(
            db,
            n,
            content=text,
            summary=title or lines.summary(text),
            mentioned=entities.extract(text, title=title),
            now=now,
            reason=because,
        )

    return database.write(work, key=scoped("update", key))


def delete(database: Database, id_: str, *, origin: Origin = "user", key: str = "") -> str:
    """Hide a fragment everywhere until it is brought back by undo; return its id.

    `origin` says who wants it gone: less trust does not delete what more trust said.
    """
    now = database.now()

    def work(db: Connection) -> str:
        n = _living(db, id_)
        fragment = fragments.get(db, n)
        trust.check_may_delete(origin, fragment)
        hide(db, n, now=now)
        return fragment.id

    return database.write(work, key=scoped("delete", key))


def hide(db: Connection, n: int, before: Before = NOTHING, *, now: datetime) -> None:
    """Hide a fragment in a way that can be undone; `before` is what has to come back with it."""
    fragments.set_deleted(db, n, now, now=now)
    actions.record(db, "delete", n, before, now=now)


def link(  # noqa: PLR0913 - what an edge has, and how it is written
    database: Database,
    source: str,
    target: str,
    kind: EdgeKind,
    *,
    weight: float = 1.0,
    note: str = "",
    origin: Origin = "user",
    key: str = "",
    redactor: Redactor = UNKEPT,
) -> None:
    """Draw an edge between two fragments.

    `origin` says who draws it: less trust does not move what more trust said.
    """
    if kind not in EDGE_KINDS:
        msg = f"'{kind}' is no kind of edge."
        raise InvalidInput(msg, hint=f"Kinds: {', '.join(EDGE_KINDS)}.")
    if not 0 <= weight <= 1:
        msg = "The weight of an edge lies between 0 and 1."
        raise InvalidInput(msg)
    now = database.now()
    remark = redactor.redact(words.clean(note))

    def work(db: Connection) -> None:
        a, b = _living(db, source), _living(db, target)
        if a == b:
            msg = "A fragment cannot be linked to itself."
            raise InvalidInput(msg)
        if kind == "supersedes":
            msg = "Use supersede for that: it also hides the older one."
            raise InvalidInput(msg)
        parent = edges.find_parent(db, b) if kind == "hierarchical" else None
        drawn = Link(b, kind, edges.find(db, a, b, kind), parent)
        if kind == "hierarchical":
            trust.check_may_move(origin, fragments.get(db, b))
            move(db, b, a, now=now)
        edges.put(db, a, b, kind, now=now, weight=weight, note=remark)
        actions.record(db, "link", a, Before(link=drawn), now=now)

    database.write(work, key=scoped("link", key))


def move(db: Connection, child: int, parent: int | None, *, now: datetime) -> None:
    """Hang a child with all below it under another parent, or let it be a root."""
    if parent is not None and child in (parent, *edges.ancestors(db, parent)):
        msg = "That would make a fragment its own ancestor."
        raise InvalidInput(msg)
    trees.reparent(db, child, parent, now=now)


def supersede(
    database: Database, old: str, new: str, *, origin: Origin = "user", key: str = ""
) -> None:
    """Let a newer fragment replace an older one; both are kept, the newer is shown.

    `origin` says who decides it: a person may choose either, others not what has less trust.
    """
    now = database.now()

    def work(db: Connection) -> None:
        older, newer = _living(db, old), _living(db, new)
        if older == newer:
            msg = "A fragment cannot supersede itself."
            raise InvalidInput(msg)
        a, b = fragments.get(db, older), fragments.get(db, newer)
        if a.superseded_by == b.id:
            return
        if a.id in _successors(db, b):
            msg = "The newer one is itself superseded by the older one."
            raise InvalidInput(msg)
        trust.check_may_supersede(origin, a, b)
        superseding.supersede(db, older, newer, now=now)
        before = Before(successor=Successor(newer, a.superseded_by))
        actions.record(db, "supersede", older, before, now=now)

    database.write(work, key=scoped("supersede", key))


def _successors(db: Connection, fragment: Fragment) -> list[str]:
    """Return the ids of what superseded a fragment, and of what superseded that, and so on."""
    found: list[str] = []
    following = fragment.superseded_by
    while following is not None and following not in found:
        found.append(following)
        following = fragments.get(db, items.resolve(db, following).n).superseded_by
    return found


def _living(db: Connection, id_: str) -> int:
    """Return the number of a fragment that is not deleted."""
    n = items.resolve(db, id_, type="fragment").n
    if fragments.is_deleted(db, n):
        msg = f"Fragment '{id_}' was deleted."
        raise NotFound(msg, hint=f"'lore undo {id_}' brings it back.")
    return n
