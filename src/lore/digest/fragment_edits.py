"""Store, update, delete, link and supersede fragments on request, with undo and idempotency."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Literal

import orjson

from lore import clock, projects
from lore.errors import InvalidInput, NotFound
from lore.projects import ProjectFinder
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
from lore.redaction.redactor import EPHEMERAL_REDACTOR, Redactor, redact_tree
from lore.store import fragments, graph, history, items, messages, reversible_changes, sessions
from lore.store.database import Connection, Database
from lore.store.history import (
    EMPTY_SNAPSHOT,
    LinkSnapshot,
    SuccessorSnapshot,
    UndoSnapshot,
    Wording,
)
from lore.text import entities, hidden_text, sentences, words
from lore.text.private_text import hide_private
from lore.validation import check_nested_values, check_origin

_USER_HINT = "A user can, with 'lore {command}'. Store what you know besides as a new fragment."


def required_trust(fragment: Fragment) -> int:
    """Return the trust that an origin needs to replace a fragment.

    A preference that a user approved counts as their own words: only a user changes it.
    """
    approved = fragment.origin == "repo" or "promoted_from" in fragment.metadata
    stands = fragment.kind == "preference" and fragment.trust >= UNASKED_TRUST
    return TRUST["user"] if approved and stands else fragment.trust


def _check_may(verb: Literal["change", "delete", "move"], origin: Origin, old: Fragment) -> None:
    """Reject an edit by an origin with lower trust."""
    check_origin(origin)
    if TRUST[origin] < required_trust(old):
        command = {"change": "update", "move": "link"}.get(verb, verb)
        msg = f"Origin '{origin}' may not {verb} a fragment of origin '{old.origin}'."
        raise InvalidInput(msg, hint=_USER_HINT.format(command=command))


def _check_may_supersede(origin: Origin, older: Fragment, newer: Fragment) -> None:
    """Reject a supersession by lower trust, unless a user decides it."""
    check_origin(origin)
    if origin == "user":
        return
    needed = required_trust(older)
    if min(TRUST[origin], newer.trust) < needed:
        lower = newer.origin if newer.trust < needed else origin
        msg = f"Origin '{lower}' may not supersede a fragment of origin '{older.origin}'."
        raise InvalidInput(msg, hint=_USER_HINT.format(command="supersede"))


BATCH = 200
"""Fragments that share one transaction when many are stored."""

SUMMARY_CHARS = 400
"""A given summary may be longer than a derived one."""

_REPLACEMENT = "replacement"
"""The name under which the undo log has a fragment and its supersession of another."""

StoreWork = Callable[[Connection], str]

MAX_CHARS = 200_000
"""A fragment is one unit of knowledge; a longer text is a document."""


def store(
    database: Database, draft: Draft, *, key: str = "", redactor: Redactor = EPHEMERAL_REDACTOR
) -> str:
    """Store a fragment and return its id; the same key again returns the same id."""
    work = prepare_store(database, draft, redactor)
    return database.write(work, key=scope_key("store", key))


def scope_key(verb: str, key: str) -> str:
    """Return an idempotency key scoped to one verb: callers may reuse a key for another."""
    return f"{verb}\0{key}" if key else ""


def store_all(
    database: Database, drafts: Iterable[Draft], *, redactor: Redactor = EPHEMERAL_REDACTOR
) -> list[str]:
    """Store many fragments in few transactions and return their ids in order."""

    def run_all(works: list[StoreWork], db: Connection) -> list[str]:
        return [work(db) for work in works]

    ids: list[str] = []
    stream = iter(drafts)
    while works := [prepare_store(database, draft, redactor) for draft in islice(stream, BATCH)]:
        ids += database.write(partial(run_all, works))
    return ids


def prepare_store(
    database: Database,
    draft: Draft,
    redactor: Redactor | None,
    *,
    approved: bool = False,
    batch: str = "",
    now: datetime | None = None,
) -> StoreWork:
    """Check a draft and return the work that stores it; without a redactor it is clean already.

    Approved drafts are trusted like the assistant's words, whatever their origin. `batch` names
    what was done at the same time and is undone together with it.
    """
    draft = clean_draft(draft, redactor) if redactor else draft
    content, now = draft.content, now or database.now()
    title = sentences.one_line(draft.summary, SUMMARY_CHARS)
    mentioned = entities.extract_mentions(content, title=title)
    place = ProjectFinder().find(draft.project)

    def work(db: Connection) -> str:
        parent = resolve_live(db, draft.parent_id) if draft.parent_id else None
        sources = [items.resolve(db, id_, type="message") for id_ in draft.source_messages]
        depth = fragments.get(db, parent).depth + 1 if parent else 0
        if draft.depth not in (None, depth):
            msg = f"A fragment at this place has depth {depth}, not {draft.depth}."
            raise InvalidInput(msg, hint="Leave the depth out, or give another parent.")
        source_ns = [source.n for source in sources]
        trust = TRUST[messages.lowest_trust_origin(db, draft.origin, source_ns)]
        new = fragments.NewFragment(
            id=clock.new_id(now),
            content=content,
            summary=title or sentences.summary(content),
            kind=draft.kind,
            created_at=now,
            depth=depth,
            payload=dict(draft.payload),
            importance=draft.importance,
            confidence=draft.confidence,
            origin=draft.origin,
            trust=max(trust, UNASKED_TRUST) if approved else trust,
            project_n=projects.ensure_project(db, draft.project, place, now=now),
            session_n=sessions.get_session_number(db, draft.session) if draft.session else None,
            source_messages=tuple(source.id for source in sources),
            mentions=mentioned,
            metadata=dict(draft.metadata),
        )
        n = fragments.add(db, new, now=now)
        if parent:
            graph.put_edge(db, parent, n, "hierarchical", now=now)
        history.record_action(db, "store", n, UndoSnapshot(batch=batch), now=now)
        return new.id

    return work


def clean_draft(draft: Draft, redactor: Redactor) -> Draft:
    """Return a draft cleaned and redacted for storage, or reject it."""
    _check_draft(draft)

    def clean(text: str) -> str:
        return words.clean(redactor.redact(hide_private(words.clean(text))))

    return replace(
        draft,
        content=clean(draft.content).strip(),
        summary=clean(draft.summary),
        project=clean(draft.project),
        session=clean(draft.session),
        payload=redact_tree(redactor, draft.payload),
        metadata=redact_tree(redactor, draft.metadata),
    )


def _check_draft(draft: Draft) -> str:
    content = words.clean(draft.content).strip()
    if not hidden_text.strip_hidden(content).strip():
        msg = "There is nothing to remember: the text is empty."
        raise InvalidInput(msg)
    if len(content) > MAX_CHARS:
        msg = (
            f"The text has {len(content):,} characters; a fragment may have at most {MAX_CHARS:,}."
        )
        raise InvalidInput(msg, hint="Bring a conversation or document in as messages instead.")
    if draft.kind not in FRAGMENT_KINDS:
        msg = f"'{draft.kind}' is not a kind of fragment."
        hint = f"Kinds: {', '.join(FRAGMENT_KINDS)}. A lasting rule is a preference."
        raise InvalidInput(msg, hint=hint)
    check_origin(draft.origin)
    if not (0 <= draft.importance <= 1 and 0 <= draft.confidence <= 1):
        msg = "Importance and confidence must be between 0 and 1."
        raise InvalidInput(msg)
    check_nested_values("payload", draft.payload)
    check_nested_values("metadata", draft.metadata)
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
    redactor: Redactor = EPHEMERAL_REDACTOR,
) -> int:
    """Change the text of a fragment and return its new version; old versions stay readable.

    `origin` is whose words they are: lower trust does not change what higher trust said.
    """
    work = prepare_update(
        database.now(), id_, content,
        summary=summary, reason=reason, origin=origin, redactor=redactor,
    )  # fmt: skip
    return database.write(work, key=scope_key("update", key))


def prepare_update(
    now: datetime,
    id_: str,
    content: str,
    *,
    summary: str = "",
    reason: str = "",
    origin: Origin = "user",
    redactor: Redactor = EPHEMERAL_REDACTOR,
) -> Callable[[Connection], int]:
    """Check a change of a fragment's text and return the work that makes it: see `update`."""
    text = redactor.redact(_check_draft(Draft(content)))
    title = sentences.one_line(redactor.redact(words.clean(summary)), SUMMARY_CHARS)
    because = redactor.redact(words.clean(reason))

    def work(db: Connection) -> int:
        n = resolve_live(db, id_)
        old = fragments.get(db, n)
        _check_may("change", origin, old)
        wording = Wording(old.content, old.summary)
        history.record_action(db, "update", n, UndoSnapshot(wording=wording), now=now)
        return fragments.update(
            db,
            n,
            content=text,
            summary=title or sentences.summary(text),
            mentioned=entities.extract_mentions(text, title=title),
            now=now,
            reason=because,
        )

    return work


