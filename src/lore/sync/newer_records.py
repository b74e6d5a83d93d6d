"""Records of a newer Lore: what this one does not know of them waits until it is updated.

A newer version may send records of a new kind, or new registers and references of a known one. What
is known of a record is applied; a record with anything unknown is also stored as it came, and
applied as a whole by the version that knows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from lore.errors import SyncError
from lore.redaction.redactor import Redactor, redact_tree
from lore.store import history, sync_rows
from lore.store.database import Connection
from lore.sync.references import ReferenceRedactor
from lore.sync.registers import from_wire, merge, to_wire
from lore.sync.wire_format import check_shape, is_known_kind, known_references, without_unknown

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class SplitRecords(NamedTuple):
    """Records as far as this version knows them, and those that have more."""

    known: list[Any]
    newer: list[dict[str, Any]]


def split_records(raw: Iterable[Any]) -> SplitRecords:
    """Part what this version knows from what it does not; raise `SyncError` for no record at all.

    What is known is checked when it is applied.
    """
    known: list[Any] = []
    newer: list[dict[str, Any]] = []
    for record in raw:
        if not isinstance(record, dict):
            msg = "The other side sent something that is no record."
            raise SyncError(msg)
        plain = without_unknown(record) if is_known_kind(record) else None
        if plain is not None:
            known.append(plain)
        if plain != record:
            check_shape(record)
            newer.append(record)
    return SplitRecords(known, newer)


def keep(db: Connection, newer: Iterable[dict[str, Any]], redactor: Redactor) -> None:
    """Store records until a version is here that knows them, redacted as all that arrives."""
    names = ReferenceRedactor(redactor)
    for record in newer:
        kind, key = record["kind"], record["key"]
        former = sync_rows.find_kept(db, kind, key)
        registers = record["registers"]
        if former is not None:
            registers = _merged(orjson.loads(former)["registers"], registers, kind)
        rest = {n: one for n, one in record.items() if n not in ("kind", "key", "registers")}
        rest = redact_tree(redactor, rest)
        if references := known_references(record):
            rest["references"] |= names.redact(references)  # their identities stay
        clean = {
            name: [one[0], one[1], redact_tree(redactor, one[2]), *one[3:]]
            for name, one in registers.items()
        }
        whole = {**rest, "kind": kind, "key": key, "registers": clean}
        body = orjson.dumps(whole).decode()
        if not history.find_tombstones(db, sorted({key, *_ID.findall(body)})):
            sync_rows.keep_record(db, kind, key, body)


def _merged(one: Mapping[str, Any], other: Mapping[str, Any], kind: str) -> dict[str, list[Any]]:
    return to_wire(merge(from_wire(one), from_wire(other), kind))


def find_applicable(db: Connection) -> list[dict[str, Any]]:
    """Return the stored records that this version knows as a whole."""
    records = (orjson.loads(body) for body in sync_rows.kept_records(db))
    return [one for one in records if is_known_kind(one) and without_unknown(one) == one]
