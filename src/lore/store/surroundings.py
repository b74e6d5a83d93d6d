"""Surroundings: which messages and fragments stand nearest to a moment, before it and after it."""

from __future__ import annotations

from dataclasses import dataclass

from lore import clock
from lore.store.fragments import LIVING_FRAGMENT
from lore.store.items import type_number
from lore.store.packing import pack_role
from lore.store.sqlite import Connection, id_of


@dataclass(frozen=True, slots=True)
class Around:
    """A moment, to which side of it to look, and within which session or project."""

    at_us: int
    later: bool
    limit: int
    session_n: int | None = None
    ordinal: int | None = None
    project_n: int | None = None

    @property
    def order(self) -> str:
        """Return the order in which the nearest come first."""
        return "ASC" if self.later else "DESC"


def messages_near(db: Connection, around: Around) -> list[int]:
    """Return the messages of people and assistants nearest to a moment, nearest first.

    Within a session they follow each other by ordinal, else by the time that ids begin with.
    """
    spoken = {"user": pack_role("user"), "assistant": pack_role("assistant")}
    if around.session_n is not None:
        side = ">" if around.later else "<"
        rows = db.rows(
            "SELECT m.n FROM messages m JOIN items i ON i.n = m.n WHERE m.session_n = :session_n"
            f" AND (m.ordinal {side} :ordinal OR (:ordinal IS NULL AND i.created_at {side} :at))"
            " AND m.role IN (:user, :assistant)"
            f" ORDER BY m.ordinal {around.order} LIMIT :limit",
            session_n=around.session_n,
            ordinal=around.ordinal,
            at=around.at_us,
            limit=around.limit,
            **spoken,
        )
        return [n for (n,) in rows]
    side = ">=" if around.later else "<"
    low, _ = clock.id_bounds(around.at_us, around.at_us)
    rows = db.rows(
        "SELECT i.n FROM items i JOIN messages m ON m.n = i.n"
        f" WHERE i.id {side} {id_of(':low')} AND i.type = :message"
        " AND m.role IN (:user, :assistant)"
        " AND (:project_n IS NULL OR i.project_n = :project_n)"
        f" ORDER BY i.id {around.order} LIMIT :limit",
        low=low,
        message=type_number("message"),
        project_n=around.project_n,
        limit=around.limit,
        **spoken,
    )
    return [n for (n,) in rows]


def fragments_near(db: Connection, around: Around) -> list[int]:
    """Return the fragments that still stand and were learned nearest to a moment."""
    side = ">=" if around.later else "<"
    rows = db.rows(
        "SELECT i.n FROM items i JOIN fragments f ON f.n = i.n"
        f" WHERE i.created_at {side} :at AND i.type <> :message AND {LIVING_FRAGMENT}"
        " AND (:session_n IS NULL OR i.session_n = :session_n)"
        " AND (:project_n IS NULL OR i.project_n = :project_n)"
        f" ORDER BY i.created_at {around.order}, i.n {around.order} LIMIT :limit",
        at=around.at_us,
        message=type_number("message"),
        session_n=around.session_n,
        project_n=around.project_n,
        limit=around.limit,
    )
    return [n for (n,) in rows]