def delete(database: Database, id_: str, *, origin: Origin = "user", key: str = "") -> str:
    """Hide a fragment everywhere until undo restores it; return its id.

    `origin` is who deletes: lower trust does not delete what higher trust said.
    """
    work = partial(hide_one, id_=id_, origin=origin, now=database.now())
    return database.write(work, key=scope_key("delete", key))


def hide_one(db: Connection, *, id_: str, origin: Origin, now: datetime) -> str:
    """Hide a fragment in a transaction and return its id: see `delete`."""
    n = resolve_live(db, id_)
    fragment = fragments.get(db, n)
    _check_may("delete", origin, fragment)
    hide_undoably(db, n, now=now)
    return fragment.id


def hide_undoably(
    db: Connection, n: int, before: UndoSnapshot = EMPTY_SNAPSHOT, *, now: datetime
) -> None:
    """Hide a fragment and record the action; undo also restores what `before` holds."""
    fragments.set_deleted(db, n, now, now=now)
    history.record_action(db, "delete", n, before, now=now)


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
    redactor: Redactor = EPHEMERAL_REDACTOR,
) -> None:
    """Add an edge between two fragments.

    `origin` is who adds it: lower trust does not move what higher trust said.
    """
    if kind not in EDGE_KINDS:
        msg = f"'{kind}' is not a kind of edge."
        raise InvalidInput(msg, hint=f"Kinds: {', '.join(EDGE_KINDS)}.")
    if not 0 <= weight <= 1:
        msg = "The weight of an edge must be between 0 and 1."
        raise InvalidInput(msg)
    now = database.now()
    remark = redactor.redact(words.clean(note))

    def work(db: Connection) -> None:
        a, b = resolve_live(db, source), resolve_live(db, target)
        if a == b:
            msg = "A fragment cannot be linked to itself."
            raise InvalidInput(msg)
        if kind == "supersedes":
            msg = "Use supersede for that: it also hides the older one."
            raise InvalidInput(msg)
        parent = graph.find_parent(db, b) if kind == "hierarchical" else None
        drawn = LinkSnapshot(b, kind, graph.find_edge(db, a, b, kind), parent)
        if kind == "hierarchical":
            _check_may("move", origin, fragments.get(db, b))
            move(db, b, a, now=now)
        graph.put_edge(db, a, b, kind, now=now, weight=weight, note=remark)
        history.record_action(db, "link", a, UndoSnapshot(link=drawn), now=now)

    database.write(work, key=scope_key("link", key))


