"""Models that reject the gateway's additions get none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lore.gateway.apis import ADAPTERS
from lore.gateway.apis.adapter import PromptAdditions, Request
from lore.records.gateway import Plan, PromptState

USER: dict[str, Any] = {"role": "user", "content": "Hello"}
PARTS: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}
PAINTS: dict[str, Any] = {"generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}}


def of_model(wire: str, model: str) -> Request:
    if wire == "gemini":
        path = f"/v1beta/models/{model}:generateContent"
        return ADAPTERS[wire].parse_request(json.dumps(PARTS).encode(), path)
    said = {"messages": [USER]} if wire == "chat" else {"input": [USER], "store": False}
    return ADAPTERS[wire].parse_request(json.dumps({"model": model, **said}).encode())


@pytest.mark.parametrize(
    ("wire", "model", "may_recall", "is_told"),
    [
        ("gemini", "gemini-2.5-flash", True, True),
        ("gemini", "gemma-3-27b-it", False, False),
        ("gemini", "gemma-4-31b-it", True, True),
        ("gemini", "gemini-2.5-flash-image", False, False),
        ("gemini", "gemini-3-pro-image-preview", False, False),
        ("gemini", "gemini-2.5-flash-preview-tts", False, False),
        ("chat", "gemini-2.5-flash", True, True),
        ("chat", "models/gemma-3-27b-it", False, False),
        ("chat", "gemma3:27b", False, False),
        ("chat", "gpt-4o", True, True),
        ("chat", "o1-mini", False, False),
        ("chat", "o1", True, True),
        ("chat", "gpt-4o-search-preview", False, True),
        ("chat", "openai/chatgpt-4o-latest", False, True),
        ("responses", "gpt-5", True, True),
        ("responses", "o3-deep-research", False, True),
    ],
)
def test_nothing_is_added_that_a_model_refuses(wire, model, may_recall, is_told):
    request = of_model(wire, model)
    assert request.can_offer_recall == may_recall
    sent = ADAPTERS[wire].rewrite_request(
        request, Plan(0, PromptState()), PromptAdditions(knowledge="Known.")
    )
    assert (b"Known." in sent) == is_told


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/v1beta/models/gemini-2.5-flash-preview-tts:generateContent", {}),
        ("/v1beta/models/gemini-2.5-flash-image:generateContent", {}),
        ("/v1beta/models/gemini-test:generateContent", PAINTS),
    ],
)
def test_what_is_read_aloud_or_painted_stays_as_it_came(path, more):
    body = json.dumps({**PARTS, **more}).encode()
    request = ADAPTERS["gemini"].parse_request(body, path)
    texts = PromptAdditions("Known.", {request.dialogue.entries[0].key: "Noted."})
    assert ADAPTERS["gemini"].rewrite_request(request, Plan(0, PromptState()), texts) == body


def test_a_model_that_a_client_instructs_is_told_what_is_known():
    messages = [{"role": "system", "content": "You are an agent."}, USER]
    body = json.dumps({"model": "gemma-3-27b-it", "messages": messages}).encode()
    request = ADAPTERS["chat"].parse_request(body)
    assert b"Known." in ADAPTERS["chat"].rewrite_request(
        request, Plan(0, PromptState()), PromptAdditions(knowledge="Known.")
    )
