"""Copilot CLI: one JSON line for each event of a session, or one document in old versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from lore import clock
from lore.capture.adapter_protocol import Context, ParsedLine, SessionChunk
from lore.capture.adapters import content_blocks, generic, injected_text, json_fields
from lore.capture.adapters.json_fields import Record, as_datetime, as_dict, as_list, as_text
from lore.records import NewMessage, Part

agent = "copilot"

_SILENT = frozenset(
    """abort assistant auto_mode_switch capabilities command commands elicitation exit_plan_mode
    external_tool factory hook mcp mcp_app model pending_messages permission sampling session
    session_limits_exhausted skill subagent system tool tool_search ui user_input""".split()
)
"""Families of events without messages, apart from those that have a converter."""

_FOLDERS = ("session-state", "history-session-state")
_EVENT_FIELDS = (b'"type"', b'"data"', b'"id"', b'"timestamp"', b'"parentId"')
_NAME_CHARS = 60
_MOST_FILES = 200

Line = dict[str, Any]
State = dict[str, str]


def find(home: Path) -> Iterator[Path]:
    """Return the event logs below a person's home folder."""
    for folder in _FOLDERS:
        for path in json_fields.find_files(home / ".copilot" / folder, ".jsonl"):
            if path.name == "events.jsonl" or path.parent.name == folder:
                yield path


def fits(path: Path, head: bytes) -> bool:
    """Return whether a file is the event log of a session."""
    if path.suffix != ".jsonl":
        return False
    first = head.partition(b"\n")[0]
    begins = b'"session.start"' in first or b'"producer":"copilot-agent"' in first
    at_home = ".copilot" in path.parts and any(folder in path.parts for folder in _FOLDERS)
    return begins or (at_home and all(field in head for field in _EVENT_FIELDS))


def initial_context(path: Path) -> Context:
    """Return what the path of a file says about its session."""
    session = path.parent.name if path.name == "events.jsonl" else path.stem
    state = {"time": json_fields.modified_at(path).isoformat(), "main": session}
    return Context(session=session, state=state)


def parse_line(line: Any, context: Context) -> ParsedLine:
    """Return the messages of a parsed line."""
    if not isinstance(line, dict):
        return ParsedLine(context, unknown="no object")
    kind = as_text(line.get("type"))
    data = as_dict(line.get("data"))
    state = dict(context.state)
    at = as_datetime(line.get("timestamp"))
    if at is None:
        at = as_datetime(state.get("time")) or clock.now()
    else:
        state["time"] = at.isoformat()
    if kind in _CONTEXTS:
        return ParsedLine(_CONTEXTS[kind](data, replace(context, state=state)))
    convert = _CONVERTERS.get(kind)
    if convert is None:
        is_known = kind.partition(".")[0] in _SILENT
        return ParsedLine(context, unknown="" if is_known else kind[:_NAME_CHARS] or "no type")
    messages = convert(data, state, at)
    key = as_text(line.get("id")) or json_fields.digest(line)
    named = [replace(each, key=f"{key}:{i}" if i else key) for i, each in enumerate(messages)]
    session, parent = _session(line, data, context, state)
    if parent:
        named = [injected_text.from_agent(each) for each in named]
    same = session == context.session
    files = json_fields.extend_bounded(_files(data), context.files if same else (), _MOST_FILES)
    updated = replace(
        context,
        session=session,
        parent=parent or ("" if context.parent and not same else context.parent),
        title=context.title if same else "",
        files=files,
        state=state,
    )
    return ParsedLine(updated, tuple(named))


def _session(line: Line, data: Line, context: Context, state: State) -> tuple[str, str]:
    """Return the session of an event, and the parent session for a subagent."""
    main = state.get("main") or context.session
    helper = as_text(line.get("agentId")) or as_text(data.get("parentAgentTaskId"))
    helper = helper or as_text(data.get("parentToolCallId"))
    return (f"{main}/agent-{helper}", main) if helper else (main, "")


def _start(data: Line, context: Context) -> Context:
    session = as_text(data.get("sessionId")).strip() or context.session
    context.state["main"] = session
    _set_model(data.get("selectedModel"), context.state)
    version = as_text(data.get("copilotVersion")) or context.version
    place = as_dict(data.get("context"))
    return _with_place(place, replace(context, session=session, version=version))


def _resume(data: Line, context: Context) -> Context:
    _set_model(data.get("selectedModel"), context.state)
    return _with_place(as_dict(data.get("context")), context)


def _model(data: Line, context: Context) -> Context:
    _set_model(data.get("newModel"), context.state)
    return context


def _set_model(model: Any, state: State) -> None:
    if name := as_text(model):
        state["model"] = name


def _with_place(place: Line, context: Context) -> Context:
    return replace(
        context,
        folder=context.folder or as_text(place.get("cwd")) or as_text(place.get("gitRoot")),
        branch=as_text(place.get("branch")) or context.branch,
    )


def _title(data: Line, context: Context) -> Context:
    return replace(context, title=as_text(data.get("title")).strip() or context.title)


