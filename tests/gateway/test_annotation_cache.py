"""Annotations are made once, are always the same, and only so many are kept."""

from __future__ import annotations

from dataclasses import replace

from lore.context import layers
from lore.gateway.cache_invalidation import AnnotationCache
from lore.records import Block, Entry


def output(n: int) -> Block:
    text = f"Error: part {n} failed\n" + "line of src/app.py\n" * 200
    return Block("result", len(text), text, f"call-{n}", "Bash")


def test_an_annotation_is_that_of_the_output():
    block = output(1)
    kept = AnnotationCache()
    assert kept.of(block) == kept.of(block) == layers.annotate_output(block)


def test_another_output_of_the_same_call_has_its_own():
    kept = AnnotationCache()
    first, second = output(1), Block("result", 5_000, "done\n" * 1_000, "call-1", "Bash")
    assert kept.of(first) != kept.of(second)


def test_outputs_of_two_sessions_that_are_as_long_are_never_mixed_up():
    kept = AnnotationCache()
    ours, theirs = ("line of src/ours.py\n" * 200, "line of src/them.py\n" * 200)
    first, second = (Block("result", len(ours), said, "Bash#1", "Bash") for said in (ours, theirs))
    assert "src/ours.py" in kept.of(first)
    assert "src/them.py" in kept.of(second)


def test_an_output_of_a_call_that_failed_has_its_own():
    kept = AnnotationCache()
    block = output(1)
    assert kept.of(block) != kept.of(replace(block, failed=True))


def test_only_so_many_are_kept_and_the_others_are_made_again():
    kept = AnnotationCache(max_size=2)
    kept.prepare([Entry("user", tuple(output(n) for n in range(9)), "k")])
    assert len(kept._annotations) == 2
    assert kept.of(output(0)) == layers.annotate_output(output(0))
