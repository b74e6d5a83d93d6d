"""Open transcript files without following links, detect changes, and read their JSON lines."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson

from lore import clock
from lore.errors import CaptureError
from lore.lazy_dataclass import dataclass
from lore.records import Watermark

_BUFFER = 1 << 20
HEAD = 65_536
"""Bytes of the beginning that identify the agent."""

_FINGERPRINT_BYTES = 1_024
"""Bytes of the beginning, and of the last line, that are part of the fingerprint."""

_LENGTHS = re.compile(r"([0-9]+):([0-9]+)(?::|$)")
"""The lengths of both in a fingerprint."""

_NO_FILE = "is no ordinary file"

_COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd")
"""How files begin that gzip, zip, bzip2, xz and zstd write."""

_MOST_NAMES, _NAME_CHARS = 4, 40
"""Fields of a line, and characters of a field, that describe an unknown file."""

_DATABASES = (".db", ".sqlite", ".sqlite3", ".vscdb")
"""Files that are written through a write-ahead log beside them."""

_TICK_NS = 20_000_000
"""Resolution of file times: a file written just now may change unseen."""


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file as it was when it was opened."""

    path: Path
    stream: BinaryIO
    file: str
    size: int
    modified_ns: int
    head: bytes

    def fingerprint(self, position: int, last: bytes) -> str:
        """Return the fingerprint: a hash of the file's beginning and the end of the last line
        read."""
        begin = self.head[: min(position, _FINGERPRINT_BYTES)]
        if position and not last:
            start = max(0, position - _FINGERPRINT_BYTES)
            last = os.pread(self.stream.fileno(), _FINGERPRINT_BYTES, start)
        return _fingerprint(begin, last[-_FINGERPRINT_BYTES:])

    def goes_on_from(self, mark: Watermark) -> bool:
        """Return whether the file was only appended to since the watermark."""
        if mark.file != self.file or self.size < mark.position:
            return False
        if self.size == mark.size and self.modified_ns != mark.modified_ns:
            return False
        lengths = _LENGTHS.match(mark.fingerprint)
        begin, end = map(int, lengths.groups()) if lengths else (0, 0)
        last = os.pread(self.stream.fileno(), end, mark.position - end) if end else b""
        return _fingerprint(self.head[:begin], last) == mark.fingerprint


def _fingerprint(begin: bytes, last: bytes) -> str:
    hashed = hashlib.blake2b(begin, digest_size=12)
    hashed.update(b"\0" + last)
    return f"{len(begin)}:{len(last)}:{hashed.hexdigest()}"


def source_of(path: Path) -> str:
    """Return a path as the store records it: absolute, and valid text whatever its bytes."""
    return os.fsencode(Path(os.path.abspath(path))).decode("utf-8", "backslashreplace")  # noqa: PTH100


@contextmanager
def open_file(path: Path) -> Iterator[OpenFile]:
    """Open a regular file for reading; raise `CaptureError` for anything else."""
    with ExitStack() as stack:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            stack.callback(os.close, handle)
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise CaptureError("is a folder" if stat.S_ISDIR(status.st_mode) else _NO_FILE)
            head = os.pread(handle, HEAD, 0)
            stream = stack.enter_context(open(handle, "rb", buffering=_BUFFER, closefd=False))
        except OSError as error:
            raise CaptureError(_reason(error)) from error
        except ValueError as error:
            raise CaptureError(_NO_FILE) from error
        yield OpenFile(path, stream, *_identity(path, status), head)


def _identity(path: Path, status: os.stat_result) -> tuple[str, int, int]:
    """Return a file's identity: device and inode, size, modification time."""
    size, modified_ns = status.st_size, status.st_mtime_ns
    if path.suffix in _DATABASES:
        with suppress(OSError):
            log = path.with_name(f"{path.name}-wal").lstat()
            size, modified_ns = size + log.st_size, max(modified_ns, log.st_mtime_ns)
    settled = clock.to_us(clock.now()) * 1_000 - modified_ns > _TICK_NS
    return f"{status.st_dev}:{status.st_ino}", size, modified_ns if settled else 0


