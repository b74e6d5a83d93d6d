"""Plans for generated conversations: any that a planner might make."""

from __future__ import annotations

from hypothesis import strategies as st

from lore.gateway.apis.adapter import Request
from lore.records.gateway import Dialogue, Distilled, Layer, Plan, PromptState

NOTHING = Plan(0, PromptState())


def turn_starts(dialogue: Dialogue) -> list[int]:
    """Return the numbers of the entries that begin a turn."""
    return [
        at
        for at, one in enumerate(dialogue.entries)
        if one.voice == "user" and any(block.kind in ("text", "other") for block in one.blocks)
    ]


def results_before(dialogue: Dialogue, end: int) -> list[str]:
    """Return the calls whose results stand before an entry."""
    return [
        block.call_id
        for one in dialogue.entries[:end]
        for block in one.blocks
        if block.kind == "result"
    ]


@st.composite
def plans(draw: st.DrawFn, request: Request) -> Plan:
    starts = turn_starts(request.dialogue)
    start = draw(st.sampled_from(starts))
    old = results_before(request.dialogue, starts[-1])
    annotated = frozenset(draw(st.lists(st.sampled_from(old), unique=True)) if old else [])
    prefix = tuple(
        Distilled(f"s{n}", f"Summary number {n}.", 5, start) for n in range(draw(st.integers(0, 2)))
    )
    layer: Layer = 2 if annotated else 1 if start else 0
    return Plan(layer, PromptState(), start, prefix if start else (), annotated)
