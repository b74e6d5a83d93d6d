from __future__ import annotations

from dataclasses import replace

import pytest

from lore.budget.busting import decide_for_one_turn, threshold_of
from lore.records.dialogues import ModelPrice

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
    assert threshold_of(tokens) == threshold


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


def test_both_costs_are_told():
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
