"""RE2 helpers: loosened patterns match where the exact ones do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.redaction import line_rules
from lore.redaction.assignment_rules import rule_set
from lore.text.regex import compile_re2, group_numbers, loosen_counts, search_with_heads

STRICT = r"k[a-c]{34,36}x|[ \t]{0,2}n{2}b{1,40}?y"
PATTERN = compile_re2(STRICT)
LOOSE = compile_re2(loosen_counts(STRICT), groups=False)
TEXTS = st.lists(
    st.sampled_from([b"k", b"a" * 33, b"b", b"c" * 2, b"x", b" ", b"n", b"y", b"\n"]), max_size=40
).map(b"".join)


@pytest.mark.parametrize(
    ("pattern", "loose"),
    [
        (r"a{3}b{2,5}", r"a{3}b{2,5}"),
        (r"a{40}", r"a{32,}?"),
        (r"a{4,90}b", r"a{4,}?b"),
        (r"a{0,90}?b", r"a{0,}?b"),
        (r"a{7,}b", r"a{7,}?b"),
        (r"a\{40}", r"a\{40}"),
    ],
)
def test_only_high_counts_are_loosened(pattern: str, loose: str):
    assert loosen_counts(pattern) == loose


@given(TEXTS)
def test_heads_change_no_match(text: bytes):
    found, strict = search_with_heads(LOOSE, PATTERN, text, 0), PATTERN.search(text)
    assert (found and found.span()) == (strict and strict.span())


def test_a_match_behind_more_heads_than_are_tried_is_found():
    text = (b"k" + b"a" * 40 + b"x ") * 100 + b"k" + b"a" * 35 + b"x"
    assert search_with_heads(LOOSE, PATTERN, text, 0).end() == len(text)


@pytest.mark.parametrize(
    "pattern",
    [
        rule_set().pattern,
        line_rules.LINES,
        r"(?P<a>x)(y)(?:z)(?P<b>[(]\(w(?i:v))|[^](]\\(?P<c>u)",
    ],
)
def test_groups_have_the_numbers_that_they_have_once_compiled(pattern: str):
    compiled = compile_re2(pattern).groupindex
    assert group_numbers(pattern) == {name.decode(): index for name, index in compiled.items()}
