"""Holding: what this process knows of a session, and the prompts that can be made of that alone."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime

from lore.budget.calibration import Calibration, Reported
from lore.context import annotating, planning, tiers
from lore.context.layers import Room
from lore.context.planning import Terms
from lore.context.sizing import Measure
from lore.context.standing import Standing
from lore.records import (
    Dialogue,
    Distilled,
    Given,
    Held,
    Injection,
    Measured,
    ModelPrice,
    PastTurns,
    Plan,
    TokenUse,
)
from lore.store.dialogues import Name

KNOWLEDGE = ""
"""Stands for the key of an entry where knowledge tells something, and no note."""

_REMEMBERED_ENDS = 16
"""A request that is sent again, or another branch of a talk, is known by one of so many ends."""

_REMEMBERED_TURNS = 200
"""Gaps and growths of so many turns tell what is to come."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class Live:
    """What this process knows of a session."""

    held: Held
    calibration: Calibration
    era: str = ""
    """When its texts were chosen: once anything is forgotten, they are no longer said."""
    standings: int = 0
    """How often it was said, here or elsewhere, that it is amnesic or what era it is."""
    handed: Held | None = None
    """What of it was handed to the store last; None if texts were dropped."""
    writes: int = 0
    """How often anything was."""
    unkept: set[Name] = field(default_factory=set)
    """What of it the store may not have: it did not say so."""
    writing: Future[None] | None = None
    """The last time that anything was handed to the store."""
    gaps_s: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_TURNS))
    grown: deque[int] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_TURNS))
    past: PastTurns | None = None
    """How other sessions of the project went; looked up while nobody waits."""
    recorded: deque[str] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_ENDS))
    """Digests of all entries that are stored, in their order, up to the ends of some requests."""
    distilled: tuple[Distilled, ...] = ()
    """The logs of the session as they were found last."""
    markers: Mapping[str, str] = field(default_factory=dict)
    """What its markers stand for, as far as this process knows."""
    has_all_markers: bool = False
    """Whether those that are stored were looked up."""
    untold: frozenset[Given] = frozenset()
    """What of memory its texts told that were dropped, and that may be told again."""
    unnoted: deque[str] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_ENDS))
    """Keys of entries that went out without a note: a later one would change what is cached."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    """For all that changes here; the event loop takes it too, so nobody waits in it for a store."""


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of a session with a prompt, once that goes out."""

    live: Live
    held: Held
    era: str
    """Of its texts."""
    last: str = ""
    """Key of the last entry that somebody said."""
    given: tuple[Injection, ...] = ()
    """What of memory it is told for the first time."""
    untold: frozenset[Given] = frozenset()
    """What of memory it was told before, and is not told any more."""


@dataclass(frozen=True, slots=True)
class Composed:
    """A prompt: its plan, and what it says beside the client's words."""

    plan: Plan
    price: ModelPrice
    knowledge: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    amnesic: bool = False
    bare: bool = False
    cold: bool = False
    calibrated: bool = False
    """Its tokens are counted by what the provider reported of the prompt before it."""
    whole_tokens: int = 0
    """How long the prompt would be with nothing left out."""
    chars: int = 0
    """How long the planned prompt is in characters."""
    step: Step | None = None
    """None for one that changes nothing."""

    @property
    def is_plain(self) -> bool:
        """Tell whether it says what the client does, and no more or less."""
        plan = self.plan
        changed = self.knowledge or self.notes or plan.start or plan.prefix or plan.annotated
        return not changed


def calibration(measured: Measured) -> Calibration:
    """Return what a former process knew of a session's prompts."""
    if not measured.tokens:
        return Calibration()
    use = TokenUse(fresh_tokens=measured.tokens)
    return Calibration((Reported(measured.chars, use),), measured.turns_without_writes)


def measure(live: Live, dialogue: Dialogue) -> Measure:
    """Return how the prompts of a session are measured, by what its provider reported."""
    told, last = live.calibration, live.held.measured
    if not told.calibrated:
        return Measure()
    goes_on = (
        0 < last.entries <= len(dialogue.entries)
        and dialogue.entries[last.entries - 1].key == last.end
    )
    ratio = last.tokens_per_char or told.tokens_per_char
    return Measure(ratio, last.tokens if goes_on else 0, last.entries if goes_on else 0)


def has_begun(held: Held) -> bool:
    """Tell whether a session had a prompt before."""
    return held.knowledge is not None or bool(held.measured.turns)


def raw_chars(dialogue: Dialogue) -> int:
    """Return how long all that was said is."""
    return sum(entry.chars for entry in dialogue.entries)


def without_texts(held: Held) -> Held:
    """Return what a session holds on to without what may quote memory that is forgotten."""
    return replace(held, knowledge=None, notes={}, tiers=(), told={})


def told_of(held: Held) -> frozenset[Given]:
    """Return what of memory the prompts of a session tell."""
    return frozenset(one for given in held.told.values() for one in given)


