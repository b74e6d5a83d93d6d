"""Markers in histories of Anthropic's Messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lore.gateway.apis import anthropic, markers
from lore.gateway.apis.markers import Marker
from tests.upstream.apis import check_request

Json = dict[str, Any]
ID = "ab" * 8
SIGN = markers.marker_text(ID)
CALL = {"type": "tool_use", "id": "toolu_1", "name": "recall", "input": {}}
STORED = {ID: Marker(CALL, "found", ID).to_json()}
BREAK = {"cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("said", "breaks"),
    [(f"Let me look.{SIGN}It is there.", 4), (f"Let me look.{SIGN}", 4), (SIGN, 3)],
)
def test_a_text_that_is_taken_apart_has_its_breakpoint_once(said, breaks):
    document: Json = {
        "model": "claude-test",
        "max_tokens": 10,
        "system": [{"type": "text", "text": "You are an agent.", **BREAK}],
        "tools": [{"name": "Read", "input_schema": {"type": "object"}, **BREAK}],
        "messages": [
            {"role": "user", "content": "Where is it?"},
            {"role": "assistant", "content": [{"type": "text", "text": said, **BREAK}]},
            {"role": "user", "content": [{"type": "text", "text": "And then?", **BREAK}]},
        ],
    }
    request = anthropic.parse_request(json.dumps(document).encode())
    made = anthropic.expand_markers(request, STORED.get).document
    check_request("anthropic", made)
    assert json.dumps(made).count("cache_control") == breaks
    texts = [one for one in made["messages"][1:-1] if one["role"] == "assistant"]
    last = [one for one in texts if one["content"][0]["type"] == "text"][-1:]
    assert all("cache_control" in one["content"][0] for one in last)
