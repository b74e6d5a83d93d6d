"""Tiers: the oldest part is summarized and moved down, and nothing is lost."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import islice, pairwise

import pytest
from hypothesis import given, settings

from lore.context.layers import PromptRoom, TokenMeasure, turn_starts
from lore.context.planner import TIER_ID_PREFIX, PlanTerms, plan_tiers, plan_whole_prompt
from lore.records.gateway import Distilled, PromptState
from tests.context.dialogues import (
    SESSIONS,
    condensed,
    dialogue,
    plain_talk,
    plain_turn,
    recorded_talks,
)
from tests.context.prompt_replay import assert_follows, assert_legal, play
from tests.context.session_simulation import sessions


def shorten(texts, limit_tokens):
    return " ".join(texts)[: 4 * limit_tokens]


def lengthen(texts, limit_tokens):
    return " ".join(texts) * 9


class Keeping:
    """A planner that keeps the distillations it made, as a memory does."""

    def __init__(self, condense=shorten) -> None:
        self.made: dict[str, Distilled] = {}
        self._plan = partial(plan_tiers, condense=condense)

    def __call__(self, sent, pins, distilled, terms):
        made = self._plan(sent, pins, [*distilled, *self.made.values()], terms)
        self.made |= {one.id: one for one in made.prefix if one.id.startswith(TIER_ID_PREFIX)}
        return made


def known(entries, *, each=3, share=0.05):
    until = (turn_starts(entries) or (0,))[-1]
    return [
        Distilled(one.id, "x" * 4 * one.tokens, one.tokens, one.until)
        for one in condensed(entries, until=until, each=each, share=share)
    ]


def decide(entries, *, window=4_000, condense=shorten, pins=None):
    terms = PlanTerms(PromptRoom(window), TokenMeasure(0.25))
    told = known(entries)
    return plan_tiers(dialogue(entries), pins or PromptState(), told, terms, condense=condense)


def test_nothing_happens_below_seventy_percent_of_the_window():
    entries = plain_talk(8, chars=900)
    size = sum(one.chars for one in entries) / 4
    assert decide(entries, window=int(size / 0.69)).layer == 0
    assert decide(entries, window=int(size / 0.72)).layer == 1


def test_dialogue_takes_half_and_topics_three_tenths_of_the_window():
    entries = plain_talk(12, chars=900)
    made = decide(entries)
    raw = sum(one.chars for one in entries[made.start :]) / 4
    assert raw <= 0.5 * 0.7 * 4_000
    assert sum(one.tokens for one in made.prefix if not one.generation) <= 0.3 * 0.7 * 4_000


def test_surplus_topics_become_bulks_at_the_start():
    entries = plain_talk(60, chars=900)
    made = decide(entries)
    assert made.prefix[0].generation > 0
    assert made.prefix[-1].generation == 0
    untils = [one.until for one in made.prefix]
    assert untils == sorted(untils)
    assert untils[-1] >= made.start


def test_tier_summaries_have_their_id_prefix():
    made = decide(plain_talk(60, chars=900))
    assert {one.id.startswith(TIER_ID_PREFIX) for one in made.prefix if one.generation} == {True}


def test_summary_that_is_not_shorter_is_refused():
    made = decide(plain_talk(60, chars=900), condense=lengthen)
    assert all(not one.generation for one in made.prefix)


def told_of_turns(entries, sizes):
    """Return a distillation of each turn, of so many tokens."""
    ends = [*turn_starts(entries)[1:], len(entries)]
    return [
        Distilled(f"turn-{until}", "x" * 4 * size, size, until)
        for size, until in zip(sizes, ends, strict=True)
    ]


def tokens_before(entries, until):
    return sum(one.chars for one in entries[:until]) / 4


def test_topics_that_are_longer_than_their_source_are_refused():
    entries, terms = plain_talk(30, chars=100), PlanTerms(PromptRoom(4_400), TokenMeasure(0.25))
    told = told_of_turns(entries, [300] * 30)
    assert tokens_before(entries, told[0].until) < 300
    made = plan_tiers(dialogue(entries), PromptState(), told, terms, condense=shorten)
    assert not made.prefix


def test_long_topic_is_merged_with_short_ones():
    entries, terms = plain_talk(30, chars=100), PlanTerms(PromptRoom(4_000), TokenMeasure(0.25))
    told = told_of_turns(entries, [300, *[10] * 29])
    made = plan_tiers(dialogue(entries), PromptState(), told, terms, condense=shorten)
    assert made.prefix[0] == told[0]
    assert sum(one.tokens for one in made.prefix) < tokens_before(entries, made.start)


def test_topics_take_three_tenths_and_bulks_a_fifth():
    entries, terms = plain_talk(160, chars=900), PlanTerms(PromptRoom(20_000), TokenMeasure(0.25))
    told = told_of_turns(entries, [100] * 160)
    made = plan_tiers(dialogue(entries), PromptState(), told, terms, condense=shorten)
    topics = sum(one.tokens for one in made.prefix if not one.generation)
    bulks = sum(one.tokens for one in made.prefix if one.generation)
    raw = tokens_before(entries, len(entries)) - tokens_before(entries, made.start)
    for size, share, step in ((raw, 0.5, 600), (topics, 0.3, 400), (bulks, 0.2, 400)):
        assert share * 14_000 - step <= size <= share * 14_000


def test_a_refused_prompt_begins_earlier():
    entries = plain_talk(8, chars=900)
    size = sum(one.chars for one in entries) / 4
    assert decide(entries, window=int(size / 0.5)).layer == 0
    assert decide(entries, window=int(size / 0.5), pins=PromptState(floor=2)).layer == 1


def test_summaries_are_reused_and_few_turns_bust():
    steps = list(play(plain_talk(60, chars=900), known, PromptRoom(4_000), planner=Keeping()))
    assert any(one.id.startswith(TIER_ID_PREFIX) for one in steps[-1].plan.prefix)
    assert sum(step.plan.busts for step in steps) < len(steps) / 3


@pytest.mark.parametrize("until", [0, 5, 40])
def test_uncovered_entries_are_annotated_before_the_window_overflows(until):
    entries, terms = (
        plain_talk(40, steps=3, chars=3_000),
        PlanTerms(PromptRoom(36_000), TokenMeasure(0.25)),
    )
    told = [one for one in known(entries) if one.until <= until]
    made = plan_tiers(dialogue(entries), PromptState(), told, terms, condense=shorten)
    assert made.tokens <= 0.75 * 36_000
    assert made.layer > 1
    assert made.annotated
    again = plan_tiers(dialogue(entries), made.state, told, terms, condense=shorten)
    assert not again.busts


def test_prompt_that_cannot_fit_has_a_note():
    entries = [*plain_talk(2), *plain_turn(9, steps=20, chars=4_000)]
    made = decide(entries)
    assert "current turn" in made.notes[-1]
    whole = plan_whole_prompt(
        dialogue(plain_talk(40)), PromptState(), PlanTerms(PromptRoom(4_000), TokenMeasure(0.25))
    )
    assert whole.notes == ("the prompt may be longer than the model can read",)
    fixed = dialogue(plain_talk(2), fixed_chars=90_000)
    made = plan_tiers(
        fixed, PromptState(), (), PlanTerms(PromptRoom(4_000), TokenMeasure(0.25)), condense=shorten
    )
    assert "system prompt" in made.notes[-1]


@settings(max_examples=80)
@given(session=sessions())
def test_every_invariant_of_a_prompt_holds(session):
    told = [replace(one, text="x" * 4 * one.tokens) for one in session.told]
    steps = list(replace(session, told=told).steps(Keeping()))
    for step in steps:
        assert_legal(step)
    for before, after in pairwise(steps):
        assert_follows(before, after)


@pytest.mark.skipif(not SESSIONS.exists(), reason="no recorded sessions beside the project")
@pytest.mark.parametrize("window", [4_000, 8_000])
def test_every_invariant_holds_in_recorded_sessions(window):
    shortened = 0
    for _, entries in islice(recorded_talks(), 0, None, 4):
        told = partial(known, each=6, share=0.1)
        steps = list(play(entries[:120], told, PromptRoom(window), planner=Keeping()))
        for step in steps:
            assert_legal(step)
        for before, after in pairwise(steps):
            assert_follows(before, after)
        shortened += any(step.plan.prefix for step in steps)
    assert shortened > 5
