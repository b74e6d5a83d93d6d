"""Who is given memory by the gateway, and who has it of its own."""

from __future__ import annotations

import json

import pytest

from lore.gateway.apis import ADAPTERS
from lore.gateway.apis.adapter import Request
from lore.gateway.client_session import has_hook_memory, has_own_memory
from lore.records import ClientSession

OWN = {"name": "mcp__lore__recall", "input_schema": {"type": "object"}}


def read(text: str, *tools: object) -> Request:
    messages = [{"role": "user", "content": text}]
    document = {"model": "m", "max_tokens": 9, "messages": messages, "tools": list(tools)}
    return ADAPTERS["anthropic"].parse_request(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("agent", "text", "tools", "given"),
    [
        ("claude-code", "Hello", (OWN,), True),
        ("claude-code", "Hello", (), False),
        ("claude-code", "<lore-memory>\nx\n</lore-memory>\nHello", (), True),
        ("opencode", "Hello", (OWN,), False),
        ("codex", "Hello", (OWN,), False),
        ("opencode", "<lore-memory>\nx\n</lore-memory>\nHello", (OWN,), True),
    ],
)
def test_hook_memory_needs_hooks_and_not_only_tools(agent, text, tools, given):
    assert has_hook_memory(ClientSession("s", agent), read(text, *tools)) == given


def test_lore_tools_are_recognized_by_name():
    assert has_own_memory(read("Hello", OWN))
    assert not has_own_memory(read("Hello", {"name": "recall", "input_schema": {}}))
