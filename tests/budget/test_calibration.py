from __future__ import annotations

import random
from statistics import median

import pytest

from lore.budget.estimate import WINDOW, Calibration, add_turn
from lore.records.gateway import ModelPrice, TokenUse

SONNET = ModelPrice(3.0, 15.0, 0.30, 3.75, 6.0)


def after(*turns):
    """Return what is known after turns of (characters, what was reported)."""
    known = Calibration()
    for chars, use in turns:
        known = add_turn(known, chars, use)
    return known


def read(tokens, written=0):
    return TokenUse(cache_read_tokens=tokens, cache_write_tokens=written)


def tokens_of(known, chars):
    """Return how long a prompt is that goes on where the last one ended."""
    return known.known_tokens + (chars - known.known_chars) * known.tokens_per_char


def test_before_the_first_report_nothing_is_calibrated():
    assert not Calibration().calibrated
    assert Calibration().tokens_per_char == 0.25


@pytest.mark.parametrize(
    ("turns", "chars", "tokens"),
    [
        # One report of 3 characters a token: so is the tail.
        ([(30_000, TokenUse(10_000))], 33_000, 11_000),
        # The tail has the ratio of what was added: 2 characters a token.
        ([(30_000, TokenUse(10_000)), (34_000, read(10_000, 2_000))], 36_000, 13_000),
        # Too little was added to go by: the ratio of the whole.
        ([(30_000, TokenUse(10_000)), (30_600, read(10_000, 200))], 30_900, 10_300),
    ],
)
def test_tokens_are_those_reported_and_the_tail_by_its_own_ratio(turns, chars, tokens):
    assert tokens_of(after(*turns), chars) == pytest.approx(tokens)


def test_a_turn_without_a_reported_prompt_is_ignored():
    known = after((30_000, TokenUse(10_000)))
    assert add_turn(known, 40_000, TokenUse(output_tokens=5)) == known


@pytest.mark.parametrize(
    ("uses", "without"),
    [
        ([], 0),
        ([TokenUse(100)], 1),
        ([TokenUse(100), read(100), read(100)], 3),
        ([TokenUse(100), read(100, 5)], 0),
        ([read(100, 5), TokenUse(5, cache_write_1h_tokens=5), read(100)], 1),
    ],
)
def test_turns_without_writes_are_counted(uses, without):
    assert after(*[(1_000, use) for use in uses]).turns_without_writes == without


@pytest.mark.parametrize(
    ("uses", "share", "last"),
    [
        ([], 1.0, 0.0),
        ([TokenUse(100), TokenUse(110)], 1.0, 0.0),  # one miss says little
        ([TokenUse(100), TokenUse(110), TokenUse(120)], 0.0, 0.0),
        ([TokenUse(100), read(100), read(100)], 1.0, 1.0),
        ([TokenUse(100), TokenUse(50, 50), TokenUse(25, 75)], 0.75, 0.75),
    ],
)
def test_the_cached_share_is_what_the_provider_reported(uses, share, last):
    known = after(*[(1_000, use) for use in uses])
    assert (known.cached_share, known.last_cached_share) == (share, last)


def test_prompts_that_were_written_anew_say_nothing_about_the_cache():
    known = after((1_000, TokenUse(100)), (1_000, read(100)), (1_000, read(100)))
    for _ in range(3):
        known = add_turn(known, 1_000, TokenUse(100), is_warm=False)
    assert known.cached_share == 1.0


def test_only_so_many_turns_are_remembered():
    known = after(*[(1_000 + turn, read(100 + turn)) for turn in range(3 * WINDOW)])
    assert len(known.turns) == WINDOW
    assert known.known_tokens == 100 + 3 * WINDOW - 1


@pytest.mark.parametrize(
    ("uses", "usd"),
    [
        ([], None),
        ([read(0, 10_000)], None),
        # All was read.
        ([read(0, 10_000), read(10_000, 500)], 0.30),
        # All was missed, and written again.
        ([read(0, 10_000), read(0, 10_500)], 3.75),
        # Half of it.
        ([read(0, 10_000), read(5_000, 5_500)], (0.30 + 3.75) / 2),
        # Missed where nothing is cached at all.
        ([TokenUse(10_000), TokenUse(10_500)], 3.0),
    ],
)
def test_what_the_prefix_is_billed_at(uses, usd):
    known = after(*[(1_000, use) for use in uses])
    assert known.billed_read_usd(SONNET) == (None if usd is None else pytest.approx(usd))


def test_over_a_session_estimates_are_off_by_less_than_four_characters_a_token():
    """Texts whose ratio wanders about 3.4 characters a token, behind 90,000 of tools."""
    dice, known = random.Random(3), Calibration()
    chars, tokens, ours, plain = 90_000, 24_000.0, [], []
    for _ in range(120):
        more = int(dice.expovariate(1 / 3_500)) + 40
        chars += more
        tokens += more / dice.uniform(2.6, 4.2)
        if known.calibrated:
            ours.append(abs(tokens_of(known, chars) - tokens) / tokens)
            plain.append(abs(chars / 4 - tokens) / tokens)
        known = add_turn(known, chars, TokenUse(round(tokens)))
    assert median(ours) < 0.019
    assert median(ours) < median(plain) / 3
