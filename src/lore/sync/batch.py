"""A batch of records of another machine: merged with what is here, and written."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

from lore import clock
from lore.capture.message_capture import prepare
from lore.errors import (
    LoreError,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
    SyncError,
)
from lore.lazy_dataclass import dataclass
from lore.records import NewMessage
from lore.redaction.redactor import Redactor, redact_tree
from lore.store import history, sync_forgets, sync_rows, sync_writes
from lore.store.database import Connection
from lore.store.messages import PreparedMessage
from lore.store.sync_rows import KnownRecord
from lore.store.sync_shapes import StoredRecord, SyncKind
from lore.store.sync_task_rows import TASK_KINDS
from lore.store.sync_writes import Incoming, WriteContext, Written
from lore.sync import conflicts
from lore.sync.references import ReferenceRedactor
from lore.sync.registers import (
    KnownRegister,
    Registers,
    digest_value,
    known_registers,
    merge,
    pack_known,
    stamp_changes,
    unpack_known,
)
from lore.sync.wire_format import SyncRecord, pack_record, parse_record

log = logging.getLogger("lore.sync")

_DROPPED = "A record of another machine cannot be stored, and was dropped."

_OF_THE_PLACE = (StoreBusy, StoreDamaged, StoreFull, StoreReadOnly, StoreUnreachable)
"""Errors that are none of the record: it is applied again with its page."""

REMOVABLE: frozenset[SyncKind] = frozenset({
    "version",
    "parent",
    "edge",
    "judgement",
    "instruction",
    *TASK_KINDS,
})
"""Kinds whose records are removed without being forgotten."""

ABSENT = digest_value(None)
"""The digest of a register that says that its record was removed."""

_TEXT_REGISTERS: Mapping[SyncKind, tuple[str, ...]] = {
    "session": ("names",),
    "message": ("self",),
    "distillation": ("self",),
    "fragment": ("text",),
    "version": ("self",),
    "edge": ("self",),
    "instruction": ("rule",),
    **dict.fromkeys(TASK_KINDS, ("self",)),
}
"""The registers that hold texts."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What a batch of another machine changed here."""

    received: int = 0
    changed: int = 0
    forgotten: int = 0
    conflicts: int = 0
    deleted: tuple[int, ...] = ()
    """Numbers of the items that were deleted."""

    def __add__(self, other: Applied) -> Applied:
        """Return the sum of both."""
        return Applied(
            self.received + other.received,
            self.changed + other.changed,
            self.forgotten + other.forgotten,
            self.conflicts + other.conflicts,
            (*self.deleted, *other.deleted),
        )


def redact_value(redactor: Redactor, kind: SyncKind, name: str, value: Any) -> Any:
    """Return the value of a register as it may be stored and sent: without secrets."""
    if value is None or name not in _TEXT_REGISTERS.get(kind, ()):
        return value
    if kind != "message":
        return redact_tree(redactor, value)
    if not redactor.holds_secret([part["text"] for part in value["parts"]]):
        return value
    parts = [{**part, "text": redactor.redact(part["text"])} for part in value["parts"]]
    return {**value, "parts": parts}


def make_context(redactor: Redactor, via: str, now: datetime) -> WriteContext:
    """Return what all writes of a batch share."""

    def derive(message: NewMessage, id_: str) -> PreparedMessage:
        return prepare(message, id=id_, redactor=redactor)

    return WriteContext(now, via, derive, parent_rank=_parent_rank)


def is_absent(known: Mapping[str, KnownRegister]) -> bool:
    """Return whether all registers of a record say that it was removed."""
    return all(one.digest == ABSENT for one in known.values())


def stamp_removal(before: Mapping[str, KnownRegister], *, machine: str, now_us: int) -> Registers:
    """Return the registers of a record that is not here any more."""
    nothing: dict[str, tuple[Any, int | None]] = dict.fromkeys(before, (None, None))
    return stamp_changes(before, nothing, machine=machine, now_us=now_us)


