"""The lines of a transcript file: found, bounded and parsed, whatever is in them."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import orjson

LONGEST_LINE = 32 << 20
"""Pictures make lines of a few megabytes; what is longer is no talk, and memory is bounded."""

_MOST_SKIPPED = 64 << 20
"""So much of a line that is too long is passed over at once."""

_STEP = 1 << 20
_BOM = b"\xef\xbb\xbf"
_PADDING = b" \t\r\n\0\x1a"
"""What may stand around a line: zeros are what a crash leaves behind."""

NOT_JSON = "not JSON"
TOO_LONG = "too long"
TOO_DEEP = "nested too deeply"
UNREADABLE = "unreadable"


class Line(NamedTuple):
    """One line: where it ends, its bytes, and whether its end was seen.

    A line that is too long has no bytes.
    """

    end: int
    raw: bytes
    ended: bool = True


class Unparsed(NamedTuple):
    """Why a line could not be parsed."""

    reason: str


def read_lines(stream: BinaryIO, position: int, longest: int = LONGEST_LINE) -> Iterator[Line]:
    """Yield the lines from a position on; the last one may have no end yet."""
    stream.seek(position)
    while raw := stream.readline(longest):
        position += len(raw)
        if raw.endswith(b"\n"):
            yield Line(position, raw)
        elif len(raw) < longest:
            yield Line(position, raw, ended=False)
            return
        else:
            rest = _skip_line(stream)
            if not rest:
                return
            position += rest
            yield Line(position, b"")


def _skip_line(stream: BinaryIO) -> int:
    """Go to the end of a line and return how far that was; 0 if it has no end yet.

    What goes on for too long is left in the middle: the rest is a line of its own, so that whoever
    reads can stop there, and nothing is read twice.
    """
    start = stream.tell()
    while raw := stream.readline(_STEP):
        length = stream.tell() - start
        if raw.endswith(b"\n") or length >= _MOST_SKIPPED:
            return length
        _skip_hole(stream)
    return 0


def _skip_hole(stream: BinaryIO) -> None:
    """Go to where a file has bytes again: a hole has no end of a line, however large it is."""
    place, file = stream.tell(), stream.fileno()
    at = os.lseek(file, 0, os.SEEK_CUR)
    try:
        data = os.lseek(file, place, os.SEEK_DATA)
    except OSError as error:  # none has no bytes behind it, and some systems do not tell
        data = os.fstat(file).st_size if error.errno == errno.ENXIO else place
    os.lseek(file, at, os.SEEK_SET)
    stream.seek(max(data, place))


def parse(raw: bytes) -> Any:
    """Return the value of a line, None if it is empty, or why it has none."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _parse_odd(raw)


def _parse_odd(raw: bytes) -> Any:
    """Parse what a strict reader refuses: marks, zeros, broken UTF-8, halves of characters."""
    text = raw.strip(_PADDING).removeprefix(_BOM).strip(_PADDING)
    if not text:
        return None if raw else Unparsed(TOO_LONG)
    try:
        return json.loads(text.decode("utf-8", "replace"), strict=False)
    except RecursionError:
        return Unparsed(TOO_DEEP)
    except ValueError:
        return Unparsed(NOT_JSON)
