"""Corrections by a person: each one can be undone and redone by its id.

The id of a correction holds what it changed, by number: entries of the undo log, states of
instructions, relations of doubtful pairs, and entries of shared pages. Nothing else is stored for
it. The number of a row is given to another one once it is gone, so each comes with the item it
belongs to: the number of an item is never given again.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import orjson

from lore.digest import undo
from lore.digest.fragment_edits import hide_one, move, replace_one, resolve_live
from lore.errors import InvalidInput
from lore.records import MAX_ACTION_CHARS, UNASKED_TRUST, Origin
from lore.store import (
    consolidation,
    fragments,
    graph,
    history,
    items,
    project_rows,
    replacements,
    standing_instructions,
)
from lore.store.consolidation import Judgement, JudgementVerb
from lore.store.database import Connection
from lore.store.history import ActionKey, Attribution, LinkSnapshot, UndoSnapshot, Wording
from lore.store.project_rows import SharedRow
from lore.store.replacements import PairState
from lore.store.standing_instructions import RuleState

T = TypeVar("T")


class KeptPair(NamedTuple):
    """Two fragments that a person keeps apart, or one that stays, whatever a cycle would do."""

    a_n: int
    b_n: int
    verb: JudgementVerb


class Change(NamedTuple):
    """What a correction changed: actions, and rows before and after it."""

    actions: tuple[ActionKey, ...] = ()
    rules: tuple[tuple[RuleState, RuleState], ...] = ()
    pairs: tuple[tuple[PairState, PairState], ...] = ()
    exemptions: tuple[KeptPair, ...] = ()
    shared: tuple[tuple[SharedRow | None, SharedRow | None], ...] = ()
    """Entries of shared pages; None where there was none, or is none."""


def record(
    db: Connection, work: Callable[[Connection], T], exemptions: Sequence[KeptPair] = ()
) -> tuple[T, str]:
    """Do something in a transaction; return its result, and the id that undoes it.

    `exemptions` is what the work keeps from being merged or pruned.
    """
    last = history.newest_action(db)
    rules, pairs = standing_instructions.rule_states(db), replacements.doubtful_states(db)
    shared = project_rows.all_shared_entries(db)
    result = work(db)
    rules_now = standing_instructions.rule_states(db)
    settled = replacements.pair_states(db, pairs.keys() - replacements.doubtful_states(db).keys())
    change = Change(
        tuple(history.actions_after(db, last)),
        tuple(
            (before, rules_now[n])
            for n, before in rules.items()
            if n in rules_now and rules_now[n] != before
        ),
        tuple((pairs[n], after) for n, after in settled.items()),
        tuple(exemptions),
        _compare_shared(shared, project_rows.all_shared_entries(db)),
    )
    id_ = encode_change(change) if any(change) else ""
    return result, id_ if len(id_) <= MAX_ACTION_CHARS else ""


def _compare_shared(
    before: Mapping[str, SharedRow], after: Mapping[str, SharedRow]
) -> tuple[tuple[SharedRow | None, SharedRow | None], ...]:
    both = ((before.get(entry), after.get(entry)) for entry in sorted({*before, *after}))
    return tuple((former, row) for former, row in both if former != row)


def encode_change(change: Change) -> str:
    """Return a change as the id of a correction."""
    return base64.urlsafe_b64encode(orjson.dumps(change, default=tuple)).decode().rstrip("=")


def decode_change(id_: str) -> Change:
    """Return the change that an id names; refuse an id that is none."""
    try:
        padded = id_[:MAX_ACTION_CHARS] + "=" * (-len(id_) % 4)
        actions, rules, pairs, exemptions, shared = orjson.loads(
            base64.b64decode(padded, altchars=b"-_", validate=True)
        )
        change = Change(
            tuple(ActionKey(_whole(n), _whole(fragment_n)) for n, fragment_n in actions),
            tuple((_rule_state(before), _rule_state(after)) for before, after in rules),
            tuple((_pair_state(before), _pair_state(after)) for before, after in pairs),
            tuple(map(_kept_pair, exemptions)),
            tuple((_shared_row(before), _shared_row(after)) for before, after in shared),
        )
    except (ValueError, TypeError, binascii.Error) as error:
        msg = "This is not the id of an action."
        raise InvalidInput(msg, hint="Use 'action' of the change that is to be undone.") from error
    return change


_LARGEST = 2**62


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < _LARGEST:
        raise ValueError
    return value


def _rule_state(value: Any) -> RuleState:
    n, state, item_n = value
    if state not in standing_instructions.DECIDABLE:
        raise ValueError
    return RuleState(_whole(n), state, _whole(item_n))


def _pair_state(value: Any) -> PairState:
    n, relation, certainty, older_n, newer_n = value
    if relation not in replacements.RELATIONS or not isinstance(certainty, int | float):
        raise ValueError
    likely = min(1.0, max(0.0, float(certainty)))
    return PairState(_whole(n), relation, likely, _whole(older_n), _whole(newer_n))


def _kept_pair(value: Any) -> KeptPair:
    a_n, b_n, verb = value
    if verb not in ("merge", "prune"):
        raise ValueError
    return KeptPair(_whole(a_n), _whole(b_n), verb)


def _shared_row(value: Any) -> SharedRow | None:
    if value is None:
        return None
    entry, fragment_n, digest, left_out = value
    if not (isinstance(entry, str) and isinstance(digest, str) and isinstance(left_out, bool)):
        raise TypeError
    return SharedRow(entry, _whole(fragment_n), digest, left_out)


def keep(db: Connection, pairs: Sequence[KeptPair], *, now: datetime) -> None:
    """Keep fragments from being merged or pruned by a cycle."""
    judged = [Judgement(one.a_n, one.b_n, one.verb, "kept") for one in pairs]
    consolidation.put_judgements(db, judged, now=now)


def undo_change(db: Connection, change: Change, *, now: datetime) -> None:
    """Undo a correction, unless something that it changed was changed again."""
    ns = _own_actions(db, change)
    _set_rows(db, change, undoing=True)
    consolidation.remove_judgements(db, change.exemptions)
    undo.undo_actions(db, ns, now=now)


def redo_change(db: Connection, change: Change, *, now: datetime) -> None:
    """Redo a correction that was undone."""
    ns = _own_actions(db, change)
    _set_rows(db, change, undoing=False)
    keep(db, change.exemptions, now=now)
    undo.redo_actions(db, ns, now=now)


def _own_actions(db: Connection, change: Change) -> list[int]:
    """Return the numbers of a correction's actions; refuse if one is now that of another."""
    ns = [one.n for one in change.actions]
    if set(history.action_keys(db, ns)) != set(change.actions):
        msg = "What this changed is gone."
        raise InvalidInput(msg)
    return ns


