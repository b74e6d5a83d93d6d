"""State of one session in this process, and the prompts that can be built from it alone."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime

from lore.budget.estimate import Calibration, ReportedTurn
from lore.budget.reports import usage_without_additions, usage_without_compaction
from lore.context import layers, planner, tiers
from lore.context.layers import PromptRoom, StandingTexts, TokenMeasure
from lore.context.planner import PlanTerms
from lore.records import (
    Dialogue,
    Distilled,
    InjectedItem,
    Injection,
    Measured,
    ModelPrice,
    PastTurns,
    Plan,
    SessionSnapshot,
    TokenUse,
)
from lore.store.dialogue_state import StateName

KNOWLEDGE = ""
"""Key of the knowledge block in `told`, where notes have the keys of their entries."""

_MAX_ENDS = 16
"""A repeated request, or another branch of a conversation, matches one of the last ends."""

_MAX_TURNS = 200
"""The forecast uses the gaps and growths of this many turns."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class SessionState:
    """What this process knows of a session."""

    snapshot: SessionSnapshot
    calibration: Calibration
    generation: str = ""
    """Cache generation of its texts: once anything is forgotten they are not sent again."""
    revision: int = 0
    """Counts changes of its generation and of its private mode."""
    submitted: SessionSnapshot | None = None
    """The snapshot that was last submitted to the store; None if texts were dropped."""
    write_count: int = 0
    unsaved: set[StateName] = field(default_factory=set)
    """Fields that the store has not confirmed."""
    pending_write: Future[None] | None = None
    """The last write."""
    gaps_s: deque[float] = field(default_factory=lambda: deque(maxlen=_MAX_TURNS))
    growth_tokens: deque[int] = field(default_factory=lambda: deque(maxlen=_MAX_TURNS))
    past_turns: PastTurns | None = None
    """Statistics of other sessions of the project; looked up off the request path."""
    recorded_digests: deque[str] = field(default_factory=lambda: deque(maxlen=_MAX_ENDS))
    """Chain digests of all stored entries up to the ends of recent requests."""
    distilled: tuple[Distilled, ...] = ()
    """Distillations of the session as they were last found."""
    markers: Mapping[str, str] = field(default_factory=dict)
    """What its markers stand for, as far as this process knows."""
    has_all_markers: bool = False
    """Whether the stored markers were loaded."""
    withdrawn: frozenset[InjectedItem] = frozenset()
    """Memory that dropped texts contained, and that may be given again."""
    sent_without_note: deque[str] = field(default_factory=lambda: deque(maxlen=_MAX_ENDS))
    """Keys of entries that were sent without a note: a note now would change the cached prefix."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Guards all changes. The event loop takes it too, so nobody waits for the store under it."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """How a session changes once a prompt is sent."""

    state: SessionState
    snapshot: SessionSnapshot
    generation: str
    """Cache generation of its texts."""
    last: str = ""
    """Key of the last entry that is not the system's."""
    injections: tuple[Injection, ...] = ()
    """Memory that the session is given for the first time."""
    withdrawn: frozenset[InjectedItem] = frozenset()
    """Memory that earlier prompts contained and this one does not."""


@dataclass(frozen=True, slots=True)
class ComposedPrompt:
    """A planned prompt, and the texts that memory adds to it."""

    plan: Plan
    price: ModelPrice
    knowledge: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    is_private: bool = False
    bare: bool = False
    cold: bool = False
    calibrated: bool = False
    """Whether its token count is based on what the provider reported for the prompt before."""
    whole_tokens: int = 0
    """Token count with nothing left out."""
    chars: int = 0
    """Length of the planned prompt in characters."""
    change: StateChange | None = None
    """None for a prompt that changes nothing."""

    @property
    def is_plain(self) -> bool:
        """Return whether the prompt is exactly what the client sent."""
        plan = self.plan
        changed = self.knowledge or self.notes or plan.start or plan.prefix or plan.annotated
        return not changed


def restore_calibration(measured: Measured) -> Calibration:
    """Return the calibration that a former process stored."""
    if not measured.tokens:
        return Calibration()
    use = TokenUse(fresh_tokens=measured.tokens)
    return Calibration((ReportedTurn(measured.chars, use),), measured.turns_without_writes)


