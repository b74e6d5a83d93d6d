"""opencode: a database of sessions, messages and parts, or a folder of files in old versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from lore import clock
from lore.capture.adapter_protocol import Context, SessionChunk
from lore.capture.adapters import content_blocks, injected_text, json_fields
from lore.capture.adapters.json_fields import (
    Record,
    as_counts,
    as_datetime,
    as_dict,
    as_list,
    as_text,
)
from lore.records import NewMessage, Origin, Part
from lore.store import database
from lore.store.database import Connection

AGENT = "opencode"

_SILENT = frozenset("step-start step-finish snapshot patch retry compaction agent".split())
"""Parts for the program itself."""

_UNTITLED = ("New session - ", "Child session - ")
_MOST_FILES = 200


def parse_record(data: Any) -> Record:
    """Return the JSON object in a column or file, or an empty one."""
    try:
        return as_dict(orjson.loads(data))
    except (orjson.JSONDecodeError, TypeError):
        return {}


def _make_context(session: str, parent: str, title: str, folder: str, version: str) -> Context:
    """Return the context of a session; a title that opencode generated from the time is dropped."""
    own_title = "" if title.startswith(_UNTITLED) else title
    return Context(session, parent, own_title, folder, version=version)


def is_finished(record: Record) -> bool:
    """Return whether a message is final."""
    if record.get("role") != "assistant":
        return True
    return bool(record.get("error") or as_dict(record.get("time")).get("completed"))


class MessageBuilder:
    """Builds the messages of one session, in order, and counts unknown records."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.messages: list[NewMessage] = []
        self.unknown: Counter[str] = Counter()
        self._at: datetime | None = None

    def add(self, id: str, record: Record, parts: list[tuple[str, Record]]) -> None:
        """Add one message with its parts."""
        self._at = self._moment(as_dict(record.get("time")).get("created"))
        role = record.get("role")
        if role == "user":
            self._ask(id, [part for _, part in parts])
        elif role == "assistant":
            self._answer(record, parts)
        else:
            self.unknown[f"role {as_text(role)[:40]}"] += 1

    def _moment(self, value: Any) -> datetime:
        return as_datetime(value) or self._at or clock.now()

    def _ask(self, id: str, records: list[Record]) -> None:
        parts: list[Part] = []
        for record in records:
            kind = as_text(record.get("type"))
            if kind == "text":
                beside = bool(record.get("synthetic") or record.get("ignored"))
                parts += content_blocks.user_parts(as_text(record.get("text")), aside=beside)
            elif kind == "file":
                parts.append(_file(record))
            elif kind == "subtask":
                parts += content_blocks.user_parts(as_text(record.get("prompt")), aside=True)
            elif kind not in _SILENT:
                parts.append(content_blocks.opaque_part(record))
        if parts:
            message = NewMessage("user", (), self._moment(None), id)
            if self.context.parent:
                message = injected_text.from_agent(message)
            self.messages.append(injected_text.user_or_system_message(message, parts))

    def _answer(self, record: Record, records: list[tuple[str, Record]]) -> None:
        """Add a response: a message for each part, the usage with the first."""
        first = len(self.messages)
        for own, part in records:
            kind = as_text(part.get("type"))
            if kind == "tool":
                self._call(own, part)
            elif kind == "patch":
                self._remember(as_text(name) for name in as_list(part.get("files")))
            elif kind not in _SILENT:
                parts = (
                    (_file(part, "tool"),)
                    if kind == "file"
                    else content_blocks.assistant_parts(part, {})
                )
                at = self._moment(as_dict(part.get("time")).get("start"))
                if parts and record.get("summary") is True:
                    beside = tuple(
                        injected_text.injected_part(each.text, "summary") for each in parts
                    )
                    self.messages.append(NewMessage("system", beside, at, own, origin="tool"))
                elif parts:
                    self.messages.append(NewMessage("assistant", parts, at, own))
        model = as_text(record.get("modelID"))
        usage = _usage(record.get("tokens"))
        for i in range(first, len(self.messages)):
            if self.messages[i].role == "assistant":
                self.messages[i] = replace(self.messages[i], model=model, usage=usage)
                usage = {}

    def _call(self, id: str, part: Record) -> None:
        state = as_dict(part.get("state"))
        times = as_dict(state.get("time"))
        invalid = part.get("tool") == "invalid"
        arguments = state.get("input")
        name, shown_arguments = part.get("tool"), arguments
        if invalid:  # of a tool that is not there only the name is kept, and an error
            name, shown_arguments = as_dict(arguments).get("tool"), ""
        call = content_blocks.call_part(name, shown_arguments, part.get("callID"))
        at = self._moment(times.get("start"))
        self.messages.append(NewMessage("assistant", (call,), at, id))
        self._remember(content_blocks.files_of_call(arguments))
        status = state.get("status")
        if status not in ("completed", "error"):
            return
        text = as_text(state.get("error" if status == "error" else "output"))
        code = as_dict(state.get("metadata")).get("exit")
        failed = status == "error" or invalid or code not in (None, 0)
        parts = content_blocks.result_parts(text, call.name, call.call_id, failed=failed)
        attached = (as_dict(each) for each in as_list(state.get("attachments")))
        parts += tuple(_file(each, parts[0].origin) for each in attached)
        at = self._moment(times.get("end")) if times.get("end") else at
        self.messages.append(NewMessage("tool", parts, at, f"{id}:result", origin=parts[0].origin))

    def _remember(self, names: Any) -> None:
        files = json_fields.extend_bounded(names, self.context.files, _MOST_FILES)
        self.context = replace(self.context, files=files)


