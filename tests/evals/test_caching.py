"""Caching: what is read, what is written, and what it costs."""

from __future__ import annotations

import pytest

from lore.evals.caching import LONG_LIFETIME_S, Piece, PrefixCache
from lore.records.dialogues import ModelPrice, TokenUse


def prompt(*sizes: int, marked: tuple[int, ...] = (-1,), name: str = "") -> list[Piece]:
    marks = {place % len(sizes) for place in marked}
    return [Piece(f"{name}{n}", size, marked=n in marks) for n, size in enumerate(sizes)]


def test_a_prompt_is_written_once_and_then_read():
    cache = PrefixCache()
    assert cache.send(prompt(2_000, 500), 0) == TokenUse(0, 0, 2_500)
    assert cache.send(prompt(2_000, 500, 300), 10) == TokenUse(0, 2_500, 300)


def test_what_comes_after_the_last_breakpoint_is_neither():
    cache = PrefixCache()
    assert cache.send(prompt(2_000, 500, marked=(0,)), 0) == TokenUse(500, 0, 2_000)


def test_reading_makes_the_cache_last_and_silence_ends_it():
    cache = PrefixCache()
    cache.send(prompt(2_000), 0)
    assert cache.send(prompt(2_000), 299).cache_read_tokens == 2_000
    assert cache.send(prompt(2_000), 598).cache_read_tokens == 2_000
    assert cache.send(prompt(2_000), 899).cache_read_tokens == 0


def test_an_hour_costs_its_own_price():
    cache = PrefixCache(lifetime_s=LONG_LIFETIME_S)
    assert cache.send(prompt(2_000), 0) == TokenUse(cache_write_1h_tokens=2_000)
    assert cache.send(prompt(2_000), 3_000) == TokenUse(cache_read_tokens=2_000)


def test_another_beginning_is_a_bust():
    cache = PrefixCache()
    cache.send(prompt(2_000, 500), 0)
    assert cache.send(prompt(2_000, 500, name="b"), 1) == TokenUse(0, 0, 2_500)


def test_a_prompt_that_was_left_can_be_gone_back_to():
    cache = PrefixCache()
    cache.send(prompt(2_000, 500), 0)
    cache.send(prompt(2_000, 500, name="b"), 1)
    assert cache.send(prompt(2_000, 500), 2).cache_read_tokens == 2_500


def test_short_prompts_are_not_cached():
    cache = PrefixCache()
    assert cache.send(prompt(1_000), 0) == TokenUse(1_000)
    assert cache.send(prompt(1_000), 1) == TokenUse(1_000)


def test_a_lookup_goes_back_twenty_blocks_only():
    cache = PrefixCache()
    cache.send(prompt(2_000), 0)
    near = prompt(2_000, *[10] * 20)
    far = prompt(2_000, *[10] * 22)
    assert cache.send(near, 1).cache_read_tokens == 2_000
    assert PrefixCache().send(far, 1).cache_read_tokens == 0
    fresh = PrefixCache()
    fresh.send(prompt(2_000), 0)
    assert fresh.send(far, 1).cache_read_tokens == 0


def test_a_provider_that_caches_by_itself_needs_no_breakpoints():
    cache = PrefixCache(automatic=True)
    cache.send(prompt(2_000, 10, marked=()), 0)
    use = cache.send(prompt(2_000, *[10] * 40, marked=()), 1)
    assert use == TokenUse(0, 2_010, 390)


def test_each_token_costs_what_became_of_it():
    price = ModelPrice(3, 15, 0.3, 3.75, 6)
    use = TokenUse(1_000_000, 1_000_000, 1_000_000, 1_000_000, 1_000_000)
    assert price.cost(use) == pytest.approx(3 + 0.3 + 3.75 + 6 + 15)
