from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.text.private_text import PRIVATE_MARK, hide_private


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("My <private>PIN is 1234</private> stays here.", "My [private] stays here."),
        ("a <PRIVATE>b</Private> c <private >d</ private> e", "a [private] c [private] e"),
        ("a <private>never closed", "a [private]"),
        ("<private>a <private>b</private> c</private> d", "[private] d"),
        ("two\nlines <private>\nsecret\n</private>\nend", "two\nlines [private]\nend"),
        ("a private method, x < y", "a private method, x < y"),
        ("<private-key>", "<private-key>"),
    ],
)
def test_private_text_is_replaced_by_a_mark(text: str, stored: str) -> None:
    assert hide_private(text) == stored


words = st.text("abc <>/\n", max_size=20)


@given(words, words, words)
def test_nothing_of_a_private_span_is_left(before: str, inside: str, behind: str) -> None:
    hidden = hide_private(f"{before}<private>{inside}CANARY</private>{behind}")
    assert "CANARY" not in hidden
    assert PRIVATE_MARK in hidden
