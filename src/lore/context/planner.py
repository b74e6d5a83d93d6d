"""Prompt planner: choose the layer of a session's next prompt, and update the session's state.

A prompt that starts like the last one is read from the provider's cache; any other is a bust. So a
plan keeps the last shape until there is a reason to change it: it no longer fits, the provider
refused it, the cache has expired, the history has changed, or a bust saves money.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from lore.context import layers
from lore.context.layers import (
    LAYERS,
    OUTPUT_SHARE,
    LayerBuilder,
    PromptRoom,
    PromptShape,
    TokenMeasure,
)
from lore.records.gateway import Dialogue, Distilled, Layer, Plan, PromptState
from lore.text import tokens

MAX_BUSTS_IN_A_ROW = 5
"""After this many busts in a row something else breaks the cache: no more busts to save money."""

FAR_TOO_LONG = 1.2
"""A prompt refused for exceeding the limit by this factor needs layer 3 at once."""


class CostRule(Protocol):
    """Decide whether a shorter prompt is worth a bust; sizes include the fixed tokens.

    The answer is monotonic: if a size is not worth it, no larger size is.
    """

    def __call__(self, now_tokens: int, then_tokens: int, *, layer: Layer, cold: bool) -> bool:
        """Return whether to replace a prompt by a shorter one; `cold`: nothing is cached."""
        ...


def never_bust(now_tokens: int, then_tokens: int, *, layer: Layer, cold: bool) -> bool:
    """Never bust to save money: shorten only prompts that do not fit."""
    del now_tokens, then_tokens, layer, cold
    return False


@dataclass(frozen=True, slots=True)
class PinnedShape:
    """The shape of the last prompt applied to a dialogue, and whether it still fits its history."""

    shape: PromptShape
    holds: bool


@dataclass(frozen=True, slots=True)
class PlanTerms:
    """The conditions of a plan.

    `cold`: the provider's cache has expired. `min_layer`: the layer that the daily budget demands.
    """

    room: PromptRoom
    measure: TokenMeasure = field(default_factory=TokenMeasure)
    cost_rule: CostRule = never_bust
    cold: bool = False
    min_layer: Layer = 0


def plan_prompt(
    dialogue: Dialogue, state: PromptState, distilled: Sequence[Distilled], terms: PlanTerms
) -> Plan:
    """Return the plan of the next prompt.

    `distilled` are all distillations of this dialogue, including replaced ones, which the state may
    refer to.
    """
    scene = open_layers(dialogue, distilled, terms)
    pinned = restore_shape(scene, state)
    now = pinned.shape
    floor = max(state.floor, terms.min_layer)
    stopped = state.busts_in_a_row >= MAX_BUSTS_IN_A_ROW and not terms.cold
    fresh = terms.cold or not pinned.holds
    then, why = _next_shape(
        scene, now, floor, never_bust if stopped else terms.cost_rule, fresh=fresh
    )
    return finish_plan(scene, state, pinned, then, why=why, cold=terms.cold)


def plan_whole_prompt(dialogue: Dialogue, state: PromptState, terms: PlanTerms) -> Plan:
    """Return a plan of the unchanged prompt, however long; reset the state of the session."""
    scene = open_layers(dialogue, (), terms)
    whole = scene.whole_shape() if state.layer else _with_reported_size(scene.whole_shape(), scene)
    tokens = scene.room.fixed_tokens + whole.tokens
    return Plan(
        0,
        PromptState(floor=state.floor),
        tokens=tokens,
        busts=bool(state.layer),
        why="whole" if state.layer else "",
        notes=_notes(scene, whole, tokens),
    )


def open_layers(
    dialogue: Dialogue, distilled: Sequence[Distilled], terms: PlanTerms
) -> LayerBuilder:
    """Return the layers of a dialogue under these terms."""
    fixed = terms.room.fixed_tokens + terms.measure.of_chars(dialogue.fixed_chars)
    return LayerBuilder(dialogue, distilled, terms.measure, replace(terms.room, fixed_tokens=fixed))


def finish_plan(
    scene: LayerBuilder,
    state: PromptState,
    pinned: PinnedShape,
    then: PromptShape,
    *,
    why: str,
    cold: bool,
) -> Plan:
    """Return the plan that leads from the last shape to the next."""
    busts = not pinned.holds or not then.is_same_prompt(pinned.shape)
    if then.is_same_prompt(scene.whole_shape()):
        # Nothing is left out, so this is layer 0, whatever layer was requested.
        then = replace(then, layer=0)
    tokens = scene.room.fixed_tokens + then.tokens
    return Plan(
        layer=then.layer,
        state=_next_state(scene, state, then, busts=busts, cold=cold),
        start=then.start,
        prefix=then.prefix,
        annotated=then.annotated,
        tokens=tokens,
        busts=busts,
        why=(why or "history") if busts else "",
        notes=_notes(scene, then, tokens),
    )


def raise_floor(state: PromptState, tokens: int, most_tokens: int) -> PromptState:
    """Return the state of a session after its prompt was refused as too long."""
    needed = 3 if most_tokens and tokens >= FAR_TOO_LONG * most_tokens else 2
    # A prompt that already was at that layer needs the next one.
    floor = max(needed, state.floor, state.layer + 1 if state.layer >= needed else 0)
    return replace(state, floor=_as_layer(min(4, floor)))


def restore_shape(scene: LayerBuilder, state: PromptState) -> PinnedShape:
    """Return the shape of the last prompt, or the whole dialogue if the history has changed."""
    if not state.layer:
        return PinnedShape(_with_reported_size(scene.whole_shape(), scene), holds=True)
    start = layers.find_entry(scene.entries, state.start) if state.start else 0
    by_id = {one.id: one for one in scene.distilled}
    lost = start is None or (start and start not in scene.starts)
    if start is None or lost or not all(id_ in by_id for id_ in state.prefix):
        return PinnedShape(scene.whole_shape(), holds=False)
    prefix = tuple(by_id[id_] for id_ in state.prefix)
    # After a rewind an old turn may be the current one: restore its outputs.
    whole = scene.calls_from(scene.current)
    annotated = (state.annotated & scene.calls_from(start)) - whole
    shape = scene.build_shape(state.layer, start, prefix, annotated)
    return PinnedShape(_with_reported_size(shape, scene), holds=not state.annotated & whole)


def _with_reported_size(shape: PromptShape, scene: LayerBuilder) -> PromptShape:
    """Return a shape with the size that the provider reported, plus later entries."""
    measure = scene.measure
    if not measure.reported_tokens or not shape.start < measure.reported_entries <= len(
        scene.entries
    ):
        return shape
    since = scene.tokens_from(measure.reported_entries, shape.annotated)
    raw = measure.reported_tokens - scene.room.fixed_tokens - shape.prefix_tokens + since
    return replace(shape, raw_tokens=max(0, raw))


def _next_shape(
    scene: LayerBuilder, now: PromptShape, floor: int, cost: CostRule, *, fresh: bool
) -> tuple[PromptShape, str]:
    """Return the shape of the next prompt, and the reason for a change.

    A lower layer is chosen only if the whole prompt is written anyway. Layer 4 ends with the turn
    that caused it.
    """
    room = scene.room
    now_tokens, least_tokens = room.fixed_tokens + now.tokens, room.fixed_tokens
    may_stay = not now.layer and not floor and now.fits(room)
    if may_stay and not cost(now_tokens, least_tokens, layer=0, cold=fresh):
        return now, ""  # Not even the shortest prompt would be worth a bust.
    shapes = scene.shapes(now.start)
    lowest = max(1, floor) if fresh or now.layer == 4 else max(1, floor, now.layer)
    then = _first_fitting(shapes, lowest, room)
    if now.layer < floor:
        return then, "floor"
    if not now.fits(room):
        return then, "fit"
    if fresh and now.layer:
        better = then.tokens < now.tokens or then.layer < now.layer
        return (then, "cold") if better else (now, "")
    then_tokens = room.fixed_tokens + then.tokens
    if then_tokens < now_tokens and cost(now_tokens, then_tokens, layer=now.layer, cold=fresh):
        return then, "cost"
    return now, ""


def _first_fitting(shapes: dict[Layer, PromptShape], least: int, room: PromptRoom) -> PromptShape:
    """Return the lowest layer that fits, else layer 4."""
    for layer in LAYERS:
        if layer >= least and shapes[layer].fits(room):
            return shapes[layer]
    return shapes[4]


def _next_state(
    scene: LayerBuilder, state: PromptState, then: PromptShape, *, busts: bool, cold: bool
) -> PromptState:
    """Return the new state of the session; only a bust at a warm cache is counted."""
    in_a_row = state.busts_in_a_row
    if cold:
        in_a_row = 0
    elif busts:
        in_a_row += 1
    elif in_a_row < MAX_BUSTS_IN_A_ROW:
        in_a_row = 0
    return PromptState(
        layer=then.layer,
        floor=state.floor,
        start=layers.entry_name(scene.entries, then.start) if then.start else "",
        prefix=tuple(one.id for one in then.prefix),
        annotated=then.annotated,
        busts_in_a_row=in_a_row,
    )


def _notes(scene: LayerBuilder, then: PromptShape, tokens: int) -> tuple[str, ...]:
    """Return warnings about what the prompt lacks."""
    notes = []
    if then.start > scene.covered:
        left_out = then.start - scene.covered
        notes.append(f"{left_out} entries are left out that no distillation covers")
    if tokens > scene.room.window_tokens:
        notes.append(_size_note(scene, then))
    return tuple(notes)


def _size_note(scene: LayerBuilder, then: PromptShape) -> str:
    if not scene.room.usable_tokens:
        return "system prompt and tools alone are longer than the model can read"
    if then.start == scene.current:
        return "the current turn alone is longer than the model can read"
    return "the prompt may be longer than the model can read"


def _as_layer(number: int) -> Layer:
    return (0, *LAYERS)[number]


TIERS_FROM_SHARE = 0.70
"""The share of the window from which tiers are used."""

CURRENT_SHARE, TOPICS_SHARE, BULKS_SHARE = 0.50, 0.30, 0.20
"""The share of each tier."""

MERGED_AT_ONCE = 4
"""How many of the oldest items of a tier are summarized at once."""

TIER_ID_PREFIX = "tier-"
"""The start of the ids of summaries made here."""

_MAX_ROUNDS = 64
"""Each round moves something down or shrinks the lowest tier.

