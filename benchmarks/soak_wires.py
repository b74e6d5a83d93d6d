"""How agents of a soak speak: three formats, each with its own history and its own events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Json = dict[str, Any]
Results = Sequence[tuple[str, str]]
"""The id of each call, and what came of it."""


def events(answer: bytes) -> Iterator[Json]:
    """Yield the events of a stream."""
    for line in answer.decode().splitlines():
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line[6:])


class Messages:
    """Anthropic's Messages, as Claude Code speaks it."""

    path, model, agent = "/v1/messages", "claude-sonnet-4-5", "claude-code"

    def __init__(self, session: str, project: str, tools: Sequence[str]) -> None:
        self.session = session
        self.history: list[Json] = []
        self.last_id = ""
        self._system = system(project)
        self._tools = [{"name": name, "input_schema": {"type": "object"}} for name in tools]

    def headers(self) -> dict[str, str]:
        """Return what names the session."""
        return {"x-claude-code-session-id": self.session, "anthropic-version": "2023-06-01"}

    def body(self) -> Json:
        """Return the request, with breakpoints where Claude Code sets them."""
        cached = {"cache_control": {"type": "ephemeral"}}
        last = self.history[-1]
        marked = {**last, "content": [*last["content"][:-1], {**last["content"][-1], **cached}]}
        return {
            "model": self.model,
            "max_tokens": 4_000,
            "stream": True,
            "thinking": {"type": "adaptive"},
            "system": [{"type": "text", "text": self._system, **cached}],
            "tools": self._tools,
            "messages": [*self.history[:-1], marked],
        }

    def prompt(self, text: str, given: str = "") -> None:
        """Say something; `given` is what a hook put beside it."""
        content = [{"type": "text", "text": text}]
        if given:
            told = f"UserPromptSubmit hook additional context: {given}"
            reminder = f"<system-reminder>\n{told}\n</system-reminder>"
            content.append({"type": "text", "text": reminder})
        self.history.append({"role": "user", "content": content})

    def give(self, results: Results) -> None:
        """Tell what came of calls."""
        content = [
            {"type": "tool_result", "tool_use_id": name, "content": output}
            for name, output in results
        ]
        self.history.append({"role": "user", "content": content})

    def hear(self, answer: bytes) -> list[str]:
        """Take an answer into the history, and return the ids of its calls."""
        blocks: list[Json] = []
        written: dict[int, str] = {}
        for event in events(answer):
            kind = event["type"]
            if kind == "message_start":
                self.last_id = event["message"]["id"]
            elif kind == "content_block_start":
                blocks.append(dict(event["content_block"]))
            elif kind == "content_block_delta":
                _grow(blocks[event["index"]], event["delta"], written, event["index"])
        for number, block in enumerate(blocks):
            if block["type"] == "tool_use":
                block["input"] = json.loads(written.get(number) or "{}")
        self.history.append({"role": "assistant", "content": blocks})
        return [block["id"] for block in blocks if block["type"] == "tool_use"]

    def is_prompt(self, at: int) -> bool:
        """Tell whether a person typed what stands there."""
        one = self.history[at]
        return bool(one["role"] == "user" and one["content"][0]["type"] == "text")


def _grow(block: Json, delta: Json, written: dict[int, str], number: int) -> None:
    match delta["type"]:
        case "text_delta":
            block["text"] += delta["text"]
        case "thinking_delta":
            block["thinking"] += delta["thinking"]
        case "signature_delta":
            block["signature"] += delta["signature"]
        case "input_json_delta":
            written[number] = written.get(number, "") + delta["partial_json"]


