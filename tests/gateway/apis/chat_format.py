"""Conversations in the format of OpenAI's Chat Completions, as clients send them."""

from __future__ import annotations

import json
from typing import Any

from tests.gateway.apis.anthropic_format import REMINDER
from tests.gateway.apis.conversations import PLAIN, Form, Step, Talk, Turn
from tests.upstream.apis import check_request

Json = dict[str, Any]
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def body(talk: Talk, form: Form = PLAIN, **more: object) -> bytes:
    """Write a request."""
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
        for name in ("Read", "Bash", "Edit")
    ]
    messages: list[Json] = [{"role": "system", "content": "You are an agent."}]
    for turn in talk.turns:
        messages += turn_of(turn, form)
    document = {"model": "gpt-test", "messages": messages, "tools": tools}
    return json.dumps({**document, "unheard_of": {"kept": True}, **more}).encode()


def turn_of(turn: Turn, form: Form) -> list[Json]:
    parts: list[Json] = [{"type": "text", "text": turn.prompt}]
    if turn.picture:
        parts.append(PICTURE)
    if form.reminds:
        parts.insert(0, {"type": "text", "text": REMINDER})
    said: Any = turn.prompt if form.as_text and len(parts) == 1 else parts
    messages: list[Json] = [{"role": "user", "content": said}]
    if turn.aside:
        messages.append({"role": "system", "content": turn.aside})
    for step in turn.steps:
        messages += step_of(step, form)
    return messages


def step_of(step: Step, form: Form) -> list[Json]:
    message: Json = {"role": "assistant", "content": step.text or None}
    if step.thought and form.thinks:
        message["reasoning_content"] = step.thought
    if not step.uses:
        return [message]
    message["tool_calls"] = [
        {
            "id": use.id,
            "type": "function",
            "function": {"name": use.tool, "arguments": json.dumps(use.given)},
        }
        for use in step.uses
    ]
    results: list[Json] = [
        {
            "role": "tool",
            "tool_call_id": use.id,
            "content": use.result if form.as_text else [{"type": "text", "text": use.result}],
        }
        for use in step.uses
    ]
    if form.reverse_results:
        results.reverse()
    if step.aside:
        results.append({"role": "system", "content": step.aside})
    return [message, *results]


def check(sent: bytes) -> None:
    """Raise `Refused` where the service would."""
    check_request("chat", json.loads(sent))


def parts(sent: bytes) -> list[str]:
    """Return what a cache compares, in order."""
    document = json.loads(sent)
    return [json.dumps(document["tools"]), *map(json.dumps, document["messages"])]


def stable(sent: bytes) -> int:
    """Return how many parts are cached: all of them, unasked."""
    return len(parts(sent))


def unmarked(talk: Talk) -> int:
    return 0


def pairs(sent: bytes) -> tuple[list[str], dict[str, str]]:
    """Return the ids of all calls, and the results by their calls."""
    messages = json.loads(sent)["messages"]
    calls = [call["id"] for one in messages for call in one.get("tool_calls") or ()]
    results = {}
    for one in messages:
        if one["role"] == "tool":
            said = one["content"]
            results[one["tool_call_id"]] = said if isinstance(said, str) else said[0]["text"]
    return calls, results


def first_voice(sent: bytes) -> str:
    roles = [one["role"] for one in json.loads(sent)["messages"]]
    return str(next(one for one in roles if one != "system"))
