"""Undo and redo of manual actions on fragments, step by step.

Undo reverses the last action that stands; redo repeats what was last undone. A new action after an
undo ends the chance to redo.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from lore.capture import quotes
from lore.digest.fragment_edits import move, scope_key
from lore.errors import InvalidInput, NotFound
from lore.store import (
    dump,
    fragments,
    graph,
    history,
    items,
    layout_rows,
    maintenance,
    messages,
    replacements,
    reversible_changes,
    standing_instructions,
)
from lore.store.database import Connection, Database
from lore.store.graph import EdgeState
from lore.store.history import Action, Attribution, LinkSnapshot, RecordFields, Wording
from lore.text import entities


def undo(database: Database, id_: str = "", *, key: str = "") -> tuple[str, str]:
    """Undo the last manual action, of all or of one fragment; return verb and id."""
    now = database.now()

    def work(db: Connection) -> tuple[str, str]:
        n, action = _find_action(db, id_)
        if action is None and n is not None and fragments.is_deleted(db, n):
            fragments.set_deleted(db, n, None, now=now)
            return "delete", fragments.get(db, n).id
        action = _require(action, "undo")
        for one in _group_of(db, action, n):
            after = _state(db, one)
            _reverse(db, one, now)
            history.mark_action_undone(db, one.n, replace(one.before, after=after))
            if n is None:
                _restore_standing(db, one.before.removed_instructions)
            if one.before.batch == "revocation":
                _judge_again(db, one)
        return _describe(db, action, n)

    return database.write(work, key=scope_key("undo", key))


def redo(database: Database, id_: str = "", *, key: str = "") -> tuple[str, str]:
    """Redo what was last undone, of all or of one fragment; return verb and id."""
    now = database.now()

    def work(db: Connection) -> tuple[str, str]:
        n, candidate = _find_action(db, id_, redo=True)
        action = _require(candidate, "redo")
        for one in _group_of(db, action, n, undone=True):
            _repeat(db, one, now)
            history.mark_action_redone(db, one.n)
            if n is None:
                standing_instructions.remove(db, one.before.removed_instructions)
        return _describe(db, action, n)

    return database.write(work, key=scope_key("redo", key))


def undo_actions(db: Connection, ns: Sequence[int], *, now: datetime) -> None:
    """Undo actions by number, the last first, unless their fragments were changed since."""
    actions = history.load_actions(db, ns)
    if len(actions) < len(set(ns)):
        msg = "This was undone already, or what it changed is gone."
        raise InvalidInput(msg)
    if any(history.has_later_action(db, one, without=ns) for one in actions):
        msg = "This was changed again since."
        raise InvalidInput(msg, hint="Undo the later change first.")
    for one in reversed(actions):
        after = _state(db, one)
        _reverse(db, one, now)
        history.mark_action_undone(db, one.n, replace(one.before, after=after))
        _restore_standing(db, one.before.removed_instructions)


def redo_actions(db: Connection, ns: Sequence[int], *, now: datetime) -> None:
    """Redo actions by number that were undone."""
    actions = history.load_actions(db, ns, undone=True)
    if len(actions) < len(set(ns)):
        msg = "This cannot be redone: it is in effect, or something else was changed since."
        raise InvalidInput(msg)
    for one in actions:
        _repeat(db, one, now)
        history.mark_action_redone(db, one.n)
        standing_instructions.remove(db, one.before.removed_instructions)


def find_next(db: Connection, id_: str = "", *, redo: bool = False) -> tuple[str, str] | None:
    """Return verb and id of the action that undo, or redo, would act on."""
    n, action = _find_action(db, id_, redo=redo)
    if action is not None:
        return _describe(db, action, n)
    if n is not None and not redo and fragments.is_deleted(db, n):
        return "delete", fragments.get(db, n).id
    return None


def _group_of(
    db: Connection, action: Action, n: int | None, *, undone: bool = False
) -> list[Action]:
    """Return the actions done together with one, unless only one fragment is concerned."""
    if n is not None or not action.before.batch:
        return [action]
    return history.actions_of_same_batch(db, action, undone=undone)


def _describe(db: Connection, action: Action, n: int | None) -> tuple[str, str]:
    verb = action.before.batch if n is None and action.before.batch else action.verb
    return verb, fragments.get(db, action.fragment_n).id


def _find_action(
    db: Connection, id_: str, *, redo: bool = False
) -> tuple[int | None, Action | None]:
    """Return the number of the fragment, if one is named, and the action to undo or redo."""
    n = items.resolve(db, id_, type="fragment").n if id_ else None
    action = history.find_last_action(db, fragment_n=n, undone=redo)
    if redo or action is None or n is not None:
        return n, action
    if maintenance.has_forgotten_since(db, action.at):
        msg = "The last action was 'forget', which cannot be undone."
        raise InvalidInput(msg, hint="'lore undo ID' undoes what was done to one fragment.")
    return n, action


def _require(action: Action | None, verb: str) -> Action:
    if action is None:
        msg = f"There is nothing to {verb}."
        raise NotFound(msg)
    return action


def _state(db: Connection, action: Action) -> Wording | EdgeState | None:
    words, link = action.before.wording, action.before.link
    if words is not None:
        now = fragments.get(db, action.fragment_n)
        whose = Attribution(now.origin, now.trust, now.kind) if words.attribution else None
        fields = RecordFields(now.payload, now.metadata) if words.fields else None
        return Wording(now.content, now.summary, whose, fields)
    return None if link is None else graph.find_edge(db, action.fragment_n, link.target, link.kind)


def _reverse(db: Connection, action: Action, now: datetime) -> None:
    n, before = action.fragment_n, action.before
    if action.verb in ("store", "delete"):
        fragments.set_deleted(db, n, now if action.verb == "store" else None, now=now)
    elif before.wording is not None:
        _reword(db, n, before.wording, "undo", now)
    elif before.link is not None:
        _unlink(db, n, before.link, now)
    elif before.successor is not None:
        graph.remove_edge(db, before.successor.newer, n, "supersedes")
        former = before.successor.former
        there = former is not None and dump.has_item(db, former)
        fragments.set_superseded(db, n, former if there else None, now=now)


def _repeat(db: Connection, action: Action, now: datetime) -> None:
    n, before, after = action.fragment_n, action.before, action.before.after
    if action.verb in ("store", "delete"):
        fragments.set_deleted(db, n, now if action.verb == "delete" else None, now=now)
    elif isinstance(after, Wording):
        _reword(db, n, after, "redo", now)
    elif before.link is not None and after is not None:
        _relink(db, n, before.link, after, now)
    elif before.successor is not None and fragments.by_number(db, [before.successor.newer]):
        reversible_changes.supersede(db, n, before.successor.newer, now=now)


def _judge_again(db: Connection, action: Action) -> None:
    """Queue the messages of a fragment that a revocation hid: their links were deleted."""
    fragment = fragments.get(db, action.fragment_n)
    replacements.queue(db, items.numbers_of(db, fragment.source_messages).values())


def _restore_standing(db: Connection, item_ns: Sequence[int]) -> None:
    """Restore the standing instructions of messages; they are parsed from the messages again."""
    messages.restore_instructions(db, item_ns, partial(quotes.typed_instructions, db))


def _reword(db: Connection, n: int, wording: Wording, reason: str, now: datetime) -> None:
    if wording.attribution is not None:
        fragments.set_attribution(db, n, *wording.attribution)
    if wording.fields is not None:
        layout_rows.update_record(db, n, **wording.fields._asdict(), now=now)
    fragments.update(
        db,
        n,
        content=wording.content,
        summary=wording.summary,
        mentioned=entities.fragment_mentions(wording.content, wording.summary),
        now=now,
        reason=reason,
    )


def _relink(
    db: Connection, source: int, link: LinkSnapshot, edge: EdgeState, now: datetime
) -> None:
    if not fragments.by_number(db, [link.target]):
        return
    if link.kind == "hierarchical":
        move(db, link.target, source, now=now)
    graph.put_edge(db, source, link.target, link.kind, now=now, weight=edge.weight, note=edge.note)


def _unlink(db: Connection, source: int, link: LinkSnapshot, now: datetime) -> None:
    if not fragments.by_number(db, [link.target]):
        return
    graph.remove_edge(db, source, link.target, link.kind)
    if link.kind == "hierarchical":
        parent = link.parent
        there = parent is not None and fragments.by_number(db, [parent])
        move(db, link.target, parent if there else None, now=now)
    if link.edge is not None:
        weight, note = link.edge
        graph.put_edge(db, source, link.target, link.kind, now=now, weight=weight, note=note)
