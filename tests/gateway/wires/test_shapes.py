"""Shapes: what anybody may have written is read, or refused in one way."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.errors import InvalidInput
from lore.gateway.wires import shapes

HALF, OTHER, BACKSLASH = chr(0xD83D), chr(0xDE00), chr(92)
WHOLE = chr(0x1F600)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (f"cut {HALF}", "cut \ufffd"),
        (f"{OTHER} cut", "\ufffd cut"),
        (f"{HALF}{HALF}{OTHER}", f"\ufffd{WHOLE}"),
        (f"{BACKSLASH}{HALF}", f"{BACKSLASH}\ufffd"),
        (f"{BACKSLASH}ud83d {HALF}", f"{BACKSLASH}ud83d \ufffd"),
    ],
)
def test_half_of_a_character_is_read_as_one_that_is_lost(sent: str, read: str):
    assert shapes.read(json.dumps({"text": sent}).encode()) == {"text": read}


PIECES = [HALF, OTHER, WHOLE, BACKSLASH, "u", "d83d", chr(34), chr(10)]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_whatever_python_writes_is_read_as_it_is_but_for_halves(sent: str):
    written = json.dumps({"text": sent})
    whole = (
        json.loads(written)["text"].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
    assert shapes.read(written.encode())["text"] == whole


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff", b'{"a": "' + HALF.encode("utf-8", "surrogatepass") + b'"}']
)
def test_what_is_no_table_of_json_is_refused(body: bytes):
    with pytest.raises(InvalidInput):
        shapes.read(body)
