"""The vector index: nearest-neighbour search over a memory-mapped file shared by processes.

It is derived state: the database is the source of truth, and whoever opens the index appends the
rows after `last_seq`. An index that is missing, damaged or of another stamp starts empty.
"""

from __future__ import annotations

import contextlib
import errno
import threading
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lore.errors import InvalidInput, StoreBusy, StoreError, StoreFull, StoreReadOnly
from lore.index import vector_file as files
from lore.index.numbers import is_among, unique
from lore.index.quantization import (
    BLOCK_ROWS,
    Float32s,
    Int64s,
    SlotLookup,
    best_first,
    candidate_count,
    dot_codes,
    encode,
    nearest_by_sign,
    sign_planes,
    unit_rows,
)
from lore.index.vector_file import FileStorage, Header, MemoryStorage, Rows, Stamp, Views
from lore.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from lore.index.nearest_items import Nearest


# Measured per row at 384 dimensions: gathering a code 0.08 us, scanning codes in sequence 0.02 us,
# scanning signs 0.009 us. Scanning this many rows costs as much as gathering one.
CODES_PER_GATHER = 5
SIGNS_PER_GATHER = 32
# Up to this many values are compared one by one, which is faster than a set lookup.
FEW_VALUES = 8
# An unsorted tail longer than this is merged into the sorted part of the slot lookup.
LOOKUP_TAIL_ROWS = 4_096

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class VectorFilter:
    """Which items a search may return; `since_us` is included, `until_us` is not."""

    projects: tuple[int, ...] | None = None
    types: tuple[int, ...] | None = None
    since_us: int | None = None
    until_us: int | None = None
    ns: Int64s | None = None
    beside: Int64s | None = None
    """Items that pass whatever their project."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The rows up to `count` of one mapping, which writers never move."""

    views: Views
    count: int
    mean: Float32s | None
    lookup: SlotLookup

    def flat(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return a column of all rows as one array."""
        return column.reshape(-1)[: self.count]

    def live_rows(self) -> Bools:
        """Return which rows are live: neither replaced nor removed."""
        mask: Bools = self.flat(self.views.alive) != 0
        return mask

    def slots_of(self, ns: Int64s) -> Int64s:
        """Return the live slots of the sorted `ns`; the caller's lock guards the lookup."""
        start = self.lookup.rows
        block, row = divmod(start, BLOCK_ROWS)
        tail = self.views.n[block:].reshape(-1)[row : row + max(0, self.count - start)]
        if len(tail) > LOOKUP_TAIL_ROWS:
            self.lookup.extend(tail)
            tail = tail[:0]
        if not len(ns):
            return np.empty(0, np.int64)
        slots: Int64s = self.lookup.find(ns, tail)
        slots = slots[slots < self.count]
        at = np.divmod(slots, BLOCK_ROWS)
        living: Bools = self.views.alive[at] != 0
        numbers: Int64s = self.views.n[at]
        named: Bools = ns[np.searchsorted(ns[:-1], numbers)] == numbers
        return slots[living & named]

    def slots_named(self, ns: Int64s | None) -> Int64s | None:
        """Return the live slots of `ns` in any order, or None without any `ns`."""
        return None if ns is None else self.slots_of(unique(ns).astype(np.int64))

    def filter_rows(
        self, where: VectorFilter | None, named: Int64s | None, beside: Int64s | None = None
    ) -> Bools:
        """Return which rows pass the filter, given the slots of `where.ns` and `where.beside`."""
        mask = self.live_rows()
        if where is None:
            return mask
        if named is not None:
            chosen = np.zeros(self.count, np.bool_)
            chosen[named] = True
            mask &= chosen
        if where.projects is not None:
            of_projects = _is_any_of(self.flat(self.views.project), where.projects)
            if beside is not None:
                of_projects[beside] = True
            mask &= of_projects
        if where.types is not None:
            mask &= _is_any_of(self.flat(self.views.type), where.types)
        if where.since_us is not None:
            mask &= self.flat(self.views.created) >= where.since_us
        if where.until_us is not None:
            mask &= self.flat(self.views.created) < where.until_us
        return mask

    def candidates(self, unit: Float32s, k: int, allowed: Bools) -> Int64s:
        """Return the allowed slots to score: all if they are few, otherwise the nearest by sign.

        Signs are of no use where so many slots are wanted that all codes are scanned anyway.
        """
        rows = int(np.count_nonzero(allowed))
        wanted = candidate_count(k, rows, unit.shape[1])
        if (
            self.mean is None
            or rows <= wanted + self.count // SIGNS_PER_GATHER
            or wanted * CODES_PER_GATHER > self.count
        ):
            return np.flatnonzero(allowed)
        query = sign_planes(*encode(unit), self.mean)[:, 0]
        return nearest_by_sign(self.views.planes, query, allowed, wanted)

    def scores(self, unit: Float32s, slots: Int64s) -> Float32s:
        """Return the int8 cosine of each slot with the query; the slots are in order."""
        code, scale = encode(unit)
        scan = len(slots) * CODES_PER_GATHER > self.count
        # Damaged scales may be anything; such rows rank last and must not raise warnings.
        with np.errstate(all="ignore"):
            if scan:
                scores = self._scan(code[0])
                scores *= self.flat(self.views.scale)
            else:
                scores = self._gather(code[0], slots)
                scores *= self.views.scale[np.divmod(slots, BLOCK_ROWS)]
            scores *= scale[0]
        if scan and len(slots) < self.count:
            scores = scores[slots]
        scores[~np.isfinite(scores)] = -1
        return scores

    def best_items(self, slots: Int64s, scores: Float32s, rows: int) -> tuple[Int64s, Float32s]:
        """Return the items of the best rows, best first, each with the score of its best row."""
        best = best_first(scores, rows)
        at = np.divmod(slots[best], BLOCK_ROWS)
        # Checked last: a row that was erased while it was scored is dropped here.
        living = self.views.alive[at] != 0
        ns, best_scores = self.views.n[at][living], scores[best][living]
        first = np.sort(np.unique(ns, return_index=True)[1])
        return ns[first], best_scores[first]

    def _scan(self, code: NDArray[np.int8]) -> Float32s:
        dots = np.empty(self.count, np.float32)
        for start in range(0, self.count, BLOCK_ROWS):
            part = dots[start : start + BLOCK_ROWS]
            part[:] = dot_codes(code, self.views.codes[start // BLOCK_ROWS, : len(part)])
        return dots

    def _gather(self, code: NDArray[np.int8], slots: Int64s) -> Float32s:
        dots = np.empty(len(slots), np.float32)
        blocks = -(-self.count // BLOCK_ROWS)
        ends = np.searchsorted(slots, np.arange(1, blocks + 1) * BLOCK_ROWS).tolist()
        for block, (start, end) in enumerate(pairwise((0, *ends))):
            rows = self.views.codes[block].take(slots[start:end] - block * BLOCK_ROWS, axis=0)
            dots[start:end] = dot_codes(code, rows)
        return dots


def _is_any_of(values: NDArray[Any], wanted: tuple[int, ...]) -> Bools:
    if len(wanted) > FEW_VALUES:
        return is_among(values, wanted)
    mask = np.zeros(len(values), np.bool_)
    for value in wanted:
        mask |= values == value
    return mask


# From this many rows on, sign bits are stored: below, scanning all codes takes 0.6 ms at most, and
# the mean of fewer rows is unreliable.
SIGNS_FROM_ROWS = 32_768
# Dead rows are compacted away once they outnumber the live ones and this.
COMPACT_FROM_ROWS = 4_096
# Passages that the nearest items may have, on average, among the nearest rows.
PASSAGES, MOST_PASSAGES = 2, 16

FULL_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True)
class VectorRow:
    """The metadata of a vector: project 0 means none, type is a small number."""

    seq: int
    n: int
    project: int
    type: int
    created_at_us: int


class VectorIndex:
    """Finds the items whose vectors are most similar to a query."""

    notice = ""
    catch_up_s = None
    is_precise = False

    def __init__(self, folder: Path, stamp: Stamp, *, writable: bool) -> None:
        self._path = folder / "vectors.index"
        self._draft_path = folder / "vectors.index.new"
        self._lock_path = folder / "vectors.lock"
        self._stamp = stamp
        self._writable = writable
        self._state = threading.RLock()
        self._closed = False
        self._was_read = False
        self._lookup = SlotLookup()
        self._storage = self._attach(locked=False, evict=True)

    @classmethod
    def open(
        cls, folder: Path, *, identity: str, dimension: int, epoch: str, writable: bool = True
    ) -> VectorIndex:
        """Open the index in `folder`, empty if there is none of this identity and epoch.

        Never raises for the state of the disk: where the folder cannot be used, the index is
        `private`, in the memory of this process only.
        """
        if dimension < 1:
            message = "a vector must have at least one dimension"
            raise InvalidInput(message)
        stamp = Stamp.of(identity=identity, dimension=dimension, epoch=epoch)
        return cls(folder, stamp, writable=writable)

    @property
    def private(self) -> bool:
        """Whether the index lives in the memory of this process only."""
        return isinstance(self._storage, MemoryStorage)

    @property
    def last_seq(self) -> int:
        """The highest change number applied by any process."""
        with self._state:
            return self._refresh().last_seq

    def __len__(self) -> int:
        with self._state:
            return int(np.count_nonzero(self._snapshot().live_rows()))

    def numbers(self) -> Int64s:
        """Return the numbers of the items that have a vector here."""
        with self._state:
            snapshot = self._snapshot()
            numbers: Int64s = snapshot.flat(snapshot.views.n)[snapshot.live_rows()].copy()
            return numbers

    def append(
        self,
        rows: Sequence[VectorRow],
        vectors: NDArray[np.float32] | NDArray[np.float16],
        *,
        after_seq: int | None = None,
    ) -> None:
        """Add rows in the order of their change numbers; newer rows of an item replace older.

        An item may have several rows of one change number: its passages.

        Rows up to `last_seq` are skipped: another process has added them. Pass as `after_seq` the
        `last_seq` from which the rows were read: then nothing is added if the index was cleared
        since, which would leave a gap.
        """
        if np.shape(vectors) != (len(rows), self._stamp.dimension):
            raise InvalidInput(f"expected {len(rows)} vectors of {self._stamp.dimension}")
        with self._state:
            try:
                with self._write_lock() as header:
                    self._append(header, rows, vectors, after_seq)
            except TimeoutError as error:
                raise StoreBusy(str(error)) from error
            except OSError:
                self._move_to_memory()
                self._append(self._refresh(), rows, vectors, after_seq)

    def remove(self, ns: Iterable[int], *, through_seq: int = 0) -> None:
        """Erase the vectors of items from the files, and leftovers of killed processes.

        Pass as `through_seq` the highest change number of the database once all remaining rows are
        applied: rows of the erased items that another process has read, but not yet appended, are
        then refused.
        """
        wanted = unique(np.fromiter(ns, np.int64))
        with self._state:
            try:
                if self.private:
                    self._erase(self._storage, self._refresh(), wanted, through_seq)
                    self._erase_shared(wanted, through_seq)
                else:
                    with self._write_lock() as header:
                        self._erase(self._storage, header, wanted, through_seq)
            except TimeoutError as error:
                raise StoreBusy(str(error)) from error
            except OSError as error:
                kind = StoreFull if error.errno in FULL_DISK_ERRORS else StoreReadOnly
                message = "vectors could not be erased from the vector index"
                raise kind(message) from error

    def clear(self) -> None:
        """Start again with no rows and change number 0, in a new file."""
        with self._state:
            try:
                with self._write_lock():
                    fresh = MemoryStorage(self._stamp, Header()) if self.private else self._create()
                    self._switch_storage(fresh)
            except TimeoutError as error:
                raise StoreBusy(str(error)) from error
            except OSError:
                self._switch_storage(MemoryStorage(self._stamp, Header()))

    def search(self, query: Float32s, k: int, *, where: VectorFilter | None = None) -> Nearest:
        """Return the numbers and int8 cosines of the k nearest items, best first."""
        if np.shape(query) != (self._stamp.dimension,):
            raise InvalidInput(f"a query has {self._stamp.dimension} numbers")
        unit = unit_rows(query)
        with self._state:
            snapshot = self._snapshot()
            named = snapshot.slots_named(None if where is None else where.ns)
            beside = snapshot.slots_named(None if where is None else where.beside)
        allowed = snapshot.filter_rows(where, named, beside)
        slots = snapshot.candidates(unit, PASSAGES * k, allowed)
        row_scores = snapshot.scores(unit, slots)
        ns, scores = snapshot.best_items(slots, row_scores, PASSAGES * k)
        if len(ns) < k and PASSAGES * k < len(slots):  # a few long texts took most of the rows
            ns, scores = snapshot.best_items(slots, row_scores, MOST_PASSAGES * k)
        return ns[:k], scores[:k]

    def cosines(self, query: Float32s, ns: Int64s) -> NDArray[np.float64]:
        """Return the int8 cosine of each item's best passage; 0 for an item without a vector."""
        wanted, places = np.unique(ns, return_inverse=True)
        with self._state:
            snapshot = self._snapshot()
            slots = np.sort(snapshot.slots_of(wanted))
        numbers = snapshot.views.n[np.divmod(slots, BLOCK_ROWS)]
        scores = np.full(len(wanted), -np.inf)
        row_scores = snapshot.scores(unit_rows(query), slots)
        np.maximum.at(scores, np.searchsorted(wanted, numbers), row_scores)
        scores[np.isinf(scores)] = 0.0
        return scores[places]

    def release_pages(self) -> None:
        """Unmap the pages of the file unless something was read since the last call.

        They are the system's cache, but count as memory of this process: 480 bytes a vector. The
        next search maps them again, which takes 2 ms for 100,000 vectors.
        """
        with self._state:
            if not self._was_read and isinstance(self._storage, FileStorage):
                self._storage.release_pages()
            self._was_read = False

    def check(self) -> list[str]:
        """Return the damage found by comparing every row with its checksum."""
        with self._state:
            self._require_open()
            header = files.load_header(self._storage)
            if header is None:
                return ["the header of the vector index is damaged"]
            if not self._storage.covers(header.count):
                return ["the vector index is shorter than its header says"]
            snapshot = _snapshot_of(self._storage, header, self._lookup)
        wrong = sum(
            _count_damaged(snapshot, start) for start in range(0, snapshot.count, BLOCK_ROWS)
        )
        return [f"{wrong} rows of the vector index are damaged"] if wrong else []

    def close(self) -> None:
        """Close the file; searches under way in other threads can finish."""
        with self._state:
            if not self._closed:
                self._switch_storage(MemoryStorage(self._stamp, Header()))
                self._closed = True

    # Internal state: every method below expects `self._state` to be locked.

    def _require_open(self) -> None:
        if self._closed:
            message = "the vector index is closed"
            raise StoreError(message)

    def _snapshot(self) -> Snapshot:
        self._was_read = True
        header = self._refresh()
        return _snapshot_of(self._storage, header, self._lookup)

    def _refresh(self, *, locked: bool = False) -> Header:
        """Return the current header, reopening the file if another process replaced it."""
        self._require_open()
        with contextlib.suppress(OSError):
            storage = self._storage
            if isinstance(storage, MemoryStorage) or storage.is_current():
                header = files.load_header(storage)
                if header is not None and storage.covers(header.count):
                    return header
        self._switch_storage(self._attach(locked=locked, evict=False))
        return files.load_header(self._storage) or Header()

    def _attach(self, *, locked: bool, evict: bool) -> FileStorage | MemoryStorage:
        """Open the file, created if necessary, or fall back to memory.

        A file of another stamp is replaced only when the index is opened (`evict`): otherwise two
        processes that disagree would keep emptying each other's index.
        """
        with contextlib.suppress(OSError):
            storage = self._find()
            if storage is None and self._writable:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with contextlib.nullcontext() if locked else files.exclusive_lock(self._lock_path):
                    storage = self._find()
                    if storage is None and (
                        evict or not files.has_other_stamp(self._path, self._stamp)
                    ):
                        storage = self._create()
            if storage is not None:
                return storage
        return MemoryStorage(self._stamp, Header())

    def _find(self) -> FileStorage | None:
        return FileStorage.find(self._path, self._stamp, writable=self._writable)

    def _create(self) -> FileStorage:
        """Create an empty file in place of the old one."""
        with self._replacement_file() as draft:
            return draft

    @contextlib.contextmanager
    def _replacement_file(self) -> Iterator[FileStorage]:
        """Yield a new file that replaces the old one at the end of the block."""
        draft = FileStorage.create(self._draft_path, self._stamp)
        try:
            yield draft
            draft.move_to(self._path)
        except OSError:
            draft.close()
            self._draft_path.unlink(missing_ok=True)
            raise

    def _switch_storage(self, storage: FileStorage | MemoryStorage) -> None:
        if isinstance(self._storage, FileStorage):
            self._storage.close()
        self._storage = storage
        self._lookup = SlotLookup()

    def _move_to_memory(self) -> None:
        """Continue in memory with the content of the file."""
        header = self._refresh()
        if not self.private:
            self._switch_storage(MemoryStorage(self._stamp, header, self._storage))

    @contextlib.contextmanager
    def _write_lock(self) -> Iterator[Header]:
        self._require_open()
        if self.private:
            yield self._refresh()
        elif not self._writable:
            raise OSError(errno.EROFS, "the vector index was opened for reading")
        else:
            with files.exclusive_lock(self._lock_path):
                yield self._refresh(locked=True)

    def _append(
        self,
        header: Header,
        rows: Sequence[VectorRow],
        vectors: NDArray[np.floating],
        after_seq: int | None,
    ) -> None:
        if after_seq is not None and header.last_seq < after_seq:
            return
        fresh = [at for at, row in enumerate(rows) if row.seq > header.last_seq]
        fresh.sort(key=lambda at: rows[at].seq)
        start = 0
        while start < len(fresh):
            end = min(start + BLOCK_ROWS, len(fresh))
            while end < len(fresh) and rows[fresh[end]].seq == rows[fresh[end - 1]].seq:
                end += 1  # the passages of an item are added or replaced together
            batch, start = fresh[start:end], end
            newest_seq = {rows[at].n: rows[at].seq for at in batch}
            newest = [at for at in batch if rows[at].seq == newest_seq[rows[at].n]]
            last_seq = rows[batch[-1]].seq
            header = self._append_batch(
                self._compact(header),
                _encode_rows([rows[at] for at in newest], vectors[newest]),
                last_seq,
            )

    def _append_batch(self, header: Header, rows: Rows, last_seq: int) -> Header:
        """Write the rows, erase those they replace, then count them in the header.

        If the process is killed in between, the next one gets the same rows again and overwrites
        the leftovers.
        """
        storage, count = self._storage, header.count + len(rows)
        replaced = _snapshot_of(storage, header, self._lookup).slots_of(unique(rows.n))
        files.write_rows(storage, header.count, rows)
        if header.centred:
            files.fill_planes(storage, header.count, count, files.read_mean(storage))
        elif count >= SIGNS_FROM_ROWS:
            files.write_mean(storage, _mean(storage.views, count))
            files.fill_planes(storage, 0, count, files.read_mean(storage))
        storage.flush()
        if len(replaced):
            files.erase_slots(storage, replaced)
            storage.flush()
        centred = header.centred or count >= SIGNS_FROM_ROWS
        renewed = replace(header, count=count, last_seq=last_seq, centred=centred)
        return files.commit(storage, renewed)

    def _compact(self, header: Header) -> Header:
        """Write a new file of the live rows once the dead ones prevail."""
        source = _snapshot_of(self._storage, header, self._lookup)
        slots = np.flatnonzero(source.live_rows())
        if header.count - len(slots) <= max(COMPACT_FROM_ROWS, len(slots)):
            return header
        memory = MemoryStorage(self._stamp, Header())
        with contextlib.nullcontext(memory) if self.private else self._replacement_file() as target:
            for start in range(0, len(slots), BLOCK_ROWS):
                part = slots[start : start + BLOCK_ROWS]
                files.write_rows(target, start, source.views.take(part))
            if source.mean is not None:
                files.write_mean(target, source.mean)
                files.fill_planes(target, 0, len(slots), source.mean)
            renewed = files.commit(target, replace(header, count=len(slots)))
        self._switch_storage(target)
        return renewed

    def _erase(self, storage: files.Storage, header: Header, ns: Int64s, through_seq: int) -> None:
        lookup = self._lookup if storage is self._storage else SlotLookup()
        slots = _snapshot_of(storage, header, lookup).slots_of(unique(ns))
        files.erase_slots(storage, slots)
        files.erase_leftovers(storage, header.count)
        if isinstance(storage, FileStorage):
            self._draft_path.unlink(missing_ok=True)
        if through_seq > header.last_seq:
            files.commit(storage, replace(header, last_seq=through_seq))
        storage.flush()

    def _erase_shared(self, ns: Int64s, through_seq: int) -> None:
        """Erase from the shared file that this index no longer uses, if it exists.

        One of another stamp is deleted as a whole: whoever uses it builds it again.
        """
        if not self._path.exists():
            return
        with files.exclusive_lock(self._lock_path):
            shared = self._find()
            if shared is None:
                self._path.unlink(missing_ok=True)
                return
            with contextlib.closing(shared):
                header = files.load_header(shared) or Header()
                self._erase(shared, header, ns, through_seq)


def _snapshot_of(storage: files.Storage, header: Header, lookup: SlotLookup) -> Snapshot:
    mean = files.read_mean(storage) if header.centred else None
    return Snapshot(storage.views, header.count, mean, lookup)


def _encode_rows(rows: Sequence[VectorRow], vectors: NDArray[np.floating]) -> Rows:
    codes, scale = encode(unit_rows(vectors))
    return Rows(
        codes,
        scale,
        np.array([row.n for row in rows], np.int64),
        np.array([row.project for row in rows], np.int32),
        np.array([row.type for row in rows], np.uint8),
        np.array([row.created_at_us for row in rows], np.int64),
    )


def _mean(views: Views, count: int) -> Float32s:
    """Return the mean of the live rows; dead ones are zeros and add nothing."""
    total = np.zeros(views.codes.shape[2], np.float64)
    for block in range(-(-count // BLOCK_ROWS)):
        rows = min(BLOCK_ROWS, count - block * BLOCK_ROWS)
        total += views.scale[block, :rows] @ views.codes[block, :rows].astype(np.float32)
    return (total / count).astype(np.float32)


def _count_damaged(snapshot: Snapshot, start: int) -> int:
    """Return how many live rows of a block differ from their checksum or signs."""
    views, end = snapshot.views, min(start + BLOCK_ROWS, snapshot.count)
    rows = views.span(start, end)
    block, at = start // BLOCK_ROWS, slice(0, end - start)
    with np.errstate(all="ignore"):
        wrong = rows.checks() != views.check[block, at]
        if snapshot.mean is not None:
            planes = sign_planes(rows.codes, rows.scale, snapshot.mean)
            wrong |= (planes != views.planes[block, :, at]).any(axis=0)
    return int(np.count_nonzero(wrong & (views.alive[block, at] != 0)))
