"""Read the exports of chat services: a zip file or the JSON in it, object by object."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, cast

import orjson

from lore.capture.adapter_protocol import Context, SessionChunk
from lore.capture.adapters.json_fields import Record, as_dict, as_list, modified_at
from lore.errors import InvalidInput, NotFound
from lore.records import NewMessage
from lore.text.json_strings import find_string_end

CHUNK_BYTES = 1 << 20

_PLAIN = re.compile(rb'(?:[^"\[\]{}]*+"[^"\\]*+"){0,64}[^"\[\]{}]*+')
"""Some strings without escapes, and what is between brackets and strings."""

_OPENING, _QUOTE = b"[{", ord('"')
_SPACE = b" \t\r\n\xef\xbb\xbf"


def read_objects(stream: BinaryIO, *, most_bytes: int) -> Iterator[bytes]:
    """Yield each object of a JSON list, or the whole if it is one object.

    Only one of them is in memory, and none larger than `most_bytes`.
    """
    cutter = _ObjectSplitter()
    while chunk := stream.read(max(CHUNK_BYTES, cutter.buffered)):
        yield from cutter.feed(chunk)
        if cutter.buffered > most_bytes:
            msg = f"One of its conversations is larger than {most_bytes >> 20} MB."
            raise InvalidInput(msg)
    if not cutter.done:
        raise _not_json()


class _ObjectSplitter:
    """Cuts a JSON list where its objects end, without parsing them."""

    def __init__(self) -> None:
        self.done = False
        self._buffer = bytearray()
        self._at = 0
        self._depth = 0
        self._floor = 0
        """The depth between objects: 1 in a list."""

    @property
    def buffered(self) -> int:
        """Return how many bytes wait for their end."""
        return len(self._buffer)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Add a chunk of the stream, and yield the objects that it completes."""
        self._buffer += chunk
        start = 0
        while (mark := self._next_mark()) is not None:
            if mark in _OPENING:
                if not self._depth:
                    self._begin(mark)
                if self._depth == self._floor:
                    start = self._at
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth == self._floor:
                    yield bytes(self._buffer[start : self._at + 1])
                self.done = self._depth <= 0
            self._at += 1
        if self._depth <= self._floor:
            start = self._at  # between objects nothing is kept
        del self._buffer[:start]
        self._at -= start

    def _begin(self, mark: int) -> None:
        if self._buffer[: self._at].strip(_SPACE):
            raise _not_json()
        self._floor = int(mark == _OPENING[0])

    def _next_mark(self) -> int | None:
        """Return the next bracket outside strings; None if more has to be read."""
        if self.done:
            self._at = len(self._buffer)
        while plain := _PLAIN.match(self._buffer, self._at):
            self._at = plain.end()
            if self._at == len(self._buffer):
                return None
            if self._buffer[self._at] != _QUOTE:
                return self._buffer[self._at]
            end = find_string_end(self._buffer, self._at + 1)
            if end < 0:
                return None  # the rest of the string is still to come
            self._at = end
        return None


def _not_json() -> InvalidInput:
    return InvalidInput("It is not JSON, or ends in the middle.")


_MEMBER = re.compile(r"(?:^|/)conversations[^/]*\.json\Z", re.DOTALL)
_ZIP = b"PK\x03\x04"
_HEAD_BYTES = 65_536
_MOST_BYTES = 256 << 20
"""The largest conversation that is read; parsed, it takes several times as much memory."""

_SMALL_BYTES = 16 << 20
_MOST_TIMES = 100
"""Conversations compress to a fifth or a tenth; only endless repetition to a hundredth."""


@dataclass(slots=True)
class ArchiveAdapter:
    """The adapter for the archives of one service; `field` marks them near their start.

    `convert` returns the session data of a conversation, its messages, and the unknown kinds.
    """

    agent: str
    field: bytes
    convert: Callable[[Record, datetime], tuple[Context, list[NewMessage], Counter[str]]]

    def find(self, home: Path) -> Iterator[Path]:
        """Return nothing: an archive is wherever its owner put it."""
        del home
        return iter(())

    def fits(self, path: Path, head: bytes) -> bool:
        """Return whether a file is such an archive."""
        return _has_field(path, head, self.field)

    def read(self, path: Path, position: int) -> Iterator[SessionChunk]:
        """Yield all conversations; the position counts them.

        A changed export can have new messages anywhere, so none is skipped.
        """
        del position
        written = modified_at(path)
        for i, conversation in enumerate(_read_conversations(path)):
            context, messages, unknown = self.convert(conversation, written)
            named = replace(context, session=context.session or f"{path.stem}/{i}")
            yield SessionChunk(named, tuple(messages), i + 1, unknown)


def _has_field(path: Path, head: bytes, sign: bytes) -> bool:
    """Return whether an archive has conversations with a field of this name near their start."""
    if path.suffix == ".json":
        return sign in (head if len(head) >= _HEAD_BYTES else _beginning(path) or head)
    if path.suffix != ".zip" or not head.startswith(_ZIP):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            for name in _members(archive):
                with archive.open(name) as stream:
                    return sign in stream.read(_HEAD_BYTES)
    except (OSError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError):
        return False
    return False


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(_HEAD_BYTES)
    except OSError:
        return b""


def _read_conversations(path: Path) -> Iterator[Record]:
    """Yield the conversations of an archive in order, one at a time."""
    for document in _documents(path):
        try:
            parsed = orjson.loads(document)
        except orjson.JSONDecodeError as error:
            msg = f"A conversation in it is not JSON: {error}."
            raise InvalidInput(msg) from error
        listed = parsed.get("conversations") if isinstance(parsed, dict) else None
        for conversation in [parsed] if listed is None else as_list(listed):
            yield as_dict(conversation)


def _documents(path: Path) -> Iterator[bytes]:
    try:
        if path.suffix != ".zip":
            with path.open("rb") as stream:
                yield from read_objects(stream, most_bytes=_MOST_BYTES)
            return
        with zipfile.ZipFile(path) as archive:
            for name in _members(archive):
                _refuse_bomb(archive.getinfo(name))
                with archive.open(name) as packed:
                    yield from read_objects(cast("BinaryIO", packed), most_bytes=_MOST_BYTES)
    except OSError as error:
        msg = f"{path} cannot be opened: {error.strerror}."
        raise NotFound(msg) from error
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
        msg = f"It is damaged or locked: {error}"
        raise InvalidInput(msg) from error


def _refuse_bomb(member: zipfile.ZipInfo) -> None:
    """Refuse a zip bomb: conversations never unpack to that much."""
    if member.file_size > max(_SMALL_BYTES, _MOST_TIMES * member.compress_size):
        packed, whole = member.compress_size >> 10, member.file_size >> 20
        msg = f"Its {packed:,} KB would unpack to {whole:,} MB, which conversations never do."
        raise InvalidInput(msg)


def _members(archive: zipfile.ZipFile) -> list[str]:
    return sorted(filter(_MEMBER.search, archive.namelist()))
