"""What the ledger makes of a provider's own words is what that provider charges.

Each row is worked out by hand from the public rule: prices are in US dollars for a million tokens.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from lore.budget.prices import PriceCatalogue
from lore.gateway.apis import ADAPTERS
from lore.gateway.billing import PROVIDERS
from lore.gateway.usage import UpstreamResponse, measure_usage
from lore.records import TokenUse

K = 1_000
AT = datetime(2026, 11, 1, tzinfo=UTC)
"""Prices change, and are listed with their dates."""


@pytest.fixture(scope="module")
def catalogue() -> PriceCatalogue:
    return PriceCatalogue(now=lambda: AT)


def anthropic(usage: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "content": [], "stop_reason": "end_turn", "usage": usage}


def chat(usage: dict[str, Any], **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}
    return {"choices": [choice], "usage": usage, **more}


def responses(usage: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"output": [], "status": "completed", "usage": usage, **more}


def gemini(usage: dict[str, Any]) -> dict[str, Any]:
    said = {"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}
    return {"candidates": [said], "usageMetadata": usage}


LONG_CACHE = {"ephemeral_5m_input_tokens": 10 * K, "ephemeral_1h_input_tokens": 20 * K}

BILLS: list[tuple[str, str, dict[str, Any], float]] = [
    # Anthropic: the four classes of input stand beside each other; 3, 0.3, 3.75 and 15.
    (
        "anthropic",
        "claude-sonnet-4-5",
        anthropic({
            "input_tokens": 1 * K,
            "cache_read_input_tokens": 100 * K,
            "cache_creation_input_tokens": 10 * K,
            "output_tokens": 2 * K,
        }),
        0.003 + 0.030 + 0.0375 + 0.030,
    ),
    # What is written for an hour is told below the sum, and costs 6 in place of 3.75.
    (
        "anthropic",
        "claude-sonnet-4-5",
        anthropic({
            "input_tokens": 0,
            "cache_creation_input_tokens": 30 * K,
            "cache_creation": LONG_CACHE,
            "output_tokens": 0,
        }),
        0.0375 + 0.120,
    ),
    # More than 200,000 tokens of input, cached or not, and every token has the long price.
    (
        "anthropic",
        "claude-sonnet-4-5",
        anthropic({
            "input_tokens": 1 * K,
            "cache_read_input_tokens": 199_001,
            "output_tokens": 1 * K,
        }),
        0.006 + 0.1194006 + 0.0225,
    ),
    # A model whose price is the same at any length.
    (
        "anthropic",
        "claude-opus-5-5",
        anthropic({"input_tokens": 500 * K, "output_tokens": 1 * K}),
        2.0 + 0.020,
    ),
    # Fast mode: twice, and six times for the first that had it.
    (
        "anthropic",
        "claude-opus-4-8",
        anthropic({"input_tokens": 10 * K, "output_tokens": 1 * K, "speed": "fast"}),
        2 * (0.050 + 0.025),
    ),
    (
        "anthropic",
        "claude-opus-4-6",
        anthropic({"input_tokens": 10 * K, "output_tokens": 1 * K, "speed": "fast"}),
        6 * (0.050 + 0.025),
    ),
    # OpenAI: what was cached is part of the prompt, thoughts are part of the output.
    # 1.25, 0.125 and 10.
    (
        "chat",
        "gpt-5",
        chat({
            "prompt_tokens": 100 * K,
            "prompt_tokens_details": {"cached_tokens": 80 * K},
            "completion_tokens": 3 * K,
            "completion_tokens_details": {"reasoning_tokens": 2 * K},
        }),
        0.025 + 0.010 + 0.030,
    ),
    (
        "responses",
        "gpt-5",
        responses({
            "input_tokens": 100 * K,
            "input_tokens_details": {"cached_tokens": 80 * K},
            "output_tokens": 3 * K,
            "output_tokens_details": {"reasoning_tokens": 2 * K},
        }),
        0.025 + 0.010 + 0.030,
    ),
    # Gemini under OpenAI's form tells thoughts in the sum alone.
    (
        "chat",
        "gemini-2.5-pro",
        chat({"prompt_tokens": 1 * K, "completion_tokens": 100, "total_tokens": 2 * K}),
        0.00125 + 0.010,
    ),
    # An answer without a word is paid for, too.
    (
        "chat",
        "gpt-5",
        {"choices": [], "usage": {"prompt_tokens": 100 * K, "completion_tokens": 3 * K}},
        0.125 + 0.030,
    ),
    (
        "responses",
        "gpt-5",
        responses(
            {"input_tokens": 100 * K, "output_tokens": 3 * K},
            status="failed",
            error={"code": "server_error", "message": "x"},
        ),
        0.125 + 0.030,
    ),
    # Newer models charge for writing to the cache, too: 2, 0.2, 2.5 and 10.
    (
        "responses",
        "gpt-6-sol",
        responses({
            "input_tokens": 100 * K,
            "input_tokens_details": {"cached_tokens": 80 * K, "cache_write_tokens": 10 * K},
            "output_tokens": 1 * K,
        }),
        0.020 + 0.016 + 0.025 + 0.010,
    ),
    (
        "chat",
        "gpt-6-sol",
        chat({
            "prompt_tokens": 100 * K,
            "prompt_tokens_details": {"cached_tokens": 80 * K, "cache_write_tokens": 10 * K},
            "completion_tokens": 1 * K,
        }),
        0.020 + 0.016 + 0.025 + 0.010,
    ),
    # Beyond 272,000 tokens input costs twice, and output half as much again.
    (
        "responses",
        "gpt-6-sol",
        responses({"input_tokens": 272 * K + 1, "output_tokens": 1 * K}),
        1.088004 + 0.015,
    ),
    (
        "responses",
        "gpt-6-sol",
        responses({"input_tokens": 272 * K, "output_tokens": 1 * K}),
        0.544 + 0.010,
    ),
    # The patient service costs half, the fast one twice.
    (
        "responses",
        "gpt-6-sol",
        responses({"input_tokens": 100 * K, "output_tokens": 1 * K}, service_tier="flex"),
        0.100 + 0.005,
    ),
    (
        "chat",
        "gpt-6-sol",
        chat({"prompt_tokens": 100 * K, "completion_tokens": 1 * K}, service_tier="priority"),
        0.400 + 0.020,
    ),
    (
        "chat",
        "gpt-6-sol",
        chat({"prompt_tokens": 100 * K, "completion_tokens": 1 * K}, service_tier="default"),
        0.200 + 0.010,
    ),
    # Gemini: thoughts stand beside what is said, what was cached is part of the prompt.
    # 1.25, 0.125 and 10.
    (
        "gemini",
        "gemini-2.5-pro",
        gemini({
            "promptTokenCount": 100 * K,
            "cachedContentTokenCount": 60 * K,
            "candidatesTokenCount": 1 * K,
            "thoughtsTokenCount": 2 * K,
        }),
        0.050 + 0.0075 + 0.030,
    ),
    # What its own tools have read is paid as input.
    (
        "gemini",
        "gemini-2.5-pro",
        gemini({
            "promptTokenCount": 10 * K,
            "toolUsePromptTokenCount": 10 * K,
            "candidatesTokenCount": 0,
        }),
        0.025,
    ),
    # Beyond 200,000 tokens: 2.5, 0.25 and 15.
    (
        "gemini",
        "gemini-2.5-pro",
        gemini({
            "promptTokenCount": 200 * K + 1,
            "cachedContentTokenCount": 100 * K,
            "candidatesTokenCount": 1 * K,
        }),
        0.2500025 + 0.025 + 0.015,
    ),
]


@pytest.mark.parametrize(("wire", "model", "answer", "usd"), BILLS)
def test_a_request_costs_what_its_provider_charges(
    catalogue: PriceCatalogue, wire: str, model: str, answer: dict[str, Any], usd: float
):
    reply = ADAPTERS[wire].read_reply(json.dumps(answer).encode(), streams=False)
    taken = measure_usage([UpstreamResponse(200, reply)], TokenUse())
    pricing = catalogue.find(model, PROVIDERS[wire], service=taken.service)
    assert pricing is not None
    assert not taken.estimated
    assert pricing.cost(taken.use) == pytest.approx(usd)


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_a_stream_reports_its_service_tier_like_a_document(wire: str):
    told: dict[str, Any] = {"service_tier": "flex", "choices": [], "usage": {"prompt_tokens": 1}}
    if wire == "responses":
        told = {"type": "response.completed", "response": {"service_tier": "flex", "output": []}}
    stream = b"data: " + json.dumps(told).encode() + b"\n\n"
    assert ADAPTERS[wire].read_reply(stream, streams=True).service_tier == "flex"
