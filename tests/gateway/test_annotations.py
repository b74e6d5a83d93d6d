"""Annotations are made once, are always the same, and only so many are kept."""

from __future__ import annotations

from lore.context import annotating
from lore.gateway.annotations import Annotations
from lore.records import Block, Entry


def output(n: int) -> Block:
    text = f"Error: part {n} failed\n" + "line of src/app.py\n" * 200
    return Block("result", len(text), text, f"call-{n}", "Bash")


def test_an_annotation_is_that_of_the_output():
    block = output(1)
    kept = Annotations()
    assert kept.of(block) == kept.of(block) == annotating.annotate(block)


def test_another_output_of_the_same_call_has_its_own():
    kept = Annotations()
    first, second = output(1), Block("result", 5_000, "done\n" * 1_000, "call-1", "Bash")
    assert kept.of(first) != kept.of(second)


def test_only_so_many_are_kept_and_the_others_are_made_again():
    kept = Annotations(most=2)
    kept.prepare([Entry("user", tuple(output(n) for n in range(9)), "k")])
    assert len(kept._made) == 2
    assert kept.of(output(0)) == annotating.annotate(output(0))
