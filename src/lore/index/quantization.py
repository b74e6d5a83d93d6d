"""Quantized vectors: int8 codes, sign bits, and scans over both."""

from __future__ import annotations

import math

import numkong as nk
import numpy as np
from numpy.typing import NDArray

Float32s = NDArray[np.float32]
Int8s = NDArray[np.int8]
Int64s = NDArray[np.int64]
Words = NDArray[np.uint64]

# Rows per block. One block of sign bits at 384 dimensions (786 kB) stays in a core's cache
# while it is compared: 5.2 ms per million rows, against 8.8 ms with blocks of 4,096.
BLOCK_ROWS = 16_384
# Candidates from the sign bits: (k + 20) · √rows / 4. On a million mixed MiniLM vectors that is
# 17,500 for k = 50, which hold 0.998 of the true 50; recall falls with √rows, not rows. Fewer
# dimensions than those measured give fewer bits, which separate less.
CANDIDATE_SHARE = 0.25
CANDIDATE_MARGIN = 20
MEASURED_DIMENSION = 384
# Of many scores, every 16th tells well enough where the best begin.
SAMPLE_STEP = 16
# 2^64 divided by the golden ratio, as in Fibonacci hashing: odd, and its bits look random.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def code_width(dimension: int) -> int:
    """Return the bytes of one row of codes, padded to multiples of eight."""
    return -(-dimension // 8) * 8


def word_count(dimension: int) -> int:
    """Return the 64-bit words that hold one row's sign bits."""
    return -(-dimension // 64)


def unit_rows(vectors: NDArray[np.floating]) -> Float32s:
    """Return the rows normalized to length one; rows of zeros or with NaN become zeros."""
    rows = np.array(vectors, dtype=np.float32, ndmin=2)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    sound = np.isfinite(lengths) & (lengths > 0)
    rows[~sound] = 0
    lengths[~sound] = 1
    rows /= lengths[:, None].astype(np.float32)
    return rows


def encode(units: Float32s) -> tuple[Int8s, Float32s]:
    """Return int8 codes, padded to whole words, and the scale of each row.

    A scale per row keeps recall@50 at 0.993 without rescoring; one scale for all gives 0.991
    and needs to know the largest component in advance.
    """
    scales = np.abs(units).max(axis=1, initial=0.0).astype(np.float32) / np.float32(127)
    divisors = np.where(scales > 0, scales, np.float32(1))
    codes = np.zeros((len(units), code_width(units.shape[1])), np.int8)
    codes[:, : units.shape[1]] = np.rint(units / divisors[:, None])
    return codes, scales


SCALE_BYTES = 4
"""Bytes of a row's scale, which follows its codes in a packed row."""


def pack_rows(vectors: NDArray[np.floating]) -> bytes:
    """Return vectors for storage: of each its codes and their scale; one with NaN becomes zeros."""
    rows = np.array(vectors, dtype=np.float32, ndmin=2)
    rows[~np.isfinite(rows).all(axis=1)] = 0
    codes, scales = encode(rows)
    packed = np.empty((len(rows), rows.shape[1] + SCALE_BYTES), np.uint8)
    packed[:, :-SCALE_BYTES] = codes[:, : rows.shape[1]].view(np.uint8)
    packed[:, -SCALE_BYTES:] = scales.astype("<f4").view(np.uint8).reshape(-1, SCALE_BYTES)
    return packed.tobytes()


def unpack_rows(packed: bytes, dimension: int) -> Float32s:
    """Return the vectors that `pack_rows` packed."""
    rows = np.frombuffer(packed, np.uint8).reshape(-1, dimension + SCALE_BYTES)
    scales = np.ascontiguousarray(rows[:, dimension:]).view("<f4").astype(np.float32)
    codes = rows[:, :dimension].view(np.int8).astype(np.float32)
    return codes * scales


def sign_planes(codes: Int8s, scales: Float32s, mean: Float32s) -> Words:
    """Return the signs of the rows around `mean` as word planes, shape (words, rows).

    The words of many rows lie side by side, so that a scan is three passes of long vector
    instructions instead of a call per row.
    """
    dimension = len(mean)
    above = codes[:, :dimension] * scales[:, None] > mean
    packed = np.zeros((len(codes), word_count(dimension) * 8), np.uint8)
    packed[:, : -(-dimension // 8)] = np.packbits(above, axis=1)
    return np.ascontiguousarray(packed.view(np.uint64).T)


def dot_codes(query: Int8s, rows: Int8s) -> Float32s:
    """Return the dot product of one code with each row of codes."""
    scores: Float32s = np.zeros((1, len(rows)), np.float32)
    if len(rows):
        nk.cdist(query.reshape(1, -1), rows, "dot", out=scores, threads=1)
    return scores.reshape(-1)


def candidate_count(k: int, rows: int, dimension: int) -> int:
    """Return how many rows to select by sign bits so that the best k are among them."""
    coarser = max(1.0, MEASURED_DIMENSION / dimension)
    return math.ceil((k + CANDIDATE_MARGIN) * CANDIDATE_SHARE * math.sqrt(rows * coarser))


def nearest_by_sign(planes: Words, query: Words, allowed: NDArray[np.bool_], wanted: int) -> Int64s:
    """Return the `wanted` allowed slots whose signs differ least, in slot order.

    `planes` has the shape (blocks, words, BLOCK_ROWS), `query` (words,); slots from
    `len(allowed)` on are ignored.
    """
    words = planes.shape[1]
    beyond = words * 64 + 1
    column = query.reshape(words, 1)
    distances = np.empty(len(allowed), np.uint16)
    histogram = np.zeros(beyond + 1, np.int64)
    differing = np.empty((words, BLOCK_ROWS), np.uint64)
    counts = np.empty((words, BLOCK_ROWS), np.uint8)
    for start in range(0, len(allowed), BLOCK_ROWS):
        here = distances[start : start + BLOCK_ROWS]
        rows = len(here)
        np.bitwise_xor(planes[start // BLOCK_ROWS, :, :rows], column, out=differing[:, :rows])
        np.bitwise_count(differing[:, :rows], out=counts[:, :rows])
        np.add.reduce(counts[:, :rows], axis=0, dtype=np.uint16, out=here)
        np.putmask(here, ~allowed[start : start + rows], beyond)
        histogram += np.bincount(here, minlength=beyond + 1)
    histogram[beyond] = 0
    limit = int(np.searchsorted(np.cumsum(histogram), wanted))
    if limit >= beyond:
        return np.flatnonzero(distances < beyond)
    nearer = np.flatnonzero(distances < limit)
    tied = np.flatnonzero(distances == limit)[: wanted - len(nearer)]
    return np.sort(np.concatenate((nearer, tied)))


def best_first(scores: NDArray[np.floating], k: int) -> Int64s:
    """Return the positions of the k highest scores, highest first, ties in their order."""
    if k <= 0:
        return np.empty(0, np.int64)
    chosen = _likely_best(scores, k)
    if k < len(chosen):
        some = scores[chosen]
        floor = np.partition(some, len(some) - k)[len(some) - k]
        above = np.flatnonzero(some > floor)
        level = np.flatnonzero(some == floor)[: k - len(above)]
        chosen = chosen[np.sort(np.concatenate((above, level)))]
    return chosen[np.argsort(-scores[chosen], kind="stable")]


def _likely_best(scores: NDArray[np.floating], k: int) -> Int64s:
    """Return positions that contain the k highest scores: a few times k of many.

    The floor is the score that twice their share of a sample reaches.
    """
    sample = scores[::SAMPLE_STEP]
    enough = 2 * (k // SAMPLE_STEP + SAMPLE_STEP)
    if enough < len(sample):
        chosen = np.flatnonzero(scores >= np.partition(sample, -enough)[-enough])
        if len(chosen) >= k:
            return chosen
    return np.arange(len(scores))


def row_checksums(codes: Int8s, *columns: NDArray[np.generic]) -> Words:
    """Return a checksum per row over its codes and columns; any single changed word changes it."""
    words = np.ascontiguousarray(codes).view(np.uint64)
    # Odd multipliers are invertible modulo 2^64, so that no single change can cancel out.
    weights = np.arange(1, words.shape[1] + 1, dtype=np.uint64) * GOLDEN | np.uint64(1)
    checks: Words = (words * weights).sum(axis=1, dtype=np.uint64) + GOLDEN
    for column in columns:
        checks = (checks + column.astype(np.int64).view(np.uint64)) * GOLDEN
    return checks


class SlotLookup:
    """Finds the slots of item numbers: a sorted part, and a short unsorted tail."""

    def __init__(self) -> None:
        self._numbers: Int64s = np.empty(0, np.int64)
        self._slots: Int64s = np.empty(0, np.int64)
        self._rows = 0

    def extend(self, tail: Int64s) -> None:
        """Add the item numbers of the slots from `self.rows` on."""
        numbers = np.concatenate((self._numbers, tail))
        slots = np.concatenate((self._slots, np.arange(self._rows, self._rows + len(tail))))
        order = np.argsort(numbers, kind="stable")
        self._numbers, self._slots = numbers[order], slots[order]
        self._rows += len(tail)

    @property
    def rows(self) -> int:
        """How many slots the sorted part covers."""
        return self._rows

    def find(self, ns: Int64s, tail: Int64s) -> Int64s:
        """Return every slot that may hold one of the sorted `ns`; the caller drops dead ones.

        `tail` holds the item numbers of the slots from `self.rows` on. All slots of equal numbers
        are returned: the passages of an item, and rows that were replaced.
        """
        first = np.searchsorted(self._numbers, ns, side="left")
        last = np.searchsorted(self._numbers, ns, side="right")
        spans = last - first
        offsets = np.repeat(first - np.concatenate(([0], np.cumsum(spans)[:-1])), spans)
        slots: Int64s = self._slots[offsets + np.arange(len(offsets))]
        if not len(tail) or not len(ns):
            return slots
        nearest = ns[np.searchsorted(ns[:-1], tail)]
        return np.concatenate((slots, self._rows + np.flatnonzero(nearest == tail)))
