"""The vector index: a memory-mapped file beside the database, shared between processes.

It is derived state. The database is the truth, and whoever opens the index feeds it the rows
after `last_seq`; an index that is missing, damaged or of another stamp simply starts empty.
"""

from __future__ import annotations

import contextlib
import errno
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lore.errors import InvalidInput, StoreBusy, StoreError, StoreFull, StoreReadOnly
from lore.store import vector_file as files
from lore.store.vector_file import FileStorage, MemoryStorage
from lore.store.vector_layout import Header, Rows, Stamp, Views
from lore.store.vector_scan import (
    BLOCK_ROWS,
    Float32s,
    Int64s,
    SlotLookup,
    best_first,
    encode,
    sign_planes,
    unit_rows,
)
from lore.store.vector_snapshot import Snapshot, Where, rescore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["VectorIndex", "VectorRow", "Where"]

# From this many rows on, sign bits are kept: below, scanning all codes takes 0.6 ms at most,
# and the mean around which signs are taken would rest on too few rows.
SIGNS_FROM_ROWS = 32_768
# A new file without the dead rows is written once they are more than the live ones and this.
COMPACT_FROM_ROWS = 4_096
# Rows for the exact rescoring, as a multiple of k: holds all of the true 50 in the best 200.
RESCORE_FACTOR = 4

FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True)
class VectorRow:
    """What the index keeps beside a vector: project 0 is none, type is a small number."""

    seq: int
    n: int
    project: int
    type: int
    created_at_us: int


