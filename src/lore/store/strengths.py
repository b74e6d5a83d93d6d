"""Strengths: what reading gives to a fragment and its neighbours, and how it is taken back."""

from __future__ import annotations

from datetime import datetime

import orjson

from lore import clock
from lore.store.sqlite import Connection
from lore.store.steps import Step

_STRENGTHS = (
    "access_count", "last_accessed", "last_reinforced", "relevance", "boost", "boosted_at",
)  # fmt: skip


def before_strengthening(db: Connection, n: int, *, now: datetime) -> Step:
    """Return how strong a fragment and its neighbours are before it is strengthened."""
    rows = db.rows(
        f"SELECT n, {', '.join(_STRENGTHS)} FROM fragments WHERE n = :n OR n IN"
        " (SELECT target_n FROM edges WHERE source_n = :n UNION"
        " SELECT source_n FROM edges WHERE target_n = :n) ORDER BY n",
        n=n,
    )
    note = orjson.dumps([list(row) for row in rows]).decode()
    return Step("strengthened", n, note=note, at=clock.to_us(now))


def weaken(db: Connection, step: Step, _now: datetime) -> bool:
    """Let fragments be as strong as before, but for those that were read since."""
    done = 0
    for n, *former in orjson.loads(step.note):
        done += db.run(
            f"UPDATE fragments SET {', '.join(f'{name} = :{name}' for name in _STRENGTHS)}"
            " WHERE n = :n AND coalesce(last_accessed, 0) <= :at AND last_reinforced <= :at"
            " AND boosted_at <= :at",
            n=n,
            at=step.at,
            **dict(zip(_STRENGTHS, former, strict=True)),
        )
    return bool(done)
