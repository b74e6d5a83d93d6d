"""The spend ledger: what calls to models cost; entries outlive the sessions they belong to."""

from __future__ import annotations

import orjson

from lore import clock
from lore.records import Spend
from lore.store.packing import moment, unpack_json
from lore.store.sqlite import Connection


def add(
    db: Connection, entry: Spend, *, session_n: int | None = None, project_n: int | None = None
) -> bool:
    """Enter what a call cost, once; tell whether it was new."""
    return bool(
        db.run(
            "INSERT INTO spend (key, at, session_n, project_n, purpose, model, usage, usd)"
            " VALUES (:key, :at, :session_n, :project_n, :purpose, :model, :usage, :usd)"
            " ON CONFLICT (key) DO NOTHING",
            key=entry.key,
            at=clock.to_us(entry.at),
            session_n=session_n,
            project_n=project_n,
            purpose=entry.purpose,
            model=entry.model,
            usage=orjson.dumps(entry.usage).decode(),
            usd=entry.usd,
        )
    )


def newest(db: Connection, *, limit: int = 20) -> list[Spend]:
    """Return the latest entries, newest first."""
    rows = db.rows(
        "SELECT e.key, e.at, e.purpose, e.model, e.usage, e.usd, s.id, p.id FROM spend e"
        " LEFT JOIN sessions s ON s.n = e.session_n LEFT JOIN projects p ON p.n = e.project_n"
        " ORDER BY e.at DESC, e.n DESC LIMIT :limit",
        limit=limit,
    )
    return [
        Spend(key, moment(at), purpose, model, unpack_json(usage), usd, session, project)
        for key, at, purpose, model, usage, usd, session, project in rows
    ]