def find_identity(path: Path) -> tuple[str, int, int]:
    """Return a file's identity without opening it; empty for one that is gone."""
    try:
        return _identity(path, path.lstat())
    except OSError:
        return "", 0, 0


def is_unchanged(path: Path, mark: Watermark) -> bool:
    """Return, without opening a file, whether it is unchanged since the watermark."""
    same = (mark.file, mark.size, mark.modified_ns)
    return bool(mark.modified_ns) and find_identity(path) == same


def describe_head(head: bytes) -> str:
    """Return what the first bytes of a file say about its kind, for a file that no adapter fits."""
    if not head.strip():
        return "it is empty"
    if head.startswith(_COMPRESSED):
        return "it is compressed; unpack it first"
    if b"\0" in head:
        return "it is no text"
    line = head.lstrip().partition(b"\n")[0]
    value = parse(line)
    if isinstance(value, dict):
        names = ", ".join(repr(str(name)[:_NAME_CHARS]) for name in islice(value, _MOST_NAMES))
        return f"no agent is known whose lines begin with the fields {names or 'of {}'}"
    return "its first line is no JSON object"


def _reason(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "is a symbolic link, which is not followed"
    if error.errno == errno.ENXIO:
        return _NO_FILE
    return f"cannot be read: {error.strerror}"


LONGEST_LINE = 32 << 20
"""Images make lines of a few megabytes; a longer line is skipped, so that memory is bounded."""

_MOST_SKIPPED = 64 << 20
"""Bytes of an overlong line that are skipped at once."""

_STEP = 1 << 20
_BOM = b"\xef\xbb\xbf"
_PADDING = b" \t\r\n\0\x1a"
"""Bytes that may surround a line: zeros are what a crash leaves behind."""

NOT_JSON = "not JSON"
TOO_LONG = "too long"
TOO_DEEP = "nested too deeply"
UNREADABLE = "unreadable"


class Line(NamedTuple):
    """One line: the position after it, its bytes, and whether it ends with a newline.

    An overlong line has no bytes.
    """

    end: int
    raw: bytes
    ended: bool = True


class Unparsed(NamedTuple):
    """Why a line could not be parsed."""

    reason: str


def read_lines(stream: BinaryIO, position: int, longest: int = LONGEST_LINE) -> Iterator[Line]:
    """Yield the lines from a position on; the last one may be incomplete."""
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
    """Skip to the end of a line; return the bytes skipped, or 0 if it is incomplete.

    A very long line is left in the middle: the rest is a line of its own, so that the reader can
    stop there, and nothing is read twice.
    """
    start = stream.tell()
    while raw := stream.readline(_STEP):
        length = stream.tell() - start
        if raw.endswith(b"\n") or length >= _MOST_SKIPPED:
            return length
        _skip_hole(stream)
    return 0


def _skip_hole(stream: BinaryIO) -> None:
    """Skip a hole of a sparse file: it contains no newline, however large it is."""
    place, file = stream.tell(), stream.fileno()
    at = os.lseek(file, 0, os.SEEK_CUR)
    try:
        data = os.lseek(file, place, os.SEEK_DATA)
    except OSError as error:  # ENXIO: no data behind; other systems do not support it
        data = os.fstat(file).st_size if error.errno == errno.ENXIO else place
    os.lseek(file, at, os.SEEK_SET)
    stream.seek(max(data, place))


def parse(raw: bytes) -> Any:
    """Parse a line; return None if it is empty, or `Unparsed` with the reason."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _parse_lenient(raw)


def _parse_lenient(raw: bytes) -> Any:
    """Parse what a strict parser rejects: byte order marks, zeros, broken UTF-8, lone
    surrogates."""
    text = raw.strip(_PADDING).removeprefix(_BOM).strip(_PADDING)
    if not text:
        return None if raw else Unparsed(TOO_LONG)
    try:
        return json.loads(text.decode("utf-8", "replace"), strict=False)
    except RecursionError:
        return Unparsed(TOO_DEEP)
    except ValueError:
        return Unparsed(NOT_JSON)
