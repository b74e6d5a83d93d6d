"""Cursor: the database of the editor, and the transcripts of its command line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

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
from lore.capture.transcript_files import parse
from lore.errors import LoreError
from lore.records import NewMessage, Part
from lore.store import database
from lore.store.database import Connection

AGENT = "cursor"

_TABLE = "cursorDiskKV"
_SESSION, _BUBBLE = "composerData:", "bubbleId:"
_SQLITE = b"SQLite format 3\0"
_USER, _ASSISTANT = 1, 2
_RUNNING = frozenset("loading pending running streaming".split())
_FAILED = frozenset("error cancelled rejected".split())
_TAIL = 20
"""Messages at the end of a changed session that are read again: they may have waited."""

_ABANDONED = timedelta(hours=1)
"""A response that is unchanged for this long, while others continue, will not be finished."""

_MOST_FILES = 200
_YEAR_2000_MS = 946_684_800_000
"""Smaller times count from the start of the program."""

Line = dict[str, Any]
State = dict[str, str]


class EditorDatabase:
    """The adapter for the database of the editor, a table of keys and JSON values."""

    agent = AGENT

    def find(self, home: Path) -> Iterator[Path]:
        """Yield the databases below a person's home folder."""
        return _find_databases(home)

    def fits(self, path: Path, head: bytes) -> bool:
        """Return whether a file is the editor's database of all sessions."""
        is_global = path.name == "state.vscdb" and path.parent.name == "globalStorage"
        return is_global and head.startswith(_SQLITE)

    def read(self, path: Path, position: int) -> Iterator[SessionChunk]:
        """Yield what changed since a position: the highest row number.

        A value that changes gets a new row. All chunks but the last leave the position unchanged.
        """
        with database.open_external(path) as db:
            keys = _changed_keys(db, position) or _changed_keys(db, 0)
            if not keys:
                return
            changed = _group_by_session(keys.values())
            folders = _WorkspaceFolders(path.parents[1] / "workspaceStorage")
            written = json_fields.modified_at(path)
            for session, bubbles in changed.items():
                composer = _load(db, f"{_SESSION}{session}")
                if composer:
                    reader = _SessionReader(db, session, composer, written)
                    reader.read(bubbles)
                    context = folders.place(session, reader.context)
                    yield SessionChunk(context, tuple(reader.messages), position, reader.unknown)
            yield SessionChunk(Context(session=path.stem), (), max(keys))


def _find_databases(home: Path) -> Iterator[Path]:
    for folder in json_fields.find_editor_folders(home, ("Cursor",)):
        path = folder / "globalStorage" / "state.vscdb"
        if json_fields.is_regular(path):
            yield path


def _changed_keys(db: Connection, position: int) -> dict[int, str]:
    rows = database.external_rows(
        db, _TABLE, ("rowid", "key"), least={"rowid": position}, order=("rowid",)
    )
    return {row: as_text(key) for row, key in rows if isinstance(row, int)}


def _group_by_session(keys: Any) -> dict[str, set[str]]:
    """Return the changed sessions, each with its changed bubbles."""
    changed: dict[str, set[str]] = {}
    for key in keys:
        if key.startswith(_SESSION):
            changed.setdefault(key.removeprefix(_SESSION), set())
        elif key.startswith(_BUBBLE):
            session, _, bubble = key.removeprefix(_BUBBLE).partition(":")
            changed.setdefault(session, set()).add(bubble)
    return {session: bubbles for session, bubbles in changed.items() if session.strip()}


def _load(db: Connection, key: str, table: str = _TABLE) -> Record:
    rows = database.external_rows(db, table, ("value",), equal={"key": key})
    value = rows[0][0] if rows else None
    if isinstance(value, str):
        value = value.encode("utf-8", "replace")
    return as_dict(parse(value)) if isinstance(value, bytes) else {}


