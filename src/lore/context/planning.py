"""Planning: how the next prompt of a session is made, and what the session then holds on to.

A prompt that begins as the last one did is read from the provider's cache; one that does not is
a bust. So a plan keeps to what is pinned until there is a reason: it no longer fits, the provider
refused it, the cache has expired anyway, the history is another, or a bust saves money.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from lore.context import turns
from lore.context.layers import LAYERS, Room, Scene, Shape
from lore.context.sizing import Measure
from lore.records.dialogues import Dialogue, Distilled, Layer, Pins, Plan

MOST_BUSTS_IN_A_ROW = 5
"""After so many in a row something else breaks the cache: no more of them to save money."""

FAR_TOO_LONG = 1.2
"""A prompt refused for being so many times too long needs layer 3 at once."""


class Cost(Protocol):
    """Decides whether a shorter prompt is worth a bust; both are counted with all before them.

    If one is not, no longer one is.
    """

    def __call__(self, now_tokens: int, then_tokens: int, *, layer: Layer, cold: bool) -> bool:
        """Tell whether to leave a prompt of a layer for a shorter one; `cold`: none is cached."""
        ...


def never(now_tokens: int, then_tokens: int, *, layer: Layer, cold: bool) -> bool:
    """Save no money: only what does not fit is made shorter."""
    del now_tokens, then_tokens, layer, cold
    return False


@dataclass(frozen=True, slots=True)
class Pinned:
    """What the pins of a session mean for a dialogue, and whether all of it still holds."""

    shape: Shape
    holds: bool


@dataclass(frozen=True, slots=True)
class Terms:
    """Under what a prompt is planned.

    `cold`: the provider has forgotten the last prompt. `least`: a layer that the budget of the
    day demands.
    """

    room: Room
    measure: Measure = field(default_factory=Measure)
    cost: Cost = never
    cold: bool = False
    least: Layer = 0


def plan(dialogue: Dialogue, pins: Pins, distilled: Sequence[Distilled], terms: Terms) -> Plan:
    """Return how to make the next prompt.

    `distilled` are all that tell of this dialogue, also those that others have replaced: pins
    may name them.
    """
    scene = scene_of(dialogue, distilled, terms)
    pinned = find_pinned(scene, pins)
    now = pinned.shape
    floor = max(pins.floor, terms.least)
    stopped = pins.busts_in_a_row >= MOST_BUSTS_IN_A_ROW and not terms.cold
    fresh = terms.cold or not pinned.holds
    then, why = _next(scene, now, floor, never if stopped else terms.cost, fresh=fresh)
    return settled(scene, pins, pinned, then, why=why, cold=terms.cold)


def plan_whole(dialogue: Dialogue, pins: Pins, terms: Terms) -> Plan:
    """Return a prompt as it came, however long; a session that had a shorter one holds no more."""
    scene = scene_of(dialogue, (), terms)
    whole = scene.whole() if pins.layer else _reported(scene.whole(), scene)
    tokens = scene.room.fixed_tokens + whole.tokens
    return Plan(
        0,
        Pins(floor=pins.floor),
        tokens=tokens,
        busts=bool(pins.layer),
        why="whole" if pins.layer else "",
        notes=_notes(scene, whole, tokens),
    )


def scene_of(dialogue: Dialogue, distilled: Sequence[Distilled], terms: Terms) -> Scene:
    """Return a dialogue as it is measured under these terms."""
    fixed = terms.room.fixed_tokens + terms.measure.of_chars(dialogue.fixed_chars)
    return Scene(dialogue, distilled, terms.measure, replace(terms.room, fixed_tokens=fixed))


def settled(scene: Scene, pins: Pins, pinned: Pinned, then: Shape, *, why: str, cold: bool) -> Plan:
    """Return the plan that goes from a pinned shape to the next."""
    busts = not pinned.holds or not then.is_like(pinned.shape)
    if then.is_like(scene.whole()):
        # Nothing is left out: whatever the layer may be called, it is the original.
        then = replace(then, layer=0)
    tokens = scene.room.fixed_tokens + then.tokens
    return Plan(
        layer=then.layer,
        pins=_new_pins(scene, pins, then, busts=busts, cold=cold),
        start=then.start,
        prefix=then.prefix,
        annotated=then.annotated,
        tokens=tokens,
        busts=busts,
        why=(why or "history") if busts else "",
        notes=_notes(scene, then, tokens),
    )


def raise_floor(pins: Pins, tokens: int, most_tokens: int) -> Pins:
    """Return the pins of a session whose prompt of so many tokens was refused as too long."""
    needed = 3 if most_tokens and tokens >= FAR_TOO_LONG * most_tokens else 2
    # A prompt that was at that layer already needs the next one.
    floor = max(needed, pins.floor, pins.layer + 1 if pins.layer >= needed else 0)
    return replace(pins, floor=_layer(min(4, floor)))


def find_pinned(scene: Scene, pins: Pins) -> Pinned:
    """Return the shape that is pinned, or all as it is where the history is another."""
    if not pins.layer:
        return Pinned(_reported(scene.whole(), scene), holds=True)
    start = turns.find_named(scene.entries, pins.start) if pins.start else 0
    known = {one.id: one for one in scene.known}
    lost = start is None or (start and start not in scene.starts)
    if start is None or lost or not all(id_ in known for id_ in pins.prefix):
        return Pinned(scene.whole(), holds=False)
    prefix = tuple(known[id_] for id_ in pins.prefix)
    # After a rewind an old turn may be the current one: it is given back whole.
    whole = scene.calls_from(scene.current)
    annotated = (pins.annotated & scene.calls_from(start)) - whole
    shape = scene.made(pins.layer, start, prefix, annotated)
    return Pinned(_reported(shape, scene), holds=not pins.annotated & whole)


def _reported(shape: Shape, scene: Scene) -> Shape:
    """Return a pinned shape as its provider counted it, with what came since then."""
    told = scene.measure
    if not told.reported_tokens or not shape.start < told.reported_entries <= len(scene.entries):
        return shape
    since = scene.tokens_from(told.reported_entries, shape.annotated)
    raw = told.reported_tokens - scene.room.fixed_tokens - shape.prefix_tokens + since
    return replace(shape, raw_tokens=max(0, raw))


def _next(scene: Scene, now: Shape, floor: int, cost: Cost, *, fresh: bool) -> tuple[Shape, str]:
    """Return the shape of the next prompt, and why it is another one.

    A layer is left for a lower one only where all is written anew. The emergency ends with the
    turn that brought it.
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


