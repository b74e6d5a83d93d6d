"""Figures of sessions: how well their words fit, and which messages they consist of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lore.records import ItemType
from lore.store.sqlite import Connection, among, numbers, word_tables
from lore.text.traits import FROM_USER

_SATURATION, _LENGTH_SHARE = 1.2, 0.75
"""The usual constants of BM25, here with a session as the document and messages as words."""


class Figure(NamedTuple):
    """The messages of one session."""

    ns: NDArray[np.int64]
    from_user: NDArray[np.bool_]
    started_at: int


_TABLES: dict[ItemType, tuple[str, ...]] = {
    "message": ("message_words", "long_words"),
    "distillation": ("log_words",),
}


def term_scores(
    db: Connection,
    terms: Sequence[str],
    project_n: int | None = None,
    counted: ItemType = "message",
) -> dict[int, float]:
    """Return BM25 of sessions for words, counting the items of each that have them."""
    sizes: dict[int, int] = dict(
        db.rows(
            "SELECT m.session_n, max(m.ordinal) + 1 FROM messages m"
            " JOIN sessions s ON s.n = m.session_n"
            " WHERE :project_n IS NULL OR s.project_n = :project_n GROUP BY m.session_n",
            project_n=project_n,
        )
    )
    if not sizes:
        return {}
    average = sum(sizes.values()) / len(sizes)
    scores: defaultdict[int, float] = defaultdict(float)
    for term in terms:
        counts: defaultdict[int, int] = defaultdict(int)
        for table in _TABLES[counted]:
            for session_n, count in db.rows(
                "SELECT i.session_n, count(*) FROM items i"
                f" JOIN ({word_tables.holding(table, 'term')}) w ON w.n = i.n GROUP BY 1",
                term=word_tables.phrase(term, column="text"),
            ):
                if session_n in sizes:
                    counts[session_n] += count
        rarity = log(1 + (len(sizes) - len(counts) + 0.5) / (len(counts) + 0.5))
        for session_n, count in counts.items():
            length = 1 - _LENGTH_SHARE + _LENGTH_SHARE * sizes.get(session_n, 1) / average
            scores[session_n] += rarity * count * (_SATURATION + 1) / (count + _SATURATION * length)
    return dict(scores)


def figures_of(
    db: Connection, session_ns: NDArray[np.int64], counted: ItemType = "message"
) -> list[Figure]:
    """Return the messages of sessions, or their distillations, in the order of the sessions.

    A distillation is made of what people said, and counts as theirs.
    """
    started: dict[int, int] = dict(
        db.rows(
            f"SELECT n, started_at FROM sessions WHERE {among('n', 'ns')}",
            ns=numbers(session_ns),
        )
    )
    members: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    columns = "traits FROM messages" if counted == "message" else f"{FROM_USER} FROM distillations"
    for session_n, n, traits in db.rows(
        f"SELECT session_n, n, {columns} WHERE {among('session_n', 'ns')}",
        ns=numbers(session_ns),
    ):
        members[session_n].append((n, traits))
    return [
        Figure(
            np.array([n for n, _ in members[int(s)]], np.int64),
            np.array([bool(t & FROM_USER) for _, t in members[int(s)]], np.bool_),
            started.get(int(s), 0),
        )
        for s in session_ns
    ]
