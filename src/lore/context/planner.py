"""Prompt planner: choose the layer of a session's next prompt, and update the session's state.

A prompt that starts like the last one is read from the provider's cache; any other is a bust. So a
plan keeps the last shape until there is a reason to change it: it no longer fits, the provider
refused it, the cache has expired, the history has changed, or a bust saves money.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from lore.context import layers
from lore.context.layers import LAYERS, LayerBuilder, PromptRoom, PromptShape, TokenMeasure
from lore.records.gateway import Dialogue, Distilled, Layer, Plan, PromptState

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
