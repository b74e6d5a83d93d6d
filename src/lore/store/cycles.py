"""Cycles: when consolidation ran, what each phase of it did, and what was taken back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import NamedTuple

import orjson

from lore import clock
from lore.errors import AmbiguousId, InvalidInput
from lore.records import CycleReport, PhaseReport
from lore.store import items
from lore.store.packing import moment, unpack_json
from lore.store.sqlite import Connection, Row

UNDO_FOR = timedelta(hours=24)
"""So long after its end a cycle can be taken back; then what it pruned is removed for good."""

_KEPT_FOR = timedelta(days=30)
"""Reports are kept so long: a month of what happened is what anyone asks for."""

_COLUMNS = "n, id, started_at, ended_at, undone_at, report"


class CycleRow(NamedTuple):
    """A cycle by its number, with its report so far."""

    n: int
    report: CycleReport


def begin(db: Connection, phases: Sequence[str], *, now: datetime) -> int:
    """Begin a cycle in which these phases wait for their turn; return its number."""
    return int(
        db.value(
            "INSERT INTO cycles (id, started_at, report) VALUES (:id, :at, :report) RETURNING n",
            id=clock.new_id(now),
            at=clock.to_us(now),
            report=_pack([PhaseReport(phase, "pending") for phase in phases]),
        )
    )


def save(db: Connection, n: int, phase: PhaseReport) -> None:
    """Keep what a phase has done so far, in the place of what was kept of it."""
    report = get(db, n)
    kept = [phase if one.phase == phase.phase else one for one in report.phases]
    db.run("UPDATE cycles SET report = :report WHERE n = :n", report=_pack(kept), n=n)


def end(db: Connection, n: int, *, now: datetime) -> None:
    """Close a cycle, and drop the reports of long ago."""
    db.run("UPDATE cycles SET ended_at = :at WHERE n = :n", at=clock.to_us(now), n=n)
    db.run(
        "DELETE FROM cycles WHERE started_at < :line AND n NOT IN (SELECT cycle_n FROM steps)",
        line=clock.to_us(now - _KEPT_FOR),
    )


def mark_undone(db: Connection, n: int, *, now: datetime) -> None:
    """Remember that a cycle was taken back."""
    db.run(
        "UPDATE cycles SET undone_at = :at, ended_at = coalesce(ended_at, :at) WHERE n = :n",
        at=clock.to_us(now),
        n=n,
    )


def get(db: Connection, n: int) -> CycleReport:
    """Return the report of a cycle by its number."""
    return _cycle(db.rows(f"SELECT {_COLUMNS} FROM cycles WHERE n = :n", n=n)[0]).report


def find(db: Connection, id_: str) -> CycleRow | None:
    """Return the cycle of an id, or of the beginning of one."""
    prefix = id_.strip().lower()
    if len(prefix) < items.SHORTEST_PREFIX:
        msg = f"'{id_}' is too short for an id: give at least {items.SHORTEST_PREFIX} characters."
        raise InvalidInput(msg)
    rows = db.rows(
        f"SELECT {_COLUMNS} FROM cycles WHERE id >= :id AND id < :id || '~' ORDER BY n LIMIT 2",
        id=prefix,
    )
    if len(rows) > 1:
        msg = f"'{id_}' fits several cycles."
        raise AmbiguousId(msg)
    return _cycle(rows[0]) if rows else None


def find_open(db: Connection, phases: Sequence[str]) -> CycleRow | None:
    """Return the last cycle of these phases that was begun and never ended: it goes on."""
    rows = db.rows(f"SELECT {_COLUMNS} FROM cycles WHERE ended_at IS NULL ORDER BY n DESC")
    found = (_cycle(row) for row in rows)
    fitting = (c for c in found if [one.phase for one in c.report.phases] == list(phases))
    return next(fitting, None)


def find_last(db: Connection, *, standing: bool = False) -> CycleRow | None:
    """Return the newest cycle; with `standing`, the newest that was not taken back."""
    condition = "WHERE undone_at IS NULL" if standing else ""
    row = db.find(f"SELECT {_COLUMNS} FROM cycles {condition} ORDER BY n DESC LIMIT 1")
    return None if row is None else _cycle(row)


def newest(db: Connection, *, limit: int) -> list[CycleReport]:
    """Return the reports of the last cycles, newest first."""
    rows = db.rows(f"SELECT {_COLUMNS} FROM cycles ORDER BY n DESC LIMIT :limit", limit=limit)
    return [_cycle(row).report for row in rows]


def beyond_undo(db: Connection, *, running: int = 0, now: datetime) -> list[int]:
    """Return the cycles that left something to take back, and can no longer be taken back.

    The one that runs now is none of them, also if it was begun long ago.
    """
    rows = db.rows(
        "SELECT n FROM cycles WHERE coalesce(ended_at, started_at) <= :line"
        " AND n IN (SELECT cycle_n FROM steps) AND n <> :running ORDER BY n",
        line=clock.to_us(now - UNDO_FOR),
        running=running,
    )
    return [row[0] for row in rows]


_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def drop_lines(db: Connection, ids: Sequence[str], needle: str = "") -> None:
    """Take lines out of all reports that tell of these ids, or say a text in any case.

    Why a phase failed goes from all of them: an error may quote anything.
    """
    gone = set(ids)
    for n, packed in db.rows("SELECT n, report FROM cycles"):
        phases = _unpack(packed)
        kept = [
            replace(
                one,
                told=_without(one.told, gone, needle),
                reason="" if one.state == "failed" else one.reason,
            )
            for one in phases
        ]
        if kept != phases:
            db.run("UPDATE cycles SET report = :report WHERE n = :n", report=_pack(kept), n=n)


def _without(told: tuple[str, ...], gone: set[str], needle: str) -> tuple[str, ...]:
    return tuple(
        line
        for line in told
        if gone.isdisjoint(_ID.findall(line))
        and not (needle and needle in " ".join(line.casefold().split()))
    )


def find_mark(db: Connection, name: str) -> int:
    """Return how far a phase has come, as it said itself; 0 at first."""
    return int(db.value("SELECT value FROM meta WHERE key = :key", key=_mark(name)) or 0)


def set_mark(db: Connection, name: str, value: int) -> None:
    """Remember how far a phase has come."""
    db.run(
        "INSERT INTO meta (key, value) VALUES (:key, :value)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        key=_mark(name),
        value=str(value),
    )


def _mark(name: str) -> str:
    return f"consolidated {name}"


def _pack(phases: Sequence[PhaseReport]) -> str:
    return orjson.dumps([asdict(phase) for phase in phases]).decode()


def _unpack(packed: str) -> list[PhaseReport]:
    return [PhaseReport(**{**one, "told": tuple(one["told"])}) for one in unpack_json(packed)]


def _cycle(row: Row) -> CycleRow:
    n, id_, started_at, ended_at, undone_at, packed = row
    return CycleRow(
        n,
        CycleReport(
            id=id_,
            started_at=moment(started_at),
            ended_at=None if ended_at is None else moment(ended_at),
            phases=tuple(_unpack(packed)),
            undone=undone_at is not None,
        ),
    )
