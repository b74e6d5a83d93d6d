"""Distillations: condensed logs of segments, searchable like what they condense."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import orjson

from lore import clock
from lore.records import Distillation
from lore.store import changes, items, keywords
from lore.store.items import NewItem
from lore.store.packing import moment, unpack_json
from lore.store.sqlite import Connection, Row, among, id_text, numbers
from lore.text import tokens

_COLUMNS = (
    f"{id_text('i.id')}, s.id, d.generation, d.text, d.from_message, d.to_message, i.tokens,"
    " d.source_tokens, d.archived, i.created_at, d.sources"
)
_FROM = "FROM distillations d JOIN items i ON i.n = d.n JOIN sessions s ON s.n = d.session_n"


def add(db: Connection, session_n: int, distillation: Distillation, *, now: datetime) -> int:
    """Store a distillation of a session and make it findable."""
    project_n = db.value("SELECT project_n FROM sessions WHERE n = :n", n=session_n)
    at = clock.to_us(distillation.created_at)
    size = tokens.count(distillation.text)
    n = items.add(
        db,
        NewItem(distillation.id, "distillation", project_n, session_n, at, size, embeds=True),
    )
    db.run(
        "INSERT INTO distillations (n, session_n, generation, text, from_message, to_message,"
        " source_tokens, sources, archived) VALUES (:n, :session_n, :generation, :text,"
        " :from_message, :to_message, :source_tokens, :sources, :archived)",
        n=n,
        session_n=session_n,
        generation=distillation.generation,
        text=distillation.text,
        from_message=distillation.from_message,
        to_message=distillation.to_message,
        source_tokens=distillation.source_tokens,
        sources=orjson.dumps(distillation.sources).decode(),
        archived=int(distillation.archived),
    )
    keywords.add_distillation(db, n, distillation.text)
    changes.log(db, "add", [n], now)
    return n


def by_number(db: Connection, ns: Sequence[int]) -> dict[int, Distillation]:
    """Return distillations by number."""
    if not len(ns):
        return {}
    rows = db.rows(f"SELECT d.n, {_COLUMNS} {_FROM} WHERE {among('d.n', 'ns')}", ns=numbers(ns))
    return {row[0]: _distillation(row[1:]) for row in rows}


def of_session(db: Connection, session_n: int) -> list[Distillation]:
    """Return the distillations of a session, oldest first."""
    rows = db.rows(
        f"SELECT {_COLUMNS} {_FROM} WHERE d.session_n = :n ORDER BY i.created_at, d.n",
        n=session_n,
    )
    return [_distillation(row) for row in rows]


def remove(db: Connection, ns: Sequence[int], *, now: datetime) -> None:
    """Delete distillations; they can be made anew from the messages."""
    ids = items.ids_of(db, ns)
    keywords.remove(db, ns, type="distillation")
    db.run(f"DELETE FROM items WHERE {among('n', 'ns')}", ns=numbers(ns))
    changes.bury(db, list(ids.values()), now)


def _distillation(row: Row) -> Distillation:
    values = dict(zip(Distillation.__dataclass_fields__, row, strict=True))
    sources = tuple(tuple(line) for line in unpack_json(row[10]))
    values |= {"archived": bool(row[8]), "created_at": moment(row[9]), "sources": sources}
    return Distillation(**values)
