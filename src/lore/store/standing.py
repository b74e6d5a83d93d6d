"""Standing instructions: what the person said once and means always."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from lore.records import TRUST, Origin
from lore.store import items
from lore.store.packing import unpack_json
from lore.store.sqlite import Connection, among, numbers
from lore.text import withdrawals, words

_MOST_READ = 1_000
"""So many are looked at, newest first: what takes back an instruction is newer than that."""


class Standing(NamedTuple):
    """One instruction, verbatim, with the message or fragment that it comes from."""

    item_n: int
    text: str
    created_at: int
    fragment_origin: Origin | None = None
    """Who said it, if it is a fragment; a message is always the person's own."""

    project_id: str | None = None
    """Where it holds; none is everywhere."""

    session_id: str | None = None


def add(db: Connection, item_n: int, project_n: int | None, text: str, created_at: int) -> None:
    """Keep an instruction; of several sayings of it, the newest is shown."""
    digest = hashlib.sha256(" ".join(words.split(text)).encode()).hexdigest()[:16]
    db.run(
        "INSERT INTO standing (item_n, project_n, text, digest, created_at)"
        " VALUES (:item_n, :project_n, :text, :digest, :created_at)",
        item_n=item_n,
        project_n=project_n,
        text=text,
        digest=digest,
        created_at=created_at,
    )


def texts(db: Connection, item_ns: Sequence[int]) -> list[str]:
    """Return the instructions that come from some messages."""
    rows = db.rows(
        f"SELECT text FROM standing WHERE {among('item_n', 'ns')} ORDER BY n", ns=numbers(item_ns)
    )
    return [row[0] for row in rows]


def remove(db: Connection, item_ns: Sequence[int]) -> list[int]:
    """Take away the instructions that come from some messages; return which had any."""
    rows = db.rows(
        f"DELETE FROM standing WHERE {among('item_n', 'ns')} RETURNING item_n",
        ns=numbers(item_ns),
    )
    return sorted({row[0] for row in rows})


def newest(
    db: Connection, project_n: int | None, *, everywhere: bool = False, limit: int = 200
) -> list[Standing]:
    """Return the instructions that hold in a project, or in all of them, newest first.

    One that the person took back later is left out, or gave other words in the fragment made of
    it, and so is the sentence that only takes back; whoever is trusted less takes nothing back.
    """
    found = _read(db, project_n, everywhere=everywhere)
    former = _former_words(db, found)
    found = [
        one
        for one in found
        if not any(withdrawals.is_same(one.text, text) for text in former.get(one.item_n, ()))
    ]
    gone = _gone(found, everywhere=everywhere)
    return [
        one
        for place, one in enumerate(found)
        if place not in gone and not withdrawals.is_only(one.text)
    ][:limit]


def any_since(db: Connection, at_us: int) -> bool:
    """Tell whether any instruction was given after a moment, anywhere."""
    return bool(db.value("SELECT 1 FROM standing WHERE created_at > :at LIMIT 1", at=at_us))


def taken_back(db: Connection, item_ns: Sequence[int]) -> set[int]:
    """Return those of the items whose instructions the person took back later, all of them."""
    asked = db.rows(
        "SELECT item_n, text, (SELECT p.id FROM projects p WHERE p.n = project_n)"
        f" FROM standing WHERE {among('item_n', 'ns')}",
        ns=numbers(item_ns),
    )
    told = [(n, (project_id, *words.split(text))) for n, text, project_id in asked]
    if not told:
        return set()
    found = _read(db, None, everywhere=True)
    # Of one said twice only the newest was read: what holds for it holds for all of them.
    gone = {
        (found[place].project_id, *words.split(found[place].text))
        for place in _gone(found, everywhere=True)
    }
    return {n for n, said in told if said in gone} - {n for n, said in told if said not in gone}


def _read(db: Connection, project_n: int | None, *, everywhere: bool) -> list[Standing]:
    """Return instructions, newest first, each once for each project in which it was given."""
    rows = db.rows(
        "SELECT s.item_n, s.text, s.created_at, (SELECT f.origin FROM fragments f"
        " WHERE f.n = s.item_n), (SELECT p.id FROM projects p WHERE p.n = s.project_n),"
        " (SELECT t.id FROM sessions t JOIN items i ON i.session_n = t.n WHERE i.n = s.item_n)"
        " FROM standing s WHERE (:everywhere"
        " OR s.project_n IS NULL OR s.project_n = :project_n) AND NOT EXISTS (SELECT 1"
        " FROM standing o WHERE o.digest = s.digest AND (o.created_at, o.n) > (s.created_at, s.n)"
        " AND (o.project_n IS NULL"
        " OR o.project_n = CASE WHEN :everywhere THEN s.project_n ELSE :project_n END))"
        " ORDER BY s.created_at DESC, s.n DESC LIMIT :limit",
        project_n=project_n,
        everywhere=int(everywhere),
        limit=_MOST_READ,
    )
    return [Standing(*row) for row in rows]


def _former_words(db: Connection, found: Sequence[Standing]) -> dict[int, list[str]]:
    """Return for messages the words that fragments made of them had, and have no longer."""
    rows = db.rows(
        "SELECT f.source_messages, v.content FROM fragment_versions v"
        f" JOIN fragments f ON f.n = v.fragment_n WHERE {among('f.n', 'ns')}",
        ns=numbers([one.item_n for one in found if one.fragment_origin]),
    )
    former: dict[int, list[str]] = {}
    for packed, content in rows:
        for n in items.numbers_of(db, unpack_json(packed)).values():
            former.setdefault(n, []).append(content)
    return former


def _gone(found: Sequence[Standing], *, everywhere: bool) -> set[int]:
    """Return the places of what was taken back, of instructions that stand newest first."""
    gone: set[int] = set()
    for place, one in enumerate(found):
        withdrawal = withdrawals.find(one.text)
        if withdrawal is None or place in gone:
            continue
        older = [
            i
            for i in range(place + 1, len(found))
            if _trust(found[i]) <= _trust(one) and _reaches(one, found[i], everywhere=everywhere)
        ]
        gone |= {older[i] for i in withdrawals.meant(withdrawal, [found[i].text for i in older])}
    return gone


def _reaches(newer: Standing, older: Standing, *, everywhere: bool) -> bool:
    """Tell whether what is said for one project is said for the project of an older instruction."""
    return not everywhere or newer.project_id in (None, older.project_id)


def _trust(one: Standing) -> int:
    return TRUST[one.fragment_origin or "user"]
