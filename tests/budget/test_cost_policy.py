"""The terms under which prompts are planned."""

from __future__ import annotations

from lore.budget.cache_economics import KEEP_TOKENS, CostPolicy, SessionCosts
from lore.context.layers import TokenMeasure
from lore.records.gateway import ModelPrice

PRICE = ModelPrice(3.0, 15.0, 0.3, 3.75, 6.0, 200_000)
DEAR = ModelPrice(15.0, 75.0, 1.5, 18.75, 30.0, 200_000)


def test_the_seeds_cap_layer_0_and_weigh_one_turn():
    terms = CostPolicy("seed").terms(DEAR, SessionCosts())
    assert terms.cost_rule(70_000, 20_000, layer=0, cold=False)
    assert not terms.cost_rule(60_000, 20_000, layer=0, cold=False)
    assert not terms.cost_rule(70_000, 20_000, layer=1, cold=False)
    assert terms.cost_rule(450_000, 20_000, layer=1, cold=False)
    assert terms.room.keep_tokens == 0


def test_the_break_even_rule_busts_earlier_and_leaves_short_prompts_alone():
    terms = CostPolicy().terms(PRICE, SessionCosts())
    assert terms.cost_rule(100_000, 15_000, layer=0, cold=False)
    assert not terms.cost_rule(19_000, 2_000, layer=0, cold=True)
    assert terms.cost_rule(30_000, 12_000, layer=0, cold=True)
    assert terms.room.keep_tokens == KEEP_TOKENS


def test_a_system_prompt_is_nothing_that_could_be_cut():
    so_far = SessionCosts(TokenMeasure(0.25))
    bare = CostPolicy().terms(PRICE, so_far)
    behind = CostPolicy().terms(PRICE, so_far, fixed_chars=100_000)
    assert bare.cost_rule(44_000, 30_000, layer=0, cold=True)
    assert not behind.cost_rule(44_000, 30_000, layer=0, cold=True)


def test_a_pinned_cap_holds_in_both():
    for rule in ("seed", "horizon"):
        terms = CostPolicy(rule, max_layer0_tokens=5_000).terms(PRICE, SessionCosts())
        assert terms.cost_rule(5_001, 4_000, layer=0, cold=False)
        assert not terms.cost_rule(5_001, 4_000, layer=1, cold=False)
