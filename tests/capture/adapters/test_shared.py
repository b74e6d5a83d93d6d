"""Real transcripts: what a plain walk over the JSON finds is what the adapter tells, in order."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from lore.capture.adapter_protocol import Context
from lore.capture.adapters import claude_code, codex
from lore.records import NewMessage
from tests.capture.adapters.samples import NO_SHARED, shared, shared_lines, told

CLAUDE = shared("[es]*.jsonl.gz")
pytestmark = pytest.mark.skipif(not CLAUDE, reason=NO_SHARED)


def walked(lines: Iterable[bytes]) -> list[tuple[Any, ...]]:
    """Return what was said, found without any part of the adapter."""
    found: list[tuple[Any, ...]] = []
    queued: list[str] = []
    removed: list[str] = []
    for line in map(json.loads, lines):
        if line.get("operation") == "enqueue" and not line["content"].startswith("<"):
            queued.append(line["content"])
        elif line.get("operation") == "remove":
            removed.append(queued.pop(0))
        elif line["type"] == "assistant":
            found += [("typed", text) for text in removed]
            removed.clear()
        if line["type"] not in ("user", "assistant") or line.get("isApiErrorMessage"):
            continue
        if line["message"].get("model") == "<synthetic>":
            continue
        content = line["message"]["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for block in content:
            found += _walked(line, block)
    return found


def _walked(line: dict[str, Any], block: dict[str, Any]) -> list[tuple[Any, ...]]:
    kind = block["type"]
    if kind == "text" and block["text"].strip():
        if line["type"] == "assistant":
            return [("said", block["text"])]
        return [("typed", block["text"])] if _typed(line, block["text"]) else []
    if kind == "thinking" and block["thinking"].strip():
        return [("thought", block["thinking"])]
    if kind == "tool_use":
        return [("called", block["name"], block["id"])]
    if kind == "tool_result":
        return [("result", block["tool_use_id"], bool(block.get("is_error")))]
    return []


def _typed(line, text):
    flags = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
    if any(line.get(flag) for flag in flags):
        return False
    return not text.startswith(("<", "[Request interrupted", "Caveat: ", "Your task is to create"))


def heard(messages: Iterable[NewMessage]) -> list[tuple[Any, ...]]:
    """Return what the adapter told, in the words of the walk."""
    found: list[tuple[Any, ...]] = []
    for message in messages:
        for part in message.parts:
            if part.kind == "text" and message.role == "assistant":
                found.append(("said", part.text))
            elif part.kind == "text" and message.parts[0].kind == "text":
                found.append(("typed", part.text))
            elif part.kind == "reasoning":
                found.append(("thought", part.text))
            elif part.kind == "tool_call":
                found.append(("called", part.name, part.call_id))
            elif part.kind == "tool_result":
                found.append(("result", part.call_id, part.failed))
    return found


@pytest.mark.parametrize("path", CLAUDE, ids=lambda path: path.name)
def test_every_message_is_read_once_and_in_order(path):
    lines = shared_lines(path)
    messages, _ = told(claude_code, map(json.loads, lines))
    assert heard(messages) == walked(lines)
    assert len({message.key for message in messages}) == len(messages)


@pytest.mark.parametrize("path", CLAUDE, ids=lambda path: path.name)
def test_usage_adds_up_to_the_last_that_each_message_had(path):
    lines = [json.loads(line) for line in shared_lines(path)]
    last = {}
    for line in lines:
        message = line.get("message") or {}
        said = [block for block in message.get("content") or [] if _leaves_something(block)]
        if line["type"] == "assistant" and not line.get("isApiErrorMessage") and said:
            last[message["id"]] = message["usage"]["output_tokens"]
    messages, _ = told(claude_code, lines)
    assert sum(m.usage.get("output_tokens", 0) for m in messages) == sum(last.values())


def _leaves_something(block):
    return isinstance(block, dict) and (block.get("text", "x").strip() != "")


@pytest.mark.parametrize("path", CLAUDE, ids=lambda path: path.name)
def test_no_kind_of_line_is_unknown(path):
    context = Context()
    for line in map(json.loads, shared_lines(path)):
        answer = claude_code.parse_line(line, context)
        context = answer.context
        assert answer.unknown == ""


@pytest.mark.parametrize("path", shared("codex*.jsonl.gz"), ids=lambda path: path.name)
def test_a_record_of_the_screen_of_codex_is_no_rollout_and_does_no_harm(path):
    lines = shared_lines(path)
    messages, _ = told(codex, map(json.loads, lines))
    assert messages == []
    assert not codex.fits(path.with_suffix(""), b"\n".join(lines)[:65_536])
