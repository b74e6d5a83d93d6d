"""Markers in histories of Chat Completions."""

from __future__ import annotations

import json

from lore.gateway.apis import markers, openai_chat
from lore.gateway.apis.markers import Marker
from tests.upstream.apis import check_request

ID = "ab" * 8
CALL = {"id": "c1", "type": "function", "function": {"name": "recall", "arguments": "{}"}}
STORED = {ID: Marker(CALL, "found", ID).to_json()}


def test_what_an_answer_has_beside_its_text_stays():
    said = {"type": "text", "text": f"Let me look.{markers.marker_text(ID)}It is there."}
    refused = {"type": "refusal", "refusal": "I do not say it."}
    messages = [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": [said, refused]},
        {"role": "user", "content": "And then?"},
    ]
    request = openai_chat.parse_request(json.dumps({"model": "m", "messages": messages}).encode())
    made = openai_chat.expand_markers(request, STORED.get).document
    check_request("chat", made)
    assert made["messages"][1]["content"] == "Let me look."
    assert made["messages"][3]["content"] == [{"type": "text", "text": "It is there."}, refused]