@dataclass(slots=True)
class _SessionReader:
    """Reads the bubbles of one session: prompts, texts, reasoning, and calls with their results."""

    db: Connection
    session: str
    composer: Record
    written: datetime
    messages: list[NewMessage] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    context: Context = field(default_factory=Context)
    _at: datetime = field(default_factory=clock.now)

    def read(self, changed: set[str]) -> None:
        """Read the changed bubbles and the last ones, in the order of the session."""
        parent = as_text(as_dict(self.composer.get("subagentInfo")).get("parentComposerId"))
        place = as_dict(as_dict(self.composer.get("workspaceIdentifier")).get("uri"))
        folder = as_text(place.get("fsPath")) or as_text(place.get("path"))
        title = as_text(self.composer.get("name")).strip()
        self.context = Context(self.session, parent, title, folder)
        self._at = as_datetime(self.composer.get("createdAt")) or self.written
        inline = as_list(self.composer.get("conversation"))
        headers = [as_dict(each) for each in inline or self._headers()]
        tail = {as_text(each.get("bubbleId")) for each in headers[-_TAIL:]}
        for i, header in enumerate(headers):
            own = as_text(header.get("bubbleId"))
            if not inline and own not in changed and own not in tail:
                continue
            bubble = header if inline else self._bubble(own)
            if bubble and not self._is_open(bubble, is_last=i == len(headers) - 1):
                self._add(bubble, header, own or f"{i}-{json_fields.digest(bubble)}")

    def _headers(self) -> list[Any]:
        return as_list(self.composer.get("fullConversationHeadersOnly"))

    def _bubble(self, own: str) -> Record:
        return _load(self.db, f"{_BUBBLE}{self.session}:{own}")

    def _is_open(self, bubble: Record, *, is_last: bool) -> bool:
        """Return whether a bubble is still being written."""
        updated = as_datetime(self.composer.get("lastUpdatedAt"))
        if updated and self.written - updated > _ABANDONED:
            return False
        status = as_text(as_dict(bubble.get("toolFormerData")).get("status"))
        return status in _RUNNING or (is_last and self.composer.get("status") == "generating")

    def _add(self, bubble: Record, header: Record, key: str) -> None:
        self._at = _bubble_time(bubble, header) or self._at
        kind = bubble.get("type")
        if kind == _USER:
            parts = injected_text.split_typed(as_text(bubble.get("text")))
            message = NewMessage("user", (), self._at, key)
            if self.context.parent:
                message = injected_text.from_agent(message)
            self.messages += injected_text.user_messages(message, parts)
        elif kind == _ASSISTANT:
            self._answer(bubble, key)
        else:
            self.unknown[f"bubble of type {as_text(kind)[:40]}"] += 1

    def _answer(self, bubble: Record, key: str) -> None:
        models = (bubble.get("modelInfo"), self.composer.get("modelConfig"))
        names = (as_text(as_dict(each).get("modelName")) for each in models)
        model = next(filter(None, names), "")
        thinking = bubble.get("thinking")
        reasoning = as_text(thinking) or as_text(as_dict(thinking).get("text"))
        pieces = [
            (f"{key}:thinking", content_blocks.reasoning_parts(reasoning)),
            (key, injected_text.split_spoken(as_text(bubble.get("text")))),
        ]
        counts = as_counts(bubble.get("tokenCount"))
        names_of_counts = {"inputTokens": "input_tokens", "outputTokens": "output_tokens"}
        usage = {ours: counts[name] for name, ours in names_of_counts.items() if name in counts}
        for own, parts in pieces:
            if parts:
                message = NewMessage("assistant", parts, self._at, own, model=model, usage=usage)
                self.messages.append(message)
                usage = {}
        tool = as_dict(bubble.get("toolFormerData"))
        if as_text(tool.get("name")):
            self._call(tool, key, model)

    def _call(self, tool: Record, key: str, model: str) -> None:
        arguments = as_text(tool.get("rawArgs")) or as_text(tool.get("params"))
        call_id = as_text(tool.get("toolCallId"))
        call = content_blocks.call_part(tool.get("name"), arguments, call_id)
        self.messages.append(NewMessage("assistant", (call,), self._at, f"{key}:call", model=model))
        parsed = parse(arguments.encode("utf-8", "replace")) if arguments else None
        self._remember_files(as_dict(parsed))
        status = as_text(tool.get("status"))
        text = as_text(tool.get("result")) or _error(tool.get("error"))
        if text or status:
            failed = status in _FAILED or bool(tool.get("error"))
            parts = content_blocks.result_parts(text, call.name, call_id, failed=failed)
            origin = parts[0].origin
            self.messages.append(
                NewMessage("tool", parts, self._at, f"{key}:result", origin=origin)
            )

    def _remember_files(self, arguments: Record) -> None:
        names = [
            *content_blocks.files_of_call(arguments),
            *(as_text(arguments.get(name)) for name in ("target_file", "relativeWorkspacePath")),
        ]
        files = json_fields.extend_bounded(names, self.context.files, _MOST_FILES)
        self.context = replace(self.context, files=files)


