"""Any agent: JSON lines with a role and a content."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from lore import clock
from lore.capture.adapter_protocol import Context, ParsedLine
from lore.capture.adapters import content_blocks, injected_text, json_fields
from lore.capture.adapters.json_fields import as_counts, as_datetime, as_dict, as_list, as_text
from lore.records import NewMessage, Part, Role

agent = "generic"

_ROLES: dict[str, Role] = {
    "user": "user", "human": "user", "customer": "user",
    "assistant": "assistant", "ai": "assistant", "model": "assistant", "bot": "assistant",
    "agent": "assistant", "tool": "tool", "function": "tool", "system": "system",
    "developer": "system",
}  # fmt: skip
_TIMES = ("time", "timestamp", "created_at", "createdAt", "create_time", "date", "ts")
_IDS = ("id", "uuid", "key", "message_id")
_SESSIONS = ("session", "session_id", "sessionId", "conversation_id", "thread_id")
_CONTENTS = ("content", "text", "message", "parts", "value")
_FOLDERS = ("cwd", "folder", "project")
_TITLES = ("title",)
_MOST_FILES = 200

Line = dict[str, Any]
State = dict[str, str]


find = json_fields.find_nothing


def fits(path: Path, head: bytes) -> bool:
    """Return whether a file has lines with roles and contents."""
    if path.suffix not in (".jsonl", ".ndjson"):
        return False
    return b'"role"' in head and any(f'"{name}"'.encode() in head for name in _CONTENTS)


def initial_context(path: Path) -> Context:
    """Return a session named after the file."""
    state = {"time": json_fields.modified_at(path).isoformat(), "file": path.stem}
    return Context(session=path.stem, state=state)


def parse_line(line: Any, context: Context) -> ParsedLine:
    """Return the messages of a parsed line: one, or a conversation as `messages`."""
    if not isinstance(line, dict):
        return ParsedLine(context, unknown="no object")
    state = dict(context.state)
    number = state.get("number", "0")
    state["number"] = str(int(number) + 1) if number.isdigit() else "1"
    session = _first(line, _SESSIONS)
    inner = line.get("messages")
    if isinstance(inner, list):
        session = session or _first(line, _IDS) or f"{context.session}/{state['number']}"
        state["within"] = state.get("within") or context.session
    else:
        inner = [line]
        session = session or state.get("within") or context.session
    messages: list[NewMessage] = []
    files: list[str] = []
    for i, each in enumerate(inner):
        converted, named_files = _convert(as_dict(each), state, f"{state['number']}.{i}")
        messages += converted
        files += named_files
    same = session == context.session
    updated = Context(
        session=session,
        title=_first(line, _TITLES) or (context.title if same else ""),
        folder=_first(line, _FOLDERS) or context.folder,
        files=json_fields.extend_bounded(files, context.files if same else (), _MOST_FILES),
        state=state,
    )
    unknown = "" if messages or "role" in line or "messages" in line else "no role"
    if line.get("role") is not None and inner == [line] and _role(line) is None:
        unknown = f"role {as_text(line.get('role'))[:40]}"
    return ParsedLine(updated, tuple(messages), unknown)


def _role(line: Line) -> Role | None:
    return _ROLES.get((as_text(line.get("role")) or as_text(line.get("from"))).lower())


def _convert(line: Line, state: State, place: str) -> tuple[list[NewMessage], list[str]]:
    """Return the messages of one object: reasoning and text, then a message for each call."""
    role = _role(line)
    if role is None:
        return [], []
    at = next((at for name in _TIMES if name in line and (at := as_datetime(line[name]))), None)
    timed = at is not None
    if at is None:
        at = as_datetime(state.get("time")) or clock.now()
    else:
        state["time"] = at.isoformat()
    content = next((line[name] for name in _CONTENTS if line.get(name) is not None), None)
    name = as_text(line.get("name"))
    own = _first(line, _IDS)
    key = own or (json_fields.digest(line) if timed else f"{place}-{json_fields.digest(line)}")
    model = as_text(line.get("model"))
    usage = as_counts(line.get("usage"))
    speaker = name if role == "user" else ""
    message = NewMessage(role, (), at, key, speaker, model=model, usage=usage)
    if role == "system":
        parts = content_blocks.user_parts(content, aside=True)
        return ([replace(message, parts=parts, origin="tool")] if parts else []), []
    if role == "tool":
        call_id = as_text(line.get("tool_call_id"))
        called = name or state.pop(f"call:{call_id}", "")
        failed = line.get("is_error") is True
        parts = content_blocks.result_parts(content, called, call_id, failed=failed)
        return [replace(message, parts=parts, origin=content_blocks.tool_origin(called))], []
    if role == "user":
        parts = _user_parts(content, state)
        if parts and all(part.kind in ("tool_result", "aside") for part in parts):
            message = replace(message, role="tool", origin=parts[0].origin)
        return injected_text.user_messages(message, parts), []
    return _assistant_message(line, content, message, state)


def _user_parts(content: Any, state: State) -> tuple[Part, ...]:
    """Return the parts of a user message; some APIs put tool results there as well."""
    if not isinstance(content, list):
        return content_blocks.user_parts(content)
    parts: list[Part] = []
    for block in content:
        if isinstance(block, dict) and block.get("type") == "tool_result":
            parts += content_blocks.answer_parts(block, state, block.get("tool_use_id"))
        elif any(part.kind == "tool_result" for part in parts):
            parts += content_blocks.with_tool_origin(content_blocks.user_parts([block]))
        else:
            parts += content_blocks.user_parts([block])
    return tuple(parts)


def _assistant_message(
    line: Line, content: Any, message: NewMessage, state: State
) -> tuple[list[NewMessage], list[str]]:
    """Return a response: reasoning and text in one message, calls beside them as parts."""
    reasoning = _first(line, ("reasoning_content", "reasoning", "thinking"))
    text_blocks = [content] if isinstance(content, str) else as_list(content)
    parts = [*content_blocks.reasoning_parts(reasoning)]
    files: list[str] = []
    for block in text_blocks:
        parts += content_blocks.assistant_parts(block, state)
        files += content_blocks.files_of_call(as_dict(block).get("input"))
    for call in as_list(line.get("tool_calls")):
        entry = as_dict(call)
        function = as_dict(entry.get("function")) or entry
        part = content_blocks.call_part(
            function.get("name"), function.get("arguments"), entry.get("id")
        )
        parts.append(content_blocks.remember_call(part, state))
    return ([replace(message, parts=tuple(parts))] if parts else []), files


def _first(line: Line, names: tuple[str, ...]) -> str:
    for name in names:
        if name in line and (value := as_text(line[name]).strip()):
            return value
    return ""
