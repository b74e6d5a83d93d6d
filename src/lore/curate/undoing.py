"""Undo and redo: what was done to fragments by hand is taken back step by step, and done again.

Undo takes back the last thing that stands; redo does again what was last taken back. Whoever
does something new after an undo can no longer redo.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

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
from lore.store.db import Connection, Database
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
            actions.mark_undone(db, one.n, {**one.before, "after": after})
            if n is None:
                _say_again(db, one.before.get("standing", ()))
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
                standing.remove(db, one.before.get("standing", ()))
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
    if n is not None or not action.before.get("together"):
        return [action]
    found = actions.together_with(db, action, undone=undone)
    return [one for one in found if one.before.get("together") == action.before["together"]]


def _name(action: Action, n: int | None) -> str:
    """Return what an action is called: by its group, if it was done with others."""
    group = action.before.get("together")
    return str(group) if n is None and group else action.verb


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


def _state(db: Connection, action: Action) -> Any:
    """Return what doing an action again needs to know of the present."""
    if action.verb == "update":
        now = fragments.get(db, action.fragment_n)
        said: dict[str, Any] = {"content": now.content, "summary": now.summary}
        if "origin" in action.before:
            said |= {"origin": now.origin, "trust": now.trust, "kind": now.kind}
        return said
    if action.verb == "link":
        return edges.find(db, action.fragment_n, action.before["target"], action.before["kind"])
    return None


def _reverse(db: Connection, action: Action, now: datetime) -> None:
    n, before = action.fragment_n, action.before
    if action.verb in ("store", "delete"):
        fragments.set_deleted(db, n, now if action.verb == "store" else None, now=now)
    elif action.verb == "update":
        _reword(db, n, before, "undo", now)
    elif action.verb == "link":
        _unlink(db, n, before, now)
    else:
        edges.remove(db, before["newer"], n, "supersedes")
        former = before.get("former")
        there = former is not None and loading.has_item(db, former)
        fragments.set_superseded(db, n, former if there else None, now=now)


def _repeat(db: Connection, action: Action, now: datetime) -> None:
    n, before = action.fragment_n, action.before
    if action.verb in ("store", "delete"):
        fragments.set_deleted(db, n, now if action.verb == "delete" else None, now=now)
    elif action.verb == "update":
        _reword(db, n, before["after"], "redo", now)
    elif action.verb == "link":
        _link_again(db, n, before, now)
    elif fragments.by_number(db, [before["newer"]]):
        superseding.supersede(db, n, before["newer"], now=now)


def _say_again(db: Connection, item_ns: Sequence[int]) -> None:
    """Let the standing instructions of messages hold again; none is kept beside its message."""
    for n, message in messages.by_number(db, item_ns).items():
        project_n = items.resolve(db, message.id).project_n
        for text in standing_in(message):
            standing.add(db, n, project_n, text, clock.to_us(message.created_at))


def _reword(db: Connection, n: int, said: dict[str, Any], reason: str, now: datetime) -> None:
    if "origin" in said:
        fragments.attribute(db, n, said["origin"], said["trust"], said["kind"])
    fragments.update(
        db,
        n,
        content=said["content"],
        summary=said["summary"],
        mentioned=entities.of_fragment(said["content"], said["summary"]),
        now=now,
        reason=reason,
    )


def _link_again(db: Connection, source: int, before: dict[str, Any], now: datetime) -> None:
    target, kind = before["target"], before["kind"]
    if not fragments.by_number(db, [target]) or not before["after"]:
        return
    if kind == "hierarchical":
        move(db, target, source, now=now)
    weight, note = before["after"]
    edges.put(db, source, target, kind, now=now, weight=weight, note=note)


def _unlink(db: Connection, source: int, before: dict[str, Any], now: datetime) -> None:
    """Take an edge away again, and let what it replaced stand where it stood."""
    target, kind = before["target"], before["kind"]
    if not fragments.by_number(db, [target]):
        return
    edges.remove(db, source, target, kind)
    if kind == "hierarchical":
        parent = before.get("parent")
        parent = parent if parent is not None and fragments.by_number(db, [parent]) else None
        move(db, target, parent, now=now)
    if before.get("edge"):
        weight, note = before["edge"]
        edges.put(db, source, target, kind, now=now, weight=weight, note=note)
