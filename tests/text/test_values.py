from __future__ import annotations

import pytest

from lore.text import values


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The budget is $550.", "The budget is $600."),
        ("Ana meets Bob on May 3.", "Ana meets Bob on May 4."),
        ("Run `mise run test`.", "Run `mise run lint`."),
        ("We use tabs.", "We do not use tabs."),
    ],
)
def test_another_value_is_another_statement(one, other):
    assert not values.agree(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I use Flask 2.3.1.", "I'm using Flask 2.3.1 and SQLite 3.39 for my app."),
        ("We meet twice a week.", "Twice a week we meet."),
        ("There are three dogs.", "There are 3 dogs."),
    ],
)
def test_one_may_say_more_than_the_other(one, other):
    assert values.agree(one, other)
