"""Caches of the gateway: bounded, and the same value for the same key."""

from __future__ import annotations

from dataclasses import replace

from lore.context import layers
from lore.gateway.cache_invalidation import AnnotationCache, BoundedCache
from lore.gateway.session.session_state import LruCache
from lore.records import Block, Entry


def output(n: int) -> Block:
    text = f"Error: part {n} failed\n" + "line of src/app.py\n" * 200
    return Block("result", len(text), text, f"call-{n}", "Bash")


def test_bounded_cache_holds_the_latest_values_until_it_is_cleared():
    latest = BoundedCache[str, str](2)
    for name in "abc":
        latest.put(name, f"call {name}")
    assert [latest.get(name) for name in "abc"] == [None, "call b", "call c"]
    latest.clear()
    assert latest.get("c") is None


def test_annotation_from_the_cache_is_that_of_the_output():
    block, cache = output(1), AnnotationCache()
    assert cache.of(block) == cache.of(block) == layers.annotate_output(block)


def test_another_output_of_the_same_call_has_its_own_annotation():
    cache = AnnotationCache()
    first, second = output(1), Block("result", 5_000, "done\n" * 1_000, "call-1", "Bash")
    assert cache.of(first) != cache.of(second)


def test_outputs_of_equal_length_in_two_sessions_have_their_own_annotations():
    cache = AnnotationCache()
    ours, theirs = ("line of src/ours.py\n" * 200, "line of src/them.py\n" * 200)
    first, second = (Block("result", len(ours), text, "Bash#1", "Bash") for text in (ours, theirs))
    assert "src/ours.py" in cache.of(first)
    assert "src/them.py" in cache.of(second)


def test_output_of_a_failed_call_has_its_own_annotation():
    block, cache = output(1), AnnotationCache()
    assert cache.of(block) != cache.of(replace(block, failed=True))


def test_annotation_cache_is_bounded_and_dropped_annotations_are_made_again():
    cache = AnnotationCache(max_size=2)
    cache.prepare([Entry("user", tuple(output(n) for n in range(9)), "k")])
    assert len(cache._annotations.items()) == 2
    assert cache.of(output(0)) == layers.annotate_output(output(0))


class Value:
    """A value that differs from every other."""


def test_least_recently_used_value_is_evicted():
    recent = LruCache[Value](2)
    for name in ("a", "b"):
        recent.add(name, Value())
    assert recent.find("a") is not None
    recent.add("c", Value())
    assert recent.find("b") is None
    assert recent.find("a") is not None


def test_evicted_value_that_is_in_use_is_found_again():
    recent = LruCache[Value](2)
    in_use = recent.add("a", Value())
    for name in ("b", "c", "d"):
        recent.add(name, Value())
    assert recent.find("a") is in_use
    assert recent.add("a", Value()) is in_use


def test_first_value_of_a_name_wins():
    recent, first = LruCache[Value](2), Value()
    recent.add("a", first)
    assert recent.add("a", Value()) is first
