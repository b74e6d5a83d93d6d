"""Sessions made up by hypothesis: a talk, and all that may change around it from step to step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import strategies as st

from lore.context.layers import PromptRoom, TokenMeasure
from lore.context.planner import PlanTerms, plan_prompt, raise_floor
from lore.context.turns import turn_starts
from lore.records.gateway import Distilled, Entry, Layer, PromptState
from tests.context.dialogues import condensed, dialogue, requests, talks
from tests.context.prompt_replay import Below, Planner, Step


@dataclass(frozen=True)
class Session:
    """A talk whose distillations may come late, with models, reports and refusals that change."""

    entries: list[Entry]
    told: list[Distilled]
    lag: int
    """So many entries before the current turn no distillation tells of."""
    stalls_at: int
    """From this entry on nothing more is summed up."""
    rooms: tuple[PromptRoom, PromptRoom]
    changes_at: int
    """From this request on the other model is asked."""
    share: float
    cold_at: frozenset[int]
    pressed_at: frozenset[int]
    """Requests for which the budget of the day demands layer 2."""
    refused_at: frozenset[int]
    floor: Layer
    ratios: list[float]
    reports: list[float]
    """What a provider reports, as a share of what was planned; 0 where it reports nothing."""

    def steps(self, planner: Planner = plan_prompt) -> Iterator[Step]:
        """Plan every request, each with the pins and the report of the one before."""
        pins, reported = PromptState(floor=self.floor), (0, 0)
        for place, end in enumerate(requests(self.entries)):
            sent = dialogue(self.entries[:end], breakpoints=2)
            current = (turn_starts(sent.entries) or (0,))[-1]
            until = min(current - self.lag, self.stalls_at)
            known = tuple(one for one in self.told if one.until <= until)
            terms = PlanTerms(
                self.rooms[place >= self.changes_at],
                TokenMeasure(self.ratios[place % len(self.ratios)], *reported),
                Below(self.share),
                cold=place in self.cold_at,
                min_layer=2 if place in self.pressed_at else 0,
            )
            made = planner(sent, pins, known, terms)
            yield Step(sent, pins, known, terms, made)
            share = self.reports[place % len(self.reports)]
            reported = (int(share * made.tokens), end) if share else (0, 0)
            refused = place in self.refused_at
            pins = raise_floor(made.pins, 210_000, 200_000) if refused else made.pins


_FEW = st.frozensets(st.integers(0, 30), max_size=3)


@st.composite
def sessions(draw: st.DrawFn, most_turns: int = 12) -> Session:
    """Return a session in which anything may come late or change."""
    entries = draw(talks(most_turns))
    told = condensed(
        entries,
        until=len(entries),
        each=draw(st.integers(1, 9)),
        meta_after=draw(st.sampled_from([0, 3])),
        share=draw(st.sampled_from([0.01, 0.1, 1.0])),
    )
    keep = draw(st.sampled_from([0, 200, 2_000]))
    windows = st.sampled_from([300, 4_000, 15_000, 25_000, 40_000, 60_000, 200_000])
    rooms = PromptRoom(draw(windows), keep_tokens=keep), PromptRoom(draw(windows), keep_tokens=keep)
    return Session(
        entries,
        told,
        draw(st.sampled_from([0, 0, 2, 9])),
        draw(st.sampled_from([4, 15, 999, 999])),
        rooms,
        draw(st.sampled_from([5, 12, 999, 999, 999])),
        draw(st.sampled_from([0.0, 0.5, 0.9, 1.0])),
        draw(_FEW),
        draw(st.sampled_from([frozenset[int](), frozenset({6, 7})])),
        draw(st.sampled_from([frozenset[int](), frozenset[int](), frozenset({4}), frozenset({9})])),
        draw(st.sampled_from([0, 0, 0, 2, 3])),
        draw(st.lists(st.sampled_from([0.2, 0.25, 0.375]), min_size=1, max_size=3)),
        draw(st.lists(st.sampled_from([0.0, 0.9, 1.0, 1.1]), min_size=1, max_size=3)),
    )
