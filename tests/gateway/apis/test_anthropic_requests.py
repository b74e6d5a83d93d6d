"""Prompts for Anthropic's Messages: breakpoints, and what stays when the start is left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lore.gateway.apis import anthropic, openai_responses
from lore.gateway.apis.adapter import PromptAdditions, Tool
from lore.records.gateway import Distilled, Plan, PromptState
from tests.gateway.apis.anthropic_format import REMINDER
from tests.upstream.apis import check_request

Json = dict[str, Any]
SHORT: Json = {"type": "ephemeral"}
LONG: Json = {"type": "ephemeral", "ttl": "1h"}
RECALL = Tool("recall", "Search memory.", {"type": "object"})
FENCED = "<system-reminder>\n# Project\nDates are day first.\n</system-reminder>"


def said(text: str, **more: object) -> Json:
    return {"type": "text", "text": text, **more}


def document(**more: object) -> Json:
    return {
        "model": "claude-test",
        "max_tokens": 100,
        "system": [said("You are an agent.")],
        "tools": [{"name": "Read", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": [said(FENCED), said("first")]},
            {"role": "system", "content": "These agents can be called."},
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": [said("second"), said(REMINDER)]},
            {"role": "system", "content": "These agents can be called."},
            {"role": "assistant", "content": "done again"},
            {"role": "user", "content": "third"},
        ],
        **more,
    }


def rewritten(given: Json, start: int = 6, **texts: Any) -> Json:
    request = anthropic.parse_request(json.dumps(given).encode())
    plan = Plan(1, PromptState(), start, (Distilled("s1", "We did things.", 4, start),))
    made: Json = json.loads(anthropic.rewrite_request(request, plan, PromptAdditions(**texts)))
    check_request("anthropic", made)
    return made


def controls(given: Json) -> list[tuple[str, Json]]:
    """Return all breakpoints, each with where it stands."""
    found = [("tools", one) for one in given["tools"]]
    found += [("system", one) for one in given["system"]]
    found += [("messages", block) for one in given["messages"] for block in one["content"]]
    return [(where, one["cache_control"]) for where, one in found if "cache_control" in one]


def test_the_instructions_of_a_project_stay_when_the_first_prompt_goes():
    first, system, reply, *window = rewritten(document())["messages"]
    assert first["content"][0]["text"] == FENCED
    assert "We did things." in first["content"][1]["text"]
    assert len(first["content"]) == 2
    assert [block["text"] for block in system["content"]] == ["These agents can be called."]
    assert reply["role"] == "assistant"
    assert [one["role"] for one in window] == ["user"]


def test_codex_keeps_the_instructions_of_a_project_in_a_users_place():
    items = [
        {"role": "user", "content": "# AGENTS.md instructions for /code/shop\n\nDay first."},
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "second"},
    ]
    request = openai_responses.parse_request(json.dumps({"model": "m", "input": items}).encode())
    plan = Plan(1, PromptState(), 3, (Distilled("s1", "We did things.", 4, 3),))
    made = json.loads(openai_responses.rewrite_request(request, plan, PromptAdditions()))["input"]
    assert made[0]["content"][0]["text"].endswith("Day first.")
    assert [one["role"] for one in made] == ["user", "assistant", "user"]
    assert "first" not in [part["text"] for part in made[0]["content"]]


def test_knowledge_stands_behind_the_clients_system_prompt_and_recall_behind_its_tools():
    made = rewritten(document(), knowledge="We print on Thursdays.", recall_tool=RECALL)
    assert [block["text"] for block in made["system"]][-1] == "We print on Thursdays."
    assert [tool["name"] for tool in made["tools"]] == ["Read", "recall"]


def test_a_system_prompt_that_is_a_text_becomes_a_block_before_knowledge():
    made = rewritten(document(system="Be brief."), knowledge="Known.")
    assert [block["text"] for block in made["system"]] == ["Be brief.", "Known."]


def test_the_clients_breakpoints_on_tools_and_system_stay():
    given = document()
    given["system"][0]["cache_control"] = SHORT
    given["tools"][0]["cache_control"] = SHORT
    given["messages"][-1]["content"] = [said("third", cache_control=SHORT)]
    made = rewritten(given, recall_tool=RECALL)
    assert [where for where, _ in controls(made)] == ["tools", "system", "messages", "messages"]
    assert "cache_control" in made["tools"][0]


@pytest.mark.parametrize("count", [3, 4])
def test_one_breakpoint_is_left_for_the_last_entry(count):
    given = document(system=[said(f"{n}", cache_control=SHORT) for n in range(count)])
    made = rewritten(given)
    assert [where for where, _ in controls(made)] == ["system"] * 3 + ["messages"]
    assert "cache_control" in made["messages"][-1]["content"][-1]
    assert "cache_control" in made["system"][-1]


@pytest.mark.parametrize(("calls", "marked"), [(2, [2, 5]), (12, [3, 5])])
def test_the_end_of_the_last_request_is_marked_where_the_cache_would_not_find_it(calls, marked):
    given = document(system=[said("a", cache_control=SHORT), said("b", cache_control=SHORT)])
    ids = [f"call_{n}" for n in range(calls)]
    uses = [{"type": "tool_use", "id": one, "name": "Read", "input": {}} for one in ids]
    results = [{"type": "tool_result", "tool_use_id": one, "content": "file"} for one in ids]
    given["messages"] += [
        {"role": "assistant", "content": uses},
        {"role": "user", "content": results},
    ]
    made = rewritten(given)["messages"]
    assert marked == [
        at
        for at, one in enumerate(made)
        if any("cache_control" in block for block in one["content"])
    ]


def test_automatic_caching_takes_one_of_the_four():
    given = document(cache_control=SHORT)
    given["system"] = [said("a", cache_control=SHORT), said("b", cache_control=SHORT)]
    assert len(controls(rewritten(given))) == 3


@pytest.mark.parametrize(("first", "second", "ours"), [(LONG, LONG, LONG), (LONG, SHORT, SHORT)])
def test_none_of_ours_lives_longer_than_one_before_it(first, second, ours):
    given = document(system=[said("a", cache_control=first), said("b", cache_control=second)])
    assert [one for where, one in controls(rewritten(given)) if where == "messages"] == [ours] * 2


@pytest.mark.parametrize("fixed", [[], [LONG]])
@pytest.mark.parametrize("automatic", [SHORT, LONG])
def test_with_automatic_caching_ours_live_as_long_as_its_own(automatic, fixed):
    system = [said("a"), *(said("b", cache_control=one) for one in fixed)]
    given = document(system=system, cache_control=automatic)
    ours = [one for where, one in controls(rewritten(given)) if where == "messages"]
    assert ours == [automatic] * 2


def test_a_thought_carries_no_breakpoint():
    given = document()
    given["messages"] = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": [said("x"), {"type": "thinking", "thinking": "h",
                                                      "signature": "s"}]},
    ]  # fmt: skip
    request = anthropic.parse_request(json.dumps(given).encode())
    plan = Plan(2, PromptState(), 0, (), frozenset({"none"}))
    made = json.loads(anthropic.rewrite_request(request, plan, PromptAdditions()))
    assert "cache_control" in made["messages"][1]["content"][0]
    assert "cache_control" not in made["messages"][1]["content"][1]


def test_a_beginning_that_nothing_tells_of_is_said_to_be_left_out():
    request = anthropic.parse_request(json.dumps(document()).encode())
    made = json.loads(
        anthropic.rewrite_request(request, Plan(4, PromptState(), 6), PromptAdditions())
    )
    assert "left out" in made["messages"][0]["content"][-1]["text"]


def test_blocks_that_nobody_knows_are_neither_lost_nor_changed():
    strange = {"type": "hologram", "data": {"a": [1, 2]}, "cache_control": SHORT}
    given = document()
    given["messages"][-1]["content"] = [said("third"), strange]
    request = anthropic.parse_request(json.dumps(given).encode())
    assert [block.kind for block in request.dialogue.entries[-1].blocks] == ["text", "other"]
    made = json.loads(
        anthropic.rewrite_request(request, Plan(1, PromptState(), 6), PromptAdditions())
    )
    assert made["messages"][-1]["content"][-1] == {"type": "hologram", "data": {"a": [1, 2]}}


FOUND = {"type": "tool_reference", "tool_name": "send"}
GONE = {"type": "tool_reference", "tool_name": "gone"}
SEARCHES: list[list[Json]] = [
    [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "ToolSearch", "input": {}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [FOUND]}],
        },
    ],
    [
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": "t1", "name": "tool_search", "input": {}},
                {
                    "type": "tool_search_tool_result",
                    "tool_use_id": "t1",
                    "content": {
                        "type": "tool_search_tool_search_result",
                        "tool_references": [FOUND],
                    },
                },
            ],
        }
    ],
]


def searching(search: list[Json]) -> Json:
    """Return a talk in which a tool is found at its beginning and called at its end."""
    call = {"type": "tool_use", "id": "t9", "name": "send", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t9", "content": "sent"}
    tools = [
        {"name": "ToolSearch", "input_schema": {"type": "object"}},
        {"name": "send", "input_schema": {"type": "object"}, "defer_loading": True},
    ]
    messages = [
        {"role": "user", "content": "Find a tool."},
        *search,
        {"role": "assistant", "content": "There it is."},
        {"role": "user", "content": "Send it."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    return document(tools=tools, messages=messages)


@pytest.mark.parametrize("search", SEARCHES, ids=["client's", "API's"])
def test_a_tool_that_was_loaded_stays_so_when_its_search_goes(search):
    given = searching(search)
    made = rewritten(given, start=len(search) + 2)
    assert json.dumps(made).count("tool_reference") == json.dumps(search).count("tool_reference")
    assert "Find a tool." not in json.dumps(made)


def test_a_tool_that_is_no_more_is_not_loaded():
    given = searching(SEARCHES[0])
    search = json.loads(json.dumps(SEARCHES[0]))
    search[0]["content"][0]["id"] = search[1]["content"][0]["tool_use_id"] = "t2"
    search[1]["content"][0]["content"] = [GONE, FOUND]
    given["messages"][3:3] = search
    made = rewritten(given, start=6)
    loads = [block for one in made["messages"] for block in one["content"] if _loads(block)]
    assert [one["content"] for one in loads] == [[FOUND]]


def test_a_search_that_loads_tools_is_not_annotated():
    given = searching(SEARCHES[0])
    request = anthropic.parse_request(json.dumps(given).encode())
    plan = Plan(2, PromptState(), 0, (), frozenset({"t1"}))
    made = json.loads(
        anthropic.rewrite_request(request, plan, PromptAdditions(annotate=lambda _: "[a result]"))
    )
    check_request("anthropic", made)


def _loads(block: Json) -> bool:
    return block["type"] == "tool_result" and "tool_reference" in json.dumps(block)