def _error(value: Any) -> str:
    fields = as_dict(value)
    names = ("clientVisibleErrorMessage", "modelVisibleErrorMessage", "message")
    return as_text(value) or next(filter(None, (as_text(fields.get(each)) for each in names)), "")


def _bubble_time(bubble: Record, header: Record) -> datetime | None:
    timing = as_dict(bubble.get("timingInfo"))
    start = timing.get("clientStartTime")
    has_time = isinstance(start, int | float) and start > _YEAR_2000_MS
    return (
        as_datetime(bubble.get("createdAt"))
        or as_datetime(header.get("createdAt"))
        or (as_datetime(start) if has_time else None)
    )


class _WorkspaceFolders:
    """The folders of sessions, as the databases of workspaces list them in older versions."""

    def __init__(self, storage: Path) -> None:
        self._storage = storage
        self._folders: dict[str, str] | None = None

    def place(self, session: str, context: Context) -> Context:
        """Return the context of a session with its folder."""
        if context.folder:
            return context
        if self._folders is None:
            self._folders = dict(self._listed())
        return replace(context, folder=self._folders.get(session, ""))

    def _listed(self) -> Iterator[tuple[str, str]]:
        for described in sorted(self._storage.glob("*/workspace.json")):
            uri = as_text(as_dict(json_fields.find_document(described)).get("folder"))
            path = described.with_name("state.vscdb")
            if not uri.startswith("file:///") or not json_fields.is_regular(path):
                continue
            try:
                with database.open_external(path) as db:
                    listed = _load(db, "composer.composerData", "ItemTable")
            except LoreError:
                continue
            for each in as_list(listed.get("allComposers")):
                yield as_text(as_dict(each).get("composerId")), local_path(uri)


def local_path(uri: str) -> str:
    """Return the path of a file URI."""
    return unquote(uri.removeprefix("file://"))


agent = AGENT

_SILENT = frozenset("turn_ended turn_started".split())
_QUERY = re.compile(r"(.*)<user_query>\n?(.*?)\n?</user_query>\s*\Z", re.DOTALL)
"""What a person typed is the last thing in a prompt; files stand before it."""

_INJECTED = ("<user_info>", "<git_status>", "<rules>", "<system_reminder>", "<open_and_recently")
_NO_WORD = re.compile(r"[^A-Za-z0-9]+")
_MOST_FOLDERS = 12


def find(home: Path) -> Iterator[Path]:
    """Yield the transcripts of sessions that are in no database of the editor."""
    transcripts = (
        path
        for path in json_fields.find_files(home / ".cursor" / "projects", ".jsonl")
        if "agent-transcripts" in path.parts
    )
    first = next(transcripts, None)
    if first is None:
        return
    in_editor = sessions_of_editor(home)
    for path in (first, *transcripts):
        if path.stem not in in_editor:
            yield path


def sessions_of_editor(home: Path) -> set[str]:
    """Return the ids of the sessions in the editor's databases."""
    sessions: set[str] = set()
    for path in _find_databases(home):
        try:
            with database.open_external(path) as db:
                rows = database.external_rows(db, _TABLE, ("key",))
        except LoreError:
            continue
        keys = (as_text(key) for (key,) in rows)
        sessions |= {key.removeprefix(_SESSION) for key in keys if key.startswith(_SESSION)}
    return sessions