def token_measure(state: SessionState, dialogue: Dialogue) -> TokenMeasure:
    """Return how tokens of a session are measured, by what its provider reported."""
    calibration, last = state.calibration, state.snapshot.measured
    if not calibration.calibrated:
        return TokenMeasure()
    goes_on = (
        0 < last.entries <= len(dialogue.entries)
        and dialogue.entries[last.entries - 1].key == last.end
    )
    ratio = last.tokens_per_char or calibration.tokens_per_char
    return TokenMeasure(ratio, last.tokens if goes_on else 0, last.entries if goes_on else 0)


def has_begun(snapshot: SessionSnapshot) -> bool:
    """Return whether a session had a prompt before."""
    return snapshot.knowledge is not None or bool(snapshot.measured.turns)


def dialogue_chars(dialogue: Dialogue) -> int:
    """Return the length of all entries in characters."""
    return sum(entry.chars for entry in dialogue.entries)


def drop_texts(snapshot: SessionSnapshot) -> SessionSnapshot:
    """Return a snapshot without the texts that may quote forgotten memory."""
    return replace(snapshot, knowledge=None, notes={}, tiers=(), told={})


def given_in(snapshot: SessionSnapshot) -> frozenset[InjectedItem]:
    """Return the memory that the prompts of a session contain."""
    return frozenset(one for injected in snapshot.told.values() for one in injected)


def advance_generation(state: SessionState, generation: str) -> None:
    """Drop the texts of a session if they belong to another cache generation."""
    if generation == state.generation:
        return
    state.withdrawn |= given_in(state.snapshot)
    state.snapshot, state.markers, state.distilled = drop_texts(state.snapshot), {}, ()
    state.has_all_markers = False
    state.generation, state.submitted = generation, None


def plan_full(
    state: SessionState, snapshot: SessionSnapshot, dialogue: Dialogue, price: ModelPrice
) -> Plan:
    """Return a plan that leaves nothing out, however long the prompt is."""
    measured = token_measure(state, dialogue)
    knowledge_tokens = (
        0 if snapshot.is_private else measured.of_chars(len(snapshot.knowledge or ""))
    )
    terms = PlanTerms(PromptRoom(price.window_tokens, knowledge_tokens), measured)
    return planner.plan_whole_prompt(dialogue, snapshot.pins, terms)


def compose_full(
    state: SessionState, snapshot: SessionSnapshot, dialogue: Dialogue, price: ModelPrice
) -> ComposedPrompt:
    """Return a prompt with nothing left out."""
    plan = plan_full(state, snapshot, dialogue, price)
    if snapshot.is_private:
        plan = replace(plan, busts=False, why="")
        return ComposedPrompt(plan, price, is_private=True, whole_tokens=plan.tokens)
    return ComposedPrompt(
        plan,
        price,
        snapshot.knowledge or "",
        snapshot.notes,
        bare=snapshot.bare,
        whole_tokens=plan.tokens,
    )


def build_prompt(
    change: StateChange, dialogue: Dialogue, plan: Plan, price: ModelPrice, *, cold: bool
) -> ComposedPrompt:
    """Return the prompt of a plan."""
    state, snapshot = change.state, change.snapshot
    return ComposedPrompt(
        plan,
        price,
        snapshot.knowledge or "",
        snapshot.notes,
        bare=snapshot.bare,
        cold=cold,
        calibrated=state.calibration.calibrated,
        whole_tokens=token_measure(state, dialogue).of_chars(
            dialogue_chars(dialogue) + dialogue.fixed_chars
        ),
        chars=_prompt_chars(dialogue, plan, snapshot),
        change=change,
    )


def apply_change(change: StateChange, *, rewritten: bool) -> None:
    """Apply the change of a prompt that was sent to its session; later changes stay.

    Earlier notes are dropped where the prefix is `rewritten`. No texts are taken over if anything
    was forgotten meanwhile.
    """
    state, then = change.state, change.snapshot
    with state.lock:
        now = state.snapshot
        pins = replace(then.pins, floor=max(now.pins.floor, then.pins.floor))
        state.snapshot = replace(now, pins=pins)
        if state.generation == change.generation:
            state.snapshot = replace(
                state.snapshot,
                knowledge=then.knowledge,
                notes=then.notes if rewritten else {**now.notes, **then.notes},
                tiers=then.tiers,
                bare=then.bare,
                told=then.told if rewritten else {**now.told, **then.told},
            )
        state.withdrawn -= change.withdrawn
        if change.last and change.last not in state.snapshot.notes:
            state.sent_without_note.append(change.last)


