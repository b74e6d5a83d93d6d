from __future__ import annotations

import pytest

from lore.budget.reporting import add_up, tokens_of
from lore.records import Spend, TokenUse
from tests.fakes import NOON


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({}, (0, 0, 0, 0, 0)),
        ({"input": 10, "output": 5}, (10, 0, 0, 0, 5)),
        (
            {"input": 100, "output": 5, "cache_read": 60, "cache_write": 20, "cache_write_1h": 10},
            (10, 60, 20, 10, 5),
        ),
        # Some providers count what was cached beside the input.
        ({"input": 10, "cache_read": 60}, (0, 60, 0, 0, 0)),
    ],
)
def test_tokens_are_told_by_class_each_once(usage, tokens):
    assert tokens_of(usage) == tokens


def test_nothing_adds_up_to_nothing():
    lines, total = add_up([], "model")
    assert lines == ()
    assert (total.usd, total.tokens) == (0.0, TokenUse())


def test_the_dearest_comes_first_and_what_is_unpriced_is_counted():
    entries = [
        Spend("a", NOON, "request:turn", "cheap", {"input": 1}, 0.1, without_usd=0.3),
        Spend("b", NOON, "request:turn", "dear", {"input": 1}, 0.5, without_usd=0.4),
        Spend("c", NOON, "background:x", "mystery", {"unpriced": 1}, 0.0),
    ]
    lines, total = add_up(entries, "model")
    assert [line.name for line in lines] == ["dear", "cheap", "mystery"]
    assert [line.saved_usd for line in lines] == pytest.approx([-0.1, 0.2, 0.0])
    assert (total.requests, total.background, total.unpriced) == (2, 1, 1)
