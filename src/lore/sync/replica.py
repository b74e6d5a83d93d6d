"""A replica: the change log of one home, what it sends to others, and how it applies theirs."""

from __future__ import annotations

import hashlib
import logging
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import orjson

from lore import clock
from lore.errors import InvalidInput
from lore.redaction.redactor import Redactor
from lore.store import forgotten_texts, history, sync_rows, sync_writes
from lore.store.database import Connection, Database
from lore.store.maintenance import get_epoch
from lore.store.sync_rows import KnownRecord
from lore.store.sync_shapes import StoredRecord, SyncKind
from lore.store.sync_writes import Incoming
from lore.sync import newer_records
from lore.sync.batch import (
    ABSENT,
    REMOVABLE,
    Applied,
    Batch,
    find_stored,
    is_absent,
    make_context,
    redact_value,
    stamp_removal,
)
from lore.sync.references import ReferenceRedactor
from lore.sync.registers import (
    LARGEST_WINS,
    KnownRegister,
    Register,
    Registers,
    digest_value,
    known_registers,
    pack_known,
    stamp_changes,
    unpack_known,
)
from lore.sync.wire_format import (
    DEEPEST_RECORD,
    PAGE_BYTES,
    SyncRecord,
    has_long_name,
    is_too_deep,
    pack_record,
    parse_record,
)
from lore.text.name_limit import LONGEST_NAME

log = logging.getLogger("lore.sync")

PAGE = 250
"""Records of one exchange; all of them are applied in one transaction."""

_CHUNK = 500
"""Records that are entered into the change log in one transaction: others want to write, too."""


class ChangePage(NamedTuple):
    """Records that changed after a cursor, the cursor after them, and whether there are more."""

    records: list[dict[str, Any]]
    cursor: str
    more: bool


