"""Standing instructions: what the user said once and wants applied always."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from lore.records import TRUST, Origin
from lore.store import items
from lore.store.codec import unpack_json
from lore.store.sqlite import Connection, among, int_array
from lore.text import instructions, words

_MAX_READ = 1_000
"""At most this many are read, newest first; a withdrawal is newer than what it withdraws."""


class Instruction(NamedTuple):
    """One instruction, verbatim, with the message or fragment that it comes from."""

    item_n: int
    text: str
    created_at: int
    fragment_origin: Origin | None = None
    """The origin of a fragment; a message is always the user's own."""

    project_id: str | None = None
    """The project it applies to; None means all."""

    session_id: str | None = None


def add(db: Connection, item_n: int, project_n: int | None, text: str, created_at: int) -> None:
    """Store an instruction; of repeated ones, only the newest is shown."""
    digest = hashlib.sha256(" ".join(words.split(text)).encode()).hexdigest()[:16]
    source = {"item_n": item_n, "project_n": project_n, "created_at": created_at}
    db.insert("standing", text=text, digest=digest, **source)


def texts_of_items(db: Connection, item_ns: Sequence[int]) -> list[str]:
    """Return the instructions that come from some items."""
    return db.column(
        f"SELECT text FROM standing WHERE {among('item_n', 'ns')} ORDER BY n", ns=int_array(item_ns)
    )


def remove(db: Connection, item_ns: Sequence[int]) -> list[int]:
    """Delete the instructions that come from some items; return which items had any."""
    rows = db.rows(
        f"DELETE FROM standing WHERE {among('item_n', 'ns')} RETURNING item_n",
        ns=int_array(item_ns),
    )
    return sorted({row[0] for row in rows})


def current_instructions(
    db: Connection, project_n: int | None, *, everywhere: bool = False, limit: int = 200
) -> list[Instruction]:
    """Return the instructions that apply to a project, or to any, newest first.

    Instructions are left out if the user withdrew them later or reworded the fragment made of them,
    and so are sentences that only withdraw. A less trusted origin withdraws nothing.
    """
    candidates = _read_instructions(db, project_n, everywhere=everywhere)
    former = _former_words(db, candidates)
    candidates = [
        one
        for one in candidates
        if not any(instructions.is_same_rule(one.text, text) for text in former.get(one.item_n, ()))
    ]
    withdrawn = _find_withdrawn(candidates, everywhere=everywhere)
    return [
        one
        for place, one in enumerate(candidates)
        if place not in withdrawn and not instructions.is_only_withdrawal(one.text)
    ][:limit]


def has_any_since(db: Connection, at_us: int) -> bool:
    """Return whether any instruction was stored after a moment."""
    return bool(db.value("SELECT 1 FROM standing WHERE created_at > :at LIMIT 1", at=at_us))


def withdrawn_items(db: Connection, item_ns: Sequence[int]) -> set[int]:
    """Return those of the items all of whose instructions the user withdrew later."""
    rows = db.rows(
        "SELECT item_n, text, (SELECT p.id FROM projects p WHERE p.n = project_n)"
        f" FROM standing WHERE {among('item_n', 'ns')}",
        ns=int_array(item_ns),
    )
    own = [(n, (project_id, *words.split(text))) for n, text, project_id in rows]
    if not own:
        return set()
    candidates = _read_instructions(db, None, everywhere=True)
    # Only the newest of repeated instructions was read; its result holds for all of them.
    withdrawn = {
        (candidates[place].project_id, *words.split(candidates[place].text))
        for place in _find_withdrawn(candidates, everywhere=True)
    }
    return {n for n, instruction in own if instruction in withdrawn} - {
        n for n, instruction in own if instruction not in withdrawn
    }


def _read_instructions(
    db: Connection, project_n: int | None, *, everywhere: bool
) -> list[Instruction]:
    """Return instructions, newest first, each once for every project it was given in."""
    sql = (
        "SELECT s.item_n, s.text, s.created_at, (SELECT f.origin FROM fragments f"
        " WHERE f.n = s.item_n), (SELECT p.id FROM projects p WHERE p.n = s.project_n),"
        " (SELECT t.id FROM sessions t JOIN items i ON i.session_n = t.n WHERE i.n = s.item_n)"
        " FROM standing s WHERE (:everywhere"
        " OR s.project_n IS NULL OR s.project_n = :project_n) AND NOT EXISTS (SELECT 1"
        " FROM standing o WHERE o.digest = s.digest AND (o.created_at, o.n) > (s.created_at, s.n)"
        " AND (o.project_n IS NULL"
        " OR o.project_n = CASE WHEN :everywhere THEN s.project_n ELSE :project_n END))"
        " ORDER BY s.created_at DESC, s.n DESC LIMIT :limit"
    )
    rows = db.rows(sql, project_n=project_n, everywhere=int(everywhere), limit=_MAX_READ)
    return [Instruction(*row) for row in rows]


def _former_words(db: Connection, candidates: Sequence[Instruction]) -> dict[int, list[str]]:
    """Return for messages the former texts of the fragments made of them."""
    rows = db.rows(
        "SELECT f.source_messages, v.content FROM fragment_versions v"
        f" JOIN fragments f ON f.n = v.fragment_n WHERE {among('f.n', 'ns')}",
        ns=int_array([one.item_n for one in candidates if one.fragment_origin]),
    )
    former: dict[int, list[str]] = {}
    for packed, content in rows:
        for n in items.numbers_of(db, unpack_json(packed)).values():
            former.setdefault(n, []).append(content)
    return former


def _find_withdrawn(candidates: Sequence[Instruction], *, everywhere: bool) -> set[int]:
    """Return the positions of the withdrawn instructions, which are ordered newest first."""
    withdrawn: set[int] = set()
    for place, one in enumerate(candidates):
        withdrawal = instructions.find_withdrawal(one.text)
        if withdrawal is None or place in withdrawn:
            continue
        older = [
            i
            for i in range(place + 1, len(candidates))
            if _trust(candidates[i]) <= _trust(one)
            and _applies_to(one, candidates[i], everywhere=everywhere)
        ]
        withdrawn |= {
            older[i]
            for i in instructions.match_rules(withdrawal, [candidates[i].text for i in older])
        }
    return withdrawn


def _applies_to(newer: Instruction, older: Instruction, *, everywhere: bool) -> bool:
    return not everywhere or newer.project_id in (None, older.project_id)


def _trust(one: Instruction) -> int:
    return TRUST[one.fragment_origin or "user"]
