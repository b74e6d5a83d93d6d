"""Any agent: JSON lines of a role and what was said in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from lore import clock
from lore.capture.adapters import asides, blocks, fields, places, tools
from lore.capture.transcripts import Context, Told
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


def find(home: Path) -> Iterator[Path]:
    """Return nothing: such files have no place of their own."""
    del home
    return iter(())


def fits(path: Path, head: bytes) -> bool:
    """Tell whether a file has lines of roles and contents."""
    if path.suffix not in (".jsonl", ".ndjson"):
        return False
    return b'"role"' in head and any(f'"{name}"'.encode() in head for name in _CONTENTS)


def begin(path: Path) -> Context:
    """Return a session that is called like the file."""
    state = {"time": places.modified(path).isoformat(), "file": path.stem}
    return Context(session=path.stem, state=state)


def tell(line: Any, context: Context) -> Told:
    """Return what a parsed line says: one message, or a conversation as `messages`."""
    if not isinstance(line, dict):
        return Told(context, unknown="no object")
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
        said, named = _said(fields.table(each), state, f"{state['number']}.{i}")
        messages += said
        files += named
    same = session == context.session
    placed = Context(
        session=session,
        title=_first(line, _TITLES) or (context.title if same else ""),
        folder=_first(line, _FOLDERS) or context.folder,
        files=fields.bounded(files, context.files if same else (), _MOST_FILES),
        state=state,
    )
    unknown = "" if messages or "role" in line or "messages" in line else "no role"
    if line.get("role") is not None and inner == [line] and _role(line) is None:
        unknown = f"role {fields.text(line.get('role'))[:40]}"
    return Told(placed, tuple(messages), unknown)


def _role(line: Line) -> Role | None:
    return _ROLES.get((fields.text(line.get("role")) or fields.text(line.get("from"))).lower())


def _said(line: Line, state: State, place: str) -> tuple[list[NewMessage], list[str]]:
    """Return the messages of one object: its thoughts and words, then a message for each call."""
    role = _role(line)
    if role is None:
        return [], []
    at = next((at for name in _TIMES if name in line and (at := fields.moment(line[name]))), None)
    timed = at is not None
    if at is None:
        at = fields.moment(state.get("time")) or clock.now()
    else:
        state["time"] = at.isoformat()
    content = next((line[name] for name in _CONTENTS if line.get(name) is not None), None)
    name = fields.text(line.get("name"))
    own = _first(line, _IDS)
    key = own or (fields.digest(line) if timed else f"{place}-{fields.digest(line)}")
    model = fields.text(line.get("model"))
    usage = fields.counts(line.get("usage"))
    speaker = name if role == "user" else ""
    message = NewMessage(role, (), at, key, speaker, model=model, usage=usage)
    if role == "system":
        parts = blocks.typed(content, aside=True)
        return ([replace(message, parts=parts, origin="tool")] if parts else []), []
    if role == "tool":
        call_id = fields.text(line.get("tool_call_id"))
        called = name or state.pop(f"call:{call_id}", "")
        failed = line.get("is_error") is True
        parts = blocks.result(content, called, call_id, failed=failed)
        return [replace(message, parts=parts, origin=tools.origin_of(called))], []
    if role == "user":
        parts = _with_results(content, state)
        if parts and all(part.kind in ("tool_result", "aside") for part in parts):
            message = replace(message, role="tool", origin=parts[0].origin)
        return ([asides.from_person(message, parts)] if parts else []), []
    return _answered(line, content, message, state)


def _with_results(content: Any, state: State) -> tuple[Part, ...]:
    """Return what is in a person's place; some APIs put results of tools there as well."""
    if not isinstance(content, list):
        return blocks.typed(content)
    parts: list[Part] = []
    for block in content:
        if isinstance(block, dict) and block.get("type") == "tool_result":
            parts += blocks.answered(block, state, block.get("tool_use_id"))
        elif any(part.kind == "tool_result" for part in parts):
            parts += blocks.brought(blocks.typed([block]))
        else:
            parts += blocks.typed([block])
    return tuple(parts)


def _answered(
    line: Line, content: Any, message: NewMessage, state: State
) -> tuple[list[NewMessage], list[str]]:
    """Return an answer: thoughts and words in one message, calls beside them as parts."""
    thought = _first(line, ("reasoning_content", "reasoning", "thinking"))
    spoken = [content] if isinstance(content, str) else fields.items(content)
    parts = [*blocks.thought(thought)]
    files: list[str] = []
    for block in spoken:
        parts += blocks.spoken(block, state)
        files += tools.files(fields.table(block).get("input"))
    for call in fields.items(line.get("tool_calls")):
        told = fields.table(call)
        function = fields.table(told.get("function")) or told
        part = blocks.call(function.get("name"), function.get("arguments"), told.get("id"))
        parts.append(blocks.remembered(part, state))
    return ([replace(message, parts=tuple(parts))] if parts else []), files


def _first(line: Line, names: tuple[str, ...]) -> str:
    for name in names:
        if name in line and (told := fields.text(line[name]).strip()):
            return told
    return ""
