"""Replaced: messages whose words a newer fragment has put out of date."""

from __future__ import annotations

from collections.abc import Sequence

from lore.store import items
from lore.store.packing import unpack_json
from lore.store.sqlite import Connection, among, numbers


def messages_among(db: Connection, ns: Sequence[int], session_ns: Sequence[int]) -> set[int]:
    """Return those of the messages, of these sessions, of which only replaced fragments came."""
    rows = db.rows(
        "SELECT f.source_messages FROM fragments f JOIN items i ON i.n = f.n"
        " WHERE f.superseded_by IS NOT NULL AND f.deleted_at IS NULL"
        f" AND {among('i.session_n', 'sessions')}",
        sessions=numbers(session_ns),
    )
    out_of_date = {id_ for (packed,) in rows for id_ in unpack_json(packed)}
    if not out_of_date:
        return set()
    ids = {id_: n for n, id_ in items.ids_of(db, ns).items()}
    found = out_of_date & ids.keys()
    standing = db.rows(
        "SELECT f.source_messages FROM fragments f JOIN items i ON i.n = f.n"
        " WHERE f.superseded_by IS NULL AND f.deleted_at IS NULL AND f.kind <> 'episode'"
        f" AND {among('i.session_n', 'sessions')}",
        sessions=numbers(session_ns),
    )
    still = {id_ for (packed,) in standing for id_ in unpack_json(packed)} if found else set()
    return {ids[id_] for id_ in found - still}
