"""Claude Code: one JSON line for each block that was said, a file for each session and subagent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from lore import clock
from lore.capture.adapter_protocol import Context, ParsedLine
from lore.capture.adapters import content_blocks, injected_text, json_fields, prompt_queue
from lore.capture.adapters.json_fields import as_counts, as_datetime, as_dict, as_list, as_text
from lore.records import NewMessage, Part

agent = "claude-code"

_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
"""Lines that give a title and the field it is in; a later kind in this table takes precedence."""

_SILENT = frozenset(
    """progress file-history-snapshot file-history-delta mode permission-mode
    agent-name agent-color agent-setting last-prompt tag pr-link cost-state bridge-session
    worktree-state content-replacement attribution-snapshot task-summary
    speculation-accept result started""".split()
)
"""Lines for the program itself, without messages."""

_INJECTED_FLAGS = tuple(
    """isMeta isCompactSummary isVisibleInTranscriptOnly isSynthetic toolUseResult
    sourceToolAssistantUUID""".split()
)
"""Flags of a line in a person's place that the program wrote itself.

A line with a tool's result holds no words of a person: in none of 299 that were examined.
"""

_ANSWERED_BY_LORE = "msg_lore"
"""The id of a response that the gateway gave itself: it is not part of the conversation."""

_MOST_CHAINS = 20
"""Interleaved subagents that are tracked; agents run a handful at a time."""
_MOST_FILES = 200
_NAME_CHARS = 60
_META_BYTES = 65_536
_STAMP_CHARS = 40
"""A time is kept as it is written, unless that is longer than ISO 8601 needs."""

_ATTACHED_DEPTH = 4

_HEAD_MARKS = (b'"parentUuid"', b'"leafUuid"', b'"file-history-snapshot"', b'"queue-operation"')
"""Strings in the first lines of a transcript, and hardly in other files."""

Line = dict[str, Any]
State = dict[str, str]


def find(home: Path) -> Iterator[Path]:
    """Return the transcripts below a person's home folder."""
    return json_fields.find_files(home / ".claude" / "projects", ".jsonl")


def fits(path: Path, head: bytes) -> bool:
    """Return whether a file is a transcript of Claude Code."""
    if path.suffix != ".jsonl":
        return False
    at_home = ".claude" in path.parts and "projects" in path.parts
    return (at_home and b'"type"' in head) or any(sign in head for sign in _HEAD_MARKS)


def initial_context(path: Path) -> Context:
    """Return what the path of a file says about its session."""
    state = {"time": json_fields.modified_at(path).isoformat()}
    if not path.name.startswith("agent-"):
        return Context(session=path.stem, state=state)
    state["agent"] = path.stem.removeprefix("agent-")
    parent = path.parent.parent.name if path.parent.name == "subagents" else ""
    session = f"{parent}/{path.stem}" if parent else path.stem
    return Context(session=session, parent=parent, title=_read_description(path), state=state)


def _read_description(path: Path) -> str:
    """Return a subagent's task, from the file beside its transcript."""
    try:
        with path.with_suffix(".meta.json").open("rb") as stream:
            meta = as_dict(orjson.loads(stream.read(_META_BYTES)))
    except (OSError, ValueError):
        return ""
    return as_text(meta.get("description")) or as_text(meta.get("agentType"))


def parse_line(line: Any, context: Context) -> ParsedLine:
    """Return the messages of a parsed line."""
    if not isinstance(line, dict):
        return ParsedLine(context, unknown="no object")
    kind = line.get("type")
    if not isinstance(kind, str):
        return ParsedLine(context, unknown="no type")
    if kind in _SILENT:
        return ParsedLine(context)
    if kind in _TITLES or kind == "queue-operation":
        titled = kind in _TITLES
        return ParsedLine(
            _with_title(line, kind, context) if titled else _with_queue(line, context)
        )
    convert = _CONVERTERS.get(kind)
    if convert is None:
        return ParsedLine(context, unknown=kind[:_NAME_CHARS])
    state = dict(context.state)
    stamp = line.get("timestamp")
    at = as_datetime(stamp)
    if at is None:
        at = as_datetime(state.get("time")) or clock.now()
    else:
        written = as_text(stamp)
        state["time"] = written if len(written) <= _STAMP_CHARS else at.isoformat()
    session, parent = _session(line, context, state)
    key = as_text(line.get("uuid"))
    state["last"] = key
    messages, files = convert(line, state, key or json_fields.digest(line), at)
    if parent:
        messages = [injected_text.from_agent(message) for message in messages]
    elif prompt_queue.STATE_NAME in state:
        messages = [*_delivered_prompts(line, kind, messages, state), *messages]
    same = session == context.session
    updated = Context(
        session=session,
        parent=parent,
        title=context.title if same or "agent" in state else "",
        folder=context.folder or as_text(line.get("cwd")),
        branch=as_text(line.get("gitBranch")) or context.branch,
        version=as_text(line.get("version")) or context.version,
        files=json_fields.extend_bounded(files, context.files if same else (), _MOST_FILES),
        state=state,
        lasting_keys="uuid" in line,
    )
    return ParsedLine(updated, tuple(messages))


