"""Gemini CLI: a file of lines for each session, a JSON document in older versions, a log before."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from lore import clock
from lore.capture.adapter_protocol import Context, ParsedLine, SessionChunk
from lore.capture.adapters import content_blocks, injected_text, json_fields
from lore.capture.adapters.json_fields import (
    Record,
    as_counts,
    as_datetime,
    as_dict,
    as_list,
    as_text,
)
from lore.records import NewMessage, Part

agent = "gemini"

_NOTICES = frozenset("info error warning".split())
_INJECTED_PREFIXES = ("<session_context>", "<hook_context>")
"""Texts that the program puts in a person's place."""

_FILES_START, _FILES_END = "--- Content from referenced files ---", "--- End of content ---"
"""Around the content of files that a person named with '@'."""

_RUNNING = frozenset("validating scheduled executing awaiting_approval".split())
"""States of a call that has no result yet."""

_USAGE = {
    "input": "input_tokens", "output": "output_tokens", "cached": "cache_read_input_tokens",
    "thoughts": "reasoning_tokens",
}  # fmt: skip
_MOST_FILES = 200
_NAME_CHARS = 60
_PATH_BYTES = 4_096

Line = dict[str, Any]
State = dict[str, str]


def find(home: Path) -> Iterator[Path]:
    """Return the sessions below a person's home folder."""
    return _find_chats(home, ".jsonl")


def _find_chats(home: Path, ending: str) -> Iterator[Path]:
    for path in json_fields.find_files(home / ".gemini" / "tmp", ending):
        if "chats" in path.parts[-3:-1]:
            yield path


def fits(path: Path, head: bytes) -> bool:
    """Return whether a file is a session: its first line names the project by a hash."""
    first = head.partition(b"\n")[0]
    return path.suffix == ".jsonl" and b'"projectHash"' in first and b'"sessionId"' in first


def initial_context(path: Path) -> Context:
    """Return what the path of a file says about its session."""
    in_session = path.parent.name != "chats" and path.parent.parent.name == "chats"
    parent = path.parent.name if in_session else ""
    return Context(
        session=path.stem,
        parent=parent,
        folder=_project_folder(path),
        state={"time": json_fields.modified_at(path).isoformat()},
    )


def _project_folder(path: Path) -> str:
    """Return the folder of a session's project: a file says it, or a list of all projects does."""
    own = next((each for each in path.parents if each.parent.name == "tmp"), None)
    if own is None:
        return ""
    try:
        root = own / ".project_root"
        if json_fields.is_regular(root) and root.stat().st_size <= _PATH_BYTES:
            return root.read_text("utf-8", "replace").strip()
    except OSError:
        pass
    registry = as_dict(json_fields.find_document(own.parents[1] / "projects.json"))
    for folder, name in as_dict(registry.get("projects")).items():
        hashed = hashlib.sha256(folder.encode("utf-8", "replace")).hexdigest()
        if own.name in (name, hashed):
            return str(folder)
    return ""


def parse_line(line: Any, context: Context) -> ParsedLine:
    """Return the messages of a parsed line.

    A message is written again with the same id when calls and results are added: each part of it
    has a key of its own.
    """
    if not isinstance(line, dict):
        return ParsedLine(context, unknown="no object")
    if "$rewindTo" in line:
        return ParsedLine(context)
    if "$set" in line or "projectHash" in line:
        fields = as_dict(line.get("$set")) or line
        context = _with_fields(fields, context)
        records = as_list(fields.get("messages"))
    else:
        records = [line]
    messages: list[NewMessage] = []
    unknown = ""
    for record in records:
        state = dict(context.state)
        converted = _convert(as_dict(record), state)
        if isinstance(converted, str):
            unknown = converted
            continue
        files = json_fields.extend_bounded(_files(as_dict(record)), context.files, _MOST_FILES)
        context = replace(context, files=files, state=state)
        messages += converted
    if context.parent:
        messages = [injected_text.from_agent(each) for each in messages]
    return ParsedLine(context, tuple(messages), unknown)


def _with_fields(fields: Line, context: Context) -> Context:
    folders = as_list(fields.get("directories"))
    return replace(
        context,
        session=as_text(fields.get("sessionId")).strip() or context.session,
        title=as_text(fields.get("summary")).strip() or context.title,
        folder=context.folder or as_text(folders[0] if folders else ""),
    )


