"""Codex: rollouts, one JSON line for each item that went to the model or came from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from lore import clock
from lore.capture.adapter_protocol import Context, ParsedLine
from lore.capture.adapters import content_blocks, injected_text, json_fields
from lore.capture.adapters.json_fields import as_datetime, as_dict, as_list, as_text
from lore.records import NewMessage, Part

agent = "codex"

_SILENT = frozenset(
    """token_usage_record world_state security_risk_score realtime_item state
    inter_agent_communication_metadata""".split()
)
_SILENT_ITEMS = frozenset("ghost_snapshot compaction compaction_summary context_compaction".split())
"""Items for the program itself, or that only the provider can read."""

_ITEMS = frozenset(
    """message reasoning function_call function_call_output custom_tool_call
    custom_tool_call_output local_shell_call web_search_call""".split()
)
"""Items that old versions write as lines of their own."""

_DROPPED = ("id", "status", "call_id", "type", "result", "name", "internal_chat_message_metadata")
_ID_CHARS = 36
_NAME_CHARS = 60
_MOST_FILES = 200
_HEAD_CHARS = 200
_FAILURES = ("apply_patch verification failed", "unsupported call: ", "failed to parse function")
"""Prefixes of results of calls that Codex itself refused."""
_EXITS = ("Exit code: ", "Process exited with code ", "exited with code ")
"""Prefixes of results that contain the exit code of a command."""

Line = dict[str, Any]
State = dict[str, str]


def find(home: Path) -> Iterator[Path]:
    """Return the rollouts below a person's home folder."""
    for folder in ("sessions", "archived_sessions"):
        yield from json_fields.find_files(home / ".codex" / folder, ".jsonl", beginning="rollout-")


def fits(path: Path, head: bytes) -> bool:
    """Return whether a file is a rollout."""
    if path.suffix != ".jsonl":
        return False
    return b'"session_meta"' in head or (
        path.name.startswith("rollout-") and b'"timestamp"' in head and b'"sessionId"' not in head
    )


def initial_context(path: Path) -> Context:
    """Return what the path of a file says about its session: its name ends with the id."""
    state = {"time": json_fields.modified_at(path).isoformat()}
    session = path.stem[-_ID_CHARS:] if path.name.startswith("rollout-") else path.stem
    return Context(session=session, state=state, lasting_keys=True)


def parse_line(line: Any, context: Context) -> ParsedLine:
    """Return the messages of a parsed line."""
    if not isinstance(line, dict):
        return ParsedLine(context, unknown="no object")
    kind = as_text(line.get("type")) or as_text(line.get("record_type"))
    payload = line.get("payload")
    if kind in _ITEMS and payload is None:
        kind, payload = "response_item", line
    elif not kind and "id" in line and "timestamp" in line:
        kind, payload = "session_meta", line
    if kind in _SILENT:
        return ParsedLine(context)
    convert = _CONVERTERS.get(kind)
    if convert is None:
        return ParsedLine(context, unknown=kind[:_NAME_CHARS] or "no type")
    state = dict(context.state)
    at = _time(line, state)
    return convert(as_dict(payload), replace(context, state=state), at)


def _time(line: Line, state: State) -> datetime:
    """Return the time of a line; set in `state` what distinguishes lines of the same time."""
    at = as_datetime(line.get("timestamp"))
    if at is not None:
        state["time"] = state["mark"] = at.isoformat()
        return at
    number = as_text(state.get("number"))
    state["number"] = str(int(number) + 1) if number.isdigit() else "1"
    state["mark"] = state["number"]
    return as_datetime(state.get("time")) or clock.now()


def _meta(payload: Line, context: Context, at: datetime) -> ParsedLine:
    """Return the context of a rollout; in a fork, the headers of the copied sessions come after."""
    del at
    if "known" in context.state:
        return ParsedLine(context)
    source = as_dict(as_dict(payload.get("source")).get("subagent"))
    spawn = as_dict(source.get("thread_spawn"))
    parent = as_text(spawn.get("parent_thread_id")) or as_text(payload.get("parent_thread_id"))
    if source or parent:
        context.state["agent"] = "yes"
    context.state["known"] = "yes"
    git = as_dict(payload.get("git"))
    return ParsedLine(
        replace(
            context,
            session=as_text(payload.get("id")).strip() or context.session,
            parent=parent or as_text(payload.get("forked_from_id")),
            folder=as_text(payload.get("cwd")),
            branch=as_text(git.get("branch")),
            version=as_text(payload.get("cli_version")),
        )
    )


def _turn(payload: Line, context: Context, at: datetime) -> ParsedLine:
    del at
    if model := as_text(payload.get("model")):
        context.state["model"] = model
    return ParsedLine(replace(context, folder=context.folder or as_text(payload.get("cwd"))))


def _compacted(payload: Line, context: Context, at: datetime) -> ParsedLine:
    text = as_text(payload.get("message"))
    parts = (injected_text.injected_part(text, "compacted"),) if text.strip() else ()
    return _with_key(NewMessage("system", parts, at, origin="tool"), payload, context)


