"""Conversations in the format of Anthropic's Messages, as clients send them."""

from __future__ import annotations

import json
from typing import Any

from tests.gateway.apis.conversations import PLAIN, Form, Step, Talk, Turn
from tests.upstream.anthropic import text_of
from tests.upstream.apis import check_request
from tests.upstream.prompt_cache import content_blocks, prompt_blocks
from tests.upstream.script import sign

Json = dict[str, Any]
REMINDER = "<system-reminder>\nThe date has changed.\n</system-reminder>"
PICTURE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
}


def body(talk: Talk, form: Form = PLAIN, **more: object) -> bytes:
    """Write a request."""
    system: list[Json] = [{"type": "text", "text": "You are an agent."}]
    tools: list[Json] = [
        {"name": name, "description": "A tool.", "input_schema": {"type": "object"}}
        for name in ("Read", "Bash", "Edit")
    ]
    messages = messages_of(talk, form)
    if form.marked:
        system[-1]["cache_control"] = {"type": "ephemeral"}
        tools[-1]["cache_control"] = {"type": "ephemeral"}
        mark_last(messages)
    document = {
        "model": "claude-test",
        "max_tokens": 100,
        "system": system,
        "tools": tools,
        "messages": messages,
        "unheard_of": {"kept": True},
        **more,
    }
    return json.dumps(document).encode()


def messages_of(talk: Talk, form: Form) -> list[Json]:
    messages: list[Json] = []
    for turn in talk.turns:
        messages += turn_of(turn, form)
    return messages


def turn_of(turn: Turn, form: Form) -> list[Json]:
    blocks: list[Json] = [{"type": "text", "text": turn.prompt}]
    if turn.picture:
        blocks.append(PICTURE)
    if form.reminds:
        blocks.insert(0, {"type": "text", "text": REMINDER})
    messages = [{"role": "user", "content": blocks}]
    if form.as_text and len(blocks) == 1:
        messages[0]["content"] = turn.prompt
    if turn.aside:
        messages.append({"role": "system", "content": turn.aside})
    for step in turn.steps:
        messages += step_of(step, form)
    return messages


def step_of(step: Step, form: Form) -> list[Json]:
    said: list[Json] = []
    if step.thought and form.thinks:
        signature = sign(step.thought)
        said.append({"type": "thinking", "thinking": step.thought, "signature": signature})
    if step.text:
        said.append({"type": "text", "text": step.text})
    said += [
        {"type": "tool_use", "id": use.id, "name": use.tool, "input": use.given}
        for use in step.uses
    ]
    messages: list[Json] = [{"role": "assistant", "content": said}]
    if form.as_text and len(said) == 1 and step.text:
        messages = [{"role": "assistant", "content": step.text}]
    if step.uses:
        results = [result_of(use, form) for use in step.uses]
        if form.reverse_results:
            results.reverse()
        messages.append({"role": "user", "content": results})
        if step.aside:
            messages.append({"role": "system", "content": step.aside})
    return messages


def result_of(use: Any, form: Form) -> Json:
    content = use.result if form.as_text else [{"type": "text", "text": use.result}]
    result = {"type": "tool_result", "tool_use_id": use.id, "content": content}
    return {**result, "is_error": True} if use.failed else result


def mark_last(messages: list[Json]) -> None:
    for one in reversed(messages):
        if one["role"] != "system":
            if isinstance(one["content"], str):
                one["content"] = [{"type": "text", "text": one["content"]}]
            one["content"][-1] = {**one["content"][-1], "cache_control": {"type": "ephemeral"}}
            return


def check(sent: bytes) -> None:
    """Raise `Rejected` where the service would."""
    check_request("anthropic", json.loads(sent))


def parts(sent: bytes) -> list[str]:
    """Return what a cache compares, in order: tools, system and messages, block by block."""
    return [block.text for block in prompt_blocks(json.loads(sent))]


def stable(sent: bytes) -> int:
    """Return how many parts reach to the last breakpoint."""
    blocks = enumerate(prompt_blocks(json.loads(sent)), 1)
    return max((number for number, block in blocks if block.ttl), default=0)


def pairs(sent: bytes) -> tuple[list[str], dict[str, str]]:
    """Return the ids of all calls, and the results by their calls."""
    blocks = [
        block for one in json.loads(sent)["messages"] for block in content_blocks(one["content"])
    ]
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    results = [block for block in blocks if block["type"] == "tool_result"]
    return calls, {one["tool_use_id"]: text_of(one["content"]) for one in results}


def first_voice(sent: bytes) -> str:
    return str(json.loads(sent)["messages"][0]["role"])


def unmarked(talk: Talk) -> int:
    """Return how many parts of a request stand behind the last place for a breakpoint."""
    turn = talk.turns[-1]
    return bool(turn.steps[-1].aside if turn.steps else turn.aside)
