"""The storage of the vector index: a mapped file or memory, commits, and the file lock.

The file never shrinks and is written with pwrite only: a full disk is an OSError, not a bus
error, and a process that still maps an older or replaced file goes on reading it safely.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import stat
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from lore.store.vector_layout import (
    COPY_OFFSETS,
    HEADER_BYTES,
    MEAN_OFFSET,
    Header,
    Layout,
    Rows,
    Stamp,
    Views,
)
from lore.store.vector_scan import BLOCK_ROWS, Float32s, Int64s, sign_planes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = [
    "FileStorage",
    "MemoryStorage",
    "Storage",
    "commit",
    "erase_leftovers",
    "erase_slots",
    "exclusive",
    "fill_planes",
    "is_foreign",
    "load_header",
    "read_mean",
    "write_mean",
    "write_rows",
]

# A lock is held for one append; a rebuild appends in batches. Longer means a stuck process.
LOCK_TIMEOUT_S = 10.0
LOCK_PAUSE_S = 0.002
READ_ATTEMPTS = 3
READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
NOT_A_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENXIO)


class Storage(Protocol):
    """Bytes with a layout: a shared file, or memory of this process."""

    stamp: Stamp
    layout: Layout
    views: Views

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes at `offset`."""

    def write(self, offset: int, data: bytes) -> None:
        """Write all of `data` at `offset`."""

    def reserve(self, rows: int) -> None:
        """Grow until `rows` fit, and renew the views."""

    def covers(self, count: int) -> bool:
        """Say whether so many rows are there, mapping what another process has added."""

    def flush(self) -> None:
        """Bring what was written so far to the disk."""


class MemoryStorage:
    """The private form, used where the folder cannot be written."""

    def __init__(self, stamp: Stamp, header: Header, source: Storage | None = None) -> None:
        self.stamp = stamp
        self.layout = Layout(stamp.dimension)
        blocks = source.views.blocks if source else 1
        self._bytes = bytearray(self.layout.size(blocks))
        self.views = Views(self._bytes, self.layout, blocks)
        if source is not None:
            for offset in range(MEAN_OFFSET, len(self._bytes), self.layout.block_bytes):
                size = min(self.layout.block_bytes, len(self._bytes) - offset)
                self.write(offset, source.read(offset, size))
        commit(self, header)

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes at `offset`."""
        return bytes(memoryview(self._bytes)[offset : offset + size])

    def write(self, offset: int, data: bytes) -> None:
        """Write all of `data` at `offset`, which lies within the reserved rows."""
        self._bytes[offset : offset + len(data)] = data

    def reserve(self, rows: int) -> None:
        """Grow until `rows` fit; older views keep the bytes they were made of."""
        if rows > self.views.capacity:
            blocks = max(self.layout.blocks_for(rows), self.views.blocks * 2)
            grown = bytearray(self.layout.size(blocks))
            grown[: len(self._bytes)] = self._bytes
            self._bytes = grown
            self.views = Views(grown, self.layout, blocks)

    def covers(self, count: int) -> bool:
        """Say whether so many rows are there."""
        return count <= self.views.capacity

    def flush(self) -> None:
        """Do nothing: memory has no disk behind it."""


class FileStorage:
    """A shared file, mapped for reading and written with pwrite."""

    def __init__(self, path: Path, stamp: Stamp, descriptor: int) -> None:
        self.path = path
        self.stamp = stamp
        self.layout = Layout(stamp.dimension)
        self._descriptor = descriptor
        status = os.fstat(descriptor)
        self._key = (status.st_dev, status.st_ino)
        self.views = self._map(status.st_size)

    @classmethod
    def find(cls, path: Path, stamp: Stamp, *, writable: bool) -> FileStorage | None:
        """Open the file if it is sound and has this stamp, else return None."""
        descriptor = _open(path, writable=writable)
        if descriptor is None:
            return None
        try:
            storage = cls(path, stamp, descriptor)
        except (OSError, ValueError):
            os.close(descriptor)
            return None
        header = load_header(storage)
        if header is not None and storage.covers(header.count):
            return storage
        storage.close()
        return None

    @classmethod
    def create(cls, path: Path, stamp: Stamp) -> FileStorage:
        """Make an empty file at `path`, in place of whatever is there."""
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        try:
            os.ftruncate(descriptor, Layout(stamp.dimension).size(1))
            storage = cls(path, stamp, descriptor)
            commit(storage, Header())
        except OSError:
            os.close(descriptor)
            raise
        return storage

    def move_to(self, path: Path) -> None:
        """Put this file in the place of the one at `path`."""
        self.flush()
        self.path = self.path.replace(path)

    def is_current(self) -> bool:
        """Say whether the path still names this file, and all of it; pinned by its inode."""
        status = self.path.lstat()
        whole = status.st_size >= self.layout.size(self.views.blocks)
        return whole and (status.st_dev, status.st_ino) == self._key

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes at `offset`."""
        return os.pread(self._descriptor, size, offset)

    def write(self, offset: int, data: bytes) -> None:
        """Write all of `data` at `offset`."""
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._descriptor, rest, offset)
            rest, offset = rest[written:], offset + written

    def reserve(self, rows: int) -> None:
        """Grow until `rows` fit; the file itself grows only where another did not before."""
        if rows <= self.views.capacity:
            return
        size = self.layout.size(self.layout.blocks_for(rows))
        if os.fstat(self._descriptor).st_size < size:
            os.ftruncate(self._descriptor, size)
        self.views = self._map(size)

    def covers(self, count: int) -> bool:
        """Say whether so many rows are there, mapping what another process has added."""
        size = os.fstat(self._descriptor).st_size
        if count > self.views.capacity and size > self.layout.size(self.views.blocks):
            self.views = self._map(size)
        return count <= self.views.capacity

    def flush(self) -> None:
        """Bring what was written so far to the disk."""
        getattr(os, "fdatasync", os.fsync)(self._descriptor)

    def close(self) -> None:
        """Give the descriptor back; the mapping lives as long as its views."""
        os.close(self._descriptor)

    def _map(self, size: int) -> Views:
        blocks = (size - self.layout.first_block) // self.layout.block_bytes
        if blocks < 1:
            message = "the file is shorter than one block"
            raise ValueError(message)
        length = self.layout.size(blocks)
        mapping = mmap.mmap(self._descriptor, length, mmap.MAP_SHARED, mmap.PROT_READ)
        return Views(mapping, self.layout, blocks)