There are as many further rounds as turns, in which one turn each becomes a topic."""

Summarize = Callable[[Sequence[str], int], str]
"""Summarize texts in a number of tokens."""


@dataclass(frozen=True, slots=True)
class _Tiers:
    start: int
    topics: tuple[Distilled, ...] = ()
    bulks: tuple[Distilled, ...] = ()


def plan_tiers(
    dialogue: Dialogue,
    state: PromptState,
    distilled: Sequence[Distilled],
    terms: PlanTerms,
    *,
    condense: Summarize,
) -> Plan:
    """Return the plan of the next prompt with tiers.

    A prompt that had to be planned by layers, because too little was summarized, goes back to tiers
    when it is written anew. New summaries exist only in the plan: the caller must store them and
    pass them again, as the state refers to them.
    """
    layered = _plan_by_layers(dialogue, state, distilled, terms) if state.layer > 1 else None
    is_rewritten = terms.cold or state.layer == LAYERS[-1]
    if layered is not None and not (is_rewritten and layered.busts):
        return layered
    scene = open_layers(dialogue, distilled, terms)
    pinned = restore_shape(scene, state)
    now = pinned.shape
    # After a refusal as too long, start at a half or a third of the size.
    most = int(TIERS_FROM_SHARE * scene.room.usable_tokens) // max(1, state.floor, terms.min_layer)
    if now.tokens <= most and layered is None:
        return finish_plan(scene, state, pinned, now, why="", cold=terms.cold)
    then = _rebalance(scene, pinned, most, condense)
    if layered is None:
        then = then if then.tokens < now.tokens else now
        most = int((1 - OUTPUT_SHARE) * scene.room.usable_tokens)
    if then.tokens > most:
        return layered or _plan_by_layers(dialogue, state, distilled, terms)
    return finish_plan(scene, state, pinned, then, why="fit", cold=terms.cold)


def _plan_by_layers(
    dialogue: Dialogue, state: PromptState, distilled: Sequence[Distilled], terms: PlanTerms
) -> Plan:
    """Return a plan by layers if too little is summarized yet."""
    room = replace(terms.room, keep_tokens=0)
    return plan_prompt(dialogue, state, distilled, replace(terms, room=room, cost_rule=never_bust))


def _rebalance(
    scene: LayerBuilder, pinned: PinnedShape, most: int, condense: Summarize
) -> PromptShape:
    """Move the oldest items of the fullest tier down until all tiers fit."""
    tiers = _tiers_of(pinned.shape)
    for _ in range(len(scene.starts) + _MAX_ROUNDS):
        over = {
            "current": scene.raw_tokens(tiers.start, frozenset()) - CURRENT_SHARE * most,
            "topics": _size(tiers.topics) - TOPICS_SHARE * most,
            "bulks": _size(tiers.bulks) - BULKS_SHARE * most,
        }
        changed = None
        for fullest in sorted(over, key=lambda name: -over[name]):
            if over[fullest] > 0 and changed is None:
                changed = _push_down(scene, tiers, fullest, condense)
        if changed is None:
            break
        tiers = changed
    prefix = (*tiers.bulks, *tiers.topics)
    return replace(
        scene.build_shape(1, tiers.start, prefix, frozenset()), layer=1 if tiers.start else 0
    )


def _tiers_of(shape: PromptShape) -> _Tiers:
    return _Tiers(
        shape.start,
        tuple(one for one in shape.prefix if not one.generation),
        tuple(one for one in shape.prefix if one.generation),
    )


def _push_down(
    scene: LayerBuilder, tiers: _Tiers, fullest: str, condense: Summarize
) -> _Tiers | None:
    """Return the tiers after moving the oldest items of one down, None if that is impossible."""
    if fullest == "current":
        return _move_turns_down(scene, tiers)
    if fullest == "topics":
        oldest = tiers.topics[:MERGED_AT_ONCE]
        summary = _summarize(oldest, condense)
        remaining = tiers.topics[len(oldest) :]
        return replace(tiers, topics=remaining, bulks=(*tiers.bulks, summary)) if summary else None
    oldest = tiers.bulks[:MERGED_AT_ONCE]
    summary = _summarize(oldest, condense)
    return replace(tiers, bulks=(summary, *tiers.bulks[len(oldest) :])) if summary else None


def _move_turns_down(scene: LayerBuilder, tiers: _Tiers) -> _Tiers | None:
    """Move the fewest oldest turns into topics that make the prompt shorter."""
    covered = max((one.until for one in (*tiers.bulks, *tiers.topics)), default=0)
    logs = [one for one in scene.distilled if not one.generation and one.until > covered]
    for start in scene.starts:
        if not tiers.start < start <= min(scene.current, scene.covered):
            continue
        if start <= covered:
            return replace(tiers, start=start)
        before = sum(one.until < start for one in logs)
        new = logs[: before + 1]
        if new and _size(new) < scene.tokens_between(covered, new[-1].until):
            return replace(tiers, start=start, topics=(*tiers.topics, *new))
    return None


def _summarize(oldest: Sequence[Distilled], condense: Summarize) -> Distilled | None:
    """Return a summary of distillations, None if it is not shorter."""
    size = _size(oldest)
    text = condense([one.text for one in oldest], size // 2) if oldest else ""
    counted = tokens.count(text)
    if not text or counted >= size:
        return None
    id_ = TIER_ID_PREFIX + hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
    return Distilled(
        id_, text, counted, oldest[-1].until, max(one.generation for one in oldest) + 1
    )


def _size(distilled: Sequence[Distilled]) -> int:
    return sum(one.tokens for one in distilled)
