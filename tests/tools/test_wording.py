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


@given(st.text(max_size=400), st.integers(1, 60))
def test_one_line_is_one_line_within_its_tokens(text: str, most: int):
    line = wording.one_line(text, most)
    assert len(line.splitlines()) <= 1
    assert tokens.count(line) <= most


@given(st.text(max_size=400))
def test_every_line_of_a_quote_is_marked(text: str):
    for line in "\n".join(wording.quoted(text)).splitlines():
        assert line.startswith(wording.QUOTE.rstrip())


@given(st.lists(st.text(max_size=300), max_size=8), st.integers(20, 200))
def test_a_sheet_keeps_to_its_tokens(texts: list[str], most: int):
    sheet = wording.Sheet(most)
    for text in texts:
        sheet.add_quote("heading", text)
        sheet.add(wording.one_line(text, 10))
    assert tokens.count(sheet.text()) <= most


def test_what_is_kept_free_can_be_used_afterwards():
    sheet = wording.Sheet(30)
    with sheet.keeping(15):
        assert not sheet.add("x" * 60)
    assert sheet.add("x" * 60)