def find_stored(db: Connection, kind: SyncKind, key: str) -> StoredRecord | None:
    """Return a record as it is stored here, or None."""
    owners = key.split("/")[:2] if kind == "judgement" else [key]  # under either of its ends
    numbers = [sync_writes.find_row(db, kind, owner) for owner in owners]
    records = sync_rows.read_numbers(db, kind, [n for n in numbers if n is not None])
    return next((one for one in records if one.key == key), None)


class Batch:
    """Records that are applied in one transaction, in any order."""

    def __init__(
        self, db: Connection, redactor: Redactor, machine: str, via: str, now: datetime
    ) -> None:
        self._db = db
        self._redactor = redactor
        self._references = ReferenceRedactor(redactor)
        self._machine = machine
        self._now_us = clock.to_us(now)
        self._context = make_context(redactor, via, now)

    def apply(self, records: Sequence[SyncRecord]) -> Applied:
        """Apply records: first what was forgotten, then the rest."""
        deleted = self._forget([record for record in records if record.kind == "forget"])
        applied = Applied(received=len(records), deleted=tuple(deleted))
        for record in records:
            if record.kind != "forget":
                applied += self._apply_alone(record)
        touched = sorted(self._context.touched)
        sync_writes.mark_digested(self._db, touched, now=self._context.now)
        if deleted:
            sync_rows.add_deleted(self._db, deleted, self._context.now)
        return applied

    def _forget(self, records: Sequence[SyncRecord]) -> list[int]:
        if not records:
            return []
        tombstones = {}
        for record in records:
            own = record.registers["self"]
            now = self._context.now
            one = history.make_tombstone(own.value["source"], own.us, now=now)
            tombstones[record.key] = one
        deleted = sync_forgets.forget(self._db, tombstones, now=self._context.now)
        for record in records:
            self._note_tombstone(record, tombstones[record.key].source)
        return deleted

    def _note_tombstone(self, record: SyncRecord, source: str) -> None:
        """Enter a tombstone into the change log, with the better source and the later time."""
        db, key = self._db, record.key
        is_better = history.raise_sources(db, {key: source}) > 0
        known = sync_rows.find_known(db, "forget", key)
        is_later = known and unpack_known(known.state)["self"].us < record.registers["self"].us
        if is_better or is_later or known is None:
            state = pack_known(known_registers(record.registers))
            sync_rows.put_known(db, "forget", key, n=None, state=state, via=self._context.via)
            sync_rows.remove_known_about(db, [key])

    def _apply_one(self, incoming: SyncRecord) -> Applied:
        db, kind, there = self._db, incoming.kind, incoming.key
        incoming = incoming._replace(references=self._references.redact(incoming.references))
        key = self._own_key(incoming)
        incoming = incoming._replace(key=key)
        known, stored = sync_rows.find_known(db, kind, key), find_stored(db, kind, key)
        local = self._local_registers(known, stored, incoming)
        merged = merge(local, incoming.registers, kind)
        values = {
            name: redact_value(self._redactor, kind, name, one.value)
            for name, one in merged.items()
            if stored is None or digest_value(local[name].value) != digest_value(one.value)
        }
        written = self._write(incoming, merged, stored, values)
        if written.is_forgotten:
            sync_rows.remove_known(db, kind, key)
            return Applied(forgotten=1)
        if written.waits_for:  # it enters the change log, and goes on to others, once it is written
            return Applied()
        before = unpack_known(known.state) if known else {}
        if known_registers(merged) != before:
            is_theirs = merged == incoming.registers and key == there
            via = self._context.via if is_theirs else ""
            state = pack_known(known_registers(merged))
            sync_rows.put_known(db, kind, key, n=written.n, state=state, via=via)
        else:
            sync_rows.set_number(db, kind, key, written.n)
        theirs = incoming.registers.get("text")
        if theirs is not None and kind == "fragment":
            clean = redact_value(self._redactor, kind, "text", theirs.value)
            theirs = theirs._replace(value=clean)
        conflict = kind == "fragment" and conflicts.keep_loser(
            db, key, local.get("text"), theirs, self._context.now
        )
        applied = Applied(changed=int(bool(values)), conflicts=int(conflict))
        return applied + self._apply_waiting({key, there})

    def _own_key(self, incoming: SyncRecord) -> str:
        """Return the key of a record here; what waits under the key of there is in it now."""
        values = {name: one.value for name, one in incoming.registers.items()}
        new = Incoming(incoming.key, None, values, incoming.references)
        key = sync_writes.own_key(self._db, incoming.kind, new)
        if key != incoming.key:
            sync_rows.remove_pending(self._db, incoming.kind, incoming.key)
            if incoming.kind == "instruction":  # it waited for its message under that key
                sync_rows.remove_known(self._db, incoming.kind, incoming.key)
        return key

    def _write(
        self,
        incoming: SyncRecord,
        merged: Registers,
        stored: StoredRecord | None,
        values: Mapping[str, Any],
    ) -> Written:
        """Write what changes a record, or let it wait for what it needs."""
        kind, key = incoming.kind, incoming.key
        written = Written(stored.n if stored else None)
        is_missing = stored is None and all(value is None for value in values.values())
        if values and not is_missing:
            new = Incoming(key, written.n, values, incoming.references)
            written = sync_writes.write(self._db, kind, new, self._context)
        if written.waits_for:
            clean = {
                name: one._replace(value=redact_value(self._redactor, kind, name, one.value))
                for name, one in merged.items()
            }
            waiting = SyncRecord(kind, key, clean, incoming.references)
            body = orjson.dumps(pack_record(waiting)).decode()
            sync_rows.put_pending(self._db, kind, key, waits_for=written.waits_for, body=body)
        else:
            sync_rows.remove_pending(self._db, kind, key)
        return written

    def _apply_waiting(self, ids: set[str]) -> Applied:
        """Apply the records that waited for one that has just been written."""
        applied = Applied()
        for body in [one for id_ in sorted(ids) for one in sync_rows.pending_for(self._db, id_)]:
            waiting = orjson.loads(body)
            try:
                applied += self._apply_alone(parse_record(waiting))
            except SyncError:
                sync_rows.remove_pending(self._db, waiting["kind"], waiting["key"])
                log.warning(_DROPPED)
        return applied

    def _apply_alone(self, record: SyncRecord) -> Applied:
        """Apply a record, or drop it if it cannot be stored: it must not fail its page."""
        db, touched = self._db, set(self._context.touched)
        db.rows("SAVEPOINT record")
        try:
            applied = self._apply_one(record)
        except LoreError as error:
            if isinstance(error, _OF_THE_PLACE) or not db.in_transaction:
                raise
            db.rows("ROLLBACK TO SAVEPOINT record")
            self._context.touched = touched
            sync_rows.remove_pending(db, record.kind, record.key)
            log.warning(_DROPPED, extra={"kind": record.kind})
            applied = Applied()
        db.rows("RELEASE SAVEPOINT record")
        return applied

    def _local_registers(
        self, known: KnownRecord | None, stored: StoredRecord | None, incoming: SyncRecord
    ) -> Registers:
        """Return the state of a record here, with what changed since the last scan."""
        before = unpack_known(known.state) if known else {}
        if stored is not None:
            local = stamp_changes(before, stored.values, machine=self._machine, now_us=self._now_us)
            return local if before else _as_derived(local, incoming)
        if body := sync_rows.find_pending(self._db, incoming.kind, incoming.key):
            return dict(parse_record(orjson.loads(body)).registers)
        if incoming.kind not in REMOVABLE or not before:
            return {}
        if incoming.kind == "instruction" and not is_absent(before):
            return {}
        return stamp_removal(before, machine=self._machine, now_us=self._now_us)


def _as_derived(local: Registers, incoming: SyncRecord) -> Registers:
    """Return a state that no scan has seen, as far as it is a change of this machine.

    What both derived alike is none. Nor is the state of a rule that was derived here a moment ago:
    who captured its words judged it in context.
    """
    for name, theirs in incoming.registers.items():
        if digest_value(theirs.value) == digest_value(local[name].value):
            local[name] = theirs
        elif incoming.kind == "instruction":
            local[name] = local[name]._replace(us=0, machine="")
    return local


def _parent_rank(db: Connection, child: str) -> tuple[Any, ...]:
    known = sync_rows.find_known(db, "parent", child)
    if known is None:
        return (0, "")
    own = unpack_known(known.state)["self"]
    return (own.us, own.machine)
