"""Transcript files: opened without following links, and known again after a change."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lore import clock
from lore.errors import CaptureError
from lore.records import Watermark
from lore.text.secrets import Redactor

_BUFFER = 1 << 20
HEAD = 65_536
"""So much of the beginning tells whose file it is."""

_KNOWN_BY = 1_024
"""So many bytes of the beginning, and of the last line, are known again."""

_NO_FILE = "is no ordinary file"

_DATABASES = (".db", ".sqlite", ".sqlite3")
"""Files that are written by way of a log beside them."""

_TICK_NS = 20_000_000
"""A clock of files stands still for so long: what was written just now may change unseen."""


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
        """Return what the file is known by: its beginning and the end of the last line read."""
        begin = self.head[: min(position, _KNOWN_BY)]
        if position and not last:
            last = os.pread(self.stream.fileno(), _KNOWN_BY, max(0, position - _KNOWN_BY))
        return _fingerprint(begin, last[-_KNOWN_BY:])

    def goes_on_from(self, mark: Watermark) -> bool:
        """Tell whether what was read before is still there, and only more was written."""
        if mark.file != self.file or self.size < mark.position:
            return False
        if self.size == mark.size and self.modified_ns != mark.modified_ns:
            return False
        begin, end = _lengths(mark.fingerprint)
        handle = self.stream.fileno()
        last = os.pread(handle, end, mark.position - end) if end else b""
        return _fingerprint(self.head[:begin], last) == mark.fingerprint


def _lengths(fingerprint: str) -> tuple[int, int]:
    begin, end, *_ = [*fingerprint.split(":"), "", ""]
    return (int(begin), int(end)) if begin.isdigit() and end.isdigit() else (0, 0)


def _fingerprint(begin: bytes, last: bytes) -> str:
    hashed = hashlib.blake2b(begin, digest_size=12)
    hashed.update(b"\0" + last)
    return f"{len(begin)}:{len(last)}:{hashed.hexdigest()}"


def source_of(path: Path) -> str:
    """Return a path as the store keeps it: absolute, and text even if its name is not."""
    return os.fsencode(Path(os.path.abspath(path))).decode("utf-8", "backslashreplace")  # noqa: PTH100


def kept_source(path: Path, redactor: Redactor) -> str:
    """Return the name under which a watermark is kept and told: no secret of a path is in it."""
    return redactor.redact(source_of(path))


@contextmanager
def open_file(path: Path) -> Iterator[OpenFile]:
    """Open an ordinary file for reading; raise for anything else."""
    handle = _open(path)
    try:
        found = os.fstat(handle)
        _require_ordinary(found)
        head = os.pread(handle, HEAD, 0)
    except BaseException as error:
        os.close(handle)
        if isinstance(error, OSError):
            raise CaptureError(_reason(error)) from error
        raise
    with os.fdopen(handle, "rb", buffering=_BUFFER) as stream:
        yield OpenFile(path, stream, *identity(path, found), head)


def _require_ordinary(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise CaptureError("is a folder" if stat.S_ISDIR(found.st_mode) else _NO_FILE)


def identity(path: Path, found: os.stat_result) -> tuple[str, int, int]:
    """Return by what a file is known: device and inode, size, time of its last change."""
    size, modified_ns = found.st_size, found.st_mtime_ns
    if path.suffix in _DATABASES:
        with suppress(OSError):
            log = path.with_name(f"{path.name}-wal").lstat()
            size, modified_ns = size + log.st_size, max(modified_ns, log.st_mtime_ns)
    settled = clock.to_us(clock.now()) * 1_000 - modified_ns > _TICK_NS
    return f"{found.st_dev}:{found.st_ino}", size, modified_ns if settled else 0


def find_identity(path: Path) -> tuple[str, int, int]:
    """Return by what a file is known without opening it; one that is gone is known by nothing."""
    try:
        return identity(path, path.lstat())
    except OSError:
        return "", 0, 0


def is_unchanged(path: Path, mark: Watermark) -> bool:
    """Tell without opening a file that nothing happened to it since it was read."""
    try:
        found = path.lstat()
    except OSError:
        return False
    same = (mark.file, mark.size, mark.modified_ns)
    return bool(mark.modified_ns) and identity(path, found) == same


def _open(path: Path) -> int:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except OSError as error:
        raise CaptureError(_reason(error)) from error
    except ValueError as error:
        raise CaptureError(_NO_FILE) from error


def _reason(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "is a symbolic link, which is not followed"
    if error.errno == errno.ENXIO:
        return _NO_FILE
    return f"cannot be read: {error.strerror}"