def move(db: Connection, child: int, parent: int | None, *, now: datetime) -> None:
    """Move a child with its subtree below another parent, or make it a root."""
    if parent is not None and child in (parent, *graph.ancestors(db, parent)):
        msg = "That would make a fragment its own ancestor."
        raise InvalidInput(msg)
    reversible_changes.reparent(db, child, parent, now=now)


def supersede(
    database: Database, old: str, new: str, *, origin: Origin = "user", key: str = ""
) -> None:
    """Supersede an older fragment by a newer one; both are kept, the newer is shown.

    `origin` is who decides: a user may choose either, others not the less trusted one.
    """
    work = partial(replace_one, old=old, new=new, origin=origin, now=database.now())
    database.write(work, key=scope_key("supersede", key))


def store_successor(
    database: Database, draft: Draft, old: str, *, redactor: Redactor = EPHEMERAL_REDACTOR
) -> str:
    """Store a fragment that supersedes another, undone in one step; return its id."""
    now = database.now()
    store_new = prepare_store(database, draft, redactor, batch=_REPLACEMENT, now=now)

    def work(db: Connection) -> str:
        new = store_new(db)
        replace_one(db, old=old, new=new, origin=draft.origin, now=now, batch=_REPLACEMENT)
        return new

    return database.write(work)


def replace_one(
    db: Connection, *, old: str, new: str, origin: Origin, now: datetime, batch: str = ""
) -> None:
    """Supersede an older fragment by a newer one in a transaction: see `supersede`."""
    older, newer = resolve_live(db, old), resolve_live(db, new)
    if older == newer:
        msg = "A fragment cannot supersede itself."
        raise InvalidInput(msg)
    a, b = fragments.get(db, older), fragments.get(db, newer)
    if a.superseded_by == b.id:
        return
    if a.id in _successors(db, b):
        msg = "The newer one is itself superseded by the older one."
        raise InvalidInput(msg)
    _check_may_supersede(origin, a, b)
    reversible_changes.supersede(db, older, newer, now=now)
    before = UndoSnapshot(successor=SuccessorSnapshot(newer, a.superseded_by), batch=batch)
    history.record_action(db, "supersede", older, before, now=now)


def _successors(db: Connection, fragment: Fragment) -> dict[str, int]:
    ns: dict[str, int] = {}
    following = fragment.superseded_by
    while following is not None and following not in ns:
        ns[following] = items.resolve(db, following).n
        following = fragments.get(db, ns[following]).superseded_by
    return ns


def resolve_live(db: Connection, id_: str) -> int:
    """Return the number of a fragment that is not deleted."""
    n = items.resolve(db, id_, type="fragment").n
    if fragments.is_deleted(db, n):
        msg = f"Fragment '{id_}' was deleted."
        raise NotFound(msg, hint=f"'lore undo {id_}' brings it back.")
    return n
