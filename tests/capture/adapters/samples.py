"""Small transcripts by hand, one of each kind, and those that are shared where they are."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from lore.capture.adapter_protocol import Context, LineAdapter
from lore.capture.message_capture import prepare
from lore.records import NewMessage

SHARED = Path(__file__).parents[4] / "shared" / "bench" / "transcripts"
NO_SHARED = "the shared transcripts are not there"
SESSION = "11111111-2222-3333-4444-555555555555"
TIME = "2026-05-04T10:00:00.000Z"


def shared(pattern: str) -> list[Path]:
    return sorted(SHARED.glob(pattern))


def shared_lines(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines()


def claude_line(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    """One line of Claude Code, as the program writes it."""
    message: dict[str, Any] = {"role": kind, "content": content}
    message |= more.pop("message", {})
    return {
        "parentUuid": None, "isSidechain": False, "userType": "external", "cwd": "/code/almanac",
        "sessionId": SESSION, "version": "2.1.197", "gitBranch": "trunk", "type": kind,
        "message": message, "uuid": "u1", "timestamp": TIME, **more,
    }  # fmt: skip


def codex_line(kind: str, **payload: Any) -> dict[str, Any]:
    """One line of a rollout."""
    return {"timestamp": TIME, "type": kind, "payload": payload}


def codex_item(kind: str, **payload: Any) -> dict[str, Any]:
    """One item of a rollout."""
    return codex_line("response_item", type=kind, **payload)


def told(adapter: LineAdapter, lines: Iterable[Any], context: Context | None = None):
    """Return the messages of some lines, all of them fit to be stored, and the last context."""
    context = context or Context(session="s")
    messages: list[NewMessage] = []
    for line in lines:
        answer = adapter.parse_line(line, context)
        context = answer.context
        messages += answer.messages
    for message in messages:
        assert message.key
        prepare(message)
    return messages, context


def shapes(messages: Iterable[NewMessage]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return messages as their roles, and kinds and texts of their parts."""
    return [(each.role, [(part.kind, part.text) for part in each.parts]) for each in messages]


CLAUDE = [
    {"type": "summary", "summary": "Dates", "leafUuid": "other"},
    claude_line("user", "Please mend the dates.", uuid="u1"),
    claude_line(
        "assistant",
        [{"type": "thinking", "thinking": "Swapped.", "signature": "c2ln"}],
        uuid="u2",
        message={"id": "m1", "model": "opus", "usage": {"input_tokens": 9, "output_tokens": 1}},
    ),
    claude_line(
        "assistant",
        [{"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/code/a.py"}}],
        uuid="u3",
        message={"id": "m1", "model": "opus", "usage": {"input_tokens": 9, "output_tokens": 7}},
    ),
    claude_line(
        "user",
        [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "x"}]}],
        uuid="u4",
        toolUseResult={"file": {"filePath": "/code/a.py"}},
    ),
    claude_line("assistant", [{"type": "text", "text": "Mended."}], uuid="u5"),
    {"type": "attachment", "attachment": {"type": "hook_success", "stdout": "ok"}, "uuid": "u6"},
    {"type": "system", "subtype": "local_command", "content": "<command-name>/x</command-name>"},
    {"type": "progress", "data": {"type": "bash_progress"}},
    {"type": "custom-title", "customTitle": "Days first", "sessionId": SESSION},
]

CODEX = [
    codex_line(
        "session_meta",
        id=SESSION,
        cwd="/code/almanac",
        cli_version="0.166.0",
        git={"branch": "trunk"},
        source={"subagent": {"thread_spawn": {"parent_thread_id": "p"}}},
    ),
    codex_line("turn_context", model="gpt-5.5", cwd="/code/almanac"),
    codex_item("message", role="user", content=[{"type": "input_text", "text": "Count."}]),
    codex_item("reasoning", summary=[{"type": "summary_text", "text": "Grep."}], content=None),
    codex_item("function_call", name="shell", arguments='{"command":["ls"]}', call_id="c1"),
    codex_item("function_call_output", call_id="c1", output='{"output":"a","metadata":{}}'),
    codex_item("custom_tool_call", name="apply_patch", input="*** Add File: a.py", call_id="c2"),
    codex_item("custom_tool_call_output", call_id="c2", output="Exit code: 1\nOutput:\n"),
    codex_item("web_search_call", action={"type": "search", "query": "dates"}),
    codex_item("message", role="assistant", content=[{"type": "output_text", "text": "One."}]),
    codex_line("compacted", message="So far."),
    codex_line("event_msg", type="thread_name_updated", thread_name="Counting"),
]

