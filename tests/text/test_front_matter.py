"""Front matter is read as agents and people write it, and never makes a file unreadable."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.text.front_matter import parse

WRITTEN = """---
name: test-policy
description: >-
  Run the tests: all of them,
  before a push
metadata:
  type: feedback
  originSessionId: 7f1c
tags: [ci, "before a push"]
files:
  - justfile
  - src/a b.py
quoted: 'it''s "so"'
escaped: "a \\"b\\"\\nc"
---

The body.
"""


def test_fields_tables_lists_and_folded_texts_are_read():
    front = parse(WRITTEN)
    assert front.fields == {
        "name": "test-policy",
        "description": "Run the tests: all of them, before a push",
        "metadata": {"type": "feedback", "originSessionId": "7f1c"},
        "tags": ["ci", "before a push"],
        "files": ["justfile", "src/a b.py"],
        "quoted": 'it\'s "so"',
        "escaped": 'a "b"\nc',
    }
    assert front.body.strip() == "The body."


def test_the_line_of_the_body_is_its_line_in_the_file():
    front = parse(WRITTEN)
    assert WRITTEN.split("\n")[front.line - 1 :] == front.body.split("\n")


def test_a_literal_block_keeps_its_lines():
    front = parse("---\ndescription: |\n  one\n    two\n\n  three\ntype: user\n---\nbody")
    assert front.fields == {"description": "one\n  two\n\nthree", "type": "user"}


@pytest.mark.parametrize(
    ("text", "fields", "body"),
    [
        ("no front matter", {}, "no front matter"),
        ("", {}, ""),
        ("---\nname: a\nm:\n  t: u\n\nNo end.", {"name": "a", "m": {"t": "u"}}, "No end."),
        ("---\nurl: http://a.b/c:d # why\n---\nx", {"url": "http://a.b/c:d"}, "x"),
        ("---\n{{{ : [\nname: a\n- ]\n---\nx", {"name": "a"}, "x"),
        ("---\nA rule above.\n\n---\n\nMore.", {}, "---\nA rule above.\n\n---\n\nMore."),
        ("\ufeff---\r\nname: a\r\n---\r\nx", {"name": "a"}, "x"),
    ],
)  # fmt: skip
def test_what_is_broken_loses_no_text(text, fields, body):
    front = parse(text)
    assert front.fields == fields
    assert front.body.strip() == body


def test_brackets_within_brackets_become_text():
    front = parse(f"---\nname: a\nlist: {'[' * 3_000}x{']' * 3_000}\n---\nbody")
    value = front.fields["list"]
    while isinstance(value, list):
        (value,) = value
    assert value.strip("[]") == "x"
    assert (front.fields["name"], front.body) == ("a", "body")


@given(st.text(alphabet="-:|> \n\t'\"[]{}#abc", max_size=200))
def test_no_text_makes_it_fail(text):
    front = parse("---\n" + text)
    assert isinstance(front.fields, dict)
