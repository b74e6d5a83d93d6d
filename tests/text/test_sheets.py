from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lore.text import sheets, tokens


@given(st.text(max_size=400), st.integers(1, 60))
def test_one_line_is_one_line_within_its_tokens(text: str, most: int):
    line = sheets.one_line(text, most)
    assert len(line.splitlines()) <= 1
    assert tokens.count(line) <= most


@given(st.text(max_size=400))
def test_every_line_of_a_quote_is_marked(text: str):
    for line in "\n".join(sheets.quoted(text)).splitlines():
        assert line.startswith(sheets.QUOTE.rstrip())


@given(st.lists(st.text(max_size=300), max_size=8), st.integers(20, 200))
def test_a_sheet_keeps_to_its_tokens(texts: list[str], most: int):
    sheet = sheets.Sheet(most)
    for text in texts:
        sheet.add_quote("heading", text)
        sheet.add(sheets.one_line(text, 10))
    assert tokens.count(sheet.text()) <= most


def test_what_is_kept_free_can_be_used_afterwards():
    sheet = sheets.Sheet(30)
    with sheet.keeping(15):
        assert not sheet.add("x" * 60)
    assert sheet.add("x" * 60)
