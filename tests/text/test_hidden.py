from __future__ import annotations

import pytest

from lore.text.hidden import find_hidden, without_hidden


@pytest.mark.parametrize(
    "text",
    [
        "plain text, with an é and 日本語",
        "a family 👩\u200d👧 and a heart ❤️",
        "tabs\tand\nlines",
        "generic<T> and a < b --> c",
    ],
)
def test_what_a_reader_sees_is_not_hidden(text: str):
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
    ],
)
def test_what_a_reader_does_not_see_is_found(text: str, what: str):
    assert [found.what for found in find_hidden(text)] == [what]


def test_the_line_is_told_and_the_same_thing_once():
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
def test_a_text_without_what_is_hidden_has_ordinary_lines(text: str, plain: str):
    assert without_hidden(text) == plain
    assert find_hidden(plain) == []