class Replica:
    """The home of a database as a replica of one person's memory."""

    def __init__(self, database: Database, redactor: Redactor) -> None:
        self._database = database
        self._redactor = redactor

    @property
    def machine(self) -> str:
        """Return the id of this home; a copy of its database gets an id of its own."""
        place = self._database.place
        with self._database.read() as db:
            machine, owner = sync_rows.get_machine(db)
        if machine and owner == place:
            return machine
        machine = uuid.uuid4().hex[:12]
        self._database.write(partial(sync_rows.set_machine, machine=machine, place=place))
        return machine

    @property
    def epoch(self) -> str:
        """Return what changes when a backup is restored: cursors from before are void then."""
        with self._database.read() as db:
            return get_epoch(db)

    def scan(self) -> int:
        """Bring the change log up to date with the tables; return how many records changed."""
        machine = self.machine
        self._apply_kept()
        with self._database.read() as db:
            upto, scanned = history.newest_change(db), sync_rows.get_scanned(db)
            messages = sync_rows.changed_messages(db, scanned)
        write = self._database.write
        count = write(lambda db: self._scan_tombstones(db, scanned, machine))
        for kind in sync_rows.MUTABLE:
            count += self._scan_kind(kind, machine)
        for start in range(0, len(messages), _CHUNK):
            chunk = messages[start : start + _CHUNK]
            count += write(partial(self._note_all, kind="message", ns=chunk, machine=machine))
        write(partial(sync_rows.set_scanned, seq=upto))
        return count

    def _apply_kept(self) -> None:
        """Apply the records of a newer Lore that this one knows by now."""
        with self._database.read() as db:
            records = newer_records.find_applicable(db)
        for start in range(0, len(records), _CHUNK):
            chunk = records[start : start + _CHUNK]
            finish = partial(sync_rows.drop_kept, keys=[(one["kind"], one["key"]) for one in chunk])
            self.apply(chunk, via="", finish=finish)

    def _scan_tombstones(self, db: Connection, scanned: int, machine: str) -> int:
        count = 0
        for stored in list(sync_rows.read_tombstones_after(db, scanned)):
            known = sync_rows.find_known(db, "forget", stored.key)
            count += self._note(db, stored, known, machine)
            sync_rows.remove_known_about(db, [stored.key])
        return count

    def _scan_kind(self, kind: SyncKind, machine: str) -> int:
        """Compare all records of a kind with the change log, and write only where they differ."""
        with self._database.read() as db:
            changed, removed = self._find_changed(db, kind, machine)
        count = 0
        for start in range(0, len(changed), _CHUNK):
            chunk = changed[start : start + _CHUNK]
            write = partial(self._note_all, kind=kind, ns=chunk, machine=machine)
            count += self._database.write(write)
        if removed:
            count += self._database.write(
                partial(self._note_removals, kind=kind, keys=removed, machine=machine)
            )
        return count

    def _find_changed(
        self, db: Connection, kind: SyncKind, machine: str
    ) -> tuple[list[int], list[str]]:
        """Return the numbers of records that changed, and the keys of those that are gone."""
        known, pending = sync_rows.all_known(db, kind), sync_rows.pending_keys(db, kind)
        changed: dict[int, None] = {}
        seen = set()
        for stored in sync_rows.read_all(db, kind):
            seen.add(stored.key)
            former = known.get(stored.key)
            before = unpack_known(former.state) if former else {}
            is_known = known_registers(self._stamp(before, stored, machine)) == before
            if stored.n is not None and stored.key not in pending and not is_known:
                changed[stored.n] = None
        return list(changed), sorted(known.keys() - seen - pending)

    def _note_all(self, db: Connection, kind: SyncKind, ns: Sequence[int], machine: str) -> int:
        pending = sync_rows.pending_keys(db, kind)
        return sum(
            self._note(db, one, sync_rows.find_known(db, kind, one.key), machine)
            for one in list(sync_rows.read_numbers(db, kind, ns))
            if one.key not in pending
        )

    def _note_removals(
        self, db: Connection, kind: SyncKind, keys: Sequence[str], machine: str
    ) -> int:
        count = 0
        for key in keys:
            known = sync_rows.find_known(db, kind, key)
            if known is not None and find_stored(db, kind, key) is None:
                count += self._note_removal(db, known, machine)
        return count

    def _note(
        self, db: Connection, stored: StoredRecord, former: KnownRecord | None, machine: str
    ) -> bool:
        """Enter a record into the change log if it changed; what leaves is redacted once more."""
        before = unpack_known(former.state) if former else {}
        registers = self._stamp(before, stored, machine)
        known = known_registers(registers)
        if known == before:
            return False
        if stored.kind != "forget":
            redacted = {
                name: redact_value(self._redactor, stored.kind, name, one.value)
                for name, one in registers.items()
                if known[name] != before.get(name)
            }
            changed = {n: v for n, v in redacted.items() if v != registers[n].value}
            if changed:
                context = make_context(self._redactor, "", self._database.now())
                new = Incoming(stored.key, stored.n, changed, stored.references)
                sync_writes.write(db, stored.kind, new, context)
                for name, value in changed.items():
                    registers[name] = registers[name]._replace(value=value)
        state = pack_known(known_registers(registers))
        sync_rows.put_known(db, stored.kind, stored.key, n=stored.n, state=state)
        return True

    def _stamp(
        self, before: Mapping[str, KnownRegister], stored: StoredRecord, machine: str
    ) -> Registers:
        now_us = clock.to_us(self._database.now())
        if stored.kind == "forget" and before and _is_restamped(stored, before["self"]):
            before = {}
        return stamp_changes(before, stored.values, machine=machine, now_us=now_us)

    def _note_removal(self, db: Connection, former: KnownRecord, machine: str) -> bool:
        """Enter into the change log that a record is gone, unless it was forgotten."""
        ids = [part for part in former.key.split("/") if len(part) == 36]
        if history.find_tombstones(db, [*ids, former.key]):
            sync_rows.remove_known(db, former.kind, former.key)
            return False
        before = unpack_known(former.state)
        if former.kind not in REMOVABLE or is_absent(before):
            return False
        if former.kind == "instruction" and before["rule"].digest == ABSENT:
            return False  # it is derived of a fragment, which says itself whether it holds
        now_us = clock.to_us(self._database.now())
        registers = stamp_removal(before, machine=machine, now_us=now_us)
        state = pack_known(known_registers(registers))
        sync_rows.put_known(db, former.kind, former.key, n=former.n, state=state)
        return True

    def changes(self, cursor: str, *, without: str = "", limit: int = PAGE) -> ChangePage:
        """Return a page of what changed after a cursor, except what a machine itself brought."""
        with self._database.read() as db:
            epoch = get_epoch(db)
            known = sync_rows.changes_after(
                db, parse_cursor(cursor, epoch), without=without, limit=limit
            )
            newest = sync_rows.newest_seq(db)
            records, last, size = [], 0, 0
            left_out: Counter[str] = Counter()
            names = ReferenceRedactor(self._redactor)
            for record, seq in self._load(db, known):
                last = seq
                if record is None:
                    continue
                packed = pack_record(record._replace(references=names.redact(record.references)))
                if excess := _find_excess(packed):
                    left_out[excess] += 1
                    continue
                records.append(packed)
                size += len(orjson.dumps(packed))
                if size >= PAGE_BYTES:
                    break
        _warn_of_left_out(left_out, "of this machine")
        more = bool(known) and (last < known[-1][1] or len(known) >= limit)
        return ChangePage(records, f"{epoch}:{last if more else newest}", more)

    def count_changes(self, cursor: str, *, without: str = "") -> int:
        """Return how many records changed after a cursor, except those a machine brought."""
        with self._database.read() as db:
            seq = parse_cursor(cursor, get_epoch(db))
            return sync_rows.count_changes_after(db, seq, without=without)

    def _load(
        self, db: Connection, known: Sequence[tuple[KnownRecord, int]]
    ) -> Iterator[tuple[SyncRecord | None, int]]:
        """Yield entries of the change log as records; None for what is no longer so."""
        ns: dict[SyncKind, set[int]] = {}
        for one, _ in known:
            if one.n is not None:
                ns.setdefault(one.kind, set()).add(one.n)
        stored = {
            (record.kind, record.key): record
            for kind, numbers in ns.items()
            for record in sync_rows.read_numbers(db, kind, sorted(numbers))
        }
        for one, seq in known:
            yield self._load_one(db, one, stored.get((one.kind, one.key))), seq

    def _load_one(
        self, db: Connection, known: KnownRecord, stored: StoredRecord | None
    ) -> SyncRecord | None:
        state = unpack_known(known.state)
        if sync_rows.find_pending(db, known.kind, known.key):
            return None  # its new state waits for another record
        if known.kind == "forget":
            stored = sync_rows.find_tombstone(db, known.key)
        if stored is None:
            if known.kind in REMOVABLE and is_absent(state):
                gone = {name: Register(o.us, o.machine, None, o.past) for name, o in state.items()}
                return SyncRecord(known.kind, known.key, gone, _removed_from(db, known))
            return None
        registers = {
            name: Register(state[name].us, state[name].machine, value, state[name].past)
            for name, (value, _) in stored.values.items()
            if name in state and state[name].digest == digest_value(value)
        }
        # What changed since the last scan gets its stamp, and a new number, by the next one.
        if len(registers) < len(stored.values):
            return None
        return SyncRecord(known.kind, known.key, registers, stored.references)

    def apply(
        self,
        raw: Iterable[Any],
        *,
        via: str,
        finish: Callable[[Connection], object] | None = None,
    ) -> Applied:
        """Apply records of another machine in one transaction; `finish` is part of it.

        The order of the records does not matter, nor how often they come.
        """
        return self._database.write(self.prepare_apply(raw, via=via, finish=finish))

    def prepare_apply(
        self,
        raw: Iterable[Any],
        *,
        via: str,
        finish: Callable[[Connection], object] | None = None,
    ) -> Callable[[Connection], Applied]:
        """Check records of another machine, and return the write that applies them.

        Those that cannot be stored here or sent on are left out: they must not stop the others.
        """
        received = list(raw)
        shallow = [one for one in received if not is_too_deep(one)]
        known, newer = newer_records.split_records(shallow)
        records = [parse_record(one) for one in known if not has_long_name(one)]
        left_out = {
            _TOO_DEEP: len(received) - len(shallow),
            _LONG_NAME: len(known) - len(records),
        }
        _warn_of_left_out(left_out, "of another machine")
        machine = self.machine

        def write(db: Connection) -> Applied:
            applied = Batch(db, self._redactor, machine, via, self._database.now()).apply(records)
            newer_records.keep(db, newer, self._redactor)
            if finish is not None:
                finish(db)
            return applied

        return write

    def state_hash(self) -> str:
        """Return a hash of all that sync exchanges: equal on machines with the same state.

        When something was last used is left out: looking at it must not change the hash. So are
        the records that are not sent, with those that wait for them elsewhere.
        """
        total = 0
        unsent: set[str] = set()
        names = ReferenceRedactor(self._redactor)
        with self._database.read() as db:
            for kind in sync_rows.KINDS:
                for one in sync_rows.read_all(db, kind):
                    if not unsent.isdisjoint(_needed_ids(one)) or _is_unsent(one, names):
                        unsent.add(one.key)
                        continue
                    values = {
                        name: value
                        for name, (value, _) in one.values.items()
                        if name not in LARGEST_WINS
                    }
                    line = f"{kind}\0{one.identity}\0{digest_value(values)}".encode()
                    total += int.from_bytes(hashlib.sha256(line).digest(), "big")
        return hashlib.sha256(str(total % 2**256).encode()).hexdigest()[:32]


