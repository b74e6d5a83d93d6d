"""Store the vector index in a memory-mapped file or in memory: layout, commits, file lock.

The file starts with two header copies at 0 and 4096 and the mean vector (float32) at 8192. Blocks
of 16,384 rows follow, each block column by column: sign planes, codes, n, created_at_us, check,
scale, project, type, alive.

The file never shrinks and is written with pwrite only: a full disk is an OSError, not a bus error,
and a process that still maps an older or replaced file can read it safely.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import mmap
import os
import stat
import struct
import time
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from lore.index.quantization import (
    BLOCK_ROWS,
    Float32s,
    Int8s,
    Int64s,
    Words,
    code_width,
    row_checksums,
    sign_planes,
    word_count,
)
from lore.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray


FORMAT_VERSION = 1
MAGIC = b"LOREVECS"
HEADER = struct.Struct("=8sII16s16sQQqII")
HEADER_BYTES = HEADER.size
COPY_OFFSETS = (0, 4_096)
MEAN_OFFSET = 8_192
# Blocks start on a page, for the largest page size in use (16 kB).
ALIGNMENT = 16_384


@dataclass(frozen=True, slots=True)
class Stamp:
    """Identifies the vector space and the incarnation of the database that a file belongs to."""

    dimension: int
    identity: bytes
    epoch: bytes

    @classmethod
    def of(cls, *, identity: str, dimension: int, epoch: str) -> Stamp:
        """Return the stamp of an embedder's identity and a database's epoch."""
        return cls(dimension, _digest(identity), _digest(epoch))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:16]


@dataclass(frozen=True, slots=True)
class Header:
    """The state of a file as of its last commit."""

    commits: int = 0
    count: int = 0
    last_seq: int = 0
    centred: bool = False

    def pack(self, stamp: Stamp) -> bytes:
        """Return the bytes of one header copy, checksum last."""
        body = HEADER.pack(
            MAGIC,
            FORMAT_VERSION,
            stamp.dimension,
            stamp.identity,
            stamp.epoch,
            self.commits,
            self.count,
            self.last_seq,
            self.centred,
            0,
        )[:-4]
        return body + struct.pack("=I", zlib.crc32(body))

    @classmethod
    def unpack(cls, raw: bytes) -> tuple[Stamp, Header] | None:
        """Return the stamp and header in `raw`, or None if it is damaged."""
        if len(raw) != HEADER.size or struct.unpack("=I", raw[-4:])[0] != zlib.crc32(raw[:-4]):
            return None
        magic, version, dimension, identity, epoch, *state, _ = HEADER.unpack(raw)
        if (magic, version) != (MAGIC, FORMAT_VERSION):
            return None
        commits, count, last_seq, centred = state
        return Stamp(dimension, identity, epoch), cls(commits, count, last_seq, bool(centred))


class Layout:
    """The offsets of the columns of each block for one dimension."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.width = code_width(dimension)
        self.words = word_count(dimension)
        self.first_block = _aligned(MEAN_OFFSET + 4 * dimension)
        self.row_bytes: dict[str, int] = {
            "planes": 8 * self.words,
            "codes": self.width,
            "n": 8,
            "created": 8,
            "check": 8,
            "scale": 4,
            "project": 4,
            "type": 1,
            "alive": 1,
        }
        self.offsets: dict[str, int] = {}
        end = 0
        for name, size in self.row_bytes.items():
            self.offsets[name] = end
            end += size * BLOCK_ROWS
        self.block_bytes = end

    def size(self, blocks: int) -> int:
        """Return the size of a file with a number of blocks."""
        return self.first_block + blocks * self.block_bytes

    def blocks_for(self, rows: int) -> int:
        """Return the blocks that hold `rows`: at least one, so that views are never empty."""
        return max(1, -(-rows // BLOCK_ROWS))

    def at(self, name: str, slot: int) -> int:
        """Return the file offset of a slot's entry in a column of whole rows."""
        block, row = divmod(slot, BLOCK_ROWS)
        start = self.first_block + block * self.block_bytes + self.offsets[name]
        return start + row * self.row_bytes[name]

    def plane_at(self, word: int, slot: int) -> int:
        """Return the file offset of one word of a slot's sign bits."""
        block, row = divmod(slot, BLOCK_ROWS)
        start = self.first_block + block * self.block_bytes + self.offsets["planes"]
        return start + (word * BLOCK_ROWS + row) * 8


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True, slots=True)
class Rows:
    """The columns of some rows, ready to be written."""

    codes: Int8s
    scale: Float32s
    n: Int64s
    project: NDArray[np.int32]
    type: NDArray[np.uint8]
    created: Int64s

    def __len__(self) -> int:
        return len(self.n)

    def part(self, start: int, end: int) -> Rows:
        """Return the rows from `start` to `end`."""
        return _rows_at(self, slice(start, end))

    def checks(self) -> Words:
        """Return the checksum of each row."""
        scale_bits = np.ascontiguousarray(self.scale).view(np.int32)
        return row_checksums(self.codes, scale_bits, self.n, self.project, self.type, self.created)


class Views:
    """Read-only arrays over the blocks of one mapping; they keep it alive."""

    def __init__(self, buffer: mmap.mmap | NDArray[np.uint8], layout: Layout, blocks: int) -> None:
        def column(name: str, kind: type, *inner: int) -> NDArray[Any]:
            shape = (blocks, *(inner or (BLOCK_ROWS,)))
            item = np.dtype(kind).itemsize
            steps = [item]
            for length in reversed(shape[2:]):
                steps.insert(0, steps[0] * length)
            view: NDArray[Any] = np.ndarray(
                shape,
                kind,
                buffer,
                offset=layout.first_block + layout.offsets[name],
                strides=(layout.block_bytes, *steps),
            )
            view.flags.writeable = False
            return view

        self.blocks = blocks
        self.capacity = blocks * BLOCK_ROWS
        self.planes: Words = column("planes", np.uint64, layout.words, BLOCK_ROWS)
        self.codes: Int8s = column("codes", np.int8, BLOCK_ROWS, layout.width)
        self.n: Int64s = column("n", np.int64)
        self.created: Int64s = column("created", np.int64)
        self.check: Words = column("check", np.uint64)
        self.scale: Float32s = column("scale", np.float32)
        self.project: NDArray[np.int32] = column("project", np.int32)
        self.type: NDArray[np.uint8] = column("type", np.uint8)
        self.alive: NDArray[np.uint8] = column("alive", np.uint8)

    def span(self, start: int, end: int) -> Rows:
        """Return the rows of the slots from `start` to `end`, which lie in one block."""
        block, first = divmod(start, BLOCK_ROWS)
        return _rows_at(self, (block, slice(first, first + end - start)))

    def take(self, slots: Int64s) -> Rows:
        """Return copies of the rows at `slots`."""
        return _rows_at(self, np.divmod(slots, BLOCK_ROWS))


def _rows_at(columns: Rows | Views, at: Any) -> Rows:
    return Rows(*(getattr(columns, name)[at] for name in Rows.__annotations__))


# A lock is held for one append; a rebuild appends in batches. Longer means a stuck process.
LOCK_TIMEOUT_S = 10.0
LOCK_PAUSE_S = 0.002
READ_ATTEMPTS = 3
READ_ONLY_ERRORS = (errno.EACCES, errno.EPERM, errno.EROFS)
NOT_A_FILE_ERRORS = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENXIO)


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
        """Return whether this many rows exist, mapping what another process has added."""

    def flush(self) -> None:
        """Sync what was written so far to the disk."""


