"""What the transcripts hold, read without Lore: as much of the formats as comparing needs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.clients.conversation import Conversation, Event, Kind

Json = dict[str, Any]


def lines(path: Path) -> Iterator[Json]:
    for line in path.read_text("utf-8").splitlines():
        yield json.loads(line)


def joined(content: object) -> str:
    """Put together the texts of a content that is a text or a list of blocks."""
    if isinstance(content, list):
        return "\n".join(str(block.get("text", "")) for block in content)
    return str(content)


def read_claude_code(folder: Path) -> list[Conversation]:
    """Read the sessions of Claude Code and their subagents."""
    conversations = []
    for path in sorted((folder / ".claude").rglob("*.jsonl")):
        subagent = path.parent.name == "subagents"
        session = path.parent.parent.name if subagent else path.stem
        conversation = Conversation(session, path.stem.removeprefix("agent-") if subagent else "")
        for line in lines(path):
            conversation.events += claude_code_events(line, subagent=subagent)
        conversations.append(conversation)
    return conversations


def claude_code_events(line: Json, *, subagent: bool) -> list[Event]:
    if line["type"] not in ("user", "assistant") or line["message"].get("model") == "<synthetic>":
        return []
    content = line["message"]["content"]
    if isinstance(content, str):
        spoken = "promptSource" in line or subagent
        return [Event("prompt", content)] if spoken else []
    events = []
    for block in content:
        if block["type"] == "tool_result":
            failed = bool(block.get("is_error"))
            text = joined(block["content"])
            events.append(Event("result", text, call_id=block["tool_use_id"], failed=failed))
        elif line["type"] == "user":
            continue
        elif block["type"] == "tool_use":
            events.append(
                Event("call", call_id=block["id"], name=block["name"], input=block["input"])
            )
        else:
            events.append(Event(block["type"], block[block["type"]]))
    return events


def read_codex(folder: Path) -> list[Conversation]:
    """Read the threads of Codex."""
    conversations = []
    for path in sorted(folder.rglob("rollout-*.jsonl")):
        head, *rest = lines(path)
        session, thread = head["payload"]["session_id"], head["payload"]["id"]
        conversation = Conversation(session, "" if thread == session else thread)
        for line in rest:
            conversation.events += codex_events(line["type"], line["payload"])
        conversations.append(conversation)
    return conversations


def codex_events(kind: str, payload: Json) -> list[Event]:
    """Read a line; messages from the items, for response items are boot files and summaries too."""
    item = payload.get("item") or {}
    spoken: dict[str, Kind] = {"UserMessage": "prompt", "AgentMessage": "text"}
    if kind == "event_msg" and item.get("type") in spoken:
        return [Event(spoken[item["type"]], joined(item["content"]))]
    if kind != "response_item":
        return []
    call_id = payload.get("call_id", "")
    if payload["type"] == "reasoning":
        return [Event("thinking", joined(payload["summary"]))]
    if payload["type"] in ("function_call", "custom_tool_call"):
        given = payload["input"] if "input" in payload else json.loads(payload["arguments"])
        return [Event("call", call_id=call_id, name=payload["name"], input=given)]
    if payload["type"] in ("function_call_output", "custom_tool_call_output"):
        return [Event("result", joined(payload["output"]), call_id=call_id)]
    return []


def read_opencode(folder: Path) -> list[Conversation]:
    """Read the sessions of opencode out of its database."""
    (path,) = folder.rglob("opencode.db")
    db = sqlite3.connect(path)
    conversations = []
    for session, parent in db.execute("SELECT id, parent_id FROM session ORDER BY id").fetchall():
        conversation = Conversation(parent, session) if parent else Conversation(session)
        rows = db.execute(
            "SELECT m.data, p.data FROM message m JOIN part p ON p.message_id = m.id "
            "WHERE m.session_id = ? ORDER BY m.id, p.id",
            (session,),
        )
        for message, part in rows:
            conversation.events += opencode_events(json.loads(message), json.loads(part))
        conversations.append(conversation)
    db.close()
    return conversations


def opencode_events(message: Json, part: Json) -> list[Event]:
    if message.get("summary") is True:
        return []
    if part["type"] == "text":
        return [Event("prompt" if message["role"] == "user" else "text", part["text"])]
    if part["type"] == "reasoning":
        return [Event("thinking", part["text"])]
    if part["type"] != "tool":
        return []
    state, call_id = part["state"], part["callID"]
    name, given = part["tool"], state["input"]
    if name == "invalid":
        name, given = given["tool"], None  # opencode does not keep the input of an unknown tool
    failed = state["status"] == "error"
    text = state["error"] if failed else state["output"]
    return [
        Event("call", call_id=call_id, name=name, input=given),
        Event("result", text, call_id=call_id, failed=failed),
    ]


READERS = {"claude-code": read_claude_code, "codex": read_codex, "opencode": read_opencode}
