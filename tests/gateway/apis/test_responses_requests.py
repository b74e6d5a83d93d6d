"""Requests that Codex makes for its newer models with the Responses API."""

from __future__ import annotations

import json
from typing import Any

from lore.gateway.apis import ADAPTERS
from lore.gateway.apis.adapter import PromptAdditions, Request
from lore.gateway.client_session import RequestInfo, folder_of
from lore.records.gateway import Distilled, Plan, PromptState
from tests.gateway.apis.responses_format import message

Json = dict[str, Any]
TOOLS = {
    "type": "additional_tools",
    "id": "at_1",
    "role": "developer",
    "tools": [{"type": "namespace", "name": "mcp__lore", "tools": [{"name": "recall"}]}],
}
EFFORT = {"type": "configuration_update", "reasoning": {"effort": "low"}}
PLACE = message("user", "<environment_context>\n  <cwd>/code/almanac</cwd>")


def read(*items: Json) -> Request:
    document = {"model": "gpt-test", "store": False, "input": list(items)}
    return ADAPTERS["responses"].parse_request(json.dumps(document).encode())


def asked(*more: Json) -> Request:
    agent = message("developer", "You are an agent.")
    return read(TOOLS, agent, PLACE, message("user", "Hello"), EFFORT, *more)


def test_what_a_program_sets_is_no_answer():
    request = asked()
    assert [one.voice for one in request.dialogue.entries] == ["user", "user", "system"]
    assert folder_of(RequestInfo({}, request.document, request.dialogue.entries)) == "/code/almanac"


def test_tools_among_the_items_are_known_and_count_as_what_stands_first():
    request = asked()
    assert "mcp__lore.recall" in request.tools
    assert request.dialogue.fixed_chars > len(json.dumps(TOOLS["tools"]))
    assert not request.can_offer_recall
    assert read(PLACE).can_offer_recall


def test_what_was_set_holds_though_it_is_left_out():
    request = asked(
        message("assistant", "Hi."), message("user", "And now?"), message("assistant", "Well."),
        message("user", "Go on."),
    )  # fmt: skip
    log = Distilled("d1", "They greeted each other.", 8, 4)
    plan = Plan(1, PromptState(layer=1), start=4, prefix=(log,))
    sent = json.loads(ADAPTERS["responses"].rewrite_request(request, plan, PromptAdditions()))[
        "input"
    ]
    assert sent[0] == TOOLS
    assert EFFORT in sent
    assert PLACE not in sent
