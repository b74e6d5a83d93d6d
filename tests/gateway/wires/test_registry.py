"""Paths lead to their wires."""

from __future__ import annotations

import pytest

from lore.gateway.wires.registry import WIRES, find_wire


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/messages?beta=true", "anthropic"),
        ("/v1/chat/completions", "chat"),
        ("/v1/responses", "responses"),
        ("/v1beta/models/gemini-3-pro:generateContent", "gemini"),
        ("/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", "gemini"),
        ("/v1/messages/count_tokens", None),
        ("/v1/messages/batches", None),
        ("/v1beta/models/gemini-3-pro:countTokens", None),
        ("/v1/responses/resp_1/cancel", None),
        ("/", None),
    ],
)
def test_a_path_leads_to_its_wire(path, name):
    assert find_wire(path) == name
    assert name is None or name in WIRES
