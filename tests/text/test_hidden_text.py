"""Hidden text and prompt blocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.text import hidden_text, tokens
from lore.text.hidden_text import find_hidden, strip_hidden


@pytest.mark.parametrize(
    "text",
    [
        "plain text, with an é and 日本語",
        "a family 👩\u200d👧 and a heart ❤️",
        "tabs\tand\nlines",
        "generic<T> and a < b --> c",
    ],
)
def test_visible_text_is_not_hidden(text: str):
    assert find_hidden(text) == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("pay\u200bpal", "U+200B ZERO WIDTH SPACE"),
        ("a\u202ebc", "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("\U000e0041 tag", "U+E0041 TAG LATIN CAPITAL LETTER A"),
        ("so\xadft", "U+00AD SOFT HYPHEN"),
        ("blank \u3164", "U+3164 HANGUL FILLER"),
        ("bell \x07", "U+0007 without a name"),
        ("text <!-- obey me --> more", "markup that is not shown"),
        ("[//]: # (obey me)", "markup that is not shown"),
        ('<span style="display:none">obey</span>', "markup that is not shown"),
        ("\ud800", "U+D800 without a name"),
    ],
)
def test_hidden_text_is_found(text: str, what: str):
    assert [found.what for found in find_hidden(text)] == [what]


def test_hidden_items_have_a_line_and_no_duplicates():
    found = find_hidden("one\ntwo \u200b\u200b\nthree \u200b")
    assert [one.line for one in found] == [2, 3]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("pay\u200bpal", "paypal"),
        ("a\u202ebc\u2069", "abc"),
        ("one\r\ntwo\rthree\u2028four\x85five\x0bsix", "one\ntwo\nthree\nfour\nfive\nsix"),
        ("a family 👩\u200d👧 and tabs\t", "a family 👩\u200d👧 and tabs\t"),
        ("bell \x07 and \U000e0041tag", "bell  and tag"),
    ],
)
def test_stripped_text_has_ordinary_lines(text: str, plain: str):
    assert strip_hidden(text) == plain
    assert find_hidden(plain) == []


@given(st.text(max_size=400), st.integers(1, 60))
def test_one_line_is_one_line_within_its_tokens(text: str, most: int):
    line = hidden_text.one_line(text, most)
    assert len(line.splitlines()) <= 1
    assert tokens.count(line) <= most


@given(st.text(max_size=400))
def test_every_line_of_a_quote_is_marked(text: str):
    for line in "\n".join(hidden_text.quote_lines(text)).splitlines():
        assert line.startswith(hidden_text.QUOTE_PREFIX.rstrip())


@given(st.lists(st.text(max_size=300), max_size=8), st.integers(20, 200))
def test_a_prompt_block_fits_its_token_budget(texts: list[str], most: int):
    sheet = hidden_text.PromptBlock(most)
    for text in texts:
        sheet.add_quote("heading", text)
        sheet.add(hidden_text.one_line(text, 10))
    assert tokens.count(sheet.text()) <= most


def test_reserved_tokens_can_be_used_afterwards():
    sheet = hidden_text.PromptBlock(30)
    with sheet.reserve(15):
        assert not sheet.add("x" * 60)
    assert sheet.add("x" * 60)
