"""Which type a task has, and which memory it needs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.errors import InvalidInput
from lore.records import TASK_TYPES
from lore.tasks.task_type import (
    PLAIN_WEIGHTS,
    TASK_WEIGHTS,
    collection_size,
    detect_task_type,
    parse_task_type,
    score_task_types,
    weights_of,
)


@pytest.mark.parametrize(
    ("goal", "task_type"),
    [
        ("Understand how the architecture of the parser works", "exploration"),
        ("Implement POST /api/todos endpoint", "implementation"),
        ("Fix the failing login test", "debugging"),
        ("Review the pull request and verify its quality", "review"),
        ("Refactor the parser and clean up its imports", "refactoring"),
        ("debugging the crashes", "debugging"),
        ("Validation of the standards", "review"),
        ("analyse the overview", "exploration"),
        ("go on", "implementation"),
        ("", "implementation"),
    ],
)
def test_the_words_of_a_goal_say_its_type(goal, task_type):
    assert detect_task_type(goal) == task_type


def test_a_part_of_a_word_is_no_keyword():
    assert set(score_task_types("Remove the prefix of that address").values()) == {0}


def test_the_address_of_an_issue_does_not_make_a_task_debugging():
    goal = "Support Yash as a shell https://example.com/repo/issues/7121"
    assert score_task_types(goal)["debugging"] == 0


def test_a_phase_outweighs_an_action_and_an_action_outweighs_a_word():
    assert detect_task_type("add a button", action="run_test") == "debugging"
    assert detect_task_type("add a button", action="run_test", phase="code review") == "review"
    assert score_task_types("fix", action="run_test", phase="fixing")["debugging"] == 2 + 3 + 4


def test_tools_of_agents_are_known_as_actions():
    assert detect_task_type("the date parser", action="Grep") == "exploration"
    assert detect_task_type("the date parser", action="Edit") == "implementation"


def test_the_first_of_the_highest_wins():
    assert detect_task_type("investigate the bug") == "exploration"
    assert detect_task_type("investigate error") == "debugging"


@given(st.text(), st.text(max_size=40), st.text(max_size=40))
def test_every_text_has_a_type(goal, action, phase):
    assert detect_task_type(goal, action=action, phase=phase) in TASK_TYPES


def test_weights_are_shares_and_collections_grow_with_them():
    for weights in (*TASK_WEIGHTS.values(), PLAIN_WEIGHTS):
        assert sum(weights.values()) == pytest.approx(1.0)
    assert weights_of(None) is PLAIN_WEIGHTS
    assert collection_size("semantic", 0.5) == 5
    assert collection_size("episodic", 0.15) == 2
    assert collection_size("skills", 0.35) == 4
    assert collection_size("anti_patterns", 0.4) == 5
    assert collection_size("anti_patterns", 0.0) == 0


def test_an_unknown_type_is_refused_with_those_that_there_are():
    assert parse_task_type("") is None
    assert parse_task_type(" Debugging ") == "debugging"
    with pytest.raises(InvalidInput, match="'cooking' is not a task type") as refused:
        parse_task_type("cooking")
    assert "exploration" in refused.value.hint
