"""Standing instructions: what the user said once and wants applied always."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from lore.records import TRUST, Origin
from lore.store import items
from lore.store.codec import unpack_json
from lore.store.sqlite import Connection, Row, among, int_array
from lore.text import instructions, words

T = TypeVar("T")

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
    withdraws = int(instructions.find_withdrawal(text) is not None)
    source = {"item_n": item_n, "project_n": project_n, "created_at": created_at}
    db.insert("standing", text=text, digest=digest, withdraws=withdraws, **source)
    _count_change(db)


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


class InstructionSize(NamedTuple):
    """The number of an instruction, that of its item, and the characters of its text."""

    n: int
    item_n: int
    chars: int


def current_instructions(
    db: Connection, project_n: int | None, *, everywhere: bool = False, limit: int = 200
) -> list[Instruction]:
    """Return the instructions that apply to a project, or to any, newest first.

    Instructions are left out if the user withdrew them later or reworded the fragment made of them,
    and so are sentences that only withdraw. A less trusted origin withdraws nothing.
    """
    return load(db, _current(db, project_n, everywhere=everywhere)[:limit])


def current_sizes(
    db: Connection, project_n: int | None, *, everywhere: bool = False, limit: int = 200
) -> list[InstructionSize]:
    """Return the sizes of the instructions that apply to a project, or to any, newest first."""
    ns = _current(db, project_n, everywhere=everywhere)[:limit]
    rows = db.rows(
        f"SELECT n, item_n, length(text) FROM standing WHERE {among('n', 'ns')}", ns=int_array(ns)
    )
    by_n = {row[0]: InstructionSize._make(row) for row in rows}
    return [by_n[n] for n in ns]


def _current(db: Connection, project_n: int | None, *, everywhere: bool) -> tuple[int, ...]:
    """Return the numbers of the instructions that apply, newest first."""

    def compute() -> tuple[int, ...]:
        rows = _newest(db, project_n, everywhere=everywhere)
        hidden = _compute_outcome(db, rows, everywhere=everywhere).hidden
        return tuple(n for n, *_ in rows if n not in hidden)

    return _computed_once(db, ("current", project_n, everywhere), compute)


_computed: dict[tuple[Any, ...], Any] = {}
"""What was computed of the instructions of a store: they seldom change, and matching them with
withdrawals would take most of the time of a recall. No text is cached."""

_MAX_COMPUTED = 64


def _computed_once(db: Connection, key: tuple[Any, ...], compute: Callable[[], T]) -> T:
    """Return a cached value, computed again once an instruction was added, moved or removed."""
    state = db.find(
        "SELECT count(*), max(n), sum(n), sum(n * coalesce(project_n, 0)),"
        " sum(created_at & 4294967295), (SELECT value FROM meta WHERE key = 'standing_changes')"
        " FROM standing"
    )
    whole_key = (str(db.path), state, *key)
    if whole_key in _computed:
        with suppress(KeyError):  # another thread may clear it meanwhile
            known: T = _computed[whole_key]
            return known
    if len(_computed) >= _MAX_COMPUTED:
        _computed.clear()
    value = _computed[whole_key] = compute()
    return value


def _count_change(db: Connection) -> None:
    """Count a change: an edited instruction keeps its number and time."""
    db.run(
        "INSERT INTO meta (key, value) VALUES ('standing_changes', '1')"
        " ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1"
    )


def has_any_since(db: Connection, at_us: int) -> bool:
    """Return whether any instruction was stored after a moment."""
    return bool(db.value("SELECT 1 FROM standing WHERE created_at > :at LIMIT 1", at=at_us))


def withdrawn_items(db: Connection, item_ns: Sequence[int]) -> set[int]:
    """Return those of the items all of whose instructions the user withdrew later."""
    own = db.rows(
        f"SELECT item_n, project_n, digest, text FROM standing WHERE {among('item_n', 'ns')}",
        ns=int_array(item_ns),
    )
    if not _may_be_withdrawn(db, [text for *_, text in own]):
        return set()
    # Only the newest of repeated instructions was judged; its result holds for all of them.
    withdrawn = _computed_once(db, ("withdrawn",), lambda: _find_all_withdrawn(db))
    return {n for n, *statement, _ in own if tuple(statement) in withdrawn} - {
        n for n, *statement, _ in own if tuple(statement) not in withdrawn
    }


def _find_all_withdrawn(db: Connection) -> frozenset[tuple[int | None, str]]:
    return _compute_outcome(db, _newest(db, None, everywhere=True), everywhere=True).withdrawn


def _may_be_withdrawn(db: Connection, rules: Sequence[str]) -> bool:
    """Return whether a withdrawal has the words of a rule; most memories have few withdrawals."""
    if not rules:
        return False

    def compute() -> list[frozenset[int]]:
        sentences = db.column("SELECT text FROM standing WHERE withdraws = 1")
        withdrawals = [one for text in sentences if (one := instructions.find_withdrawal(text))]
        return [_hashes(instructions.content_words(one.withdrawn)) for one in withdrawals]

    withdrawn = _computed_once(db, ("withdrawn words",), compute)
    contents = [_hashes(instructions.content_words(rule)) for rule in rules] if withdrawn else []
    return any(meant <= content for content in contents for meant in withdrawn)


def _hashes(some_words: Iterable[str]) -> frozenset[int]:
    return frozenset(map(hash, some_words))


def _newest(db: Connection, project_n: int | None, *, everywhere: bool) -> list[Row]:
    """Return what identifies instructions, newest first, each once for every project.

    All of it is in one index, and a text is never changed in place.
    """
    return db.rows(
        "SELECT s.n, s.item_n, s.project_n, s.digest, s.created_at, s.withdraws"
        " FROM standing s WHERE (:everywhere"
        " OR s.project_n IS NULL OR s.project_n = :project_n) AND NOT EXISTS (SELECT 1"
        " FROM standing o WHERE o.digest = s.digest AND (o.created_at, o.n) > (s.created_at, s.n)"
        " AND (o.project_n IS NULL"
        " OR o.project_n = CASE WHEN :everywhere THEN s.project_n ELSE :project_n END))"
        " ORDER BY s.created_at DESC, s.n DESC LIMIT :limit",
        project_n=project_n,
        everywhere=int(everywhere),
        limit=_MAX_READ,
    )


def load(db: Connection, ns: Sequence[int]) -> list[Instruction]:
    """Return the instructions with these numbers, in their order."""
    rows = db.rows(
        "SELECT s.n, s.item_n, s.text, s.created_at, f.origin, p.id, t.id FROM standing s"
        " JOIN items i ON i.n = s.item_n LEFT JOIN fragments f ON f.n = s.item_n"
        " LEFT JOIN projects p ON p.n = s.project_n LEFT JOIN sessions t ON t.n = i.session_n"
        f" WHERE {among('s.n', 'ns')}",
        ns=int_array(ns),
    )
    by_n = {n: Instruction._make(rest) for n, *rest in rows}
    return [by_n[n] for n in ns]


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


class _Outcome(NamedTuple):
    """Which of some instructions no longer apply."""

    hidden: frozenset[int]
    """The numbers of those that are not shown: withdrawn, reworded, or only withdrawals."""

    withdrawn: frozenset[tuple[int | None, str]]
    """The projects and digests of the withdrawn ones."""


def _compute_outcome(db: Connection, rows: Sequence[Row], *, everywhere: bool) -> _Outcome:
    ns, _, project_ns, digests, _, withdraws = zip(*rows, strict=True) if rows else ((),) * 6
    candidates = load(db, ns)
    former = _former_words(db, candidates)
    withdrawals = {
        place: withdrawal
        for place, one in enumerate(candidates)
        if withdraws[place] and (withdrawal := instructions.find_withdrawal(one.text))
    }
    reworded = {
        place
        for place, one in enumerate(candidates)
        if any(instructions.is_same_rule(one.text, text) for text in former.get(one.item_n, ()))
    }
    withdrawn = _find_withdrawn(candidates, withdrawals, set(), everywhere=everywhere)
    hidden = reworded | _find_withdrawn(candidates, withdrawals, reworded, everywhere=everywhere)
    hidden |= {
        place for place in withdrawals if instructions.is_only_withdrawal(candidates[place].text)
    }
    return _Outcome(
        frozenset(ns[place] for place in hidden),
        frozenset((project_ns[place], digests[place]) for place in withdrawn),
    )


def _find_withdrawn(
    candidates: Sequence[Instruction],
    withdrawals: Mapping[int, instructions.Withdrawal],
    ignored: Set[int],
    *,
    everywhere: bool,
) -> set[int]:
    """Return the positions of the withdrawn instructions, without those to ignore."""
    withdrawn: set[int] = set()
    for place, withdrawal in withdrawals.items():
        one = candidates[place]
        if place in withdrawn or place in ignored:
            continue
        older = [
            i
            for i in range(place + 1, len(candidates))
            if i not in ignored
            and _trust(candidates[i]) <= _trust(one)
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
