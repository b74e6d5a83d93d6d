"""Writing: queued writes that share one commit, each in a savepoint and with its receipt."""

from __future__ import annotations

import hashlib
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from lore import clock
from lore.errors import StoreError
from lore.store.packing import unpack_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lore.store.sqlite import Connection


@dataclass(slots=True)
class Write:
    """One piece of work that waits for its turn, and what became of it."""

    work: Callable[[Connection], Any]
    key: str = ""
    patient: bool = False
    future: Future[Any] = field(default_factory=Future)
    result: Any = None
    error: BaseException | None = None

    def deliver(self) -> None:
        """Tell the one who waits how it ended."""
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


def run_group(db: Connection, group: Sequence[Write], now: clock.Clock) -> None:
    """Run writes in one transaction; a write that fails leaves the others as they are.

    Raises if the transaction as a whole cannot be made durable: then none has happened, or,
    after a failure of the disk while committing, it is not known, and keys settle it.
    """
    db.begin_write()
    try:
        for write in group:
            _run_one(db, write, now)
        db.rows("COMMIT")
    finally:
        if db.in_transaction:
            with suppress(StoreError):
                db.rows("ROLLBACK")


def fail_group(group: Sequence[Write], error: BaseException) -> None:
    """Give all writes of a transaction that failed an error of their own to raise."""
    kind = type(error) if isinstance(error, StoreError) else StoreError
    reason = str(error) if isinstance(error, StoreError) else f"The write failed: {error!r}"
    hint = error.hint if isinstance(error, StoreError) else ""
    for write in group:
        write.error = write.error or kind(reason, hint=hint)


def _run_one(db: Connection, write: Write, now: clock.Clock) -> None:
    """Run one write in its own savepoint, so that its failure is its own."""
    digest = digest_of(write.key) if write.key else ""
    if digest:
        seen = db.find("SELECT result FROM receipts WHERE key = :key", key=digest)
        if seen:
            write.result = unpack_json(seen[0])
            return
    db.rows("SAVEPOINT one")
    try:
        write.result = write.work(db)
        if digest:
            db.run(
                "INSERT INTO receipts (key, result, at) VALUES (:key, :result, :at)",
                key=digest,
                result=orjson.dumps(write.result).decode(),
                at=clock.to_us(now()),
            )
        db.rows("RELEASE SAVEPOINT one")
    except Exception as error:
        write.error = error
        if not db.in_transaction:
            # The whole transaction was undone: the disk is full or failed.
            raise error if isinstance(error, StoreError) else StoreError(str(error)) from error
        db.rows("ROLLBACK TO SAVEPOINT one")
        db.rows("RELEASE SAVEPOINT one")


def digest_of(key: str) -> str:
    """Return the form in which a key is kept: a caller's key may quote what it stores."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
