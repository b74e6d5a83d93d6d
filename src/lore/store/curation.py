"""Curation: how far sessions have become knowledge, and what is known already."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lore import clock
from lore.store import items
from lore.store.packing import pack_role, unpack_json
from lore.store.sqlite import Connection, field_of, shares, texts

NOTHING = -1
"""The mark of a session of which nothing was curated."""


def find_mark(db: Connection, session_n: int) -> int:
    """Return the ordinal up to which a session was curated."""
    found = db.value("SELECT ordinal FROM curations WHERE session_n = :n", n=session_n)
    return NOTHING if found is None else int(found)


def advance(db: Connection, session_n: int, ordinal: int, *, now: datetime) -> None:
    """Mark a session as curated up to an ordinal; a mark never goes back."""
    db.run(
        "INSERT INTO curations (session_n, ordinal, at) VALUES (:n, :ordinal, :at)"
        " ON CONFLICT (session_n) DO UPDATE SET ordinal = excluded.ordinal, at = excluded.at"
        " WHERE excluded.ordinal > curations.ordinal",
        n=session_n,
        ordinal=ordinal,
        at=clock.to_us(now),
    )


def due(db: Connection, *, idle_since: datetime, turns: int) -> list[str]:
    """Return the sessions to curate by id: silent since a moment, or with many new requests."""
    rows = db.rows(
        "SELECT s.id FROM sessions s"
        " LEFT JOIN curations c ON c.session_n = s.n"
        " WHERE EXISTS (SELECT 1 FROM messages m WHERE m.session_n = s.n"
        " AND m.ordinal > coalesce(c.ordinal, :nothing))"
        " AND (s.last_message_at <= :line OR (SELECT count(*) FROM messages m"
        " WHERE m.session_n = s.n AND m.ordinal > coalesce(c.ordinal, :nothing)"
        " AND m.role = :user) > :turns) ORDER BY s.last_message_at, s.n",
        line=clock.to_us(idle_since),
        nothing=NOTHING,
        user=pack_role("user"),
        turns=turns,
    )
    return [id_ for (id_,) in rows]


def deleted_of(db: Connection, message_ids: Sequence[str]) -> list[tuple[str, frozenset[str]]]:
    """Return what a person deleted of what messages had become, with all that each came from.

    What a cycle pruned is none of it: said again, it may be learned again.
    """
    if not message_ids:
        return []
    rows = db.rows(
        "SELECT f.content, f.source_messages FROM fragments f"
        " WHERE f.deleted_at IS NOT NULL AND f.source_messages <> '[]'"
        f" AND {shares('f.source_messages', 'ids')}"
        " AND NOT EXISTS (SELECT 1 FROM steps s WHERE s.fragment_n = f.n AND s.verb = 'hidden'"
        " AND s.at = f.deleted_at)",
        ids=texts(message_ids),
    )
    return [(text, frozenset(unpack_json(sources))) for text, sources in rows]


def find_saying(db: Connection, content: str, *, project_n: int | None, kind: str) -> int | None:
    """Return the visible fragment of a project that says something word for word."""
    found = db.value(
        "SELECT f.n FROM fragments f JOIN items i ON i.n = f.n WHERE f.content = :content"
        " AND f.kind = :kind AND f.deleted_at IS NULL AND f.superseded_by IS NULL"
        " AND (i.project_n IS NULL OR i.project_n = :project_n) ORDER BY f.n LIMIT 1",
        content=content,
        kind=kind,
        project_n=project_n,
    )
    return None if found is None else int(found)


def settings_named(db: Connection, name: str, *, project_n: int | None) -> list[int]:
    """Return the fragments of a project that stand and tell the value of a setting."""
    rows = db.rows(
        "SELECT f.n FROM fragments f JOIN items i ON i.n = f.n WHERE f.kind = 'config'"
        f" AND {field_of('f.payload', 'setting')} = :name"
        " AND f.deleted_at IS NULL AND f.superseded_by IS NULL"
        " AND coalesce(i.project_n, 0) = coalesce(:project_n, 0) ORDER BY f.n",
        name=name,
        project_n=project_n,
    )
    return [int(n) for (n,) in rows]


def vectors_since(db: Connection, seq: int, embedder_n: int) -> list[int]:
    """Return the fragments whose vectors came after a change number, from whichever process."""
    rows = db.rows(
        "SELECT v.n FROM vectors v JOIN fragments f ON f.n = v.n"
        " WHERE v.seq > :seq AND v.embedder_n = :embedder_n ORDER BY v.seq",
        seq=seq,
        embedder_n=embedder_n,
    )
    return [row[0] for row in rows]


def messages_there(db: Connection, ids: Sequence[str]) -> dict[str, int]:
    """Return the numbers of those of the messages that were not forgotten, by id."""
    found = ((id_, items.find_number(db, id_)) for id_ in ids)
    return {id_: n for id_, n in found if n is not None}
