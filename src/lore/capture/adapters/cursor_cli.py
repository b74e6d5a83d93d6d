"""Cursor's command line: the database of one chat, with messages under the hashes of their bytes.

A row of `meta` is JSON in hexadecimal digits and names the root: a protobuf message whose first
field repeats the ids of the messages in order, and whose ninth is the folder. Messages are JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from lore.capture.adapter_protocol import Context, SessionChunk
from lore.capture.adapters import cursor, json_fields
from lore.capture.adapters.json_fields import as_datetime, as_dict, as_list, as_text
from lore.capture.transcript_files import parse
from lore.errors import CaptureError
from lore.records import NewMessage
from lore.store import database
from lore.store.database import Connection

_SQLITE = b"SQLite format 3\0"
_MESSAGE_FIELD, _FOLDER_FIELD = 1, 9
_BYTES_TYPE = 2
_ID_BYTES = 32
_MAX_VARINT_BYTES = 10
_BETWEEN = timedelta(milliseconds=1)
"""Messages have no times: those of one reading follow each other at once."""


class ChatDatabase:
    """The adapter for the database of one chat."""

    agent = cursor.AGENT

    def find(self, home: Path) -> Iterator[Path]:
        """Yield the databases of chats that have no transcript and are not the editor's."""
        paths = list(json_fields.find_files(home / ".cursor" / "chats", "store.db"))
        if not paths:
            return
        transcripts = json_fields.find_files(home / ".cursor" / "projects", ".jsonl")
        known = {path.stem for path in transcripts} | cursor.sessions_of_editor(home)
        yield from (path for path in paths if path.parent.name not in known)

    def fits(self, path: Path, head: bytes) -> bool:
        """Return whether a file is the database of a chat."""
        is_named = path.name == "store.db" and "chats" in path.parts
        return is_named and head.startswith(_SQLITE)

    def read(self, path: Path, position: int) -> Iterator[SessionChunk]:
        """Yield the messages after a position: the number of messages that were read.

        A chat that was rewound is shorter, and is read from its beginning.
        """
        with database.open_external(path) as db:
            meta = _load_meta(db)
            fields = list(_fields(_load_blob(db, as_text(meta.get("latestRootBlobId")))))
            ids = [
                value.hex()
                for number, value in fields
                if number == _MESSAGE_FIELD and len(value) == _ID_BYTES
            ]
            blobs = [(id_, parse(_load_blob(db, id_))) for id_ in ids]
        first = position if position <= len(ids) else 0
        written = json_fields.modified_at(path)
        begun = written if first else as_datetime(meta.get("createdAt")) or written
        uri = next((value for number, value in fields if number == _FOLDER_FIELD), b"")
        context = Context(
            path.parent.name,
            title=as_text(meta.get("name")),
            folder=cursor.local_path(uri.decode("utf-8", "replace")),
        )
        messages: list[NewMessage] = []
        unknown: dict[str, int] = {}
        for number, (id_, message) in enumerate(blobs):
            at = min(begun + number * _BETWEEN, max(begun, written))
            parsed = cursor.parse_line(_as_line(message, at), context)
            context = parsed.context
            if parsed.unknown:
                unknown[parsed.unknown] = unknown.get(parsed.unknown, 0) + 1
            if number >= first:
                messages += (
                    replace(one, key=f"{number}-{id_[:32]}-{place}")
                    for place, one in enumerate(parsed.messages)
                )
        if len(ids) != position:
            context = replace(context, state={})
            yield SessionChunk(context, tuple(messages), len(ids), unknown)


def _load_meta(db: Connection) -> dict[str, Any]:
    rows = database.external_rows(db, "meta", ("value",))
    for (value,) in rows:
        try:
            return as_dict(json.loads(bytes.fromhex(as_text(value))))
        except (ValueError, RecursionError):
            continue
    msg = "is no chat that Lore can read"
    raise CaptureError(msg)


def _load_blob(db: Connection, id_: str) -> bytes:
    rows = database.external_rows(db, "blobs", ("data",), equal={"id": id_})
    data = rows[0][0] if rows else b""
    return data if isinstance(data, bytes) else b""


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the fields of a protobuf message that hold bytes, as far as it can be read."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        size, at = _varint(data, at)
        if tag & 7 == 0:
            continue  # what was read as a size is the number itself
        if tag & 7 != _BYTES_TYPE or at + size > len(data):
            return
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(data[at : at + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    return 0, len(data)


def _as_line(message: Any, at: datetime) -> dict[str, Any]:
    """Return a message as the transcripts of the command line write it."""
    fields = as_dict(message)
    role, content = as_text(fields.get("role")), fields.get("content")
    if role == "system":
        return {"type": "turn_started"}
    blocks = content if isinstance(content, str) else [*map(_as_block, as_list(content))]
    return {
        "role": "user" if role == "tool" else role,
        "timestamp": at.isoformat(),
        "message": {"content": blocks},
    }


def _as_block(part: Any) -> Any:
    fields = as_dict(part)
    call = fields.get("toolCallId")
    if fields.get("type") == "tool-call":
        name, arguments = fields.get("toolName"), fields.get("args")
        return {"type": "tool_use", "id": call, "name": name, "input": arguments}
    if fields.get("type") == "tool-result":
        result = fields.get("result")
        text = result if isinstance(result, str) else json.dumps(result)
        return {"type": "tool_result", "tool_use_id": call, "content": text}
    if fields.get("type") == "reasoning":
        return {"type": "thinking", "thinking": as_text(fields.get("text"))}
    return part


adapter = ChatDatabase()
