"""Costing: under what terms prompts are planned."""

from __future__ import annotations

from lore.context.sizing import Measure
from lore.memory.costing import KEPT_TOKENS, Economy, SoFar
from lore.records.dialogues import ModelPrice

PRICE = ModelPrice(3.0, 15.0, 0.3, 3.75, 6.0, 200_000)
DEAR = ModelPrice(15.0, 75.0, 1.5, 18.75, 30.0, 200_000)


def test_the_seeds_cap_layer_0_and_weigh_one_turn():
    terms = Economy("seed").terms(DEAR, SoFar())
    assert terms.cost(70_000, 20_000, layer=0, cold=False)
    assert not terms.cost(60_000, 20_000, layer=0, cold=False)
    assert not terms.cost(70_000, 20_000, layer=1, cold=False)
    assert terms.cost(450_000, 20_000, layer=1, cold=False)
    assert terms.room.keep_tokens == 0


def test_the_horizon_busts_long_before_and_keeps_what_is_short():
    terms = Economy().terms(PRICE, SoFar())
    assert terms.cost(100_000, 15_000, layer=0, cold=False)
    assert not terms.cost(19_000, 2_000, layer=0, cold=True)
    assert terms.cost(30_000, 12_000, layer=0, cold=True)
    assert terms.room.keep_tokens == KEPT_TOKENS


def test_a_system_prompt_is_nothing_that_could_be_cut():
    so_far = SoFar(Measure(0.25))
    bare = Economy().terms(PRICE, so_far)
    behind = Economy().terms(PRICE, so_far, fixed_chars=100_000)
    assert bare.cost(44_000, 30_000, layer=0, cold=True)
    assert not behind.cost(44_000, 30_000, layer=0, cold=True)


def test_a_pinned_cap_holds_in_both():
    for rule in ("seed", "horizon"):
        terms = Economy(rule, max_layer0_tokens=5_000).terms(PRICE, SoFar())
        assert terms.cost(5_001, 4_000, layer=0, cold=False)
        assert not terms.cost(5_001, 4_000, layer=1, cold=False)