def fits(path: Path, head: bytes) -> bool:
    """Return whether a file is a transcript of the command line or of an agent."""
    is_named = path.suffix == ".jsonl" and "agent-transcripts" in path.parts
    return is_named and b'"role"' in head and b'"message"' in head


def initial_context(path: Path) -> Context:
    """Return what the path of a file says about its session."""
    above = path.parts[: path.parts.index("agent-transcripts")]
    slug = above[-1] if above else ""
    parent = path.parents[1].name if path.parent.name == "subagents" else ""
    state = {"time": json_fields.modified_at(path).isoformat()}
    return Context(path.stem, parent, folder=_find_folder(Path("/"), slug), state=state)


def _find_folder(base: Path, slug: str, depth: int = _MOST_FOLDERS) -> str:
    """Return the folder whose path, with '-' for all but letters and digits, is a slug."""
    try:
        inner = sorted(each for each in base.iterdir() if each.is_dir() and not each.is_symlink())
    except OSError:
        return ""
    for folder in inner:
        name = _NO_WORD.sub("-", folder.name).strip("-")
        if name and slug == name:
            return str(folder)
        if name and depth and slug.startswith(f"{name}-"):
            nested = _find_folder(folder, slug[len(name) + 1 :], depth - 1)
            if nested:
                return nested
    return ""


def parse_line(line: Any, context: Context) -> ParsedLine:
    """Return the messages of a parsed line; lines have no ids and no times."""
    if not isinstance(line, dict):
        return ParsedLine(context, unknown="no object")
    role, kind = as_text(line.get("role")), as_text(line.get("type"))
    if kind in _SILENT:
        return ParsedLine(context)
    state = dict(context.state)
    number = state.get("number", "0")
    state["number"] = str(int(number) + 1) if number.isdecimal() else "1"
    at = as_datetime(line.get("timestamp")) or as_datetime(state.get("time")) or clock.now()
    key = f"{state['number']}-{json_fields.digest(line)}"
    content = as_dict(line.get("message")).get("content")
    blocks = [content] if isinstance(content, str) else as_list(content)
    if role == "user":
        messages = _asked(blocks, state, key, at)
        if context.parent:
            messages = [injected_text.from_agent(each) for each in messages]
    elif role == "assistant":
        messages = content_blocks.assistant_messages(blocks, state, key, at)
    else:
        return ParsedLine(context, unknown=f"role {role[:40]}" if role else kind[:40] or "no role")
    names = (
        name for each in blocks for name in content_blocks.files_of_call(as_dict(each).get("input"))
    )
    files = json_fields.extend_bounded(names, context.files, _MOST_FILES)
    return ParsedLine(replace(context, files=files, state=state), tuple(messages))


def _asked(blocks: list[Any], state: State, key: str, at: datetime) -> list[NewMessage]:
    messages: list[NewMessage] = []
    parts: list[Part] = []
    for i, block in enumerate(blocks):
        fields: Line = {"type": "text", "text": block} if isinstance(block, str) else as_dict(block)
        if fields.get("type") == "tool_result":
            answer = content_blocks.answer_parts(fields, state, fields.get("tool_use_id"))
            origin = answer[0].origin
            messages.append(NewMessage("tool", answer, at, f"{key}:{i}", origin=origin))
        elif fields.get("type") == "text":
            parts += _typed(as_text(fields.get("text")))
        else:
            parts += content_blocks.user_parts([fields])
    return [*messages, *injected_text.user_messages(NewMessage("user", (), at, key), parts)]


def _typed(text: str) -> tuple[Part, ...]:
    query = _QUERY.match(text)
    if query:
        before = (injected_text.injected_part(query[1]),) if query[1].strip() else ()
        return (*before, *injected_text.split_typed(query[2]))
    if text.lstrip().startswith(_INJECTED):
        return (injected_text.injected_part(text),)
    return injected_text.split_typed(text)


editor_database = EditorDatabase()
