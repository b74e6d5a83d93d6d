"""How the vector index lies in its file: header, columns, and arrays over them.

0        header, copy A     4096     header, copy B     8192     mean vector (float32)
then blocks of 16,384 rows, each block column by column:
         sign planes · codes · n · created_at_us · check · scale · project · type · alive
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lore.store.vector_scan import (
    BLOCK_ROWS,
    Float32s,
    Int8s,
    Int64s,
    Words,
    code_width,
    row_checks,
    word_count,
)

if TYPE_CHECKING:
    import mmap

    from numpy.typing import NDArray

__all__ = [
    "COPY_OFFSETS",
    "HEADER_BYTES",
    "MEAN_OFFSET",
    "Header",
    "Layout",
    "Rows",
    "Stamp",
    "Views",
]

FORMAT_VERSION = 1
MAGIC = b"LOREVECS"
HEADER = struct.Struct("=8sII16s16sQQqII")
HEADER_BYTES = HEADER.size
COPY_OFFSETS = (0, 4_096)
MEAN_OFFSET = 8_192
# Blocks start on a page of the machines with the largest pages in use (16 kB).
ALIGNMENT = 16_384


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a file must belong to: a vector space and one incarnation of the database."""

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
    """Where the columns of each block lie for one dimension."""

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
        """Return the size of a file of so many blocks."""
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
        at = slice(start, end)
        return Rows(
            self.codes[at],
            self.scale[at],
            self.n[at],
            self.project[at],
            self.type[at],
            self.created[at],
        )

    def checks(self) -> Words:
        """Return the checksum of each row."""
        scale_bits = np.ascontiguousarray(self.scale).view(np.int32)
        return row_checks(self.codes, scale_bits, self.n, self.project, self.type, self.created)


class Views:
    """Read-only arrays over the blocks of one mapping; they keep it alive."""

    def __init__(self, buffer: mmap.mmap | bytearray, layout: Layout, blocks: int) -> None:
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
        return self._rows((block, slice(first, first + end - start)))

    def take(self, slots: Int64s) -> Rows:
        """Return copies of the rows at `slots`."""
        return self._rows((slots // BLOCK_ROWS, slots % BLOCK_ROWS))

    def _rows(self, at: Any) -> Rows:
        return Rows(
            self.codes[at],
            self.scale[at],
            self.n[at],
            self.project[at],
            self.type[at],
            self.created[at],
        )
