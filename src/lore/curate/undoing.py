"""Undo and redo: what was done to fragments by hand is taken back step by step, and done again.

Undo takes back the last thing that stands; redo does again what was last taken back. Whoever
does something new after an undo can no longer redo.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from lore import clock
from lore.curate.fragments import move, scoped
from lore.errors import InvalidInput, NotFound
from lore.store import (
    actions,
    edges,
    fragments,
    items,
    loading,
    messages,
    standing,
    superseding,
    upkeep,
)
from lore.store.actions import Action
from lore.store.befores import Link, Whose, Words
from lore.store.db import Connection, Database
from lore.store.edges import Drawn
from lore.text import entities
from lore.text.typed import standing_in


def undo(database: Database, id_: str = "", *, key: str = "") -> tuple[str, str]:
    """Undo the last thing done by hand, of all or of one fragment; return verb and id."""
    now = database.now()

    def work(db: Connection) -> tuple[str, str]:
        n = _number(db, id_)
        action = _last(db, n)
        if action is None and n is not None and fragments.is_deleted(db, n):
            fragments.set_deleted(db, n, None, now=now)
            return "delete", fragments.get(db, n).id
        action = _there(action, "undo")
        for one in _whole(db, action, n):
            after = _state(db, one)
            _reverse(db, one, now)
            actions.mark_undone(db, one.n, replace(one.before, after=after))
            if n is None:
                _say_again(db, one.before.standing)
        return _name(action, n), fragments.get(db, action.fragment_n).id

    verb, undone = database.write(work, key=scoped("undo", key))
    return verb, undone


def redo(database: Database, id_: str = "", *, key: str = "") -> tuple[str, str]:
    """Do again what was last undone, of all or of one fragment; return verb and id."""
    now = database.now()

    def work(db: Connection) -> tuple[str, str]:
        n = _number(db, id_)
        action = _there(actions.find_undone(db, fragment_n=n), "redo")
        for one in _whole(db, action, n, undone=True):
            _repeat(db, one, now)
            actions.mark_done(db, one.n)
            if n is None:
                standing.remove(db, one.before.standing)
        return _name(action, n), fragments.get(db, action.fragment_n).id

    verb, redone = database.write(work, key=scoped("redo", key))
    return verb, redone


def find_next(db: Connection, id_: str = "", *, redo: bool = False) -> tuple[str, str] | None:
    """Return verb and id of what undo, or redo, would act on."""
    n = _number(db, id_)
    action = actions.find_undone(db, fragment_n=n) if redo else _last(db, n)
    if action is None:
        if n is not None and not redo and fragments.is_deleted(db, n):
            return "delete", fragments.get(db, n).id
        return None
    return _name(action, n), fragments.get(db, action.fragment_n).id


def _whole(db: Connection, action: Action, n: int | None, *, undone: bool = False) -> list[Action]:
    """Return what was done together with an action, unless it is about one fragment alone."""
    if n is not None or not action.before.together:
        return [action]
    found = actions.together_with(db, action, undone=undone)
    return [one for one in found if one.before.together == action.before.together]


def _name(action: Action, n: int | None) -> str:
    """Return what an action is called: by its group, if it was done with others."""
    group = action.before.together
    return group if n is None and group else action.verb


def _number(db: Connection, id_: str) -> int | None:
    return items.resolve(db, id_, type="fragment").n if id_ else None


def _last(db: Connection, n: int | None) -> Action | None:
    action = actions.find_last(db, fragment_n=n)
    if action is not None and n is None and upkeep.forgotten_since(db, action.at):
        msg = "The last thing done was to forget, and that cannot be undone."
        raise InvalidInput(msg, hint="'lore undo ID' undoes what was done to one fragment.")
    return action


def _there(action: Action | None, verb: str) -> Action:
    if action is None:
        msg = f"There is nothing to {verb}."
        raise NotFound(msg)
    return action


def _state(db: Connection, action: Action) -> Words | Drawn | None:
    """Return what doing an action again needs to know of the present."""
    words, link = action.before.words, action.before.link
    if words is not None:
        now = fragments.get(db, action.fragment_n)
        whose = Whose(now.origin, now.trust, now.kind) if words.whose else None
        return Words(now.content, now.summary, whose)
    return None if link is None else edges.find(db, action.fragment_n, link.target, link.kind)


def _reverse(db: Connection, action: Action, now: datetime) -> None:
    n, before = action.fragment_n, action.before
    if action.verb in ("store", "delete"):
        fragments.set_deleted(db, n, now if action.verb == "store" else None, now=now)
    elif before.words is not None:
        _reword(db, n, before.words, "undo", now)
    elif before.link is not None:
        _unlink(db, n, before.link, now)
    elif before.successor is not None:
        edges.remove(db, before.successor.newer, n, "supersedes")
        former = before.successor.former
        there = former is not None and loading.has_item(db, former)
        fragments.set_superseded(db, n, former if there else None, now=now)


def _repeat(db: Connection, action: Action, now: datetime) -> None:
    n, before, after = action.fragment_n, action.before, action.before.after
    if action.verb in ("store", "delete"):
        fragments.set_deleted(db, n, now if action.verb == "delete" else None, now=now)
    elif isinstance(after, Words):
        _reword(db, n, after, "redo", now)
    elif before.link is not None and after is not None:
        _link_again(db, n, before.link, after, now)
    elif before.successor is not None and fragments.by_number(db, [before.successor.newer]):
        superseding.supersede(db, n, before.successor.newer, now=now)


def _say_again(db: Connection, item_ns: Sequence[int]) -> None:
    """Let the standing instructions of messages hold again; none is kept beside its message."""
    for n, message in messages.by_number(db, item_ns).items():
        project_n = items.resolve(db, message.id).project_n
        for text in standing_in(message):
            standing.add(db, n, project_n, text, clock.to_us(message.created_at))


def _reword(db: Connection, n: int, said: Words, reason: str, now: datetime) -> None:
    if said.whose is not None:
        fragments.attribute(db, n, *said.whose)
    fragments.update(
        db,
        n,
        content=said.content,
        summary=said.summary,
        mentioned=entities.of_fragment(said.content, said.summary),
        now=now,
        reason=reason,
    )


def _link_again(db: Connection, source: int, link: Link, edge: Drawn, now: datetime) -> None:
    if not fragments.by_number(db, [link.target]):
        return
    if link.kind == "hierarchical":
        move(db, link.target, source, now=now)
    edges.put(db, source, link.target, link.kind, now=now, weight=edge.weight, note=edge.note)


def _unlink(db: Connection, source: int, link: Link, now: datetime) -> None:
    """Take an edge away again, and let what it replaced stand where it stood."""
    if not fragments.by_number(db, [link.target]):
        return
    edges.remove(db, source, link.target, link.kind)
    if link.kind == "hierarchical":
        parent = link.parent
        there = parent is not None and fragments.by_number(db, [parent])
        move(db, link.target, parent if there else None, now=now)
    if link.edge is not None:
        weight, note = link.edge
        edges.put(db, source, link.target, link.kind, now=now, weight=weight, note=note)
