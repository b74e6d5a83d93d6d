"""Replay sessions turn by turn, and check the invariants of every prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lore.context import layers as marking
from lore.context.layers import PromptRoom, TokenMeasure, find_entry, turn_starts
from lore.context.planner import CostRule, PlanTerms, never_bust, open_layers, plan_prompt
from lore.records.gateway import Dialogue, Distilled, Entry, Layer, Plan, PromptState
from tests.context.dialogues import dialogue, rendered, requests

Planner = Callable[[Dialogue, PromptState, Sequence[Distilled], PlanTerms], Plan]
Known = Callable[[Sequence[Entry]], Sequence[Distilled]]


@dataclass(frozen=True)
class Step:
    """One request of a session: what the client sent, and how it was planned."""

    sent: Dialogue
    pins: PromptState
    known: tuple[Distilled, ...]
    terms: PlanTerms
    plan: Plan


@dataclass(frozen=True)
class Below:
    """Says that a bust pays where it leaves less than a share of a prompt."""

    share: float

    def __call__(self, now_tokens: int, then_tokens: int, *, layer: Layer, cold: bool) -> bool:
        return then_tokens < now_tokens * (1 if cold else self.share)


def play(
    entries: Sequence[Entry],
    known: Known,
    room: PromptRoom,
    *,
    cost: CostRule = never_bust,
    cold_at: frozenset[int] = frozenset(),
    pins: PromptState | None = None,
    planner: Planner = plan_prompt,
    breakpoints: int = 2,
) -> Iterator[Step]:
    """Plan every request of a session, each with the pins of the one before."""
    pins = pins or PromptState()
    for place, end in enumerate(requests(entries)):
        sent = dialogue(entries[:end], breakpoints=breakpoints)
        distilled = tuple(known(entries[:end]))
        terms = PlanTerms(room, TokenMeasure(0.25), cost, cold=place in cold_at)
        made = planner(sent, pins, distilled, terms)
        yield Step(sent, pins, distilled, terms, made)
        pins = made.state


def assert_legal(step: Step) -> None:
    """Every invariant of a single prompt."""
    sent, made = step.sent, step.plan
    entries, window = sent.entries, sent.entries[made.start :]
    current = (turn_starts(entries) or (0,))[-1]
    assert made.start <= current, "the current turn is cut"
    if made.start:
        assert window[0].voice == "user", "a system message leads"
        assert window[0].begins_turn, "the window does not begin with what a person says"
    assert _pairs(entries, made.start), "a call and its result are parted"
    in_turn = {block.call_id for one in entries[current:] for block in one.blocks}
    assert not made.annotated & in_turn, "an output of the current turn is annotated"
    outputs = {b.call_id for one in window for b in one.blocks if b.kind == "result"}
    assert made.annotated <= outputs or not made.busts, "annotated what is not there"
    found = marking.choose_breakpoints(sent, made)
    assert len(found) + sent.breakpoints <= marking.MAX_BREAKPOINTS
    assert all(made.start <= n < len(entries) for n in found if n != marking.PREFIX)
    if made.layer == 0:
        assert not made.start
        assert not made.prefix
        assert not made.annotated
    covered = max((one.until for one in step.known), default=0)
    before = (find_entry(entries, step.pins.start) or 0) if step.pins.start else 0
    if made.layer < 4:
        # What an emergency left out does not come back.
        assert made.start <= max(covered, before), "left out what no distillation tells of"
    if made.start > covered:
        assert made.notes, "something is left out and not reported"
    if made.tokens > step.terms.room.window_tokens:
        assert made.notes, "too long, and not reported"


def _pairs(entries: Sequence[Entry], start: int) -> bool:
    called: dict[str, int] = {}
    for number, one in enumerate(entries):
        for block in one.blocks:
            if block.kind == "call":
                called[block.call_id] = number
            elif block.kind == "result":
                place = called.get(block.call_id, number)
                if (place < start) != (number < start):
                    return False
    return True


def assert_assistants_are_whole(step: Step) -> None:
    """No block of what an assistant said is replaced: its reasoning is whole or not there."""
    for one in step.sent.entries[step.plan.start :]:
        changed = [b for b in one.blocks if b.call_id in step.plan.annotated and b.kind == "result"]
        assert not changed or one.voice == "user"


def assert_layers_shrink(step: Step) -> None:
    """Each layer is at most as long as the one before."""
    scene = open_layers(step.sent, step.known, step.terms)
    sizes = [scene.whole_shape().tokens, *(one.tokens for one in scene.shapes(0).values())]
    assert sizes == sorted(sizes, reverse=True)


def assert_follows(before: Step, after: Step) -> None:
    """What holds between two requests of a session that only grows."""
    told = rendered(before.sent, before.plan)
    now = rendered(after.sent, after.plan)
    if not after.plan.busts:
        assert now[: len(told)] == told, "the prefix changed without a bust"
    assert after.plan.start >= before.plan.start, "the window went back"
    if not after.terms.cold and before.plan.layer < 4:
        assert after.plan.layer >= before.plan.layer, "the layer went back"
    stopped = before.plan.state.busts_in_a_row >= 5 and not after.terms.cold
    assert not (stopped and after.plan.why == "cost"), "a sixth bust to save money"
    if after.plan.busts:
        assert after.plan.why
    else:
        assert after.plan.prefix == before.plan.prefix
        assert after.plan.annotated == before.plan.annotated


def check(steps: Sequence[Step]) -> None:
    """Every invariant of a session that only grows."""
    for step in steps:
        assert_legal(step)
        assert_assistants_are_whole(step)
        assert_layers_shrink(step)
    for before, after in pairwise(steps):
        assert_follows(before, after)