def _set_rows(db: Connection, change: Change, *, undoing: bool) -> None:
    rules = [pair if undoing else pair[::-1] for pair in change.rules]
    pairs = [pair if undoing else pair[::-1] for pair in change.pairs]
    rules_now = standing_instructions.rule_states(db)
    pairs_now = replacements.pair_states(db, [before.n for before, _ in pairs])
    shared = [pair if undoing else pair[::-1] for pair in change.shared]
    shared_now = project_rows.all_shared_entries(db) if shared else {}
    is_same = (
        all(rules_now.get(after.n) == after for _, after in rules)
        and all(pairs_now.get(after.n) == after for _, after in pairs)
        and all(
            shared_now.get(one.entry) == after
            for before, after in shared
            if (one := after or before)
        )
    )
    if not is_same:
        msg = f"This was changed since, so it cannot be {'undone' if undoing else 'redone'}."
        raise InvalidInput(msg)
    for before, _ in rules:
        standing_instructions.set_rule_state(db, before)
    replacements.set_pair_states(db, [before for before, _ in pairs])
    project_rows.remove_shared_entries(db, [after.entry for _, after in shared if after])
    project_rows.put_shared_entries(db, [before for before, _ in shared if before])


def approve(db: Connection, id_: str, *, now: datetime) -> None:
    """Confirm the rules in a fragment, and trust it enough to be put into prompts.

    A person approves it, so this does not depend on where it comes from.
    """
    n = resolve_live(db, id_)
    for number in standing_instructions.numbers_of_item(db, n):
        standing_instructions.decide(db, number, "confirmed")
    old = fragments.get(db, n)
    if old.trust >= UNASKED_TRUST:
        return
    former = Wording(old.content, old.summary, Attribution(old.origin, old.trust, old.kind))
    history.record_action(db, "update", n, UndoSnapshot(wording=former), now=now)
    fragments.set_attribution(db, n, old.origin, UNASKED_TRUST, old.kind)
    fragments.reindex(db, n)
    history.log_change(db, "change", [n], now)


def reject(db: Connection, id_: str, *, origin: Origin, now: datetime) -> None:
    """Reject the rules in a fragment; hide a fragment that has none."""
    n = resolve_live(db, id_)
    numbers = standing_instructions.numbers_of_item(db, n)
    for number in numbers:
        standing_instructions.decide(db, number, "rejected")
    if not numbers:
        hide_one(db, id_=id_, origin=origin, now=now)


def merge(db: Connection, *, survivor: str, victim: str, now: datetime) -> None:
    """Supersede a fragment by one that says the same; what hangs below it moves, as in a cycle."""
    stays, goes = resolve_live(db, survivor), resolve_live(db, victim)
    replace_one(db, old=victim, new=survivor, origin="user", now=now)
    children = graph.children(db, goes)
    for child in children:
        edge = graph.find_edge(db, stays, child, "hierarchical")
        moved = LinkSnapshot(child, "hierarchical", edge, goes)
        history.record_action(db, "link", stays, UndoSnapshot(link=moved), now=now)
        move(db, child, stays, now=now)
    linked = consolidation.associated_pairs(db, [stays])
    for one in graph.edges_among(db, [goes], ("associative",)):
        other = one.target_n if one.source_n == goes else one.source_n
        if other != stays and (min(other, stays), max(other, stays)) not in linked:
            added = LinkSnapshot(other, "associative", None)
            history.record_action(db, "link", stays, UndoSnapshot(link=added), now=now)
            graph.put_edge(db, stays, other, "associative", now=now, weight=one.weight)
    if children:  # its overview is made again
        consolidation.set_overview_at(db, stays, None)


def find_subject(db: Connection, change: Change) -> str:
    """Return the id of an item that a correction changed; empty if it is gone."""
    ns = [one.fragment_n for one in change.actions[-1:]]
    ns = ns or [before.item_n for before, _ in change.rules[:1]]
    ns = ns or [one.b_n for one in change.exemptions[:1]]
    ns = ns or [before.newer_n for before, _ in change.pairs[:1]]
    return next(iter(items.ids_of(db, ns).values()), "")