def _convert(record: Line, state: State) -> list[NewMessage] | str:
    """Return the messages of a record, or the name of an unknown kind."""
    at = as_datetime(record.get("timestamp"))
    if at is None:
        at = as_datetime(state.get("time")) or clock.now()
    else:
        state["time"] = at.isoformat()
    key = as_text(record.get("id")) or json_fields.digest(record)
    kind = as_text(record.get("type"))
    if kind == "user":
        return injected_text.user_messages(NewMessage("user", (), at, key), _typed(record))
    if kind == "gemini":
        return _response(record, key, at)
    if kind in _NOTICES:
        text = _text(record.get("content"))
        parts = (injected_text.injected_part(text, kind),) if text.strip() else ()
        return injected_text.user_messages(NewMessage("user", (), at, key), parts)
    return kind[:_NAME_CHARS] or "no type"


def _pieces(content: Any) -> list[Line]:
    """Return the parts of a content: a text, a part, or a list of both."""
    listed = content if isinstance(content, list) else [content]
    return [{"text": each} if isinstance(each, str) else as_dict(each) for each in listed]


def _text(content: Any) -> str:
    return "".join(as_text(piece.get("text")) for piece in _pieces(content))


def _typed(record: Line) -> tuple[Part, ...]:
    """Return the parts of a prompt: what was typed, and the files that were put beside it."""
    content = record.get("content")
    shown = _text(record.get("displayContent"))
    if _text(content).lstrip().startswith(_INJECTED_PREFIXES):
        return (injected_text.injected_part(_text(content)),)
    parts: list[Part] = [*injected_text.split_typed(shown)]
    attached = bool(shown.strip())
    for piece in _pieces(content):
        text = as_text(piece.get("text"))
        attached = attached or _FILES_START in text
        if "inlineData" in piece or "fileData" in piece:
            parts.append(_media(piece))
        elif attached and text.strip() and text != shown:
            parts.append(Part("document", injected_text.strip_data_uris(text), origin="tool"))
        elif text.strip() and not attached:
            parts += injected_text.split_typed(text)
        attached = (attached and _FILES_END not in text) or bool(shown.strip())
    return tuple(parts)


def _media(piece: Line) -> Part:
    data = as_dict(piece.get("inlineData")) or as_dict(piece.get("fileData"))
    sort = as_text(data.get("mimeType"))
    kind = "image" if sort.startswith("image/") else "document"
    block = {"type": kind, "mimeType": sort, "title": data.get("displayName")}
    return injected_text.attachment_part({**block, "uri": data.get("fileUri")})


def _response(record: Line, key: str, at: datetime) -> list[NewMessage]:
    """Return a response: reasoning, text, then each call and its result."""
    model = as_text(record.get("model"))
    pieces = [(f"{key}:thought{i}", parts) for i, parts in enumerate(_thoughts(record))]
    messages = [
        NewMessage("assistant", parts, at, own, model=model)
        for own, parts in (*pieces, (key, _spoken(record)))
        if parts
    ]
    for i, each in enumerate(as_list(record.get("toolCalls"))):
        messages += _call(as_dict(each), f"{key}:call{i}", at, model)
    counts = as_counts(record.get("tokens"))
    usage = {ours: counts[name] for name, ours in _USAGE.items() if name in counts}
    return [replace(messages[0], usage=usage), *messages[1:]] if messages else []


def _spoken(record: Line) -> tuple[Part, ...]:
    pieces = _pieces(record.get("content"))
    text = "".join(as_text(each.get("text")) for each in pieces if not each.get("thought"))
    return injected_text.split_spoken(text)


def _thoughts(record: Line) -> Iterator[tuple[Part, ...]]:
    thoughts = [as_dict(each) for each in as_list(record.get("thoughts"))]
    for thought in thoughts:
        words = (as_text(thought.get(name)).strip() for name in ("subject", "description"))
        yield content_blocks.reasoning_parts(": ".join(filter(None, words)))
    if not thoughts:
        pieces = (each for each in _pieces(record.get("content")) if each.get("thought"))
        yield content_blocks.reasoning_parts("".join(as_text(each.get("text")) for each in pieces))