def _session(line: Line, context: Context, state: State) -> tuple[str, str]:
    """Return the session of a line, and the parent session for a subagent."""
    session = as_text(line.get("sessionId")).strip()
    if session:
        state["main"] = session
    main = session or state.get("main") or context.session
    helper = as_text(line.get("agentId")) or state.get("agent", "")
    if helper and (line.get("isSidechain") or "agent" in state):
        own = state.get("main") or context.parent
        return (f"{own}/agent-{helper}", own) if own else (context.session, "")
    if line.get("isSidechain") is True:
        return f"{main}/side-{_chain(line, state)}", main
    return main, ""


def _chain(line: Line, state: State) -> str:
    """Return the first line of the chain that a subagent's line belongs to.

    Old versions write subagents into the file of their session; several can run at once.
    """
    own = as_text(line.get("uuid")) or "?"
    first = state.pop(f"chain:{as_text(line.get('parentUuid'))}", own)
    content_blocks.put_bounded(state, f"chain:{own}", first, _MOST_CHAINS)
    return first


def _with_title(line: Line, kind: str, context: Context) -> Context:
    """Return the context with the title of a line; a summary can be of another session."""
    title = as_text(line.get(_TITLES[kind])).strip()
    order = list(_TITLES)
    is_lower_priority = order.index(kind) < order.index(context.state.get("titled", "summary"))
    foreign = kind == "summary" and (
        not context.state.get("last") or line.get("leafUuid") != context.state["last"]
    )
    if not title or is_lower_priority or foreign or context.parent:
        return context
    return replace(context, title=title, state={**context.state, "titled": kind})


def _with_queue(line: Line, context: Context) -> Context:
    state = dict(context.state)
    parts = content_blocks.user_parts(as_text(line.get("content")))
    is_typed = any(part.kind == "text" and part.origin is None for part in parts)
    prompt_queue.apply_operation(line, state, is_typed=is_typed)
    return replace(context, state=state)


def _delivered_prompts(
    line: Line, kind: str, messages: list[NewMessage], state: State
) -> list[NewMessage]:
    """Return the queued prompts that the agent has before this line and no other record gives."""
    if kind == "attachment":
        attached = as_dict(line.get("attachment"))
        if attached.get("type") == "queued_command":
            prompt_queue.note_attachment(attached.get("prompt"), state)
        return []
    if kind == "user":
        has_result = any(message.role == "tool" for message in messages)
        if has_result or any(line.get(flag) for flag in _INJECTED_FLAGS):
            return []
        content = as_dict(line.get("message")).get("content")
        is_typed = any(message.role == "user" for message in messages)
        prompt_queue.note_user_record(content, state, is_typed=is_typed)
    elif kind != "assistant":
        return []
    return [
        message
        for prompt in prompt_queue.take_delivered(state)
        for message in _user_message(
            content_blocks.user_parts(prompt.text),
            prompt.key,
            as_datetime(prompt.typed_at) or as_datetime(state.get("time")) or clock.now(),
        )
    ]


MessagesAndFiles = tuple[list[NewMessage], list[str]]


def _user(line: Line, state: State, key: str, at: datetime) -> MessagesAndFiles:
    message = as_dict(line.get("message"))
    content = message.get("content")
    shown = (
        any(line[flag] for flag in _INJECTED_FLAGS if flag in line)
        or message.get("role") not in (None, "user")
        or not _is_from_person(line.get("origin"))
    )
    if not isinstance(content, list):
        return _user_message(content_blocks.user_parts(as_text(content), aside=shown), key, at), []
    messages: list[NewMessage] = []
    beside: list[Any] = []
    first = 0
    for i, block in enumerate(content):
        if isinstance(block, dict) and block.get("type") == "tool_result":
            name = key if len(content) == 1 else f"{key}:{i}"
            typed = content_blocks.user_parts(beside, aside=shown)
            messages += _user_message(typed, f"{key}:{first}", at)
            parts = content_blocks.answer_parts(block, state, block.get("tool_use_id"))
            messages.append(NewMessage("tool", parts, at, name, origin=parts[0].origin))
            beside, first = [], i + 1
        else:
            beside.append(block)
    name = key if len(content) == 1 else f"{key}:{first}"
    rest = content_blocks.user_parts(beside, aside=shown)
    rest = content_blocks.with_tool_origin(rest) if messages else rest
    return [*messages, *_user_message(rest, name, at)], []