class VectorIndex:
    """Finds the items whose vectors point most nearly the way a query does."""

    def __init__(self, folder: Path, stamp: Stamp, *, writable: bool) -> None:
        self._path = folder / "vectors.index"
        self._draft_path = folder / "vectors.index.new"
        self._lock_path = folder / "vectors.lock"
        self._stamp = stamp
        self._writable = writable
        self._state = threading.RLock()
        self._closed = False
        self._lookup = SlotLookup()
        self._storage = self._attach(locked=False, evict=True)

    @classmethod
    def open(
        cls, folder: Path, *, identity: str, dimension: int, epoch: str, writable: bool = True
    ) -> VectorIndex:
        """Open the index in `folder`, empty if there is none of this identity and epoch.

        Never raises for what it finds on the disk: where the folder cannot be used the index
        is `private`, in the memory of this process only.
        """
        if dimension < 1:
            message = "a vector has at least one dimension"
            raise InvalidInput(message)
        stamp = Stamp.of(identity=identity, dimension=dimension, epoch=epoch)
        return cls(folder, stamp, writable=writable)

    @property
    def private(self) -> bool:
        """Whether the index lives in the memory of this process only."""
        return isinstance(self._storage, MemoryStorage)

    @property
    def last_seq(self) -> int:
        """The highest change number applied, by whichever process."""
        with self._state:
            return self._refresh().last_seq

    def __len__(self) -> int:
        with self._state:
            return int(np.count_nonzero(self._snapshot().living()))

    def numbers(self) -> Int64s:
        """Return the items that have a vector here."""
        with self._state:
            snapshot = self._snapshot()
            found: Int64s = snapshot.flat(snapshot.views.n)[snapshot.living()].copy()
            return found

    def append(
        self,
        rows: Sequence[VectorRow],
        vectors: NDArray[np.float32] | NDArray[np.float16],
        *,
        after_seq: int | None = None,
    ) -> None:
        """Add rows in the order of their change numbers; newer rows of an item replace older.

        Rows up to `last_seq` are skipped: another process has added them meanwhile. Pass as
        `after_seq` the `last_seq` from which the rows were read, and nothing is added if the
        index was cleared since, which would leave a gap.
        """
        if np.shape(vectors) != (len(rows), self._stamp.dimension):
            raise InvalidInput(f"expected {len(rows)} vectors of {self._stamp.dimension}")
        with self._state:
            try:
                with self._writing() as header:
                    self._append(header, rows, vectors, after_seq)
            except TimeoutError as error:
                raise StoreBusy(str(error)) from error
            except OSError:
                self._go_private()
                self._append(self._refresh(), rows, vectors, after_seq)

    def remove(self, ns: Iterable[int], *, through_seq: int = 0) -> None:
        """Erase the vectors of the items from the files, and whatever killed processes left.

        Pass as `through_seq` the highest change number of the database, once all remaining
        rows are applied: rows of the erased items that another process has read already, but
        not yet appended, are then refused.
        """
        wanted = np.unique(np.fromiter(ns, np.int64))
        with self._state:
            try:
                if self.private:
                    self._erase(self._storage, self._refresh(), wanted, through_seq)
                    self._erase_shared(wanted, through_seq)
                else:
                    with self._writing() as header:
                        self._erase(self._storage, header, wanted, through_seq)
            except TimeoutError as error:
                raise StoreBusy(str(error)) from error
            except OSError as error:
                kind = StoreFull if error.errno in FULL_DISK else StoreReadOnly
                message = "vectors could not be erased from the vector index"
                raise kind(message) from error

    def clear(self) -> None:
        """Start again with no rows and change number 0, in a new file."""
        with self._state:
            try:
                with self._writing():
                    fresh = MemoryStorage(self._stamp, Header()) if self.private else self._create()
                    self._use(fresh)
            except TimeoutError as error:
                raise StoreBusy(str(error)) from error
            except OSError:
                self._use(MemoryStorage(self._stamp, Header()))

    def search(
        self,
        query: Float32s,
        k: int,
        *,
        where: Where | None = None,
        exact: Callable[[Int64s], Float32s] | None = None,
    ) -> tuple[Int64s, Float32s]:
        """Return the item numbers and cosines of the k nearest items, best first.

        `exact` returns the float vectors of the items it is given, in their order, for the
        last ranking; a row of zeros or NaN says that the item is gone. Without it the int8
        scores stand.
        """
        if np.shape(query) != (self._stamp.dimension,):
            raise InvalidInput(f"a query has {self._stamp.dimension} numbers")
        unit = unit_rows(query)
        with self._state:
            snapshot = self._snapshot()
            only = None if where is None or where.ns is None else np.unique(where.ns)
            named = None if only is None else snapshot.slots_of(only.astype(np.int64))
        slots = snapshot.candidates(unit, k, snapshot.allowed(where, named))
        scores = snapshot.scores(unit, slots)
        best = best_first(scores, k if exact is None else RESCORE_FACTOR * k)
        at = np.divmod(slots[best], BLOCK_ROWS)
        # Looked at last: a row that was erased while it was scored is dropped here.
        living = snapshot.views.alive[at] != 0
        ns, scores = snapshot.views.n[at][living], scores[best][living]
        if exact is not None and len(ns):
            ns, scores = rescore(ns, exact(ns), unit[0])
            best = best_first(scores, k)
            ns, scores = ns[best], scores[best]
        return ns, scores

    def cosines(self, query: Float32s, ns: Int64s) -> NDArray[np.float64]:
        """Return the int8 cosine of each item with the query; 0 for one that has no vector."""
        wanted, places = np.unique(ns, return_inverse=True)
        with self._state:
            snapshot = self._snapshot()
            slots = snapshot.slots_of(wanted)
        numbers = snapshot.views.n[np.divmod(slots, BLOCK_ROWS)]
        scores = np.zeros(len(wanted))
        scores[np.searchsorted(wanted, numbers)] = snapshot.scores(unit_rows(query), slots)
        return scores[places]

    def check(self) -> list[str]:
        """Return the damage found by reading every row against its checksum."""
        with self._state:
            self._require_open()
            header = files.load_header(self._storage)
            if header is None:
                return ["the header of the vector index is damaged"]
            if not self._storage.covers(header.count):
                return ["the vector index is shorter than its header says"]
            snapshot = _snapshot_of(self._storage, header, self._lookup)
        wrong = sum(_count_wrong(snapshot, start) for start in range(0, snapshot.count, BLOCK_ROWS))
        found = [f"{wrong} rows of the vector index are damaged"] if wrong else []
        numbers = snapshot.flat(snapshot.views.n)[snapshot.living()]
        if len(np.unique(numbers)) != len(numbers):
            found.append("an item has two rows in the vector index")
        return found

    def close(self) -> None:
        """Give the file back; searches under way in other threads end in peace."""
        with self._state:
            if not self._closed:
                self._use(MemoryStorage(self._stamp, Header()))
                self._closed = True

    # From here on: the state. Every method expects `self._state` to be held.

    def _require_open(self) -> None:
        if self._closed:
            message = "the vector index is closed"
            raise StoreError(message)

    def _snapshot(self) -> Snapshot:
        header = self._refresh()
        return _snapshot_of(self._storage, header, self._lookup)

    def _refresh(self, *, locked: bool = False) -> Header:
        """Return the present header, after following the file to where others brought it."""
        self._require_open()
        with contextlib.suppress(OSError):
            storage = self._storage
            if isinstance(storage, MemoryStorage) or storage.is_current():
                header = files.load_header(storage)
                if header is not None and storage.covers(header.count):
                    return header
        self._use(self._attach(locked=locked, evict=False))
        return files.load_header(self._storage) or Header()

    def _attach(self, *, locked: bool, evict: bool) -> FileStorage | MemoryStorage:
        """Open the file, made anew if need be, or fall back to memory.

        A file of another stamp is replaced at the opening only (`evict`): two processes that
        disagree later on would otherwise empty each other's index for ever.
        """
        with contextlib.suppress(OSError):
            found = self._find()
            if found is None and self._writable:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with contextlib.nullcontext() if locked else files.exclusive(self._lock_path):
                    found = self._find()
                    if found is None and (evict or not files.is_foreign(self._path, self._stamp)):
                        found = self._create()
            if found is not None:
                return found
        return MemoryStorage(self._stamp, Header())

    def _find(self) -> FileStorage | None:
        return FileStorage.find(self._path, self._stamp, writable=self._writable)

    def _create(self) -> FileStorage:
        """Return an empty file that has taken the place of the old one."""
        with self._drafting() as draft:
            return draft

    @contextlib.contextmanager
    def _drafting(self) -> Iterator[FileStorage]:
        """Make a new file; what the block leaves in it takes the place of the old one."""
        draft = FileStorage.create(self._draft_path, self._stamp)
        try:
            yield draft
            draft.move_to(self._path)
        except OSError:
            draft.close()
            self._draft_path.unlink(missing_ok=True)
            raise

    def _use(self, storage: FileStorage | MemoryStorage) -> None:
        if isinstance(self._storage, FileStorage):
            self._storage.close()
        self._storage = storage
        self._lookup = SlotLookup()

    def _go_private(self) -> None:
        """Carry on in memory with what the file holds."""
        header = self._refresh()
        if not self.private:
            self._use(MemoryStorage(self._stamp, header, self._storage))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Header]:
        self._require_open()
        if self.private:
            yield self._refresh()
        elif not self._writable:
            raise OSError(errno.EROFS, "the vector index was opened for reading")
        else:
            with files.exclusive(self._lock_path):
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
        for start in range(0, len(fresh), BLOCK_ROWS):
            batch = fresh[start : start + BLOCK_ROWS]
            newest = list({rows[at].n: at for at in batch}.values())
            last_seq = rows[batch[-1]].seq
            header = self._append_batch(
                self._compact(header),
                _columns([rows[at] for at in newest], vectors[newest]),
                last_seq,
            )

    def _append_batch(self, header: Header, rows: Rows, last_seq: int) -> Header:
        """Write the rows, then erase those they replace, then count them in the header.

        A process killed in between leaves nothing that the next one, which is fed the same
        rows again, does not overwrite.
        """
        storage, count = self._storage, header.count + len(rows)
        replaced = _snapshot_of(storage, header, self._lookup).slots_of(np.unique(rows.n))
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
        """Write a new file of the living rows once the dead ones prevail."""
        source = _snapshot_of(self._storage, header, self._lookup)
        slots = np.flatnonzero(source.living())
        if header.count - len(slots) <= max(COMPACT_FROM_ROWS, len(slots)):
            return header
        memory = MemoryStorage(self._stamp, Header())
        with contextlib.nullcontext(memory) if self.private else self._drafting() as target:
            for start in range(0, len(slots), BLOCK_ROWS):
                part = slots[start : start + BLOCK_ROWS]
                files.write_rows(target, start, source.views.take(part))
            if source.mean is not None:
                files.write_mean(target, source.mean)
                files.fill_planes(target, 0, len(slots), source.mean)
            renewed = files.commit(target, replace(header, count=len(slots)))
        self._use(target)
        return renewed

    def _erase(self, storage: files.Storage, header: Header, ns: Int64s, through_seq: int) -> None:
        lookup = self._lookup if storage is self._storage else SlotLookup()
        slots = _snapshot_of(storage, header, lookup).slots_of(np.unique(ns))
        files.erase_slots(storage, slots)
        files.erase_leftovers(storage, header.count)
        if isinstance(storage, FileStorage):
            self._draft_path.unlink(missing_ok=True)
        if through_seq > header.last_seq:
            files.commit(storage, replace(header, last_seq=through_seq))
        storage.flush()

    def _erase_shared(self, ns: Int64s, through_seq: int) -> None:
        """Erase from the file that this index has left, if there is one."""
        if not self._path.exists():
            return
        with files.exclusive(self._lock_path):
            shared = self._find()
            if shared is None:
                return
            with contextlib.closing(shared):
                header = files.load_header(shared) or Header()
                self._erase(shared, header, ns, through_seq)


