"""Annotating: what stands in the place of an old output."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lore.context.annotating import LEAST_CHARS, MOST_CHARS, annotate, is_long
from lore.records.dialogues import Block


def output(text: str, **more) -> Block:
    return Block("result", len(text), text, call_id="c", **more)


def test_an_annotation_names_tool_lines_errors_and_paths():
    text = "reading src/app/main.py\n" + "fine\n" * 400 + "error: cannot open src/app/db.py\n"
    told = annotate(output(text), "bash")
    assert "bash: 402 lines" in told
    assert "cannot open" in told
    assert "src/app/main.py" in told
    assert "use recall" in told


def test_a_failure_and_an_output_without_words_are_told():
    assert "it failed" in annotate(output("x" * 2_000, failed=True), "read")
    assert "nothing in words" in annotate(Block("result", 9_000, call_id="c", tool="shot"))


def test_short_outputs_and_other_blocks_stay():
    assert not is_long(output("x" * LEAST_CHARS))
    assert is_long(output("x" * (LEAST_CHARS + 1)))
    assert not is_long(Block("text", 9_000, "x"))
    assert not is_long(Block("result", 9_000, "x"))


@given(st.text(max_size=5_000), st.text(max_size=600), st.booleans())
def test_an_annotation_is_short_and_always_the_same(text, tool, failed):
    block = output(text, failed=failed)
    assert len(annotate(block, tool)) <= MOST_CHARS
    assert annotate(block, tool) == annotate(block, tool)