def _zeros(size: int) -> NDArray[np.uint8]:
    """Return memory that the system provides page by page, as it is used."""
    return np.zeros(size, np.uint8)


class MemoryStorage:
    """Private storage, used where the folder cannot be written."""

    def __init__(self, stamp: Stamp, header: Header, source: Storage | None = None) -> None:
        self.stamp = stamp
        self.layout = Layout(stamp.dimension)
        blocks = source.views.blocks if source else 1
        self._bytes = _zeros(self.layout.size(blocks))
        self.views = Views(self._bytes, self.layout, blocks)
        if source is not None:
            for offset in range(MEAN_OFFSET, len(self._bytes), self.layout.block_bytes):
                size = min(self.layout.block_bytes, len(self._bytes) - offset)
                self.write(offset, source.read(offset, size))
        commit(self, header)

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes at `offset`."""
        return self._bytes[offset : offset + size].tobytes()

    def write(self, offset: int, data: bytes) -> None:
        """Write all of `data` at `offset`, which lies within the reserved rows."""
        self._bytes[offset : offset + len(data)] = np.frombuffer(data, np.uint8)

    def reserve(self, rows: int) -> None:
        """Grow until `rows` fit; older views keep their bytes."""
        if rows > self.views.capacity:
            blocks = max(self.layout.blocks_for(rows), self.views.blocks * 2)
            grown = _zeros(self.layout.size(blocks))
            grown[: len(self._bytes)] = self._bytes
            self._bytes = grown
            self.views = Views(grown, self.layout, blocks)

    def covers(self, count: int) -> bool:
        """Return whether this many rows exist."""
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
        """Open the file if it is sound and has this stamp, otherwise return None."""
        descriptor = _open_regular_file(path, writable=writable)
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
        """Create an empty file at `path`, replacing whatever is there."""
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
        """Replace the file at `path` by this one."""
        self.flush()
        self.path = self.path.replace(path)

    def is_current(self) -> bool:
        """Return whether the path still names this file, and all of it; compared by inode."""
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
        """Grow until `rows` fit, unless another process has grown the file already."""
        if rows <= self.views.capacity:
            return
        size = self.layout.size(self.layout.blocks_for(rows))
        if os.fstat(self._descriptor).st_size < size:
            os.ftruncate(self._descriptor, size)
        self.views = self._map(size)

    def covers(self, count: int) -> bool:
        """Return whether this many rows exist, mapping what another process has added."""
        size = os.fstat(self._descriptor).st_size
        if count > self.views.capacity and size > self.layout.size(self.views.blocks):
            self.views = self._map(size)
        return count <= self.views.capacity

    def flush(self) -> None:
        """Sync what was written so far to the disk."""
        getattr(os, "fdatasync", os.fsync)(self._descriptor)

    def release_pages(self) -> None:
        """Unmap the pages that were read; the system caches them, and the next read maps them."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._mapping.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Close the descriptor; the mapping lives as long as its views."""
        os.close(self._descriptor)

    def _map(self, size: int) -> Views:
        blocks = (size - self.layout.first_block) // self.layout.block_bytes
        if blocks < 1:
            message = "the file is shorter than one block"
            raise ValueError(message)
        length = self.layout.size(blocks)
        self._mapping = mmap.mmap(self._descriptor, length, mmap.MAP_SHARED, mmap.PROT_READ)
        return Views(self._mapping, self.layout, blocks)


