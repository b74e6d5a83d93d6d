"""Quotes: an assistant's text that repeats untrusted text has the origin of that text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lore.capture.quotes import MAX_LETTERS, UntrustedText
from lore.records import Part

PAGE = " ".join(f"word{i} said{i * 7} then{i * 13}" for i in range(200))
OWN = "My own summary says nothing that anybody could have read on that page before today."


@given(st.integers(0, len(PAGE) - 120), st.integers(60, 120))
def test_a_quote_is_recognized_wherever_it_starts(start: int, size: int):
    untrusted = UntrustedText()
    untrusted.add((Part("text", OWN),), "user")
    untrusted.add((Part("text", PAGE),), "web")
    assert untrusted.mark(Part("text", PAGE[start : start + size])).origin == "web"
    assert untrusted.mark(Part("text", OWN)).origin is None


def test_text_is_recognized_after_much_other_text_was_dropped():
    untrusted = UntrustedText()
    for i in range(12):
        untrusted.add((Part("text", f"{i} " * (MAX_LETTERS // 4)),), "tool")
        assert untrusted.mark(Part("text", OWN)).origin is None
    untrusted.add((Part("text", PAGE),), "web")
    assert untrusted.mark(Part("text", PAGE[500:700])).origin == "web"