def _snapshot_of(storage: files.Storage, header: Header, lookup: SlotLookup) -> Snapshot:
    mean = files.read_mean(storage) if header.centred else None
    return Snapshot(storage.views, header.count, mean, lookup)


def _columns(rows: Sequence[VectorRow], vectors: NDArray[np.floating]) -> Rows:
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
    """Return the mean of the living rows; dead ones are zeros and add nothing."""
    total = np.zeros(views.codes.shape[2], np.float64)
    for block in range(-(-count // BLOCK_ROWS)):
        rows = min(BLOCK_ROWS, count - block * BLOCK_ROWS)
        total += views.scale[block, :rows] @ views.codes[block, :rows].astype(np.float32)
    return (total / count).astype(np.float32)


def _count_wrong(snapshot: Snapshot, start: int) -> int:
    """Return how many living rows of a block differ from their checksum or signs."""
    views, end = snapshot.views, min(start + BLOCK_ROWS, snapshot.count)
    rows = views.span(start, end)
    block, at = start // BLOCK_ROWS, slice(0, end - start)
    with np.errstate(all="ignore"):
        wrong = rows.checks() != views.check[block, at]
        if snapshot.mean is not None:
            planes = sign_planes(rows.codes, rows.scale, snapshot.mean)
            wrong |= (planes != views.planes[block, :, at]).any(axis=0)
    return int(np.count_nonzero(wrong & (views.alive[block, at] != 0)))
