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
        ("We use tabs.", "We don’t use tabs."),
        ("The cache is on.", "The cache is off."),
        ("The release is on 2024-05-01.", "The release is on 2024-06-01."),
        ("Kept in Postgres", "Kept in MySQL"),
        ("It opens three ports", "It opens 4 ports"),
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
        ("The limit is 5 in app.toml", "The limit is in app.toml"),
        ("Orders are kept in Postgres", "Postgres keeps the orders"),
        ("The pool has 20 connections", "There are 20 connections in the pool"),
        ("Never deploy on Fridays", "Do not deploy on Fridays"),
    ],
)
def test_one_may_say_more_than_the_other(one, other):
    assert values.agree(one, other)


def test_what_says_less_does_not_keep_what_says_more():
    more, less = "The limit is 5 in app.toml", "The limit is in app.toml"
    assert values.keeps(more, less)
    assert not values.keeps(less, more)
    assert values.keeps("Postgres keeps the orders", "Orders are kept in Postgres")
