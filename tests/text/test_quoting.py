from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lore.text.quoting import STRETCH_CHARS, quoting

LETTERS = st.text("abcdefg ", max_size=120)


@given(LETTERS, LETTERS, LETTERS, LETTERS, st.text("abcdefg ", min_size=STRETCH_CHARS))
def test_a_shared_stretch_is_always_found(a: str, b: str, c: str, d: str, stretch: str) -> None:
    assert quoting({7: a + stretch + b}, ["other", c + stretch + d]) == {7}


@given(st.text("abc", max_size=200), st.text("xyz", max_size=200))
def test_texts_that_share_nothing_are_not_found(a: str, b: str) -> None:
    assert quoting({1: a}, [b]) == set()


def test_a_few_shared_words_are_no_quotation() -> None:
    assert quoting(
        {1: "how do we deploy the site?"}, ["how do we deploy harbor to production"]
    ) == (set())
