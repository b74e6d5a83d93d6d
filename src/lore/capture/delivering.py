"""Delivering: what several files told goes into the store together, each with how far that is.

A short file is not worth a commit of its own, nor a segment of the keyword index. Batches wait
until together they are as much as one that is full; those of a file that goes on do not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from lore.capture.slips import SLIPS
from lore.capture.staging import BATCH_BYTES, BATCH_MESSAGES, Batch
from lore.errors import LoreError
from lore.records import Watermark
from lore.store import keywords
from lore.store.db import Connection, Database
from lore.store.keywords import NewMessageText

_MOST_FILES = 64
"""So many parcels wait at most: files that tell nothing would wait for long."""


class Parcel(NamedTuple):
    """A batch on its way, with how far its file was read.

    `write` stores both, leaves texts for the keyword index behind, and returns how many messages
    were new, or None if another reader was quicker; `tell` is told that once it is durable.
    """

    batch: Batch
    mark: Watermark
    write: Callable[[Connection, list[NewMessageText]], int | None]
    tell: Callable[[int | None], None]


class Delivery:
    """Parcels that wait for each other; whoever opens it leaves with all of them written."""

    def __init__(self, database: Database | None, most: int = BATCH_MESSAGES) -> None:
        self._database = database
        self._most = most
        self._parcels: list[Parcel] = []

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write what waits, also after a failure: it belongs to files that were read whole."""
        self.send()

    def put(self, parcel: Parcel) -> None:
        """Take a parcel; those that wait go first if it would be too much with them."""
        if self._is_full([*self._parcels, parcel]):
            self.send()
        self._parcels.append(parcel)
        if self._is_full(self._parcels):
            self.send()

    def send(self) -> None:
        """Write what waits, in its order; where that fails, each by itself: one is to blame."""
        parcels, self._parcels = self._parcels, []
        if len(parcels) > 1:
            try:
                self._write(parcels)
            except (LoreError, *SLIPS):
                pass
            else:
                return
        for parcel in parcels:
            self._write([parcel])

    def holds(self, source: str, file: str = "") -> bool:
        """Tell whether a parcel of a file waits, known by its name or by what it is on disk."""
        marks = (parcel.mark for parcel in self._parcels)
        return any(mark.source == source or (file and mark.file == file) for mark in marks)

    def is_empty(self) -> bool:
        """Tell whether nothing waits."""
        return not self._parcels

    def _write(self, parcels: Sequence[Parcel]) -> None:
        if self._database is None:
            return
        added = self._database.write(lambda db: _write_all(db, parcels))
        for parcel, count in zip(parcels, added, strict=True):
            parcel.tell(count)

    def _is_full(self, parcels: Sequence[Parcel]) -> bool:
        return (
            len(parcels) >= _MOST_FILES
            or sum(parcel.batch.messages for parcel in parcels) >= self._most
            or sum(parcel.batch.bytes for parcel in parcels) >= BATCH_BYTES
        )


def _write_all(db: Connection, parcels: Sequence[Parcel]) -> list[int | None]:
    """Write parcels in one transaction; the keyword index comes last, in one go.

    At every savepoint, also those that SQLite makes for a statement, FTS5 writes out what it
    has gathered: between the parcels that would be a segment of the index for each.
    """
    unindexed: list[NewMessageText] = []
    added = [parcel.write(db, unindexed) for parcel in parcels]
    keywords.add_messages(db, unindexed)
    return added