_LONG_NAME = f"a path or name has more than {LONGEST_NAME} bytes"
_TOO_DEEP = f"they are nested deeper than {DEEPEST_RECORD} levels"


def _find_excess(record: Mapping[str, Any]) -> str:
    """Return why a record is left out; an empty text if it is not."""
    if is_too_deep(record):
        return _TOO_DEEP
    return _LONG_NAME if has_long_name(record) else ""


def _is_restamped(stored: StoredRecord, before: KnownRegister) -> bool:
    """Return whether a tombstone changed: its stamp is the time at which something was forgotten.

    A text that is forgotten again has a later one; a better source changes no time.
    """
    source, at = stored.values["self"]
    is_renewed = forgotten_texts.is_text(stored.key) and (at or 0) > before.us
    return is_renewed or digest_value(source) != before.digest


def _is_unsent(stored: StoredRecord, names: ReferenceRedactor) -> bool:
    """Return whether a record is left out of what is sent."""
    registers = {name: [0, "", value] for name, (value, _) in stored.values.items()}
    packed: dict[str, Any] = {"registers": registers, "references": stored.references}
    if has_long_name(packed):  # one that holds a secret is sent as a short one
        packed["references"] = names.redact(stored.references)
    return bool(_find_excess(packed))


def _needed_ids(stored: StoredRecord) -> Iterator[str]:
    """Yield the ids of the records without which another machine cannot store this one."""
    value, _ = stored.values.get("self", (None, None))
    if stored.kind in ("version", "parent", "edge", "instruction", "judgement"):
        yield from stored.key.split("/")
    if stored.kind == "parent" and value is not None:
        yield value
    if stored.kind == "task" and value["episode"] is not None:
        yield value["episode"]


def _warn_of_left_out(counts: Mapping[str, int], whose: str) -> None:
    for reason, count in counts.items():
        if count:
            log.warning("%d records %s are left out of the sync: %s.", count, whose, reason)


def _removed_from(db: Connection, known: KnownRecord) -> Mapping[str, Any]:
    """Return what finds the session of a state that was removed: it has other ids elsewhere."""
    if known.kind != "working_state":
        return {}
    session = find_stored(db, "session", known.key)
    return {} if session is None else {"session": session.references["session"]}


def parse_cursor(cursor: str, epoch: str) -> int:
    """Return the number of a cursor; 0 if it is empty or from before a backup was restored."""
    if not cursor:
        return 0
    of, _, seq = cursor.rpartition(":")
    if not seq.isascii() or not seq.isdigit() or len(seq) > 18:
        msg = "This is not a cursor of sync."
        raise InvalidInput(msg, hint="Start without a cursor.")
    return int(seq) if of == epoch else 0
