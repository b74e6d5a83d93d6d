"""Conversations in the format of OpenAI's Responses, as clients send them."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from tests.gateway.apis.anthropic_format import REMINDER
from tests.gateway.apis.conversations import PLAIN, Form, Step, Talk, Turn
from tests.upstream.apis import check_request
from tests.upstream.script import sign

Json = dict[str, Any]
PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}


def message(role: str, *texts: str) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": one} for one in texts]
    return {"type": "message", "role": role, "content": content}


def body(talk: Talk, form: Form = PLAIN, **more: object) -> bytes:
    """Write a request."""
    tools = [
        {"type": "function", "name": name, "parameters": {"type": "object"}}
        for name in ("Read", "Bash", "Edit")
    ]
    items: list[Json] = [message("developer", "You are an agent.")]
    for turn in talk.turns:
        items += turn_of(turn, form)
    document = {"model": "gpt-test", "input": items, "tools": tools, "store": False}
    return json.dumps({**document, "unheard_of": {"kept": True}, **more}).encode()


def turn_of(turn: Turn, form: Form) -> list[Json]:
    texts = [REMINDER, turn.prompt] if form.reminds else [turn.prompt]
    asked = message("user", *texts)
    if turn.picture:
        asked["content"].append(PICTURE)
    elif form.as_text and not form.reminds:
        asked["content"] = turn.prompt
    items = [asked]
    if turn.aside:
        items.append(message("developer", turn.aside))
    for step in turn.steps:
        items += step_of(step, form)
    return items


def step_of(step: Step, form: Form) -> list[Json]:
    items: list[Json] = []
    if step.thought and form.thinks:
        name = "rs_" + sha256(step.thought.encode()).hexdigest()[:12]
        summary = [{"type": "summary_text", "text": step.thought}]
        items.append({
            "type": "reasoning",
            "id": name,
            "summary": summary,
            "encrypted_content": sign(step.thought),
        })
    if step.text:
        items.append(message("assistant", step.text))
    items += [
        {
            "type": "function_call",
            "call_id": use.id,
            "name": use.tool,
            "arguments": json.dumps(use.given),
        }
        for use in step.uses
    ]
    results: list[Json] = [
        {"type": "function_call_output", "call_id": use.id, "output": use.result}
        for use in step.uses
    ]
    if form.reverse_results:
        results.reverse()
    if step.aside:
        results.append(message("developer", step.aside))
    return [*items, *results]


def check(sent: bytes) -> None:
    """Raise `Refused` where the service would."""
    check_request("responses", json.loads(sent))


def parts(sent: bytes) -> list[str]:
    """Return what a cache compares, in order."""
    document = json.loads(sent)
    return [json.dumps(document["tools"]), *map(json.dumps, document["input"])]


def stable(sent: bytes) -> int:
    """Return how many parts are cached: all of them, unasked."""
    return len(parts(sent))


def unmarked(talk: Talk) -> int:
    return 0


def pairs(sent: bytes) -> tuple[list[str], dict[str, str]]:
    """Return the ids of all calls, and the results by their calls."""
    items = json.loads(sent)["input"]
    calls = [one["call_id"] for one in items if one["type"] == "function_call"]
    outputs = [one for one in items if one["type"] == "function_call_output"]
    return calls, {one["call_id"]: one["output"] for one in outputs}


def first_voice(sent: bytes) -> str:
    items = json.loads(sent)["input"]
    return str(next(one.get("role") for one in items if one.get("role") != "developer"))
