"""The vector index in Qdrant: it follows the database, which answers itself while Qdrant is away.

The vectors in the database are the truth. Each process compares what Qdrant has with them when it
opens the index, after every failure, and from time to time; then only what was added or deleted
since is sent. Before each search it asks the database whether a vector was deleted, so that
nothing deleted is found, whichever process deleted it and wherever Qdrant was at that moment.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from lore.errors import IndexUnavailable
from lore.index.nearest_items import NEWEST
from lore.index.numbers import is_among, unique
from lore.index.qdrant_points import EXACT_POINTS, Outage, QdrantPoints, is_unreachable
from lore.index.quantization import unit_rows
from lore.store import vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lore.index.nearest_items import Nearest
    from lore.index.quantization import Float32s, Int64s
    from lore.index.vector_index import VectorFilter, VectorRow
    from lore.store.database import Database
    from lore.store.sql_connection import Connection

log = logging.getLogger("lore.store")

RETRY_AFTER_S = 30.0
"""Seconds until a Qdrant that failed is asked again."""

VERIFY_AFTER_S = 60.0
"""Seconds until the number of points is compared again: Qdrant may have lost some."""

CATCH_UP_S = 0.3
"""Seconds that a search spends on sending vectors; the rest is sent in the background."""

Fallback = Callable[["Connection", "Float32s", int, "VectorFilter | None"], "Nearest | None"]
"""Searches the database itself; None if that would take too long."""

_SEQ, _N, _PARTS = 0, 1, 2
"""The columns of what is stored, and of what Qdrant has."""


class QdrantIndex:
    """Finds the items whose vectors are most similar to a query."""

    catch_up_s = CATCH_UP_S
    is_precise = False

    def __init__(
        self,
        database: Database,
        points: QdrantPoints,
        *,
        identity: str,
        fallback: Fallback,
        monotonic: Callable[[], float] = time.monotonic,
        outage: Outage | None = None,
    ) -> None:
        """Follow the vectors of an embedder; `outage` is shared by the memories with one server."""
        self._database = database
        self._points = points
        self._identity = identity
        self._fallback = fallback
        self._monotonic = monotonic
        self._outage = outage or Outage()
        self._lock = threading.RLock()
        self._sent: Int64s | None = None
        """What Qdrant has, by change number; None: unknown."""
        self._last_seq = 0
        self._error: IndexUnavailable | None = None
        self._retry_at_s = self._verify_at_s = 0.0

    @property
    def notice(self) -> str:
        """Return why Qdrant is not searched, or an empty text; it is asked if that is unknown."""
        with self._lock:
            error = None if self._reach() else self._error or self._outage.error
            if error is None:
                return ""
            return f"{error}. The vectors in the database are searched instead."

    @property
    def last_seq(self) -> int:
        """The change number up to which Qdrant has all vectors; the newest while it is away."""
        with self._lock, self._database.read() as db:
            self._follow(db)
            return self._last_seq if self._is_there else NEWEST

    def __len__(self) -> int:
        with self._database.read() as db:
            return self._points.count(vectors.newest_seq(db))

    def numbers(self) -> Int64s:
        """Return the numbers of the items that have a vector here."""
        with self._lock:
            self._reach()
            return unique(self._rows[:, _N])

    @property
    def _rows(self) -> Int64s:
        return np.empty((0, 3), np.int64) if self._sent is None else self._sent

    def append(
        self,
        rows: Sequence[VectorRow],
        vectors: NDArray[np.floating],
        *,
        after_seq: int | None = None,
    ) -> None:
        """Add rows in the order of their change numbers.

        Pass as `after_seq` the `last_seq` from which the rows were read: it has removed the points
        of the vectors that these replace.
        """
        with self._lock:
            if not self._is_there or (after_seq is not None and self._last_seq < after_seq):
                return
            fresh = [at for at, row in enumerate(rows) if row.seq > self._last_seq]
            if not fresh:
                return
            try:
                self._send([rows[at] for at in fresh], unit_rows(vectors[fresh]))
            except IndexUnavailable as error:
                self._lose(error)

    def _send(self, rows: Sequence[VectorRow], units: Float32s) -> None:
        counts: Counter[int] = Counter()
        parts = []
        for row in rows:
            parts.append(counts[row.seq])
            counts[row.seq] += 1
        self._points.put(rows, parts, units)
        ns = {row.seq: row.n for row in rows}
        self._take_back_deleted(ns)
        added = np.array([(seq, n, counts[seq]) for seq, n in ns.items()], np.int64)
        self._sent = np.concatenate([self._rows, added])
        self._last_seq = rows[-1].seq

    def _take_back_deleted(self, ns: dict[int, int]) -> None:
        """Remove points whose vectors were deleted while they were sent.

        Whoever deletes a vector removes its points afterwards. A new connection sees what was
        deleted before that; the snapshot that the vectors were read from does not.
        """
        with closing(self._database.connect()) as db:
            db.begin_snapshot()  # as a reader: it waits for no writer
            there = vectors.existing_changes(db, self._embedder_n(db), ns)
        deleted = [seq for seq in ns if seq not in there]
        if deleted:
            self._points.remove_changes(deleted)

    def remove(self, ns: Iterable[int], *, through_seq: int = 0) -> None:
        """Erase the vectors of items; if Qdrant is away, before it is searched again."""
        del through_seq
        wanted = unique(np.fromiter(ns, np.int64))
        with self._lock:
            if not self._reach():
                return  # compared when it is back
            try:
                self._points.remove_items(wanted.tolist())
            except IndexUnavailable as error:
                self._lose(error)
                return
            self._sent = self._rows[~is_among(self._rows[:, _N], wanted)]

    def clear(self) -> None:
        """Start again with no points."""
        with self._lock:
            self._points.remove_all()
            self._points.prepare()
            self._sent = np.empty((0, 3), np.int64)
            self._last_seq, self._error = 0, None

    def search(self, query: Float32s, k: int, *, where: VectorFilter | None = None) -> Nearest:
        """Return the numbers and cosines of the k nearest items, best first."""
        unit = unit_rows(query)[0]
        with self._database.read() as db:
            nearest = self._search(unit, k, where) if self._is_current(db) else None
            if nearest is None:
                nearest = self._fallback(db, unit, k, where)
            if nearest is None and self._is_there:  # not all of it is there, but most
                nearest = self._search(unit, k, where)
        return nearest or (np.empty(0, np.int64), np.empty(0, np.float32))

    def _search(self, unit: Float32s, k: int, where: VectorFilter | None) -> Nearest | None:
        is_exact = int(self._rows[:, _PARTS].sum()) <= EXACT_POINTS
        try:
            return self._points.search(unit, k, where, is_exact=is_exact)
        except IndexUnavailable as error:
            with self._lock:
                self._lose(error)
            return None

    def cosines(self, query: Float32s, ns: Int64s) -> NDArray[np.float64]:
        """Return the cosine of each item's best passage; 0 for an item without a vector."""
        with self._database.read() as db:
            return vectors.stored_cosines(db, self._embedder_n(db), query, ns)

    def release_pages(self) -> None:
        """Do nothing: Qdrant caches its pages."""

    def check(self) -> list[str]:
        """Return how Qdrant differs from the database."""
        there = self._points.list_points()
        with self._database.read() as db:
            stored = vectors.list_passages(db, self._embedder_n(db), self._points.dimension)
            extra, missing = _compare(there, stored, vectors.newest_seq(db))
        findings = [f"{len(missing):,} vectors are missing in Qdrant"] if len(missing) else []
        return findings + ([f"{len(extra):,} of Qdrant are not stored"] if len(extra) else [])

    def close(self) -> None:
        """Do nothing: the client is of all memories of the process."""

    # Methods below expect `self._lock` to be held, or take it.

    @property
    def _is_there(self) -> bool:
        """Whether Qdrant was compared with the database, and is not known to be silent."""
        return self._sent is not None and self._monotonic() >= self._outage.until_s

    def _reach(self) -> bool:
        """Return whether Qdrant is there and compared with the database; try if it is time.

        While it is silent for one memory, no other waits for it.
        """
        if self._monotonic() < self._outage.until_s:
            return False
        if self._sent is not None:
            return True
        if self._monotonic() < self._retry_at_s:
            return False
        try:
            self._compare_all()
        except IndexUnavailable as error:
            self._lose(error)
            return False
        if self._error is not None:
            log.info("vector database is back")
        self._error = None
        return True

    def _lose(self, error: IndexUnavailable) -> None:
        """Do without Qdrant for a while; what it has is unknown from now on."""
        if self._error is None:
            log.warning("vector database unavailable", extra={"error": str(error)})
        self._error, self._sent = error, None
        self._retry_at_s = self._monotonic() + RETRY_AFTER_S
        if is_unreachable(error):
            self._outage.until_s, self._outage.error = self._retry_at_s, error

    def _compare_all(self) -> None:
        """Compare all points with the database: delete what is not stored, find what is missing."""
        self._points.prepare()
        there = self._points.list_points()
        with self._database.read() as db:
            stored = vectors.list_passages(db, self._embedder_n(db), self._points.dimension)
            extra, missing = _compare(there, stored, vectors.newest_seq(db))
        self._points.remove_changes(unique(extra).tolist())
        # A change that also had passages to keep is sent again, and all that follow it.
        incomplete = np.concatenate([missing, extra[is_among(extra, stored[:, _SEQ])]])
        last_seq = int(stored[-1, _SEQ]) if len(stored) else 0
        self._last_seq = int(incomplete.min()) - 1 if len(incomplete) else last_seq
        self._sent = stored[stored[:, _SEQ] <= self._last_seq]
        self._verify_at_s = self._monotonic() + VERIFY_AFTER_S

    def _is_current(self, db: Connection) -> bool:
        """Return whether Qdrant has all that is stored, and nothing that was deleted."""
        with self._lock:
            self._follow(db)
            newest = vectors.newest_change(db, self._embedder_n(db))
            return self._is_there and newest <= self._last_seq

    def _follow(self, db: Connection) -> None:
        """Remove what was deleted since; once in a snapshot of the database."""
        if self._reach():
            db.once(("followed", id(self)), lambda: self._try_to_follow(db))

    def _try_to_follow(self, db: Connection) -> bool:
        try:
            self._remove_deleted(db)
            self._verify()
        except IndexUnavailable as error:
            self._lose(error)
        return self._reach()

    def _remove_deleted(self, db: Connection) -> None:
        """Remove the points of vectors that are no longer stored, whoever deleted them.

        Vectors up to a change number can only become fewer, so that their count says it all.
        """
        sent, embedder_n = self._rows, self._embedder_n(db)
        through = min(self._last_seq, vectors.newest_seq(db))
        known = sent[sent[:, _SEQ] <= through]
        if vectors.count_through(db, embedder_n, through) == len(known):
            return
        stored = vectors.list_passages(db, embedder_n, self._points.dimension)
        stored = stored[stored[:, _SEQ] <= through]
        deleted = known[~is_among(known[:, _SEQ], stored[:, _SEQ])]
        self._points.remove_changes(deleted[:, _SEQ].tolist())
        self._sent = np.concatenate([stored, sent[sent[:, _SEQ] > through]])

    def _verify(self) -> None:
        """Compare the number of points from time to time, and all of them if it differs."""
        if self._monotonic() < self._verify_at_s:
            return
        if self._points.count(self._last_seq) != int(self._rows[:, _PARTS].sum()):
            log.warning("vector database differs")
            self._sent = None
        self._verify_at_s = self._monotonic() + VERIFY_AFTER_S

    def _embedder_n(self, db: Connection) -> int | None:
        return db.once(
            ("embedder", self._identity), lambda: vectors.find_embedder(db, self._identity)
        )


def _compare(there: Int64s, stored: Int64s, newest: int) -> tuple[Int64s, Int64s]:
    """Return the changes of points that are not stored, and the changes without all their points.

    Points of newer changes than the database has shown are another process's, and sound.
    """
    passages = {seq: (n, parts) for seq, n, parts in stored.tolist()}
    sound: Counter[int] = Counter()
    extra = []
    for seq, n, part in there.tolist():
        of, parts = passages.get(seq, (0, 0))
        if n == of and part < parts:
            sound[seq] += 1
        elif seq <= newest:
            extra.append(seq)
    missing = [seq for seq, (_, parts) in passages.items() if sound[seq] < parts]
    return np.array(extra, np.int64), np.array(missing, np.int64)
