"""The invariants of prompts, in generated and recorded sessions."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import islice

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from lore.budget.cache_economics import CostPolicy, SessionCosts
from lore.context.layers import EVICT_TO_SHARE, PromptRoom, TokenMeasure, turn_starts
from lore.context.planner import PlanTerms, open_layers, plan_prompt, raise_floor
from lore.evals.datasets import read_long_sessions
from lore.records.gateway import Distilled, ModelPrice, Plan, PromptState
from tests.context.dialogues import (
    LONG,
    SESSIONS,
    condensed,
    dialogue,
    plain_talk,
    plain_turn,
    recorded_talks,
    rendered,
    requests,
    talks,
    turns,
)
from tests.context.prompt_replay import Below, Step, assert_legal, check, play
from tests.context.session_simulation import sessions

ROOM = PromptRoom(4_000)
EXACT = TokenMeasure(0.25)


def known_of(entries, *, each: int = 3, meta_after: int = 0, share: float = 0.05):
    """Return the distillations that there are while the last turn goes on."""
    until = (turn_starts(entries) or (0,))[-1]
    return condensed(entries, until=until, each=each, meta_after=meta_after, share=share)


def decide(entries, pins: PromptState, *, room: PromptRoom = ROOM, **more) -> Plan:
    terms = PlanTerms(room, EXACT, **more)
    return plan_prompt(dialogue(entries), pins, known_of(entries), terms)


def last(entries, room: PromptRoom = ROOM, **more) -> Step:
    return list(play(entries, known_of, room, **more))[-1]


@settings(max_examples=120)
@given(session=sessions())
def test_every_invariant_holds_in_a_session_that_grows(session):
    check(list(session.steps()))


def test_generated_sessions_reach_every_layer_and_bust_reason():
    seen: Counter[str] = Counter()

    @settings(max_examples=80, derandomize=True, database=None, phases=[Phase.generate])
    @given(session=sessions())
    def count(session):
        steps = list(session.steps())
        check(steps)
        for step in steps:
            seen[f"layer {step.plan.layer}"] += 1
            seen[step.plan.why] += 1
            seen["annotated"] += bool(step.plan.annotated)
            seen["annotated as before"] += bool(step.plan.annotated) and not step.plan.busts
            seen["lagging"] += step.plan.start > max((one.until for one in step.known), default=0)

    count()
    reached = {
        *(f"layer {layer}" for layer in range(5)),
        *("fit", "cost", "cold", "floor"),
        *("annotated", "annotated as before", "lagging"),
    }
    assert {name for name in reached if seen[name] < 3} == set()


@settings(max_examples=80)
@given(
    entries=talks(),
    other=st.lists(turns(99), min_size=1, max_size=3),
    cut=st.floats(0, 1),
    window=st.sampled_from([300, 1_500, 6_000]),
    each=st.integers(1, 9),
)
def test_shortened_history_is_planned_anew(entries, other, cut, window, each):
    def known(so_far):
        return known_of(so_far, each=each)

    steps = list(play(entries, known, PromptRoom(window), cost=Below(0.9)))
    pins = steps[-1].plan.state if steps else PromptState()
    forked = [*entries[: int(cut * len(entries))], *(one for turn in other for one in turn)]
    after = list(play(forked, known, PromptRoom(window), cost=Below(0.9), pins=pins))
    for step in after:
        assert_legal(step)
    if len(after) > 1:
        check(after[1:])


@settings(max_examples=60)
@given(entries=talks(), window=st.sampled_from([300, 1_500, 6_000]), at=st.floats(0, 1))
def test_a_client_that_drops_entries_gets_legal_prompts(entries, window, at):
    steps = list(play(entries, known_of, PromptRoom(window), cost=Below(0.9)))
    pins = steps[-1].plan.state if steps else PromptState()
    gone = int(at * (len(entries) - 1))
    if any(block.call_id for block in entries[gone].blocks):
        return
    for step in play(
        [*entries[:gone], *entries[gone + 1 :]], known_of, PromptRoom(window), pins=pins
    ):
        assert_legal(step)


@pytest.mark.skipif(not SESSIONS.exists(), reason="no recorded sessions beside the project")
@pytest.mark.parametrize("window", [8_000, 30_000])
def test_every_invariant_holds_in_recorded_sessions(window):
    room = PromptRoom(window, keep_tokens=window // 8)
    seen = 0
    for _, entries in recorded_talks():
        short = entries[:120]
        steps = play(
            short, lambda told: known_of(told, each=6, meta_after=8), room, cost=Below(0.6)
        )
        check(list(steps))
        seen += 1
    assert seen > 200


@pytest.mark.skipif(not LONG.exists(), reason="no recorded sessions beside the project")
def test_every_invariant_holds_in_a_long_session_with_product_settings():
    entries = read_long_sessions(LONG)[0].entries[:900]
    cold_at = frozenset(range(0, 400, 37))
    terms = CostPolicy().terms(ModelPrice(3.0, 15.0, 0.3, 3.75, 6.0), SessionCosts(EXACT))
    steps = play(
        entries, partial(known_of, each=9), terms.room, cost=terms.cost_rule, cold_at=cold_at
    )
    played = list(steps)
    check(played)
    assert sum(step.plan.busts for step in played) > 3


def test_short_session_is_unchanged():
    made = decide(plain_talk(3, chars=40), PromptState())
    assert (made.layer, made.start, made.prefix, made.busts) == (0, 0, (), False)


def test_distillations_replace_what_does_not_fit_and_the_window_starts_with_a_turn():
    entries = plain_talk(12, chars=900)
    made = decide(entries, PromptState())
    assert made.layer == 1
    assert made.busts
    assert made.why == "fit"
    assert made.start in turn_starts(entries)
    assert made.prefix
    assert made.prefix[-1].until >= made.start


def test_an_overflowing_window_is_cut_to_three_quarters_of_its_room():
    entries = plain_talk(40, chars=300)
    steps = [step for step in play(entries, known_of, ROOM) if step.plan.busts]
    assert len(steps) > 1
    for step in steps:
        scene = open_layers(step.sent, step.known, step.terms)
        raw = scene.raw_tokens(step.plan.start, step.plan.annotated)
        assert raw <= EVICT_TO_SHARE * ROOM.raw_tokens(step.plan.layer)


def test_between_two_busts_there_are_many_turns():
    steps = list(play(plain_talk(60, chars=300), known_of, ROOM))
    assert sum(step.plan.busts for step in steps) < len(steps) / 6


def test_new_distillations_wait_for_a_bust():
    entries = plain_talk(12, chars=900)
    made = decide(entries, PromptState())
    more = [*entries, *plain_turn(13, chars=40)]
    after = decide(more, made.state)
    assert not after.busts
    assert after.prefix == made.prefix


def test_a_cold_cache_lets_the_window_be_cut_at_no_cost():
    room = PromptRoom(40_000, keep_tokens=800)
    entries = plain_talk(12, chars=900)
    first = decide(entries, PromptState(), room=room, cost_rule=Below(1.0))
    assert first.why == "cost"
    more = [*entries, *(one for n in range(20, 26) for one in plain_turn(n, chars=300))]
    warm = decide(more, first.state, room=room)
    assert not warm.busts
    cold = decide(more, first.state, room=room, cold=True)
    assert cold.busts
    assert cold.why == "cold"
    assert cold.start > warm.start
    assert cold.state.busts_in_a_row == 0


def test_layers_rise_as_less_fits():
    entries = plain_talk(6, steps=8, chars=1_500)
    found = [
        decide(entries, PromptState(), room=PromptRoom(size)).layer
        for size in range(30_000, 600, -200)
    ]
    assert found == sorted(found)
    assert set(found) >= {0, 1, 2, 4}


def test_old_outputs_are_annotated_at_layer_two_but_not_those_of_the_last_turns():
    entries = plain_talk(6, steps=3, chars=2_000)
    made = plan_prompt(
        dialogue(entries), PromptState(floor=2), (), PlanTerms(PromptRoom(60_000), EXACT)
    )
    assert made.layer == 2
    assert made.annotated == {f"c{turn}.{step}" for turn in range(3) for step in range(3)}


def test_at_layer_three_all_outputs_but_those_of_the_current_turn_are_annotated():
    entries = plain_talk(6, steps=3, chars=2_000)
    made = plan_prompt(
        dialogue(entries), PromptState(floor=3), (), PlanTerms(PromptRoom(60_000), EXACT)
    )
    assert made.annotated == {f"c{turn}.{step}" for turn in range(5) for step in range(3)}


def test_at_layer_three_five_logs_and_the_metas_are_left():
    entries = plain_talk(30, chars=900)
    told = condensed(entries, until=100, each=4)
    meta = Distilled("meta", "all before", 10, 20, 1)
    terms = PlanTerms(PromptRoom(20_000, keep_tokens=1_000), EXACT)
    made = plan_prompt(dialogue(entries), PromptState(floor=3), [*told, meta], terms)
    assert made.prefix[0] == meta
    assert [one.generation for one in made.prefix[1:]] == [0] * 5


def test_a_meta_takes_the_place_of_logs_that_find_no_room():
    entries = plain_talk(30, chars=900)
    meta = Distilled("meta", "all before", 10, 20, 1)
    few = condensed(entries, until=170, each=4, share=0.01)
    made = plan_prompt(dialogue(entries), PromptState(), [*few, meta], PlanTerms(ROOM, EXACT))
    assert meta not in made.prefix
    many = condensed(entries, until=170, each=4, share=0.1)
    made = plan_prompt(dialogue(entries), PromptState(), [*many, meta], PlanTerms(ROOM, EXACT))
    assert made.prefix[0] == meta
    assert len(made.prefix) > 2


def test_uncovered_entries_stay_until_layer_4():
    entries = plain_talk(12, chars=700)
    terms = PlanTerms(PromptRoom(9_000), EXACT)
    stays = plan_prompt(dialogue(entries), PromptState(), (), terms)
    assert not stays.start
    tight = plan_prompt(dialogue(entries), PromptState(), (), PlanTerms(PromptRoom(1_500), EXACT))
    assert tight.layer == 4
    assert tight.start
    assert "no distillation" in tight.notes[0]


def test_a_current_turn_longer_than_the_window_is_sent_with_a_note():
    entries = [*plain_talk(2), *plain_turn(9, steps=20, chars=4_000)]
    made = decide(entries, PromptState())
    assert made.layer == 4
    assert made.start == turn_starts(entries)[-1]
    assert "current turn" in made.notes[-1]


@pytest.mark.parametrize(
    ("tokens", "before", "floor"),
    [
        (210_000, PromptState(), 2),
        (239_999, PromptState(), 2),
        (240_000, PromptState(), 3),
        (900_000, PromptState(), 3),
        (210_000, PromptState(floor=3), 3),
        (210_000, PromptState(layer=2), 3),
        (250_000, PromptState(layer=3), 4),
        (210_000, PromptState(layer=4), 4),
    ],
)
def test_a_refused_prompt_raises_the_floor(tokens, before, floor):
    assert raise_floor(before, tokens, 200_000).floor == floor


def test_floor_is_never_undercut():
    entries = plain_talk(10, steps=3, chars=1_200)
    room = PromptRoom(100_000)
    pins = raise_floor(decide(entries, PromptState(), room=room).state, 300_000, 200_000)
    steps = list(
        play([*entries, *plain_talk(4)], known_of, room, pins=pins, cold_at=frozenset({9}))
    )
    assert all(step.plan.state.floor == 3 for step in steps)
    assert steps[-1].plan.layer == 3


def test_five_busts_in_a_row_stop_cost_busts_until_cold():
    entries = plain_talk(12, chars=900)
    tired = PromptState(busts_in_a_row=5)
    room = PromptRoom(100_000, keep_tokens=500)
    assert not decide(entries, tired, room=room, cost_rule=Below(1.0)).busts
    assert decide(entries, tired, room=room).state.busts_in_a_row == 5
    assert decide(entries, tired, room=room, cost_rule=Below(1.0), cold=True).why == "cost"
    assert decide(entries, tired, room=ROOM).why == "fit"


def test_turn_without_a_bust_resets_the_count():
    entries = plain_talk(3)
    assert decide(entries, PromptState(busts_in_a_row=4)).state.busts_in_a_row == 0


def test_a_rewind_behind_the_start_of_the_window_changes_nothing():
    entries = plain_talk(12, chars=900)
    first = decide(entries, PromptState())
    shorter = decide(entries[:-3], first.state)
    assert not shorter.busts
    assert shorter.start == first.start


def test_a_rewind_before_the_start_of_the_window_begins_anew():
    entries = plain_talk(12, chars=900)
    first = decide(entries, PromptState())
    anew = decide(entries[: first.start - 3], first.state)
    assert anew.busts
    assert anew.start < first.start
    assert anew.layer == 0 or anew.prefix != first.prefix


def test_after_a_rewind_the_turn_that_is_current_again_is_whole():
    entries = plain_talk(6, steps=3, chars=2_000)
    made = plan_prompt(
        dialogue(entries), PromptState(floor=2), (), PlanTerms(PromptRoom(60_000), EXACT)
    )
    rewound = entries[: turn_starts(entries)[2] + 3]
    again = plan_prompt(dialogue(rewound), made.state, (), PlanTerms(PromptRoom(60_000), EXACT))
    assert again.busts
    assert not again.annotated & {"c2.0", "c2.1", "c2.2"}


def test_two_equal_entries_have_different_names():
    entries = [*plain_turn(1, chars=900), *plain_turn(1, chars=900), *plain_talk(12, chars=900)]
    step = last(entries, PromptRoom(5_000))
    start = step.plan.start
    again = plan_prompt(step.sent, step.plan.state, step.known, step.terms)
    assert again.start == start
    assert not again.busts


def test_a_forgotten_distillation_is_not_sent_again():
    entries = plain_talk(12, chars=900)
    first = decide(entries, PromptState())
    left = [one for one in known_of(entries) if one.id != first.prefix[0].id]
    again = plan_prompt(dialogue(entries), first.state, left, PlanTerms(ROOM, EXACT))
    assert again.busts
    assert first.prefix[0].id not in again.state.prefix


def test_reported_size_takes_precedence_over_the_estimate():
    entries = plain_talk(6)
    told = TokenMeasure(0.25, reported_tokens=3_500, reported_entries=len(entries) - 1)
    made = plan_prompt(dialogue(entries), PromptState(), known_of(entries), PlanTerms(ROOM, told))
    assert made.why == "fit"


def test_the_system_prompt_takes_room():
    entries = plain_talk(8, chars=900)
    sent = dialogue(entries)
    assert (
        plan_prompt(
            sent, PromptState(), known_of(entries), PlanTerms(PromptRoom(9_000), EXACT)
        ).layer
        == 0
    )
    heavy = replace(sent, fixed_chars=28_000)
    made = plan_prompt(heavy, PromptState(), known_of(entries), PlanTerms(PromptRoom(9_000), EXACT))
    assert made.layer > 0
    assert made.tokens >= 7_000


def test_daily_budget_can_demand_a_layer():
    entries = plain_talk(8, steps=3, chars=2_000)
    made = decide(entries, PromptState(), room=PromptRoom(100_000), min_layer=2)
    assert made.layer == 2
    assert made.state.floor == 0
    after = decide([*entries, *plain_turn(20)], made.state, room=PromptRoom(100_000))
    assert (after.layer, after.busts) == (2, False)


def test_no_bust_for_a_longer_prompt():
    entries = plain_talk(12, chars=40)
    told = condensed(entries, until=40, each=4, share=9.0)
    room = PromptRoom(100_000, keep_tokens=9_000)
    made = plan_prompt(dialogue(entries), PromptState(), told, PlanTerms(room, EXACT, Below(1.0)))
    assert made.layer == 0


def test_planning_is_deterministic():
    entries = plain_talk(12, chars=900)
    first = decide(entries, PromptState())
    again = decide(entries, first.state)
    assert not again.busts
    assert rendered(dialogue(entries), again) == rendered(dialogue(entries), first)


def test_requests_of_a_session_end_before_each_answer():
    entries = plain_talk(1)
    assert list(islice(requests(entries), 2)) == [1, 3]