def _first_fitting(shapes: dict[Layer, Shape], least: int, room: Room) -> Shape:
    """Return the lowest layer that fits, layer 4 if none does."""
    for layer in LAYERS:
        if layer >= least and shapes[layer].fits(room):
            return shapes[layer]
    return shapes[4]


def _new_pins(scene: Scene, pins: Pins, then: Shape, *, busts: bool, cold: bool) -> Pins:
    """Return what the session holds on to; only a bust that costs something is counted."""
    in_a_row = pins.busts_in_a_row
    if cold:
        in_a_row = 0
    elif busts:
        in_a_row += 1
    elif in_a_row < MOST_BUSTS_IN_A_ROW:
        in_a_row = 0
    return Pins(
        layer=then.layer,
        floor=pins.floor,
        start=turns.name_of(scene.entries, then.start) if then.start else "",
        prefix=tuple(one.id for one in then.prefix),
        annotated=then.annotated,
        busts_in_a_row=in_a_row,
    )


def _notes(scene: Scene, then: Shape, tokens: int) -> tuple[str, ...]:
    """Say honestly what a prompt lacks."""
    notes = []
    if then.start > scene.covered:
        left_out = then.start - scene.covered
        notes.append(f"{left_out} entries are left out that no distillation tells of")
    if tokens > scene.room.window_tokens:
        notes.append(_told_unfit(scene, then))
    return tuple(notes)


def _told_unfit(scene: Scene, then: Shape) -> str:
    if not scene.room.usable_tokens:
        return "system prompt and tools alone are longer than the model can read"
    if then.start == scene.current:
        return "the current turn alone is longer than the model can read"
    return "the prompt may be longer than the model can read"


def _layer(number: int) -> Layer:
    return (0, *LAYERS)[number]
