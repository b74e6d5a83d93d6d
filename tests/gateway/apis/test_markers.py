"""Markers: how they are stored, and redacted."""

from __future__ import annotations

from functools import partial

import orjson
import pytest

from lore.gateway.apis import markers
from lore.gateway.apis.json_values import Json
from lore.gateway.apis.markers import Marker
from lore.redaction.redactor import EPHEMERAL_REDACTOR, redact_tree

SECRET = "ghp_" + "a1B2c3D4" * 4 + "e5F6"
ASKED = {"query": f"who made {SECRET}?"}
SIGNED = "c2lnbmF0dXJl" * 20
REDACT = partial(redact_tree, EPHEMERAL_REDACTOR)


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
    stored = Marker(call, "Nothing.", "m1").to_json()
    hidden = markers.redact_marker(stored, REDACT)
    assert SECRET not in hidden
    read = markers.parse_marker(hidden)
    assert read is not None
    assert read.call.keys() == call.keys()
    for name in ("id", "call_id", "thoughtSignature"):
        assert read.call.get(name) == call.get(name)
    if isinstance(read.call.get("arguments"), str):
        assert orjson.loads(read.call["arguments"]).keys() == ASKED.keys()


def test_thoughts_are_redacted_but_not_their_signatures():
    extra: Json = {"reasoning_content": SECRET, "details": [{"text": SECRET, "signature": SIGNED}]}
    hidden = markers.redact_marker(Marker({}, "", extra=extra).to_json(), REDACT)
    assert SECRET not in hidden
    assert SIGNED in hidden


def test_a_marker_without_secrets_stays_as_it_was_written():
    stored = Marker({"id": "t", "input": {"query": "printing"}}, "Found.", "m1", 1).to_json()
    assert markers.redact_marker(stored, REDACT) == stored