def bring_to(live: Live, era: str) -> None:
    """Drop what a session may quote of memory that is forgotten, if it is of another era."""
    if era == live.era:
        return
    live.untold |= told_of(live.held)
    live.held, live.markers, live.distilled = without_texts(live.held), {}, ()
    live.has_all_markers = False
    live.era, live.handed = era, None


def plan_whole(live: Live, held: Held, dialogue: Dialogue, price: ModelPrice) -> Plan:
    """Return a plan that leaves nothing out, however long that is."""
    measured = measure(live, dialogue)
    told = 0 if held.amnesic else measured.of_chars(len(held.knowledge or ""))
    terms = Terms(Room(price.window_tokens, told), measured)
    return planning.plan_whole(dialogue, held.pins, terms)


def whole(live: Live, held: Held, dialogue: Dialogue, price: ModelPrice) -> Composed:
    """Return a prompt with nothing left out."""
    plan = plan_whole(live, held, dialogue, price)
    if held.amnesic:
        plan = replace(plan, busts=False, why="")
        return Composed(plan, price, amnesic=True, whole_tokens=plan.tokens)
    return Composed(
        plan, price, held.knowledge or "", held.notes, bare=held.bare, whole_tokens=plan.tokens
    )


def composed(
    step: Step, dialogue: Dialogue, plan: Plan, price: ModelPrice, *, cold: bool
) -> Composed:
    """Return a prompt by its plan."""
    live, held = step.live, step.held
    return Composed(
        plan,
        price,
        held.knowledge or "",
        held.notes,
        bare=held.bare,
        cold=cold,
        calibrated=live.calibration.calibrated,
        whole_tokens=measure(live, dialogue).of_chars(raw_chars(dialogue) + dialogue.fixed_chars),
        chars=_chars(dialogue, plan, held),
        step=step,
    )


def take(step: Step, *, anew: bool) -> None:
    """Let a session be as a prompt that goes out has it; what came since then stays.

    Notes do not, where it is written `anew`. Of its texts nothing is taken over where anything was
    forgotten meanwhile.
    """
    live, then = step.live, step.held
    with live.lock:
        now = live.held
        pins = replace(then.pins, floor=max(now.pins.floor, then.pins.floor))
        live.held = replace(now, pins=pins)
        if live.era == step.era:
            live.held = replace(
                live.held,
                knowledge=then.knowledge,
                notes=then.notes if anew else {**now.notes, **then.notes},
                tiers=then.tiers,
                bare=then.bare,
                told=then.told if anew else {**now.told, **then.told},
            )
        live.untold -= step.untold
        if step.last and step.last not in live.held.notes:
            live.unnoted.append(step.last)


def is_cold(measured: Measured, now: datetime) -> bool:
    """Tell whether the provider has forgotten the last prompt by now."""
    return bool(measured.at_s) and now.timestamp() - measured.at_s > measured.lifetime_s


def following(held: Held, dialogue: Dialogue, plan: Plan) -> Held:
    """Return what a session holds on to by a plan; notes on what a bust leaves out go with it."""
    notes = held.notes
    if plan.busts and plan.start and notes:
        sent = {entry.key for entry in dialogue.entries[plan.start :]}
        notes = {key: note for key, note in notes.items() if key in sent}
    held = _noted(held, notes)
    return replace(held, pins=plan.pins, tiers=_made(held.tiers, plan))


def without_repeated(held: Held, last: str) -> Held:
    """Return what a session holds on to without notes that tell what its knowledge does.

    The note on the last entry stays, unless it tells nothing else.
    """
    known = {*held.told.get(KNOWLEDGE, ())}
    kept = {
        key: note
        for key, note in held.notes.items()
        if not known.intersection(told := held.told.get(key, ()))
        or (key == last and not known.issuperset(told))
    }
    return held if len(kept) == len(held.notes) else _noted(held, kept)


def _noted(held: Held, notes: Mapping[str, str]) -> Held:
    """Return what a session holds on to with these of its notes."""
    if len(notes) == len(held.notes):
        return held
    told = {key: one for key, one in held.told.items() if key in notes or key == KNOWLEDGE}
    return replace(held, notes=notes, told=told)


def _made(known: Sequence[Distilled], plan: Plan) -> tuple[Distilled, ...]:
    """Return the distillations that tiers made, those of this plan among them."""
    made = {one.id: one for one in (*known, *plan.prefix) if one.id.startswith(tiers.MADE)}
    return tuple(one for one in made.values() if one.id in plan.pins.prefix)


def _chars(dialogue: Dialogue, plan: Plan, held: Held) -> int:
    """Return how long a planned prompt is in characters."""
    total = dialogue.fixed_chars + len(held.knowledge or "") + sum(map(len, held.notes.values()))
    total += sum(len(one.text) for one in plan.prefix)
    total += sum(one.block.chars for one in Standing(dialogue.entries).before(plan.start))
    for entry in dialogue.entries[plan.start :]:
        for block in entry.blocks:
            short = block.call_id in plan.annotated and annotating.is_long(block)
            total += annotating.MOST_CHARS // 2 if short else block.chars
    return total