def _file(record: Record, origin: Origin | None = None) -> Part:
    sort = as_text(record.get("mime"))
    kind = "image" if sort.startswith("image/") else "document"
    return injected_text.attachment_part({**record, "type": kind, "source": None}, origin)


def _usage(value: Any) -> dict[str, int]:
    """Return the token counts of a response under the names that other agents use."""
    counts = as_dict(value)
    cache = as_dict(counts.get("cache"))
    return as_counts({
        "input_tokens": counts.get("input"),
        "output_tokens": counts.get("output"),
        "reasoning_tokens": counts.get("reasoning"),
        "cache_read_input_tokens": cache.get("read"),
        "cache_creation_input_tokens": cache.get("write"),
    })


agent = AGENT

_SQLITE = b"SQLite format 3\0"
_ABANDONED_MS = 3_600_000
"""A response that is unchanged for this long, while others continue, will not be finished."""


@dataclass(frozen=True, slots=True)
class _Row:
    """One message of the database, without what it says."""

    id: str
    session: str
    created: int
    updated: int


def find(home: Path) -> Iterator[Path]:
    """Yield the databases below a person's home folder."""
    folder = home / ".local" / "share" / "opencode"
    if folder.is_dir() and not folder.is_symlink():
        for path in sorted(folder.glob("opencode*.db")):
            if json_fields.is_regular(path):
                yield path


def fits(path: Path, head: bytes) -> bool:
    """Return whether a file is a database of opencode."""
    return path.name.startswith("opencode") and path.suffix == ".db" and head.startswith(_SQLITE)


def read(path: Path, position: int) -> Iterator[SessionChunk]:
    """Yield what was finished since a position: the time of the last change, in milliseconds.

    Messages with exactly that time are repeated, as are those after a response that is still being
    written. All chunks but the last leave the position unchanged.
    """
    with database.open_external(path) as db:
        rows = _load_rows(db, position)
        open_rows = _find_unfinished(db, rows)
        forks = _forks(db, rows)
        finished = [
            row
            for row in rows
            if row.id not in open_rows and not forks.find_original(row.session, row.created)
        ]
        open_times = [row.updated for row in rows if row.id in open_rows]
        after = (
            min(open_times) if open_times else max((row.updated for row in rows), default=position)
        )
        sessions = list(dict.fromkeys(row.session for row in finished))
        for i, session in enumerate(sessions):
            context = _context(db, session)
            builder = MessageBuilder(context)
            for row in finished:
                if row.session == session:
                    builder.add(row.id, _record(db, row.id), _parts(db, row.id))
            here = max(position, after) if i == len(sessions) - 1 else position
            parent = context.parent or _forked_from(db, session, forks)
            placed = replace(builder.context, parent=parent)
            yield SessionChunk(placed, tuple(builder.messages), here, builder.unknown)


def _load_rows(db: Connection, position: int) -> list[_Row]:
    names = ("id", "session_id", "time_created", "time_updated")
    least = {"time_updated": position}
    rows = database.external_rows(db, "message", names, least=least, order=("time_created", "id"))
    return [
        _Row(as_text(own), as_text(session), _as_int(created), _as_int(updated))
        for own, session, created, updated in rows
        if as_text(session).strip()
    ]