def _open_regular_file(path: Path, *, writable: bool) -> int | None:
    """Return a descriptor of the regular file at `path`, read-only where it must be, or None."""
    flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags | (os.O_RDWR if writable else os.O_RDONLY))
    except OSError as error:
        if writable and error.errno in READ_ONLY_ERRORS:
            return _open_regular_file(path, writable=False)
        if error.errno in NOT_A_FILE_ERRORS:
            return None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return descriptor


def has_other_stamp(path: Path, stamp: Stamp) -> bool:
    """Return whether the file at `path` is sound but has another stamp."""
    descriptor = _open_regular_file(path, writable=False)
    if descriptor is None:
        return False
    try:
        copies = [Header.unpack(os.pread(descriptor, HEADER_BYTES, at)) for at in COPY_OFFSETS]
    finally:
        os.close(descriptor)
    return any(copy is not None and copy[0] != stamp for copy in copies)


@contextlib.contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Hold the file lock at `path`; the system releases it when the process ends.

    The lock file is opened again each time: a forked child would share an open one's lock.
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

    A commit may be writing one copy, and the next commit the other one, so reading is retried: only
    what stays unsound is damage.
    """
    for _ in range(READ_ATTEMPTS):
        copies = [Header.unpack(storage.read(at, HEADER_BYTES)) for at in COPY_OFFSETS]
        own = [copy[1] for copy in copies if copy is not None and copy[0] == storage.stamp]
        if own:
            return max(own, key=lambda header: header.commits)
    return None


def commit(storage: Storage, header: Header) -> Header:
    """Write `header` over the older copy, so that one copy is sound at any time."""
    renewed = replace(header, commits=header.commits + 1)
    storage.write(COPY_OFFSETS[renewed.commits % 2], renewed.pack(storage.stamp))
    return renewed


def write_rows(storage: Storage, start: int, rows: Rows) -> None:
    """Write all columns but the sign planes of `rows` from slot `start` on."""
    storage.reserve(start + len(rows))
    layout = storage.layout
    for first, last in _block_runs(start, start + len(rows)):
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
    """Compute and write the sign planes of the slots from `start` to `end`."""
    for first, last in _block_runs(start, end):
        rows = storage.views.span(first, last)
        for word, plane in enumerate(sign_planes(rows.codes, rows.scale, mean)):
            storage.write(storage.layout.plane_at(word, first), plane.tobytes())


def read_mean(storage: Storage) -> Float32s:
    """Return the mean vector, around which the signs are taken."""
    size = 4 * storage.stamp.dimension
    return np.frombuffer(storage.read(MEAN_OFFSET, size), np.float32)


def write_mean(storage: Storage, mean: Float32s) -> None:
    """Write the mean vector, around which the signs are taken."""
    storage.write(MEAN_OFFSET, mean.astype(np.float32).tobytes())


def erase_slots(storage: Storage, slots: Int64s) -> None:
    """Overwrite every byte of `slots` with zeros.

    The live flag is cleared first and the checksum last: a dead row with a checksum was not
    finished because its process was killed.
    """
    layout = storage.layout
    for slot in slots.tolist():
        for name in ("alive", "codes", "n", "created", "scale", "project", "type"):
            storage.write(layout.at(name, slot), bytes(layout.row_bytes[name]))
        for word in range(layout.words):
            storage.write(layout.plane_at(word, slot), bytes(8))
        storage.write(layout.at("check", slot), bytes(8))


def erase_leftovers(storage: Storage, count: int) -> None:
    """Erase what killed processes left in dead rows and after the last row."""
    views = storage.views
    halfway = (views.alive.reshape(-1)[:count] == 0) & (views.check.reshape(-1)[:count] != 0)
    erase_slots(storage, np.flatnonzero(halfway))
    for first, last in _block_runs(count, views.capacity):
        block, row = divmod(first, BLOCK_ROWS)
        at = (block, slice(row, row + last - first))
        left = views.codes[at].any(axis=1) | (views.alive[at] != 0) | (views.n[at] != 0)
        left |= views.planes[block, :, row : row + last - first].any(axis=0)
        erase_slots(storage, first + np.flatnonzero(left))


def _block_runs(start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        stop = min(end, (start // BLOCK_ROWS + 1) * BLOCK_ROWS)
        yield start, stop
        start = stop