def _event(payload: Line, context: Context, at: datetime) -> ParsedLine:
    """Return the session's title from an event; events repeat the items otherwise.

    The responses they announce are recorded: a compaction summary is none of them.
    """
    del at
    title = ""
    item = as_dict(payload.get("item"))
    if payload.get("type") == "item_completed" and item.get("type") == "AgentMessage":
        context.state["announced"] = as_text(item.get("id"))
    if payload.get("type") in ("thread_name_updated", "thread_name_set"):
        title = as_text(payload.get("thread_name")) or as_text(payload.get("name"))
    return ParsedLine(replace(context, title=title.strip() or context.title))


def _item(payload: Line, context: Context, at: datetime) -> ParsedLine:
    kind = as_text(payload.get("type"))
    if kind in _SILENT_ITEMS:
        return ParsedLine(context)
    state = context.state
    model = state.get("model", "")
    if kind == "message":
        return _with_key(_message(payload, state, at), payload, context)
    if kind == "reasoning":
        texts = [*as_list(payload.get("summary")), *as_list(payload.get("content"))]
        shown = (content_blocks.block_text(as_dict(each)) for each in texts)
        text = "\n\n".join(filter(None, shown))
        parts = content_blocks.reasoning_parts(text)
        return _with_key(NewMessage("assistant", parts, at, model=model), payload, context)
    if kind.endswith("_output"):
        parts = _output(payload, state)
        return _with_key(NewMessage("tool", parts, at, origin=parts[0].origin), payload, context)
    if kind.endswith("_call"):
        part = content_blocks.remember_call(_call(payload, kind), state)
        arguments = _parse_arguments(payload.get("arguments"))
        named_files = [
            *content_blocks.files_of_call(arguments),
            *content_blocks.patched_files(part.text.replace("\\n", "\n")),
        ]
        files = json_fields.extend_bounded(named_files, context.files, _MOST_FILES)
        message = NewMessage("assistant", (part,), at, model=model)
        return _with_key(message, payload, replace(context, files=files))
    parts = (content_blocks.opaque_part(payload),)
    return _with_key(NewMessage("assistant", parts, at, origin="tool"), payload, context)


def _message(payload: Line, state: State, at: datetime) -> NewMessage:
    content = payload.get("content")
    role = payload.get("role")
    if role == "assistant" and not _is_summary(payload, state):
        blocks = [content] if isinstance(content, str) else as_list(content)
        spoken = (part for block in blocks for part in content_blocks.assistant_parts(block, {}))
        return NewMessage("assistant", tuple(spoken), at, model=state.get("model", ""))
    if role != "user":
        parts = content_blocks.user_parts(content, aside=True)
        return NewMessage("system", parts, at, origin="tool")
    message = NewMessage("user", (), at)
    if "agent" in state:
        message = injected_text.from_agent(message)
    return injected_text.user_or_system_message(message, content_blocks.user_parts(content))


def _is_summary(payload: Line, state: State) -> bool:
    """Return whether a response is the summary of a compaction, which no event announces.

    Only where an announced response was seen before: other versions write no such events, or write
    them later.
    """
    own = as_text(payload.get("id"))
    if own and own == state.get("announced"):
        state["announces"] = "yes"
        return False
    return "announces" in state


def _call(payload: Line, kind: str) -> Part:
    name = as_text(payload.get("name")) or kind.removesuffix("_call")
    arguments = payload.get("arguments", payload.get("input", payload.get("action")))
    if arguments is None:
        arguments = {each: value for each, value in payload.items() if each not in _DROPPED}
    return content_blocks.call_part(name, arguments, payload.get("call_id") or payload.get("id"))


def _output(payload: Line, state: State) -> tuple[Part, ...]:
    """Return a result; old versions wrap it in JSON with the exit code beside it."""
    call_id = as_text(payload.get("call_id"))
    name = state.pop(f"call:{call_id}", "")
    output = payload.get("output", payload.get("content"))
    failed = False
    if isinstance(output, str) and output.startswith('{"output":'):
        output = _parse_arguments(output) or output
    if isinstance(output, dict) and ("output" in output or "content" in output):
        code = as_dict(output.get("metadata")).get("exit_code")
        failed = code not in (None, 0) or output.get("success") is False
        output = output.get("output", output.get("content"))
    elif isinstance(output, str):
        failed = output.startswith(_FAILURES) or _exit_code(output[:_HEAD_CHARS]) not in ("", "0")
    return content_blocks.result_parts(output, name, call_id, failed=failed)


def _exit_code(head: str) -> str:
    for words in _EXITS:
        _, matched, rest = head.partition(words)
        if matched:
            return rest.split(maxsplit=1)[0].rstrip(".,)") if rest.strip() else ""
    return ""


def _parse_arguments(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith("{"):
        return value if isinstance(value, dict) else None
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return None


def _with_key(message: NewMessage, payload: Line, context: Context) -> ParsedLine:
    """Return a message with its own key; lines have no id, so time and content form it."""
    if not message.parts:
        return ParsedLine(context)
    key = f"{context.state['mark']}-{json_fields.digest(payload)}"
    return ParsedLine(context, (replace(message, key=key),))


_CONVERTERS = {
    "session_meta": _meta,
    "turn_context": _turn,
    "compacted": _compacted,
    "event_msg": _event,
    "response_item": _item,
}