def _user(data: Line, state: State, at: datetime) -> list[NewMessage]:
    """Return a prompt as it was typed, and its attachments; Copilot sends more than that.

    A prompt that no person typed names its source, or continues an autopilot.
    """
    del state
    is_injected = data.get("isAutopilotContinuation") is True
    is_injected = is_injected or as_text(data.get("source")) not in ("", "user")
    parts = [*content_blocks.user_parts(as_text(data.get("content")), aside=is_injected)]
    for each in as_list(data.get("attachments")):
        block = as_dict(each)
        kind = "image" if as_text(block.get("mimeType")).startswith("image/") else "document"
        name = block.get("displayName") or block.get("title")
        parts.append(
            injected_text.attachment_part({
                "type": kind,
                "title": name,
                "source": {"path": block.get("path") or block.get("filePath") or block.get("url")},
            })
        )
    return injected_text.user_messages(NewMessage("user", (), at), parts)


def _assistant(data: Line, state: State, at: datetime) -> list[NewMessage]:
    model = as_text(data.get("model")) or state.get("model", "")
    reasoning = as_text(data.get("reasoningText"))
    if json_fields.digest(reasoning) == state.pop("reasoning", ""):
        reasoning = ""
    pieces: list[tuple[Part, ...]] = [
        content_blocks.reasoning_parts(reasoning),
        injected_text.split_spoken(as_text(data.get("content"))),
    ]
    for each in as_list(data.get("toolRequests")):
        request = as_dict(each)
        call = content_blocks.call_part(
            request.get("name"), request.get("arguments"), request.get("toolCallId")
        )
        pieces.append((content_blocks.remember_call(call, state),))
    tokens = data.get("outputTokens")
    usage = {"output_tokens": tokens} if type(tokens) is int and tokens > 0 else {}
    messages = [NewMessage("assistant", parts, at, model=model) for parts in pieces if parts]
    return [replace(messages[0], usage=usage), *messages[1:]] if messages else []


def _reasoning(data: Line, state: State, at: datetime) -> list[NewMessage]:
    """Return reasoning from an event of its own; the response after it may repeat it."""
    text = as_text(data.get("content"))
    state["reasoning"] = json_fields.digest(text)
    parts = content_blocks.reasoning_parts(text)
    return [NewMessage("assistant", parts, at, model=state.get("model", ""))] if parts else []


def _call(data: Line, state: State, at: datetime) -> list[NewMessage]:
    """Return a call that no response announced, such as one of a subagent."""
    call = content_blocks.call_part(
        data.get("toolName"), data.get("arguments"), data.get("toolCallId")
    )
    if f"call:{call.call_id}" in state:
        return []
    content_blocks.remember_call(call, state)
    return [NewMessage("assistant", (call,), at, model=state.get("model", ""))]


def _result(data: Line, state: State, at: datetime) -> list[NewMessage]:
    call_id = as_text(data.get("toolCallId"))
    name = state.pop(f"call:{call_id}", "") or as_text(data.get("toolName"))
    failed = data.get("success") is False
    result = data.get("result")
    content = as_dict(result).get("content", result if isinstance(result, str) else None)
    if content is None:
        content = as_text(as_dict(data.get("error")).get("message"))
    parts = content_blocks.result_parts(content, name, call_id, failed=failed)
    return [NewMessage("tool", parts, at, origin=parts[0].origin)]


def _system(data: Line, state: State, at: datetime) -> list[NewMessage]:
    del state
    text = as_text(data.get("content")) or as_text(data.get("summaryContent"))
    parts = (injected_text.injected_part(text),) if text.strip() else ()
    return injected_text.user_messages(NewMessage("user", (), at), parts)


def _files(data: Line) -> Iterator[str]:
    yield from content_blocks.files_of_call(data.get("arguments"))
    for each in as_list(data.get("toolRequests")):
        yield from content_blocks.files_of_call(as_dict(each).get("arguments"))


_CONTEXTS = {
    "session.start": _start,
    "session.resume": _resume,
    "session.model_change": _model,
    "session.context_changed": _with_place,
    "session.title_changed": _title,
}
_CONVERTERS = {
    "user.message": _user,
    "assistant.message": _assistant,
    "assistant.reasoning": _reasoning,
    "tool.execution_start": _call,
    "tool.execution_complete": _result,
    "system.message": _system,
    "system.notification": _system,
    "session.compaction_complete": _system,
}


class SessionDocuments:
    """The adapter for old versions: a JSON document with the messages of the API."""

    agent = agent

    def find(self, home: Path) -> Iterator[Path]:
        """Return the documents below a person's home folder."""
        return json_fields.find_files(home / ".copilot" / "history-session-state", ".json")

    def fits(self, path: Path, head: bytes) -> bool:
        """Return whether a file is such a document."""
        return path.suffix == ".json" and b'"chatMessages"' in head and b'"sessionId"' in head

    def read(self, path: Path, position: int) -> Iterator[SessionChunk]:
        """Yield the whole session: the document is rewritten with each step."""
        del position
        document = as_dict(json_fields.load_document(path))
        messages = as_list(document.get("chatMessages"))
        began = as_datetime(document.get("startTime")) or json_fields.modified_at(path)
        session = as_text(document.get("sessionId")).strip() or path.stem
        context = Context(session=session, state={"time": began.isoformat()})
        keys = json_fields.repeat_keys(messages)
        lines: list[Record] = [
            {**as_dict(each), "id": key} for key, each in zip(keys, messages, strict=True)
        ]
        parsed = generic.parse_line({"session": session, "messages": lines}, context)
        if parsed.messages:
            yield SessionChunk(
                replace(parsed.context, state={}), parsed.messages, len(parsed.messages)
            )


session_documents = SessionDocuments()