def _call(call: Line, key: str, at: datetime, model: str) -> list[NewMessage]:
    own = as_text(call.get("id"))
    key = f"{key}:{own}"
    part = content_blocks.call_part(call.get("name"), call.get("args"), own)
    messages = [NewMessage("assistant", (part,), at, key, model=model)]
    status = as_text(call.get("status"))
    content = call.get("result")
    if status in _RUNNING or (content is None and not status):
        return messages
    failed = status in ("error", "cancelled")
    text = _output(content) or as_text(call.get("resultDisplay"))
    parts = content_blocks.result_parts(text, part.name, own, failed=failed)
    at = as_datetime(call.get("timestamp")) or at
    messages.append(NewMessage("tool", parts, at, f"{key}:result", origin=parts[0].origin))
    return messages


def _output(result: Any) -> str:
    """Return the text of a result: what the function answered, or an error."""
    texts: list[str] = []
    for piece in _pieces(result):
        response = as_dict(as_dict(piece.get("functionResponse")).get("response"))
        plain = (as_text(response.get(name)) for name in ("output", "error", "llmContent"))
        output = next(filter(None, plain), "") or as_text(piece.get("text"))
        texts.append(output or (json_fields.to_json(response) if response else ""))
    return "\n".join(filter(None, texts))


def _files(record: Line) -> Iterator[str]:
    for call in as_list(record.get("toolCalls")):
        arguments = as_dict(as_dict(call).get("args"))
        yield from content_blocks.files_of_call(arguments)
        yield from filter(None, [as_text(arguments.get("absolute_path"))])


class ChatDocuments:
    """The adapter for sessions of older versions: one JSON document, rewritten with each step."""

    agent = agent

    def find(self, home: Path) -> Iterator[Path]:
        """Return the documents below a person's home folder."""
        return _find_chats(home, ".json")

    def fits(self, path: Path, head: bytes) -> bool:
        """Return whether a file is such a session."""
        is_json = path.suffix == ".json"
        return is_json and b'"projectHash"' in head and b'"sessionId"' in head

    def read(self, path: Path, position: int) -> Iterator[SessionChunk]:
        """Yield the whole session; the position counts its messages."""
        del position
        document: Record = as_dict(json_fields.load_document(path))
        context = _with_fields(document, initial_context(path))
        messages: list[NewMessage] = []
        unknown: Counter[str] = Counter()
        records = as_list(document.get("messages"))
        for record in records:
            parsed = parse_line(record, context)
            context = parsed.context
            messages += parsed.messages
            if parsed.unknown:
                unknown[parsed.unknown] += 1
        if records:
            yield SessionChunk(replace(context, state={}), tuple(messages), len(records), unknown)


class PromptLog:
    """The adapter for the log of prompts, all that versions before the sessions wrote."""

    agent = agent

    def find(self, home: Path) -> Iterator[Path]:
        """Return the logs below a person's home folder."""
        for path in json_fields.find_files(home / ".gemini" / "tmp", "logs.json"):
            if path.name == "logs.json" and path.parent.parent.name == "tmp":
                yield path

    def fits(self, path: Path, head: bytes) -> bool:
        """Return whether a file is such a log."""
        return path.name == "logs.json" and b'"messageId"' in head and b'"sessionId"' in head

    def read(self, path: Path, position: int) -> Iterator[SessionChunk]:
        """Yield the prompts of each session that has no file of its own.

        The name of such a file ends with the first eight letters of the session's id.
        """
        del position
        recorded = {chat.stem[-8:] for chat in (path.parent / "chats").glob("session-*.json*")}
        by_session: dict[str, list[Line]] = {}
        entries = [as_dict(each) for each in as_list(json_fields.load_document(path))]
        for entry in entries:
            session = as_text(entry.get("sessionId")).strip()
            text = as_text(entry.get("message")).strip()
            if session and session[:8] not in recorded and not text.startswith(("/", "?")):
                by_session.setdefault(session, []).append(entry)
        for session, prompts in by_session.items():
            context = replace(initial_context(path), session=session, parent="", state={})
            messages: list[NewMessage] = []
            for prompt in prompts:
                at = as_datetime(prompt.get("timestamp")) or json_fields.modified_at(path)
                key = as_text(prompt.get("messageId")) or json_fields.digest(prompt)
                parts = injected_text.split_typed(as_text(prompt.get("message")))
                messages += injected_text.user_messages(NewMessage("user", (), at, key), parts)
            yield SessionChunk(context, tuple(messages), len(entries))


chat_documents = ChatDocuments()
prompt_log = PromptLog()