GENERIC = [
    {"role": "user", "content": "Hello", "time": 1_770_000_000, "id": "a", "session": "s1"},
    {"role": "assistant", "content": [{"type": "text", "text": "Hi"}], "model": "m"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "function": {"name": "web_search", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "found"},
    {"messages": [{"role": "human", "text": "One more"}], "title": "More"},
]

CHATGPT = {
    "title": "Days", "create_time": 1_770_000_000.5, "conversation_id": "c1", "current_node": "4",
    "mapping": {
        "0": {"id": "0", "message": None, "parent": None, "children": ["1"]},
        "1": {"id": "1", "parent": "0", "children": ["2", "3"], "message": {
            "id": "m1", "author": {"role": "user"}, "create_time": 1_770_000_001,
            "content": {"content_type": "multimodal_text", "parts": [
                {"content_type": "image_asset_pointer", "asset_pointer": "file-service://f"},
                "What is this?"]}}},
        "2": {"id": "2", "parent": "1", "children": [], "message": {
            "id": "m2", "author": {"role": "assistant"}, "recipient": "all",
            "content": {"content_type": "text", "parts": ["A calendar."]},
            "metadata": {"model_slug": "gpt-5"}}},
        "3": {"id": "3", "parent": "1", "children": ["4"], "message": {
            "id": "m3", "author": {"role": "assistant"}, "recipient": "python",
            "content": {"content_type": "code", "text": "print(1)"}}},
        "4": {"id": "4", "parent": "3", "children": [], "message": {
            "id": "m4", "author": {"role": "tool", "name": "python"},
            "content": {"content_type": "execution_output", "text": "1"}}},
    },
}  # fmt: skip

CLAUDE_AI = {
    "uuid": "c1", "name": "Days", "created_at": TIME,
    "chat_messages": [
        {"uuid": "m1", "sender": "human", "created_at": TIME, "text": "Look.",
         "content": [{"type": "text", "text": "Look."}],
         "attachments": [{"file_name": "a.txt", "extracted_content": "words"}],
         "files": [{"file_name": "b.png"}]},
        {"uuid": "m2", "sender": "assistant", "created_at": TIME, "text": "",
         "content": [{"type": "thinking", "thinking": "Hm."},
                     {"type": "tool_use", "id": "t", "name": "web_search", "input": {"q": "x"}},
                     {"type": "tool_result", "tool_use_id": "t", "content": [{"text": "page"}]},
                     {"type": "text", "text": "Done."}]},
    ],
}  # fmt: skip

TRAJECTORY = {
    "environment": "swe_main",
    "history": [
        {"role": "system", "content": "SETTING"},
        {"role": "user", "content": "A demonstration", "is_demo": True},
        {"role": "user", "content": "Mend the bug."},
        {"role": "assistant", "content": "Look.\n```\nls\n```", "thought": "Look.", "action": "ls"},
        {"role": "user", "content": "a.py"},
    ],
}

OPENCODE = [
    ({"role": "user", "time": {"created": 1_770_000_000_000}}, [
        {"type": "text", "text": "Mend it."},
        {"type": "text", "text": "Called the read tool.", "synthetic": True},
        {"type": "file", "mime": "image/png", "filename": "p.png", "url": "data:;base64,AA"},
    ]),
    ({"role": "assistant", "modelID": "script",
      "time": {"created": 1_770_000_001_000, "completed": 2},
      "tokens": {"input": 3, "output": 2, "cache": {"read": 1, "write": 0}}}, [
        {"type": "step-start"},
        {"type": "reasoning", "text": "Hm.", "time": {"start": 1_770_000_001_500}},
        {"type": "text", "text": "I look."},
        {"type": "tool", "tool": "read", "callID": "c1", "state": {
            "status": "completed", "input": {"filePath": "/code/a.py"}, "output": "x",
            "metadata": {}, "time": {"start": 1_770_000_002_000, "end": 1_770_000_003_000}}},
        {"type": "tool", "tool": "bash", "callID": "c2", "state": {
            "status": "error", "input": {"command": "ls"}, "error": "no", "time": {}}},
        {"type": "patch", "files": ["/code/b.py"]},
        {"type": "novelty", "shape": 3},
    ]),
]  # fmt: skip


def dumped(*lines: Any) -> bytes:
    return b"\n".join(orjson.dumps(line) for line in lines)
