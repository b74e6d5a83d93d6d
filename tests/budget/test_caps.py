from __future__ import annotations

from dataclasses import replace

import pytest

from lore.budget.caps import cap_of_layer_0
from lore.records.dialogues import ModelPrice


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
        (0.30, {"turns_without_writes": 3}, 650_000),
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
    assert cap_of_layer_0(model(read_usd), **given) == tokens


def test_the_window_of_a_small_model_bounds_every_cap():
    small = model(0.30, 150_000)
    assert cap_of_layer_0(small) == 150_000
    assert cap_of_layer_0(small, turns_without_writes=4) == 97_500
    assert cap_of_layer_0(small, target_usd_per_turn=0) == 150_000
    assert cap_of_layer_0(small, pinned_tokens=200_000) == 150_000


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
    assert cap_of_layer_0(price) == tokens
