"""Spend reports, and the usage without Lore."""

from __future__ import annotations

import pytest

from lore.budget.reports import (
    summarize_spend,
    usage_without_additions,
    usage_without_compaction,
)
from lore.records import Spend, TokenUse
from lore.store.spend import token_classes
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
def test_each_token_is_reported_in_one_class(usage, tokens):
    assert token_classes(usage) == tokens


def test_nothing_adds_up_to_nothing():
    lines, total = summarize_spend([], "model")
    assert lines == ()
    assert (total.usd, total.tokens) == (0.0, TokenUse())


def test_the_dearest_comes_first_and_what_is_unpriced_is_counted():
    entries = [
        Spend("a", NOON, "request:turn", "cheap", {"input": 1}, 0.1, without_usd=0.3),
        Spend("b", NOON, "request:turn", "dear", {"input": 1}, 0.5, without_usd=0.4),
        Spend("c", NOON, "background:x", "mystery", {"unpriced": 1}, 0.0),
    ]
    lines, total = summarize_spend(entries, "model")
    assert [line.name for line in lines] == ["dear", "cheap", "mystery"]
    assert [line.saved_usd for line in lines] == pytest.approx([-0.1, 0.2, 0.0])
    assert (total.requests, total.background, total.unpriced) == (2, 1, 1)


@pytest.mark.parametrize(
    ("used", "standing", "new", "without"),
    [
        # Nothing was added, so nothing is saved and nothing lost, whatever the cache did.
        (TokenUse(5, 30_000, 1_000, 0, 7), 0, 0, (5, 30_000, 1_000, 0, 7)),
        (TokenUse(31_000, 0, 0, 0, 7), 0, 0, (31_000, 0, 0, 0, 7)),
        # What stood there before is read, what is new is written.
        (TokenUse(5, 30_000, 1_000, 0, 7), 2_000, 300, (5, 28_000, 700, 0, 7)),
        # In the first prompt of a session all of it is new.
        (TokenUse(5, 20_000, 9_000, 0, 7), 0, 2_000, (5, 20_000, 7_000, 0, 7)),
        (TokenUse(5, 20_000, 0, 9_000, 7), 0, 2_000, (5, 20_000, 0, 7_000, 7)),
        # A cache that was missed: what stood there before was written once more.
        (TokenUse(5, 0, 31_000, 0, 7), 2_000, 300, (5, 0, 28_700, 0, 7)),
        # No cache at all.
        (TokenUse(31_000, 0, 0, 0, 7), 2_000, 300, (28_700, 0, 0, 0, 7)),
        # New words that the cache read all the same.
        (TokenUse(0, 30_000, 100, 0, 7), 0, 300, (0, 29_800, 0, 0, 7)),
        # An estimate that is longer than the prompt.
        (TokenUse(10, 0, 0, 0, 7), 2_000, 300, (0, 0, 0, 0, 7)),
    ],
)
def test_a_prompt_that_was_sent_whole_would_have_taken_what_it_took_less_what_lore_added(
    used, standing, new, without
):
    found = usage_without_additions(used, standing_tokens=standing, new_tokens=new)
    assert found == TokenUse(*without)


GOES_ON, BUSTS, COLD = (False, False), (True, False), (True, True)


@pytest.mark.parametrize(
    ("used", "whole", "known", "course", "without"),
    [
        # The shorter prompt read its beginning, so the whole would have; the tail is the same.
        (TokenUse(5, 30_000, 1_000, 0, 7), 101_000, 99_000, GOES_ON, (0, 99_995, 1_005, 0, 7)),
        (TokenUse(0, 30_000, 0, 900, 7), 101_000, 99_000, GOES_ON, (0, 100_100, 0, 900, 7)),
        (TokenUse(900, 30_000, 0, 0, 7), 101_000, 99_000, GOES_ON, (900, 100_100, 0, 0, 7)),
        # It was missed though nobody changed it: the whole would have been missed, too.
        (TokenUse(5, 0, 31_000, 0, 7), 101_000, 100_000, GOES_ON, (0, 0, 101_000, 0, 7)),
        # No cache at all.
        (TokenUse(31_000, 0, 0, 0, 7), 101_000, 100_000, GOES_ON, (101_000, 0, 0, 0, 7)),
        # Lore changed the beginning: the whole would have read all but what was new.
        (TokenUse(5, 8_000, 20_000, 0, 7), 101_000, 100_000, BUSTS, (0, 100_000, 1_000, 0, 7)),
        (TokenUse(5, 0, 0, 20_000, 7), 101_000, 100_000, BUSTS, (0, 100_000, 0, 1_000, 7)),
        (TokenUse(20_000, 0, 0, 0, 7), 101_000, 100_000, BUSTS, (1_000, 100_000, 0, 0, 7)),
        # After a pause it would have written all, but for what others keep in the cache.
        (TokenUse(5, 8_000, 20_000, 0, 7), 101_000, 100_000, COLD, (0, 8_000, 93_000, 0, 7)),
        # The history was shortened by the client.
        (TokenUse(5, 0, 31_000, 0, 7), 80_000, 100_000, BUSTS, (0, 80_000, 0, 0, 7)),
        # A summary that is longer than what it stands for is not hidden.
        (TokenUse(5, 30_000, 1_000, 0, 7), 20_000, 19_000, GOES_ON, (0, 18_995, 1_005, 0, 7)),
    ],
)
def test_a_whole_prompt_would_have_met_the_cache_that_the_shorter_one_met(
    used, whole, known, course, without
):
    busts, cold = course
    found = usage_without_compaction(
        used,
        whole_tokens=whole,
        known_tokens=known,
        new_tokens=0,
        busts=busts,
        cold=cold,
        caches=True,
    )
    assert found == TokenUse(*without)


def test_a_provider_that_caches_nothing_would_have_read_all_anew_after_a_bust_too():
    found = usage_without_compaction(
        TokenUse(20_000),
        whole_tokens=101_000,
        known_tokens=100_000,
        new_tokens=0,
        busts=True,
        cold=False,
        caches=False,
    )
    assert found == TokenUse(101_000)


def test_what_lore_newly_adds_to_a_shorter_prompt_is_no_part_of_the_whole():
    found = usage_without_compaction(
        TokenUse(0, 30_000, 1_000),
        whole_tokens=101_000,
        known_tokens=100_000,
        new_tokens=400,
        busts=False,
        cold=False,
        caches=True,
    )
    assert found == TokenUse(0, 100_400, 600)