def _open(path: Path, *, writable: bool) -> int | None:
    """Return a descriptor of the regular file at `path`, for reading where that is all."""
    flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags | (os.O_RDWR if writable else os.O_RDONLY))
    except OSError as error:
        if writable and error.errno in READ_ONLY:
            return _open(path, writable=False)
        if error.errno in NOT_A_FILE:
            return None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return descriptor


def is_foreign(path: Path, stamp: Stamp) -> bool:
    """Say whether the file at `path` is sound, but of another stamp."""
    descriptor = _open(path, writable=False)
    if descriptor is None:
        return False
    try:
        copies = [Header.unpack(os.pread(descriptor, HEADER_BYTES, at)) for at in COPY_OFFSETS]
    finally:
        os.close(descriptor)
    return any(copy is not None and copy[0] != stamp for copy in copies)


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the file lock at `path`; the system releases it when the process ends.

    The lock file is opened anew each time: locks belong to an open file, which a forked
    child would share with its parent.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    message = "another process holds the vector index"
                    raise TimeoutError(message) from None
                time.sleep(LOCK_PAUSE_S)
        yield
    finally:
        os.close(descriptor)


def load_header(storage: Storage) -> Header | None:
    """Return the newer sound header copy, or None if neither is sound.

    A commit may be under way in one copy, and the next one in the other before that is read:
    only what stays unsound is damage.
    """
    for _ in range(READ_ATTEMPTS):
        copies = [Header.unpack(storage.read(at, HEADER_BYTES)) for at in COPY_OFFSETS]
        own = [copy[1] for copy in copies if copy is not None and copy[0] == storage.stamp]
        if own:
            return max(own, key=lambda header: header.commits)
    return None


def commit(storage: Storage, header: Header) -> Header:
    """Write `header` over the older copy, so that one sound copy exists at any instant."""
    renewed = replace(header, commits=header.commits + 1)
    storage.write(COPY_OFFSETS[renewed.commits % 2], renewed.pack(storage.stamp))
    return renewed


def write_rows(storage: Storage, start: int, rows: Rows) -> None:
    """Write all columns but the sign planes of `rows` from slot `start` on."""
    storage.reserve(start + len(rows))
    layout = storage.layout
    for first, last in _runs(start, start + len(rows)):
        part = rows.part(first - start, last - start)
        columns: dict[str, NDArray[Any]] = {
            "codes": part.codes,
            "n": part.n,
            "created": part.created,
            "check": part.checks(),
            "scale": part.scale,
            "project": part.project,
            "type": part.type,
            "alive": np.ones(len(part), np.uint8),
        }
        for name, values in columns.items():
            storage.write(layout.at(name, first), values.tobytes())


def fill_planes(storage: Storage, start: int, end: int, mean: Float32s) -> None:
    """Write the sign planes of the slots from `start` to `end` out of their codes."""
    for first, last in _runs(start, end):
        rows = storage.views.span(first, last)
        for word, plane in enumerate(sign_planes(rows.codes, rows.scale, mean)):
            storage.write(storage.layout.plane_at(word, first), plane.tobytes())


def read_mean(storage: Storage) -> Float32s:
    """Return the vector around which the signs are taken."""
    size = 4 * storage.stamp.dimension
    return np.frombuffer(storage.read(MEAN_OFFSET, size), np.float32)


def write_mean(storage: Storage, mean: Float32s) -> None:
    """Write the vector around which the signs are taken."""
    storage.write(MEAN_OFFSET, mean.astype(np.float32).tobytes())


def erase_slots(storage: Storage, slots: Int64s) -> None:
    """Overwrite every byte of `slots` with zeros.

    The sign of life goes first and the checksum last: a dead row with a checksum is one that
    a killed process did not finish.
    """
    layout = storage.layout
    for slot in slots.tolist():
        for name in ("alive", "codes", "n", "created", "scale", "project", "type"):
            storage.write(layout.at(name, slot), bytes(layout.row_bytes[name]))
        for word in range(layout.words):
            storage.write(layout.plane_at(word, slot), bytes(8))
        storage.write(layout.at("check", slot), bytes(8))


def erase_leftovers(storage: Storage, count: int) -> None:
    """Erase what killed processes left in dead rows and behind the last row."""
    views = storage.views
    halfway = (views.alive.reshape(-1)[:count] == 0) & (views.check.reshape(-1)[:count] != 0)
    erase_slots(storage, np.flatnonzero(halfway))
    for first, last in _runs(count, views.capacity):
        block, row = divmod(first, BLOCK_ROWS)
        at = (block, slice(row, row + last - first))
        left = views.codes[at].any(axis=1) | (views.alive[at] != 0) | (views.n[at] != 0)
        left |= views.planes[block, :, row : row + last - first].any(axis=0)
        erase_slots(storage, first + np.flatnonzero(left))


def _runs(start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        stop = min(end, (start // BLOCK_ROWS + 1) * BLOCK_ROWS)
        yield start, stop
        start = stop
