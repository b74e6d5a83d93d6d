"""Which requests may be offered recall, and which have their history at the provider."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lore.gateway.apis import ADAPTERS, entry_keys

USER: dict[str, Any] = {"role": "user", "content": "Hello"}
PARTS: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}
JSON = {"type": "json_object"}
GEMINI = "/v1beta/models/gemini-test:"


def config(name: str, value: object) -> dict[str, Any]:
    return {"generationConfig": {name: value}}


@pytest.mark.parametrize(
    ("wire", "path", "document", "has_history", "may_recall"),
    [
        ("anthropic", "", {"messages": [USER]}, True, True),
        ("chat", "", {"messages": [USER]}, True, True),
        ("chat", "", {"messages": [USER], "n": 1}, True, True),
        ("chat", "", {"messages": [USER], "n": 2}, True, False),
        ("chat", "", {"messages": [USER], "response_format": {"type": "text"}}, True, True),
        ("chat", "", {"messages": [USER], "response_format": JSON}, True, False),
        ("chat", "", {"messages": [USER], "response_format": JSON, "tools": [{}]}, True, True),
        ("chat", "", {"messages": [USER], "modalities": ["text"]}, True, True),
        ("chat", "", {"messages": [USER], "modalities": ["text", "audio"]}, True, False),
        ("chat", "", {"messages": [USER], "prediction": {"type": "content"}}, True, False),
        ("chat", "", {"messages": [USER], "web_search_options": {"x": 1}}, True, False),
        ("chat", "", {"messages": [USER], "functions": [{"name": "f"}]}, True, False),
        ("responses", "", {"input": "Hello", "store": False}, True, True),
        ("responses", "", {"input": "Hello"}, True, False),
        ("responses", "", {"input": "Hi", "store": False, "prompt": {"id": "p"}}, True, False),
        ("responses", "", {"input": "Hi", "store": False, "text": {"format": JSON}}, True, False),
        ("responses", "", {"input": "Hi", "previous_response_id": "r"}, False, False),
        ("responses", "", {"input": "Hi", "store": False, "conversation": "c"}, False, False),
        ("gemini", GEMINI + "generateContent", PARTS, True, True),
        ("gemini", GEMINI + "streamGenerateContent?alt=sse", PARTS, True, True),
        ("gemini", GEMINI + "streamGenerateContent", PARTS, True, False),
        ("gemini", "", {**PARTS, **config("candidateCount", 2)}, True, False),
        ("gemini", "", {**PARTS, **config("responseMimeType", "text/plain")}, True, True),
        ("gemini", "", {**PARTS, **config("responseMimeType", "application/json")}, True, False),
        ("gemini", "", {**PARTS, **config("response_modalities", ["IMAGE"])}, True, False),
        ("gemini", "", {**PARTS, "tools": [{"functionDeclarations": []}]}, True, True),
        ("gemini", "", {**PARTS, "tools": [{"googleSearch": {}}]}, True, False),
        ("gemini", "/v1beta/models/gemma-3-27b-it:generateContent", PARTS, True, False),
        ("gemini", "", {**PARTS, "cachedContent": "cachedContents/1"}, False, True),
        ("gemini", "", {**PARTS, "cached_content": "cachedContents/1"}, False, True),
    ],
)  # fmt: skip
def test_recall_is_offered_where_answers_can_be_joined(
    wire, path, document, has_history, may_recall
):
    request = ADAPTERS[wire].parse_request(json.dumps(document).encode(), path)
    assert (request.has_history, request.can_offer_recall) == (has_history, may_recall)


def test_gemini_names_model_and_stream_in_the_path():
    body = json.dumps(PARTS).encode()
    request = ADAPTERS["gemini"].parse_request(body, GEMINI + "streamGenerateContent?alt=sse")
    assert (request.dialogue.model, request.streams) == ("gemini-test", True)


def test_calls_of_gemini_without_ids_are_paired_by_name_and_order():
    call = {"functionCall": {"name": "Read", "args": {}}}
    result = {"functionResponse": {"name": "Read", "response": {"output": "file"}}}
    contents = [
        *PARTS["contents"],
        {"role": "model", "parts": [call, call]},
        {"role": "user", "parts": [result, result]},
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [result]},
    ]
    entries = (
        ADAPTERS["gemini"]
        .parse_request(json.dumps({"contents": contents}).encode())
        .dialogue.entries
    )
    ids = [[block.call_id for block in entry.blocks] for entry in entries]
    assert ids[1:] == [["Read#1", "Read#2"], ["Read#1", "Read#2"], ["Read#3"], ["Read#3"]]


def test_an_answer_of_gemini_is_one_entry_in_however_many_pieces_it_is_kept():
    call = {"functionCall": {"name": "Read", "args": {}}}
    whole = [{"text": "Let me see."}, {**call, "thoughtSignature": "signed"}]
    pieces: list[Any] = [{"text": "Let me"}, {"text": " see.", "thoughtSignature": "signed"}]
    pieces += [{"functionCall": {**call["functionCall"], "id": "of the client"}}]
    kept = [{"role": "model", "parts": whole}], [{"role": "model", "parts": [p]} for p in pieces]
    entries = [
        ADAPTERS["gemini"]
        .parse_request(json.dumps({"contents": [*PARTS["contents"], *contents]}).encode())
        .dialogue.entries
        for contents in kept
    ]
    assert [len(one) for one in entries] == [2, 2]
    assert entries[0][1].key == entries[1][1].key


def test_a_call_of_gemini_that_follows_others_has_its_number():
    read = ADAPTERS["gemini"].parse_request
    answer = {"role": "model", "parts": [{"functionCall": {"name": "Read", "args": {}}}]}
    result = {"functionResponse": {"name": "Read", "response": {"output": "file"}}}
    before = [*PARTS["contents"], answer, {"role": "user", "parts": [result]}]
    body = json.dumps({"candidates": [{"content": answer, "finishReason": "STOP"}]}).encode()
    told = ADAPTERS["gemini"].read_reply(body, streams=False).entry
    assert told is not None
    entries = read(json.dumps({"contents": before}).encode()).dialogue.entries
    later = read(json.dumps({"contents": [*before, answer]}).encode()).dialogue.entries
    assert entry_keys.with_next_key(entries, told) == later[-1]
