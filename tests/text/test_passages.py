"""Long texts are cut into overlapping passages of which none misses a word."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lore.text import passages

words = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=600)


def test_a_short_text_is_one_passage():
    assert passages.texts("a few words") == ["a few words"]
    assert passages.texts("") == [""]


def test_a_long_text_is_cut_into_overlapping_passages():
    text = " ".join(f"w{i}" for i in range(500))
    cut = passages.texts(text)
    assert len(cut) > 4
    assert all(len(one.split()) <= passages.WORDS for one in cut)
    for before, after in pairwise(cut):
        assert after.split()[0] in before.split()
    assert cut[-1].endswith("w499")


def test_a_passage_begins_with_a_line_where_one_is_near():
    lines = [f"line {i} " + "and some more words to fill it up" for i in range(60)]
    cut = passages.texts("\n".join(lines))
    assert sum(one.startswith("line ") for one in cut) == len(cut)


def test_an_endless_word_is_cut_too():
    cut = passages.split("x" * 10_000)
    assert max(end - start for start, end in cut) <= passages.CHARS + 200
    assert len(passages.split("y " * 1_000_000)) == passages.MOST


@given(words)
def test_every_word_is_in_some_passage(parts):
    text = "\n".join(parts)
    cut = passages.split(text)
    assert 1 <= len(cut) <= passages.MOST
    if len(cut) < passages.MOST:
        covered = bytearray(len(text))
        for start, end in cut:
            covered[start:end] = b"\1" * (end - start)
        assert all(covered[i] or text[i].isspace() for i in range(len(text)))