def is_cold(measured: Measured, now: datetime) -> bool:
    """Return whether the provider's cache of the last prompt has expired."""
    return bool(measured.at_s) and now.timestamp() - measured.at_s > measured.lifetime_s


def after_plan(snapshot: SessionSnapshot, dialogue: Dialogue, plan: Plan) -> SessionSnapshot:
    """Return the snapshot after a plan; notes on entries that a bust leaves out are dropped."""
    notes = snapshot.notes
    if plan.busts and plan.start and notes:
        sent = {entry.key for entry in dialogue.entries[plan.start :]}
        notes = {key: note for key, note in notes.items() if key in sent}
    snapshot = _keep_notes(snapshot, notes)
    return replace(snapshot, pins=plan.state, tiers=_tier_distillations(snapshot.tiers, plan))


def drop_repeated_notes(snapshot: SessionSnapshot, last: str) -> SessionSnapshot:
    """Drop notes that repeat the knowledge; the last one stays if it says more."""
    in_knowledge = {*snapshot.told.get(KNOWLEDGE, ())}
    notes = {
        key: note
        for key, note in snapshot.notes.items()
        if not in_knowledge.intersection(in_note := snapshot.told.get(key, ()))
        or (key == last and not in_knowledge.issuperset(in_note))
    }
    return snapshot if len(notes) == len(snapshot.notes) else _keep_notes(snapshot, notes)


def _keep_notes(snapshot: SessionSnapshot, notes: Mapping[str, str]) -> SessionSnapshot:
    if len(notes) == len(snapshot.notes):
        return snapshot
    injected = {key: one for key, one in snapshot.told.items() if key in notes or key == KNOWLEDGE}
    return replace(snapshot, notes=notes, told=injected)


def _tier_distillations(known: Sequence[Distilled], plan: Plan) -> tuple[Distilled, ...]:
    """Return the distillations that tiers made, including those of this plan."""
    by_id = {
        one.id: one for one in (*known, *plan.prefix) if one.id.startswith(tiers.TIER_ID_PREFIX)
    }
    return tuple(one for one in by_id.values() if one.id in plan.state.prefix)


def _prompt_chars(dialogue: Dialogue, plan: Plan, snapshot: SessionSnapshot) -> int:
    total = (
        dialogue.fixed_chars
        + len(snapshot.knowledge or "")
        + sum(map(len, snapshot.notes.values()))
    )
    total += sum(len(one.text) for one in plan.prefix)
    total += sum(one.block.chars for one in StandingTexts(dialogue.entries).find_before(plan.start))
    for entry in dialogue.entries[plan.start :]:
        for block in entry.blocks:
            short = block.call_id in plan.annotated and layers.is_long_output(block)
            total += layers.MAX_ANNOTATION_CHARS // 2 if short else block.chars
    return total


def usage_without_lore(
    state: SessionState,
    dialogue: Dialogue,
    composed: ComposedPrompt,
    use: TokenUse,
    *,
    tool_chars: int = 0,
) -> TokenUse:
    """Return the usage of a request without Lore; `state` is the state before its response."""
    plan, before = composed.plan, state.snapshot.measured
    last = dialogue.entries[before.entries :]
    new_chars = sum(len(composed.notes.get(entry.key, "")) for entry in last)
    added_chars = len(composed.knowledge) + tool_chars + sum(map(len, composed.notes.values()))
    if not before.turns or composed.cold or plan.busts:
        new_chars = added_chars
    chars = composed.chars + tool_chars
    # Providers also count images, which Lore has not added.
    ratio = min(use.input_tokens / chars, TokenMeasure().tokens_per_char) if composed.chars else 0.0
    new_tokens, added_tokens = round(new_chars * ratio), round(added_chars * ratio)
    if not (plan.start or plan.prefix or plan.annotated):
        return usage_without_additions(
            use, standing_tokens=added_tokens - new_tokens, new_tokens=new_tokens
        )
    return usage_without_compaction(
        use,
        # Without Lore an agent would have compacted before it exceeds the window.
        whole_tokens=min(composed.whole_tokens, composed.price.window_tokens),
        known_tokens=before.whole_tokens,
        new_tokens=new_tokens,
        busts=plan.busts,
        cold=composed.cold,
        caches=any(_is_cached(one.use) for one in state.calibration.turns) or _is_cached(use),
    )


def _is_cached(use: TokenUse) -> bool:
    return use.cache_read_tokens + use.cache_write_tokens + use.cache_write_1h_tokens > 0
