"""Token counts of the layers, their thresholds, and when these are checked."""

from lore.tasks.token_economics import (
    THRESHOLDS,
    TokenCounts,
    check_thresholds,
    metrics_to_check,
    sum_counts,
)

THRIFTY = TokenCounts(
    retrievals=1, layer1_loads=1, layer1_tokens=100, layer2_loads=1, layer2_tokens_scanned=50,
    layer2_tokens_available=450, layer3_loads=1, layer3_tokens=2_400, most_task_loads=1,
    baseline_tokens=11_500,
)  # fmt: skip
"""The example of a session whose figures are known."""


def test_the_figures_of_a_session_follow_from_its_counts():
    assert THRIFTY.discovery_tokens == 150
    assert THRIFTY.ratio == 0.0625
    assert THRIFTY.progressive_tokens == 2_550
    assert THRIFTY.tokens_saved == 8_950
    assert round(THRIFTY.savings_percent) == 78
    assert check_thresholds("session_end", THRIFTY) == []


def test_a_session_that_read_nothing_has_no_ratio():
    idle = TokenCounts(retrievals=1, layer1_tokens=100, baseline_tokens=9_000)
    assert idle.ratio is None
    assert check_thresholds("session_end", idle) == []


def test_actions_come_in_order_of_priority():
    wasteful = TokenCounts(
        retrievals=1, layer1_tokens=300, layer2_tokens_scanned=150, layer3_loads=5,
        layer3_tokens=2_900, most_task_loads=5, baseline_tokens=4_000,
    )  # fmt: skip
    findings = check_thresholds("session_end", wasteful)
    others = [one.action for one in THRESHOLDS if one.metric != "savings_vs_full_load"]
    assert [one.action for one in findings] == others
    assert findings[0].reason == "ratio is 0.155, above 0.15"


def test_a_large_memory_must_save_half():
    heavy = TokenCounts(retrievals=1, layer3_tokens=6_000, baseline_tokens=8_000)
    assert [one.action for one in check_thresholds("session_end", heavy)] == [
        "review_topic_relevance"
    ]


def test_a_task_is_checked_lightly_and_many_loads_at_once():
    assert metrics_to_check("task_complete", THRIFTY) == ("ratio", "layer3_loads")
    assert metrics_to_check("triggered", THRIFTY) == ()
    many = TokenCounts(most_task_loads=3)
    assert metrics_to_check("triggered", many) == ("ratio", "layer3_loads")
    assert len(metrics_to_check("session_end", THRIFTY)) == 6


def test_tasks_of_a_session_add_up_but_the_memory_is_loaded_once():
    both = sum_counts([THRIFTY, THRIFTY])
    assert both.layer3_tokens == 4_800
    assert both.baseline_tokens == 11_500
    assert both.most_task_loads == 1


def test_a_session_without_a_memory_is_not_judged():
    assert check_thresholds("session_end", TokenCounts(retrievals=3)) == []
