"""JSON from clients is parsed, or rejected with one error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.errors import InvalidInput
from lore.gateway.apis import ADAPTERS, json_values
from lore.gateway.apis.adapter import PromptAdditions
from lore.records.gateway import Plan, PromptState

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
    assert json_values.parse_object(json.dumps({"text": sent}).encode()) == {"text": read}


PIECES = [HALF, OTHER, WHOLE, BACKSLASH, "u", "d83d", chr(34), chr(10)]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_whatever_python_writes_is_read_as_it_is_but_for_halves(sent: str):
    written = json.dumps({"text": sent})
    whole = (
        json.loads(written)["text"].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
    assert json_values.parse_object(written.encode())["text"] == whole


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff", b'{"a": "' + HALF.encode("utf-8", "surrogatepass") + b'"}']
)
def test_what_is_no_table_of_json_is_refused(body: bytes):
    with pytest.raises(InvalidInput):
        json_values.parse_object(body)


LONG = 12345678901234567890123
DEEP = f"[{LONG}" + ",[" * 100_000


@pytest.mark.parametrize(
    "written", ["", "{", HALF, f'{{"limit": {LONG}', "9" * 5_000, f'{{"a": {"9" * 5_000}}}', DEEP]
)
def test_what_is_cut_off_or_no_json_is_nothing(written: str):
    assert json_values.parse_or_none(written) is None


@given(st.lists(st.integers(-(10**30), 10**30)))
def test_numbers_of_any_length_stay_what_they_are(numbers: list[int]):
    body = json.dumps({"numbers": numbers}).encode()
    assert json.loads(json_values.to_json_bytes(json_values.parse_object(body))) == {
        "numbers": numbers
    }


@pytest.mark.parametrize("body", [b"{", b"[1]", b'{"a": %s}' % (b"9" * 5_000), DEEP.encode()])
def test_what_is_no_table_is_not_read(body: bytes):
    with pytest.raises(InvalidInput):
        json_values.parse_object(body)


@pytest.mark.parametrize(
    ("wire", "tree"),
    [
        ("anthropic", {"messages": [{"role": "user", "content": "x"}]}),
        ("chat", {"messages": [{"role": "user", "content": "x"}]}),
        ("responses", {"input": [{"role": "user", "content": "x"}]}),
        ("gemini", {"contents": [{"role": "user", "parts": [{"text": "x"}]}]}),
    ],
)
def test_a_long_number_survives_that_a_prompt_is_written_anew(wire: str, tree: dict[str, object]):
    body = json.dumps({"model": "m", "seed": LONG, **tree}).encode()
    request = ADAPTERS[wire].parse_request(body, "/v1beta/models/m:generateContent")
    sent = ADAPTERS[wire].rewrite_request(
        request, Plan(0, PromptState()), PromptAdditions(knowledge="We print.")
    )
    assert b"We print." in sent
    assert json.loads(sent)["seed"] == LONG


@pytest.mark.parametrize(
    ("told", "counted"),
    [(7, 7), (1000.0, 1000), ("12", 12), (True, 0), (-5, 0), (1.5, 0), (10**17, 0), (2**63, 0),
     (1e300, 0), (float("nan"), 0), (float("inf"), 0), ("x", 0), ("9" * 5_000, 0), (None, 0)],
)  # fmt: skip
def test_what_cannot_be_is_not_counted(told: object, counted: int):
    assert json_values.as_count(told) == counted