def _as_int(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _find_unfinished(db: Connection, rows: list[_Row]) -> set[str]:
    """Return the responses that are still being written: the last of their session, and recent."""
    last = {row.session: row for row in rows}
    newest = max((row.updated for row in rows), default=0)
    return {
        row.id
        for row in last.values()
        if newest - row.updated < _ABANDONED_MS and not is_finished(_record(db, row.id))
    }


def _record(db: Connection, message: str) -> Record:
    rows = database.external_rows(db, "message", ("data",), equal={"id": message})
    return parse_record(rows[0][0]) if rows else {}


@dataclass(frozen=True, slots=True)
class _Forks:
    """Which messages are fork copies: older than their session, at a time that another message
    has."""

    began: dict[str, int]
    originals: dict[int, str]
    """The original session by the time of a message."""

    def find_original(self, session: str, created: int) -> str | None:
        """Return the session that a message was copied from, if it still exists."""
        return self.originals.get(created) if created < self.began.get(session, 0) else None


def _forks(db: Connection, rows: list[_Row]) -> _Forks:
    sessions = database.external_rows(db, "session", ("id", "time_created"))
    began = {as_text(own): _as_int(created) for own, created in sessions}
    concerned = {row.session for row in rows}
    if all(min(_times(db, one), default=0) >= began.get(one, 0) for one in concerned):
        return _Forks(began, {})
    rows_of_all = database.external_rows(db, "message", ("session_id", "time_created"))
    times = ((as_text(session), _as_int(created)) for session, created in rows_of_all)
    originals = {at: session for session, at in times if began.get(session, 0) <= at}
    return _Forks(began, originals)


def _times(db: Connection, session: str) -> list[int]:
    rows = database.external_rows(db, "message", ("time_created",), equal={"session_id": session})
    return sorted(_as_int(created) for (created,) in rows)


def _forked_from(db: Connection, session: str, forks: _Forks) -> str:
    """Return the session that the last copy in a session was made from, or an empty string."""
    if not forks.originals:
        return ""
    originals = (forks.find_original(session, created) for created in reversed(_times(db, session)))
    return next(filter(None, originals), "")


def _context(db: Connection, session: str) -> Context:
    names = ("parent_id", "title", "directory", "version")
    rows = database.external_rows(db, "session", names, equal={"id": session})
    if not rows:
        return Context(session=session)
    parent, title, folder, version = (as_text(value) for value in rows[0])
    return _make_context(session, parent, title, folder, version)


def _parts(db: Connection, message: str) -> list[tuple[str, Record]]:
    equal = {"message_id": message}
    rows = database.external_rows(db, "part", ("id", "data"), equal=equal, order=("id",))
    return [(as_text(own), parse_record(data)) for own, data in rows]


def _load_record(path: Path) -> Record:
    try:
        return parse_record(path.read_bytes())
    except OSError:
        return {}


class SessionFiles:
    """The adapter for opencode before its database: one file per session, message and part."""

    agent = AGENT

    def find(self, home: Path) -> Iterator[Path]:
        """Return the files of sessions below a person's home folder."""
        folder = home / ".local" / "share" / "opencode" / "storage" / "session"
        return json_fields.find_files(folder, ".json", beginning="ses_")

    def fits(self, path: Path, head: bytes) -> bool:
        """Return whether a file describes a session of opencode."""
        is_session_name = path.name.startswith("ses_") and path.suffix == ".json"
        return is_session_name and path.parent.parent.name == "session" and b'"id"' in head

    def read(self, path: Path, position: int) -> Iterator[SessionChunk]:
        """Yield what was finished since a position: the number of messages that were read."""
        session = _load_record(path)
        own = as_text(session.get("id")) or path.stem
        names = ("parentID", "title", "directory", "version")
        parent, title, folder, version = (as_text(session.get(name)) for name in names)
        builder = MessageBuilder(_make_context(own, parent, title, folder, version))
        storage = path.parents[2]
        message_files = list(json_fields.find_files(storage / "message" / own, ".json"))
        if len(message_files) < position:  # some were taken back
            position = 0
        read = position
        for i, file in enumerate(message_files[position:], position):
            record = _load_record(file)
            if i == len(message_files) - 1 and not is_finished(record):
                break
            parts = json_fields.find_files(storage / "part" / file.stem, ".json")
            builder.add(file.stem, record, [(part.stem, _load_record(part)) for part in parts])
            read = i + 1
        if read > position:
            yield SessionChunk(builder.context, tuple(builder.messages), read, builder.unknown)


session_files = SessionFiles()
