"""pi: one JSON line for each entry of a session, which is a tree of messages in one file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from lore import clock
from lore.capture.adapter_protocol import Context, ParsedLine
from lore.capture.adapters import content_blocks, injected_text, json_fields
from lore.capture.adapters.json_fields import as_counts, as_datetime, as_dict, as_list, as_text
from lore.records import NewMessage, Part

agent = "pi"

_SILENT = frozenset("model_change thinking_level_change label custom".split())
"""Entries for the program itself."""

_SUMMARIES = frozenset("compaction branch_summary".split())
_RENAMED_ROLES = {"hookMessage": "custom"}
"""Roles of old versions; pi rewrites a file with the new ones when it loads it."""

_FIRST_LINE = re.compile(rb'\s*\{"type":\s*"session"')
_SKILL = re.compile(
    r'\A(<skill name="[^"\n]*" location="[^"\n]*">\n.*?\n</skill>)(.*)\Z', re.DOTALL
)
"""A skill that a person called by name: pi puts its text before what they typed."""

_USAGE = {
    "input": "input_tokens", "output": "output_tokens", "cacheRead": "cache_read_input_tokens",
    "cacheWrite": "cache_creation_input_tokens",
}  # fmt: skip
_NAME_CHARS = 60
_MOST_FILES = 200

Line = dict[str, Any]
State = dict[str, str]


def find(home: Path) -> Iterator[Path]:
    """Return the sessions below a person's home folder."""
    return json_fields.find_files(home / ".pi" / "agent" / "sessions", ".jsonl")


def fits(path: Path, head: bytes) -> bool:
    """Return whether a file is a session of pi: its first line is the header of one."""
    if path.suffix != ".jsonl":
        return False
    first, _, rest = head.partition(b"\n")
    is_header = _FIRST_LINE.match(first) is not None and b'"cwd"' in first
    return is_header and (not rest.strip() or b'"message"' in rest or b'"type"' in rest)


def initial_context(path: Path) -> Context:
    """Return what the path of a file says about its session: its name ends with the id."""
    state = {"time": json_fields.modified_at(path).isoformat()}
    return Context(session=_session_id(path.stem), state=state, lasting_keys=True)


def _session_id(stem: str) -> str:
    return stem.rpartition("_")[2] or stem


def parse_line(line: Any, context: Context) -> ParsedLine:
    """Return the messages of a parsed line."""
    if not isinstance(line, dict):
        return ParsedLine(context, unknown="no object")
    kind = as_text(line.get("type"))
    if kind in _SILENT:
        return ParsedLine(context)
    if kind in ("session", "session_info"):
        return ParsedLine(_with_header(line, kind, context))
    state = dict(context.state)
    message = as_dict(line.get("message"))
    at = _time(line, message, state)
    converted = _convert(line, message, state, at)
    if isinstance(converted, str):
        return ParsedLine(context, unknown=converted)
    key = _key(line, message)
    named = (replace(each, key=f"{key}:{i}" if i else key) for i, each in enumerate(converted))
    files = json_fields.extend_bounded(_files(message), context.files, _MOST_FILES)
    return ParsedLine(replace(context, files=files, state=state), tuple(named))


def _with_header(line: Line, kind: str, context: Context) -> Context:
    """Return the context of a session; one that was forked names the file it came from."""
    if kind == "session_info":
        return replace(context, title=as_text(line.get("name")).strip())
    parent = as_text(line.get("parentSession")).replace("\\", "/").rpartition("/")[2]
    return replace(
        context,
        session=as_text(line.get("id")).strip() or context.session,
        parent=_session_id(parent.removesuffix(".jsonl")),
        folder=as_text(line.get("cwd")),
    )


def _time(line: Line, message: Line, state: State) -> datetime:
    at = as_datetime(line.get("timestamp")) or as_datetime(message.get("timestamp"))
    if at is None:
        return as_datetime(state.get("time")) or clock.now()
    state["time"] = at.isoformat()
    return at


def _key(line: Line, message: Line) -> str:
    """Return the key of an entry: its time and content.

    Its id is not used: version 1 has none, and pi rewrites the file with new ones.
    """
    role = as_text(message.get("role"))
    content = (
        {**message, "role": _RENAMED_ROLES.get(role, role)} if message else line.get("summary")
    )
    written = as_text(line.get("timestamp")) or as_text(message.get("timestamp"))
    return f"{written[:40]}-{json_fields.digest(content or line.get('content'))}"


