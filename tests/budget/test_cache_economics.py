"""The cap of layer 0, the one-turn rule and the break-even rule."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.budget.cache_economics import (
    CACHE_TTL_S,
    DEFAULT_COLD_SHARE,
    DEFAULT_GROWTH_TOKENS,
    DEFAULT_LONG_COLD_SHARE,
    DEFAULT_TURNS,
    LONG_CACHE_TTL_S,
    MIN_CAP_TOKENS,
    SessionForecast,
    compute_layer_0_cap,
    decide_break_even,
    decide_for_one_turn,
    expected_cold_share,
    expected_growth,
    expected_turns,
    forecast_session,
    threshold_for,
)
from lore.records.gateway import ModelPrice

SONNET = ModelPrice(3.0, 15.0, 0.30, 3.75, 6.0, 1_000_000)


@pytest.mark.parametrize(
    ("tokens", "threshold"),
    [
        (0, 0.0),
        (40_000, 0.0),
        (200_000, 0.0),
        (200_001, 0.85),
        (500_000, 0.85),
        (500_001, 1.0),
        (1_000_000, 1.0),
    ],
)
def test_the_threshold_goes_by_size(tokens, threshold):
    assert threshold_for(tokens) == threshold


@pytest.mark.parametrize(
    ("current", "compressed", "busts"),
    [
        # Nothing presses up to 200 K, however little the compressed prompt costs.
        (200_000, 1_000, False),
        # Going on costs $0.09; 85 % of it are 20,400 tokens at the price of a write.
        (300_000, 20_399, True),
        (300_000, 20_400, False),
        # Above 500 K all of it counts: $0.18 are 48,000 tokens.
        (600_000, 47_999, True),
        (600_000, 48_000, False),
    ],
)
def test_a_bust_has_to_cost_less_than_one_more_turn(current, compressed, busts):
    assert decide_for_one_turn(current, compressed, SONNET).busts is busts


def test_both_costs_are_reported():
    told = decide_for_one_turn(400_000, 20_000, SONNET)
    assert told.bust_usd == pytest.approx(0.075)
    assert told.continue_usd == pytest.approx(0.12)
    assert told.threshold == 0.85


def test_what_is_free_to_read_is_never_compressed_for_money():
    free = ModelPrice(0.0, 0.0, 0.0, 0.0, 0.0)
    assert not decide_for_one_turn(900_000, 1_000, free).busts


def test_each_prompt_has_the_price_of_its_length():
    dear = ModelPrice(6.0, 22.5, 0.60, 7.5, 12.0, 1_000_000)
    told = decide_for_one_turn(400_000, 20_000, replace(SONNET, longer=((200_000, dear),)))
    assert told.bust_usd == pytest.approx(0.075)
    assert told.continue_usd == pytest.approx(0.24)


def model(read_usd, window=1_000_000):
    return ModelPrice(
        10 * read_usd, 50 * read_usd, read_usd, 12.5 * read_usd, 20 * read_usd, window
    )


@pytest.mark.parametrize(
    ("read_usd", "given", "tokens"),
    [
        # target / read price
        (0.30, {}, 333_333),
        (0.50, {}, 200_000),
        (0.30, {"target_usd_per_turn": 0.05}, 166_666),
        # never under 40,000: $0.10 would buy 33,333 tokens
        (3.00, {}, 40_000),
        (3.00, {"target_usd_per_turn": 0.01}, 40_000),
        # the first turn
        (0.30, {"calibrated": False}, 233_333),
        (3.00, {"calibrated": False}, 28_000),
        # 0 switches it off
        (3.00, {"target_usd_per_turn": 0}, 1_000_000),
        (3.00, {"target_usd_per_turn": 0, "turns_without_writes": 9}, 1_000_000),
        # three turns and more without writes to the cache
        (0.30, {"turns_without_writes": 2}, 333_333),
        (0.30, {"turns_without_writes": 3}, 333_333),
        (0.10, {"turns_without_writes": 3}, 650_000),
        (0.30, {"turns_without_writes": 3, "billed_read_usd": 3.00}, 40_000),
        # pinned, whatever else holds
        (0.30, {"pinned_tokens": 55_000, "turns_without_writes": 5}, 55_000),
        (0.30, {"pinned_tokens": 10_000, "calibrated": False}, 10_000),
        # what is billed goes before the list
        (0.30, {"billed_read_usd": 0.60}, 166_666),
        (0.30, {"billed_read_usd": 3.75}, 40_000),
        # never more than the model can read
        (0.01, {}, 1_000_000),
        (0.30, {"pinned_tokens": 2_000_000}, 1_000_000),
        # what is free to read has no cap but that
        (0.00, {}, 1_000_000),
    ],
)
def test_the_cap_of_layer_0(read_usd, given, tokens):
    assert compute_layer_0_cap(model(read_usd), **given) == tokens


def test_the_window_of_a_small_model_bounds_every_cap():
    small = model(0.30, 150_000)
    assert compute_layer_0_cap(small) == 150_000
    assert compute_layer_0_cap(small, turns_without_writes=4) == 97_500
    assert compute_layer_0_cap(small, target_usd_per_turn=0) == 150_000
    assert compute_layer_0_cap(small, pinned_tokens=200_000) == 150_000


@given(
    read_usd=st.floats(0, 30),
    window=st.integers(4_000, 2_000_000),
    billed=st.none() | st.floats(0, 30),
    calibrated=st.booleans(),
)
def test_turns_without_writes_never_raise_the_cap(read_usd, window, billed, calibrated):
    price = model(read_usd, window)
    caps = [
        compute_layer_0_cap(
            price, calibrated=calibrated, turns_without_writes=turns, billed_read_usd=billed
        )
        for turns in range(6)
    ]
    assert caps == sorted(caps, reverse=True)


@pytest.mark.parametrize(
    ("steps", "tokens"),
    [
        # beyond 200,000 tokens twice the price would be more than the target
        ([(200_000, 0.60)], 200_000),
        # a little dearer, it is kept to beyond
        ([(200_000, 0.40)], 250_000),
        ([(400_000, 0.60)], 333_333),
        ([(200_000, 0.40), (220_000, 0.60)], 220_000),
    ],
)
def test_a_long_prompt_has_the_price_of_its_length(steps, tokens):
    price = replace(model(0.30), longer=tuple((start, model(usd)) for start, usd in steps))
    assert compute_layer_0_cap(price) == tokens


def least_busting(compressed, outlook=SessionForecast(), **given_):  # noqa: B008 - frozen
    """Return the shortest prompt, in steps of 1,000 tokens, that is compressed."""
    sizes = range(compressed, 1_000_000, 1_000)
    return next(
        s for s in sizes if decide_break_even(s, compressed, SONNET, outlook, **given_).busts
    )


@pytest.mark.parametrize(
    ("so_far", "lengths", "turns"),
    [
        (1, [], DEFAULT_TURNS),
        (500, [], DEFAULT_TURNS),
        # Eight sessions of 21 turns count as much as the usual: 20 left against 68.
        (1, [21] * 8, 44.0),
        # Sessions that had ended by now say nothing about one that goes on.
        (30, [21] * 8, DEFAULT_TURNS),
        (30, [21] * 8 + [130] * 8, 84.0),
    ],
)
def test_the_turns_to_come_are_those_that_longer_sessions_still_had(so_far, lengths, turns):
    assert expected_turns(so_far, lengths) == pytest.approx(turns)


@pytest.mark.parametrize(
    ("own", "project", "lifetime_s", "share"),
    [
        ([], [], CACHE_TTL_S, DEFAULT_COLD_SHARE),
        ([], [], LONG_CACHE_TTL_S, DEFAULT_LONG_COLD_SHARE),
        # 60 gaps of 30 s halve the usual share.
        ([30.0] * 60, [], CACHE_TTL_S, DEFAULT_COLD_SHARE / 2),
        ([600.0] * 60, [], CACHE_TTL_S, (1 + DEFAULT_COLD_SHARE) / 2),
        # Ten minutes are within the hour of a long cache.
        ([600.0] * 60, [], LONG_CACHE_TTL_S, DEFAULT_LONG_COLD_SHARE / 2),
        # However many gaps a project has, they count for 200.
        ([], [600.0] * 20_000, CACHE_TTL_S, (200 + 60 * DEFAULT_COLD_SHARE) / 260),
    ],
)
def test_the_cold_share_is_that_of_gaps_longer_than_the_cache_lives(
    own, project, lifetime_s, share
):
    assert expected_cold_share(own, project, lifetime_s) == pytest.approx(share)


def test_the_gaps_of_the_session_itself_prevail():
    assert expected_cold_share([10.0] * 2_000, [600.0] * 5_000) < 0.1


@pytest.mark.parametrize(
    ("grown", "tokens"),
    [
        ([], DEFAULT_GROWTH_TOKENS),
        ([3_000] * 10, 2_000),
        # A history that was shortened does not count.
        ([-50_000] * 10, DEFAULT_GROWTH_TOKENS),
    ],
)
def test_the_growth_is_that_of_the_session_and_the_usual(grown, tokens):
    assert expected_growth(grown) == pytest.approx(tokens)


def test_an_outlook_is_made_of_all_three():
    outlook = forecast_session(
        1, gaps_s=[30.0] * 60, grown_tokens=[3_000] * 10, project_lengths=[21] * 8
    )
    assert outlook.turns == pytest.approx(44.0)
    assert outlook.cold_share == pytest.approx(DEFAULT_COLD_SHARE / 2)
    assert outlook.growth_tokens == pytest.approx(2_000.0)
    assert forecast_session(1, lifetime_s=LONG_CACHE_TTL_S).cold_share == DEFAULT_LONG_COLD_SHARE


def test_without_cache_reads_a_bust_is_worth_while_sooner():
    shares = (1.0, 0.9, 0.5, 0.0)
    found = [
        least_busting(20_000, SessionForecast(cached_share=share), least_tokens=0)
        for share in shares
    ]
    assert found == sorted(found, reverse=True)
    uncached = SessionForecast(cached_share=0.0, has_writes=False)
    assert least_busting(20_000, uncached, least_tokens=0) < found[0] / 2


def test_every_token_of_a_provider_without_a_cache_has_the_usual_price():
    told = decide_break_even(
        120_000, 20_000, SONNET, SessionForecast(turns=0, cached_share=0.0, has_writes=False)
    )
    assert [told.continue_usd, told.bust_usd] == pytest.approx([0.36, 0.06])


def test_more_turns_to_come_make_a_bust_worth_while_sooner():
    found = [least_busting(20_000, SessionForecast(turns=turns)) for turns in (1, 5, 20, 70, 300)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 2 * found[-1]


def test_a_bust_that_saves_much_for_many_turns_beats_the_rule_of_one_turn():
    from lore.budget.cache_economics import decide_for_one_turn

    assert decide_break_even(120_000, 20_000, SONNET, SessionForecast(turns=50)).busts
    assert not decide_for_one_turn(120_000, 20_000, SONNET).busts


def test_the_last_turn_of_a_session_is_not_compressed_for_turns_that_never_come():
    ending = decide_break_even(120_000, 20_000, SONNET, SessionForecast(turns=0))
    assert not ending.busts
    assert ending.continue_usd == pytest.approx(120_000 * 0.3e-6)
    assert ending.bust_usd == pytest.approx(20_000 * 3.75e-6)


def test_an_expired_cache_is_the_time_to_compress():
    assert not decide_break_even(45_000, 30_000, SONNET, SessionForecast()).busts
    assert decide_break_even(45_000, 30_000, SONNET, SessionForecast(), cold=True).busts


def test_short_prompts_are_left_alone_even_then():
    assert not decide_break_even(MIN_CAP_TOKENS, 5_000, SONNET, SessionForecast(), cold=True).busts
    assert decide_break_even(MIN_CAP_TOKENS + 1, 5_000, SONNET, SessionForecast(), cold=True).busts


def test_a_session_with_many_pauses_waits_for_the_next_one():
    pausing = SessionForecast(cold_share=0.3)
    assert least_busting(40_000, pausing) > least_busting(40_000)
    assert least_busting(40_000, pausing, cold=True) == MIN_CAP_TOKENS + 1_000


def test_a_cache_that_costs_more_to_write_is_kept_longer():
    long = SessionForecast(lifetime_s=LONG_CACHE_TTL_S)
    assert least_busting(40_000, long) > least_busting(40_000)


def test_nothing_is_compressed_into_something_longer():
    assert not decide_break_even(60_000, 60_000, SONNET, SessionForecast(), cold=True).busts


def test_what_costs_nothing_is_left_alone():
    free = ModelPrice(0.0, 0.0, 0.0, 0.0, 0.0)
    assert not decide_break_even(150_000, 10_000, free, SessionForecast(), cold=True).busts


def test_a_decision_against_a_bust_says_how_long_to_wait():
    told = decide_break_even(30_000, 20_000, SONNET, SessionForecast())
    assert not told.busts
    assert told.wait_turns > 1
    assert decide_break_even(150_000, 20_000, SONNET, SessionForecast()).wait_turns == 0


prices = st.builds(
    lambda read, factor: ModelPrice(10, 50, read, read * factor, read * factor * 1.6, 10**9),
    st.floats(0.05, 5.0),
    st.floats(1.0, 20.0),
)


@given(
    prices,
    st.integers(5_000, 80_000),
    st.integers(0, 120_000),
    st.floats(0.5, 300),
    st.floats(0, 0.5),
    st.floats(100, 8_000),
)
def test_the_decision_is_that_of_trying_every_number_of_turns(
    price, compressed, more, turns, cold, grown
):
    """Sum turn by turn what the closed forms say, for every schedule up to 400 turns."""
    outlook, current = SessionForecast(turns, cold, grown), compressed + more
    told = decide_break_even(current, compressed, price, outlook, least_tokens=0)
    alive, warm = turns / (turns + 1), 1 - cold
    read, write = price.cache_read_usd / 1e6, price.cache_write_usd / 1e6

    def sums(size: float, first: float) -> list[tuple[float, float]]:
        """Return what is paid before a bust, and how likely that comes, for each last turn."""
        paid, busts, coming, found = first, 0.0, 1.0, []
        for turn in range(1, 401):
            coming *= alive
            found.append((paid, busts + coming))
            busts += coming * cold
            coming *= warm
            paid += coming * (size + turn * grown) * read
        return found

    best_cycle = min(paid / (1 - busts) for paid, busts in sums(compressed, compressed * write))
    ways = [paid + busts * best_cycle for paid, busts in sums(current, current * read)]
    # The grid is coarser than trying all: by less than 3 %.
    assert told.bust_usd == pytest.approx(best_cycle, rel=0.03)
    assert told.continue_usd == pytest.approx(min(ways), rel=0.03)
    if abs(best_cycle - min(ways)) > 0.03 * best_cycle:
        assert told.busts is (best_cycle < min(ways) and more > 0)


def played(rule, rolled):
    """Return what sessions of random lengths cost, with busts when a rule says so."""
    usd = 0.0
    for length, growths, colds in rolled:
        size = 30_000
        for turn in range(length):
            size += growths[turn]
            if rule(size, cold=colds[turn]):
                size = 20_000
                usd += size * 3.75e-6
            else:
                usd += size * (3.75e-6 if colds[turn] else 0.3e-6)
    return usd


def test_over_many_sessions_it_costs_less_than_any_fixed_size_and_the_rule_of_one_turn():
    from lore.budget.cache_economics import decide_for_one_turn

    dice, rolled = random.Random(7), []
    for _ in range(150):
        length = min(900, int(dice.expovariate(1 / DEFAULT_TURNS)) + 1)
        growths = [int(dice.expovariate(1 / DEFAULT_GROWTH_TOKENS)) for _ in range(length)]
        colds = [dice.random() < DEFAULT_COLD_SHARE for _ in range(length)]
        rolled.append((length, growths, colds))

    def by_horizon(size, *, cold):
        return decide_break_even(
            size, 20_000, SONNET, SessionForecast(), cold=cold, least_tokens=0
        ).busts

    def by_one_turn(size, *, cold):
        return decide_for_one_turn(size, 20_000, SONNET).busts

    usd = played(by_horizon, rolled)
    assert usd < 0.8 * played(by_one_turn, rolled)
    for most in (25_000, 35_000, 50_000, 80_000, 150_000):
        assert usd < played(lambda size, most=most, **_: size > most, rolled)


def test_going_on_with_a_prompt_that_is_dearer_for_its_length_costs_more():
    longer = ((200_000, ModelPrice(6.0, 22.5, 0.60, 7.5, 12.0, 1_000_000)),)
    stepped = replace(SONNET, window_tokens=1_000_000, longer=longer)
    usual = replace(stepped, longer=())
    long, short = (
        decide_break_even(300_000, 150_000, one, SessionForecast()) for one in (stepped, usual)
    )
    assert long.bust_usd == pytest.approx(short.bust_usd)
    assert long.continue_usd > short.continue_usd
    assert decide_break_even(150_000, 20_000, stepped, SessionForecast()) == decide_break_even(
        150_000, 20_000, usual, SessionForecast()
    )


OPUS = ModelPrice(5.0, 25.0, 0.50, 6.25, 10.0, 200_000)


def optimal_threshold(compressed: int, outlook: SessionForecast, *, most: int, step: int) -> int:
    """Return from which size on a bust pays, by value iteration over all sizes of a prompt."""
    price = OPUS.at(compressed)
    read, write = price.cache_read_usd / 1e6, price.cache_write_usd / 1e6
    survival, cold = outlook.turns / (outlook.turns + 1), outlook.cold_share
    sizes = np.arange(0, most + step, step)
    later = np.minimum(((sizes + outlook.growth_tokens) / step).round().astype(int), len(sizes) - 1)
    after = later[compressed // step]
    costs = np.zeros(len(sizes))
    for _ in range(2_000):
        bust = write * compressed + survival * costs[after]
        warm = np.minimum(read * sizes + survival * costs[later], bust)
        expired = np.minimum(write * sizes + survival * costs[later], bust)
        costs = (1 - cold) * warm + cold * expired
        costs[-1] = bust
    pays = write * compressed + survival * costs[after] < read * sizes + survival * costs[later]
    return int(sizes[pays & (sizes > compressed)][0])


@pytest.mark.parametrize("compressed", [16_000, 22_500, 35_500, 55_000])
@pytest.mark.parametrize("growth", [1_000, 2_400, 4_400])
def test_the_rule_busts_where_dynamic_programming_would(compressed: int, growth: int):
    outlook = SessionForecast(DEFAULT_TURNS, DEFAULT_COLD_SHARE, growth)
    sizes = range(compressed + 500, 200_000, 500)
    rule = next(
        size
        for size in sizes
        if decide_break_even(size, compressed, OPUS, outlook, least_tokens=0).busts
    )
    best = optimal_threshold(compressed, outlook, most=200_000, step=500)
    assert rule == pytest.approx(best, rel=0.02)
    # A shorter prompt to go on with pays earlier: what is distilled by then decides the turn.
    smaller = decide_break_even(rule - 2_000, compressed - 2_000, OPUS, outlook, least_tokens=0)
    assert smaller.busts
