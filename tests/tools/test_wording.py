from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lore.text import tokens
from lore.tools import wording


@given(st.text(max_size=400))
def test_a_title_is_one_line_of_few_words_and_tokens(text: str):
    title = wording.title(text)
    assert len(title.split()) <= wording.TITLE_WORDS
    assert len(title.splitlines()) <= 1
    assert tokens.count(title) <= wording.TITLE_TOKENS


def test_a_voice_says_who_spoke_where_that_is_nobody_to_rely_on():
    assert wording.voice("fact", "user") == "fact"
    assert wording.voice("fact", "web") == "fact(web)"