def _is_from_person(origin: Any) -> bool:
    kind = origin.get("kind") if isinstance(origin, dict) else origin
    return kind in (None, "human")


def _user_message(parts: tuple[Part, ...], key: str, at: datetime) -> list[NewMessage]:
    return injected_text.user_messages(NewMessage("user", (), at, key), parts)


def _injected_message(text: str, name: str, key: str, at: datetime) -> list[NewMessage]:
    return _user_message(
        (injected_text.injected_part(text, name),) if text.strip() else (), key, at
    )


def _assistant(line: Line, state: State, key: str, at: datetime) -> MessagesAndFiles:
    message = as_dict(line.get("message"))
    if message.get("id") == _ANSWERED_BY_LORE:
        return [], []
    content = message.get("content")
    content = [content] if isinstance(content, str) else as_list(content)
    model = as_text(message.get("model"))
    if line.get("isApiErrorMessage") or model == "<synthetic>":
        return _user_message(content_blocks.user_parts(content, aside=True), key, at), []
    messages: list[NewMessage] = []
    files: list[str] = []
    for i, block in enumerate(content):
        name = key if len(content) == 1 else f"{key}:{i}"
        parts = content_blocks.assistant_parts(block, state)
        if not parts:
            continue
        if parts[0].kind == "tool_result":
            messages.append(NewMessage("tool", parts, at, name, origin=parts[0].origin))
            continue
        usage = _fresh_usage(message, state) if not messages else {}
        messages.append(NewMessage("assistant", parts, at, name, "", "assistant", model, usage))
        if parts[0].kind == "tool_call":
            files += content_blocks.files_of_call(block.get("input"))
    return messages, files


def _fresh_usage(message: Line, state: State) -> dict[str, int]:
    """Return what a line adds to the usage of its message, which each of its lines repeats.

    While a message streams its output count grows, so the first line does not have all of it.
    """
    usage = as_counts(message.get("usage"))
    if not usage:
        return {}
    own = as_text(message.get("id"))
    last_id, last_usage = state.get("usage of"), state.get("usage", "")
    packed = json_fields.to_json(usage)
    state["usage of"], state["usage"] = own, packed
    if not own or last_id != own:
        return usage
    if packed == last_usage:
        return {}
    try:
        last_counts = as_counts(orjson.loads(last_usage))
    except orjson.JSONDecodeError:  # a part of it was redacted as a secret
        last_counts = {}
    grown = {name: count - last_counts.get(name, 0) for name, count in usage.items()}
    return {name: count for name, count in grown.items() if count > 0}


def _attachment(line: Line, state: State, key: str, at: datetime) -> MessagesAndFiles:
    """Return an attachment: a prompt typed while the agent worked, or injected text."""
    del state
    attached = as_dict(line.get("attachment"))
    kind = as_text(attached.get("type"))
    if kind == "queued_command":
        mode = attached.get("commandMode")
        human = mode in (None, "prompt") and _is_from_person(attached.get("origin"))
        shown = not human or bool(attached.get("isMeta") or line.get("isMeta"))
        parts = content_blocks.user_parts(attached.get("prompt"), aside=shown)
        return _user_message(parts, key, at), []
    text = _attached_text(attached, _ATTACHED_DEPTH)
    names_file = kind in ("file", "edited_text_file")
    files = list(content_blocks.files_of_call(attached)) if names_file else []
    return _injected_message(text, kind, key, at), files


def _attached_text(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return value
    if depth == 0:
        return ""
    if isinstance(value, list):
        return "\n".join(filter(None, (_attached_text(each, depth - 1) for each in value)))
    fields = as_dict(value)
    names = ("content", "stdout", "snippet", "file", "prompt", "text", "message", "blockingError")
    return next(
        (text for name in names if (text := _attached_text(fields.get(name), depth - 1))), ""
    )


def _system(line: Line, state: State, key: str, at: datetime) -> MessagesAndFiles:
    del state
    text = as_text(line.get("content"))
    return _injected_message(text, as_text(line.get("subtype")), key, at), []


_CONVERTERS = {"user": _user, "assistant": _assistant, "attachment": _attachment, "system": _system}
