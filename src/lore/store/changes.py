"""The change log and the tombstones: what another machine must be told."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal

from lore import clock
from lore.records import Change
from lore.store.items import type_name
from lore.store.packing import moment, pack_key, unpack_key
from lore.store.sqlite import Connection, among, id_text, texts

Action = Literal["add", "change", "delete", "forget"]


def log(db: Connection, action: Action, ns: Sequence[int], at: datetime) -> None:
    """Write down that items were added or changed; numbers in a row share an entry."""
    us = clock.to_us(at)
    db.run_many(
        "INSERT INTO changes (at, action, first_n, last_n) VALUES (:at, :action, :first, :last)",
        ({"at": us, "action": action, "first": run[0], "last": run[-1]} for run in _runs(ns)),
    )


def _runs(ns: Sequence[int]) -> Iterator[list[int]]:
    """Yield numbers in runs without gaps, in their order."""
    run: list[int] = []
    for n in ns:
        if run and n != run[-1] + 1:
            yield run
            run = []
        run.append(n)
    if run:
        yield run


def bury(
    db: Connection,
    ids: Sequence[str],
    at: datetime,
    *,
    sources: Mapping[str, str] | None = None,
) -> int:
    """Leave a tombstone for each id, so that nothing brings it back; count the new ones.

    `sources` gives the digest of where an id came from, by which it is known when it is
    captured once more.
    """
    us = clock.to_us(at)
    fresh = [id_ for id_ in dict.fromkeys(ids) if id_ not in buried(db, [id_])]
    if not fresh:
        return 0
    # Asked for one number at a time, each entry of a large transaction takes longer than the last.
    last = db.value("SELECT coalesce(max(seq), 0) FROM changes")
    db.run_many(
        "INSERT INTO changes (at, action, first_n, last_n) VALUES (:at, 'forget', 0, 0)",
        ({"at": us} for _ in fresh),
    )
    seqs = db.rows("SELECT seq FROM changes WHERE seq > :last ORDER BY seq", last=last)
    db.run_many(
        "INSERT INTO tombstones (id, at, seq, source) VALUES (:id, :at, :seq, :source)",
        (
            {"id": id_, "at": us, "seq": seq, "source": (sources or {}).get(id_, "")}
            for id_, (seq,) in zip(fresh, seqs, strict=True)
        ),
    )
    return len(fresh)


def source_of(agent: str, external_id: str, key: str) -> str:
    """Return the digest by which a message is known again after it was forgotten."""
    kept = unpack_key(pack_key(key))
    return hashlib.sha256(f"{agent}\0{external_id}\0{kept}".encode()).hexdigest()[:32]


def are_any_buried(db: Connection) -> bool:
    """Tell whether anything that was forgotten would be known again by its source."""
    return db.find("SELECT 1 FROM tombstones WHERE source <> '' LIMIT 1") is not None


def buried_sources(db: Connection, sources: Sequence[str]) -> dict[str, str]:
    """Return those of the sources that forgotten messages came from, with their ids."""
    rows = db.rows(
        f"SELECT source, id FROM tombstones WHERE source <> '' AND {among('source', 'sources')}",
        sources=texts(sources),
    )
    return dict(rows)


def buried(db: Connection, ids: Sequence[str]) -> set[str]:
    """Return those of the ids that have been forgotten."""
    return {id_ for id_ in ids if db.find("SELECT 1 FROM tombstones WHERE id = :id", id=id_)}


def tombstones(db: Connection) -> dict[str, str]:
    """Return all that was forgotten: ids, each with the digest of its source."""
    return dict(db.rows("SELECT id, source FROM tombstones"))


def since(db: Connection, seq: int, *, limit: int = 1_000) -> list[Change]:
    """Return what at most `limit` entries after a number tell, oldest first.

    An entry can tell of many items, all with its number.
    """
    rows = db.rows(
        "SELECT c.seq, c.at, c.action, coalesce(i.type, 0),"
        f" coalesce({id_text('i.id')}, t.id) FROM"
        " (SELECT * FROM changes WHERE seq > :seq ORDER BY seq LIMIT :limit) AS c"
        " LEFT JOIN items i ON i.n BETWEEN c.first_n AND c.last_n"
        " LEFT JOIN tombstones t ON t.seq = c.seq"
        " WHERE i.id IS NOT NULL OR t.id IS NOT NULL ORDER BY c.seq, i.n",
        seq=seq,
        limit=limit,
    )
    return [
        Change(n, moment(at), action, type_name(type_) if type_ else "tombstone", id_)
        for n, at, action, type_, id_ in rows
    ]