def _convert(line: Line, message: Line, state: State, at: datetime) -> list[NewMessage] | str:
    """Return the messages of an entry, or the name of an unknown kind or role."""
    kind = as_text(line.get("type"))
    if kind == "message":
        role = as_text(message.get("role"))
        convert = _ROLES.get(role)
        return convert(message, state, at) if convert else f"role {role[:40]}"
    if kind == "custom_message":
        return _extension(line, state, at)
    if kind in _SUMMARIES:
        return _summary({**line, "role": kind}, state, at)
    return kind[:_NAME_CHARS] or "no type"


def _user(message: Line, state: State, at: datetime) -> list[NewMessage]:
    del state
    parts = _typed(message.get("content"))
    return injected_text.user_messages(NewMessage("user", (), at), parts)


def _typed(content: Any) -> tuple[Part, ...]:
    parts: list[Part] = []
    for block in [content] if isinstance(content, str) else as_list(content):
        text = block if isinstance(block, str) else as_text(as_dict(block).get("text"))
        skill = _SKILL.match(text)
        if skill:
            parts.append(injected_text.injected_part(skill[1], "skill"))
            parts += injected_text.split_typed(skill[2].strip("\n"))
        else:
            parts += content_blocks.user_parts([block])
    return tuple(parts)


def _response(message: Line, state: State, at: datetime) -> list[NewMessage]:
    """Return a message for each block of a response, the usage with the first."""
    content = message.get("content")
    model = as_text(message.get("model"))
    counts = as_counts(message.get("usage"))
    usage = {ours: counts[name] for name, ours in _USAGE.items() if name in counts}
    messages: list[NewMessage] = []
    for block in [content] if isinstance(content, str) else as_list(content):
        fields = as_dict(block)
        if fields.get("type") == "toolCall":
            call = content_blocks.call_part(
                fields.get("name"), fields.get("arguments"), fields.get("id")
            )
            parts: tuple[Part, ...] = (content_blocks.remember_call(call, state),)
        else:
            parts = content_blocks.assistant_parts(block, state)
        if parts:
            messages.append(NewMessage("assistant", parts, at, model=model, usage=usage))
            usage = {}
    if error := as_text(message.get("errorMessage")):
        messages += _injected(error, "error", at)
    return messages


def _result(message: Line, state: State, at: datetime) -> list[NewMessage]:
    call_id = as_text(message.get("toolCallId"))
    name = as_text(message.get("toolName")) or state.get(f"call:{call_id}", "")
    state.pop(f"call:{call_id}", None)
    failed = message.get("isError") is True
    parts = content_blocks.result_parts(message.get("content"), name, call_id, failed=failed)
    return [NewMessage("tool", parts, at, origin=parts[0].origin)]


def _command(message: Line, state: State, at: datetime) -> list[NewMessage]:
    """Return a command that a person ran with '!', and its output."""
    del state
    command = as_text(message.get("command"))
    failed = message.get("exitCode") not in (None, 0) or message.get("cancelled") is True
    parts = content_blocks.result_parts(as_text(message.get("output")), "bash", "", failed=failed)
    return [
        *injected_text.user_messages(
            NewMessage("user", (), at), content_blocks.user_parts(f"!{command}")
        ),
        NewMessage("tool", parts, at, origin=parts[0].origin),
    ]


def _extension(fields: Line, state: State, at: datetime) -> list[NewMessage]:
    del state
    parts = content_blocks.user_parts(fields.get("content"), aside=True)
    named = (replace(part, name=as_text(fields.get("customType"))) for part in parts)
    return injected_text.user_messages(NewMessage("user", (), at), tuple(named))


def _summary(fields: Line, state: State, at: datetime) -> list[NewMessage]:
    del state
    return _injected(as_text(fields.get("summary")), as_text(fields.get("role")), at)


def _injected(text: str, name: str, at: datetime) -> list[NewMessage]:
    parts = (injected_text.injected_part(text, name),) if text.strip() else ()
    return injected_text.user_messages(NewMessage("user", (), at), parts)


def _files(message: Line) -> Iterator[str]:
    for block in as_list(message.get("content")):
        if as_dict(block).get("type") == "toolCall":
            yield from content_blocks.files_of_call(block.get("arguments"))


_ROLES = {
    "user": _user,
    "assistant": _response,
    "toolResult": _result,
    "bashExecution": _command,
    "custom": _extension,
    "hookMessage": _extension,
    "branchSummary": _summary,
    "compactionSummary": _summary,
}
