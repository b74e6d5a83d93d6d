"""Conversations in the format of Gemini's generateContent, as clients send them."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from tests.gateway.apis.anthropic_format import REMINDER
from tests.gateway.apis.conversations import PLAIN, Form, Step, Talk, Turn
from tests.upstream.apis import check_request

Json = dict[str, Any]
PICTURE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}


def body(talk: Talk, form: Form = PLAIN, **more: object) -> bytes:
    """Write a request."""
    declared = [{"name": name, "parameters": {"type": "object"}} for name in ("Read", "Bash")]
    contents: list[Json] = []
    for turn in talk.turns:
        contents += turn_of(turn, form)
    document = {
        "systemInstruction": {"parts": [{"text": "You are an agent."}]},
        "contents": contents,
        "tools": [{"functionDeclarations": declared}],
        "unheard_of": {"kept": True},
        **more,
    }
    return json.dumps(document).encode()


def turn_of(turn: Turn, form: Form) -> list[Json]:
    parts: list[Json] = [{"text": turn.prompt}]
    if form.reminds:
        parts.insert(0, {"text": REMINDER})
    if turn.picture:
        parts.append(PICTURE)
    contents: list[Json] = [{"role": "user", "parts": parts}]
    for step in turn.steps:
        for content in step_of(step, form):
            if content["role"] == contents[-1]["role"]:
                contents[-1]["parts"] += content["parts"]
            else:
                contents.append(content)
    return contents


def step_of(step: Step, form: Form) -> list[Json]:
    parts: list[Json] = []
    if step.thought and form.thinks:
        parts.append({"text": step.thought, "thought": True})
    if step.text:
        parts.append({"text": step.text})
    for use in step.uses:
        call = {"id": use.id, "name": use.tool, "args": use.given}
        parts.append({"functionCall": call, "thoughtSignature": f"signed {use.id}"})
    contents: list[Json] = [{"role": "model", "parts": parts}]
    if step.uses:
        results: list[Json] = [
            {
                "functionResponse": {
                    "id": use.id,
                    "name": use.tool,
                    "response": {"output": use.result},
                }
            }
            for use in step.uses
        ]
        if form.reverse_results:
            results.reverse()
        contents.append({"role": "user", "parts": results})
    return contents


def check(sent: bytes) -> None:
    """Raise `Refused` where the service would; what alternates stays so."""
    document = json.loads(sent)
    check_request("gemini", document)
    assert all(a["role"] != b["role"] for a, b in pairwise(document["contents"]))


def parts(sent: bytes) -> list[str]:
    """Return what a cache compares, in order."""
    document = json.loads(sent)
    head = [document["tools"], document["systemInstruction"]]
    return [json.dumps(one) for one in (*head, *document["contents"])]


def stable(sent: bytes) -> int:
    """Return how many parts are cached: all of them, unasked."""
    return len(parts(sent))


def unmarked(talk: Talk) -> int:
    return 0


def pairs(sent: bytes) -> tuple[list[str], dict[str, str]]:
    """Return the ids of all calls, and the results by their calls."""
    parts = [part for one in json.loads(sent)["contents"] for part in one["parts"]]
    calls = [part["functionCall"]["id"] for part in parts if "functionCall" in part]
    results = [part["functionResponse"] for part in parts if "functionResponse" in part]
    return calls, {one["id"]: one["response"]["output"] for one in results}


def first_voice(sent: bytes) -> str:
    return str(json.loads(sent)["contents"][0]["role"])
