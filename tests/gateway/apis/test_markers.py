"""Markers: what stands for a call in the store, and what of it may be written there."""

from __future__ import annotations

from functools import partial

import orjson
import pytest

from lore.gateway.apis import markers
from lore.gateway.apis.markers import Marker
from lore.gateway.apis.shapes import Json
from lore.redaction import UNKEPT, redact_tree

SECRET = "ghp_" + "a1B2c3D4" * 4 + "e5F6"
ASKED = {"query": f"who made {SECRET}?"}
SIGNED = "c2lnbmF0dXJl" * 20
REDACT = partial(redact_tree, UNKEPT)


@pytest.mark.parametrize(
    "call",
    [
        {"type": "tool_use", "id": "toolu_01", "name": "recall", "input": ASKED},
        {"functionCall": {"name": "recall", "args": ASKED}, "thoughtSignature": SIGNED},
        {"id": "call_1", "function": {"name": "recall", "arguments": orjson.dumps(ASKED).decode()}},
        {"call_id": "call_1", "name": "recall", "arguments": orjson.dumps(ASKED).decode()},
    ],
    ids=["anthropic", "gemini", "chat", "responses"],
)
def test_arguments_are_redacted_and_the_rest_of_a_call_stays(call: Json):
    stored = Marker(call, "Nothing.", "m1").write()
    hidden = markers.redacted(stored, REDACT)
    assert SECRET not in hidden
    read = markers.read(hidden)
    assert read is not None
    assert read.call.keys() == call.keys()
    for name in ("id", "call_id", "thoughtSignature"):
        assert read.call.get(name) == call.get(name)
    if isinstance(read.call.get("arguments"), str):
        assert orjson.loads(read.call["arguments"]).keys() == ASKED.keys()


def test_thoughts_are_redacted_but_not_their_signatures():
    extra: Json = {"reasoning_content": SECRET, "details": [{"text": SECRET, "signature": SIGNED}]}
    hidden = markers.redacted(Marker({}, "", extra=extra).write(), REDACT)
    assert SECRET not in hidden
    assert SIGNED in hidden


def test_a_marker_without_secrets_stays_as_it_was_written():
    stored = Marker({"id": "t", "input": {"query": "printing"}}, "Found.", "m1", 1).write()
    assert markers.redacted(stored, REDACT) == stored