class Responses:
    """OpenAI's Responses, as Codex speaks it."""

    path, model, agent = "/v1/responses", "gpt-5", "codex"

    def __init__(self, session: str, project: str, tools: Sequence[str]) -> None:
        self.session = session
        self.history: list[Json] = []
        self._system = system(project)
        self._tools = [
            {"type": "function", "name": name, "parameters": {"type": "object"}} for name in tools
        ]

    def headers(self) -> dict[str, str]:
        """Return what names the session."""
        return {"originator": "codex_cli_rs", "session-id": self.session}

    def body(self) -> Json:
        """Return the request."""
        return {
            "model": self.model,
            "stream": True,
            "store": False,
            "instructions": self._system,
            "tools": self._tools,
            "input": self.history,
        }

    def prompt(self, text: str, given: str = "") -> None:  # noqa: ARG002 - it has no hooks
        """Say something."""
        content = [{"type": "input_text", "text": text}]
        self.history.append({"type": "message", "role": "user", "content": content})

    def give(self, results: Results) -> None:
        """Tell what came of calls."""
        self.history += [
            {"type": "function_call_output", "call_id": name, "output": output}
            for name, output in results
        ]

    def hear(self, answer: bytes) -> list[str]:
        """Take an answer into the history, and return the ids of its calls."""
        done = [one for one in events(answer) if one.get("type") == "response.completed"]
        items = done[0]["response"]["output"]
        self.history += items
        return [item["call_id"] for item in items if item["type"] == "function_call"]

    def is_prompt(self, at: int) -> bool:
        """Tell whether a person typed what stands there."""
        return self.history[at].get("role") == "user"


class Completions:
    """OpenAI's chat completions, as opencode speaks it."""

    path, model, agent = "/v1/chat/completions", "gpt-4.1", "opencode"

    def __init__(self, session: str, project: str, tools: Sequence[str]) -> None:
        self.session = session
        self.history: list[Json] = []
        self._system = system(project)
        self._tools = [
            {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
            for name in tools
        ]

    def headers(self) -> dict[str, str]:
        """Return what names the session."""
        return {"user-agent": "opencode/1.0.0", "x-session-id": self.session}

    def body(self) -> Json:
        """Return the request."""
        head = {"role": "system", "content": self._system}
        return {
            "model": self.model,
            "stream": True,
            "stream_options": {"include_usage": True},
            "tools": self._tools,
            "messages": [head, *self.history],
        }

    def prompt(self, text: str, given: str = "") -> None:  # noqa: ARG002 - it has no hooks
        """Say something."""
        self.history.append({"role": "user", "content": text})

    def give(self, results: Results) -> None:
        """Tell what came of calls."""
        self.history += [
            {"role": "tool", "tool_call_id": name, "content": output} for name, output in results
        ]

    def hear(self, answer: bytes) -> list[str]:
        """Take an answer into the history, and return the ids of its calls."""
        words, calls = "", list[Json]()
        for event in events(answer):
            for choice in event["choices"]:
                delta: Mapping[str, Any] = choice["delta"]
                words += delta.get("content") or ""
                for part in delta.get("tool_calls") or ():
                    if "id" in part:
                        calls.append({**part, "function": dict(part["function"])})
                        calls[-1].pop("index")
                    else:
                        calls[-1]["function"]["arguments"] += part["function"]["arguments"]
        message: Json = {"role": "assistant", "content": words or None}
        self.history.append({**message, **({"tool_calls": calls} if calls else {})})
        return [call["id"] for call in calls]

    def is_prompt(self, at: int) -> bool:
        """Tell whether a person typed what stands there."""
        return bool(self.history[at]["role"] == "user")


class Unnamed(Completions):
    """The same, from a program that does not name its conversations."""

    agent = "gateway"

    def headers(self) -> dict[str, str]:
        """Return nothing that names it."""
        return {"user-agent": "python-httpx"}


Wire = Messages | Responses | Completions

_RULES = "Be exact. Read before you write. Keep changes small and run what you have changed. " * 40


def system(project: str) -> str:
    """Return what an agent tells its model first."""
    return f"You are a coding agent.\nWorking directory: {project}\n{_RULES}"
