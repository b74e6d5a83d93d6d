"""Small records, a clock that stands still and a home to put them in."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lore.capture.message_capture import prepare
from lore.embed.embedder import NoEmbedder
from lore.memory import Memory
from lore.records import Distillation, NewMessage, Part, Role, Spend
from lore.settings import Settings
from lore.store import (
    consolidation,
    fragments,
    messages,
    pages,
    project_rows,
    reversible_changes,
    sessions,
    sqlite,
)
from lore.store.consolidation import StepRecorder
from lore.store.database import Database, open_database, open_on_server
from lore.store.replacements import Replacement
from lore.store.sql_connection import Connection
from tests import engines

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at_noon() -> datetime:
    return NOON


def minutes(count: float) -> datetime:
    return NOON + timedelta(minutes=count)


def empty_log(database: Database) -> None:
    """Fold the log into the database file, as other processes see it."""
    db = sqlite.open_connection(database.path, busy_timeout_s=5, read_only=False)
    sqlite.checkpoint(db)
    db.close()


def new_message(
    text: str, i: int = 0, *, role: Role = "user", key: str = "", speaker: str = ""
) -> NewMessage:
    return NewMessage(role, (Part("text", text),), minutes(i), key=key, speaker=speaker)


def new_session(
    db: Connection, name: str = "talk", *, project: str = "", parent_n: int | None = None
) -> int:
    project_n = project_rows.ensure_project(db, project, now=NOON) if project else None
    return sessions.ensure_session(
        db, name, agent="test", project_n=project_n, started_at=NOON, parent_n=parent_n
    )


def add_messages(db: Connection, session_n: int, *texts: str, speaker: str = "") -> list[str]:
    prepared = [
        prepare(new_message(text, i, key=text[:60], speaker=speaker))
        for i, text in enumerate(texts)
    ]
    return messages.add_messages(db, session_n, prepared, now=NOON)


def new_fragment(id_: str, content: str = "a plain fact", **fields) -> fragments.NewFragment:
    fields.setdefault("summary", content[:40])
    fields.setdefault("created_at", NOON)
    return fragments.NewFragment(id=id_, content=content, kind="fact", **fields)


def numbered_id(i: int) -> str:
    return f"{i:08x}-0000-7000-8000-{i:012x}"


def add_fragment(db: Connection, i: int, content: str = "a plain fact", **fields) -> int:
    return fragments.add(db, new_fragment(numbered_id(i), content, **fields), now=NOON)


@dataclass(frozen=True)
class Cycle:
    """A cycle whose steps are written down, and all taken back at once."""

    db: Connection
    n: int

    @property
    def recorder(self) -> StepRecorder:
        return consolidation.step_recorder(self.n)

    def take_back(self) -> list[bool]:
        done = consolidation.steps_of_cycle(self.db, self.n)
        return [reversible_changes.undo_step(self.db, step, now=NOON) for step in done]


def insert_former_link(db: Connection, link: Replacement) -> None:
    """Store a link as versions did that did not note which messages it quotes."""
    row = link._asdict()
    del row["newer_asked_n"], row["older_asked_n"]
    db.insert("replacements", **row)


def new_distillation(i: int, text: str, first: str = "", last: str = "") -> Distillation:
    return Distillation(
        numbered_id(i), "", 0, text, first, last, 0, source_tokens=100, archived=False,
        created_at=NOON,
    )  # fmt: skip


def open_at(home: Path, *, busy_timeout_s: float = 30) -> Database:
    if url := engines.current_url():
        return open_on_server(
            url, str(home), home / "postgres", busy_timeout_s=busy_timeout_s, now=at_noon
        )
    return open_database(
        home / "memory.db",
        busy_timeout_s=busy_timeout_s,
        backups=home / "backups",
        now=at_noon,
    )


def open_memory(home: Path, embedder: object | None = None) -> Memory:
    chosen = embedder or NoEmbedder()
    config = Settings(home=home, store_url=engines.current_url(), store_owner=str(home))
    return Memory.open(config=config, embedder=chosen, now=at_noon)  # type: ignore[arg-type]


class HashEmbedder:
    """Gives every text a vector of its own that never repeats."""

    name = "hash"
    identity = "hash-64"
    dimension = 64

    def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        return np.array([self._vector(text) for text in texts], np.float32).reshape(-1, 64)

    def _vector(self, text: str) -> NDArray[np.float64]:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
        vector = np.random.default_rng(seed).standard_normal(64)
        return vector / np.linalg.norm(vector)

    def close(self) -> None:
        pass


def newest_spend(db: Connection, *, limit: int = 20) -> list[Spend]:
    return [entry for _, entry in pages.spend(db, (), limit=limit)]


def count_vectors(db: Connection, embedder_n: int) -> int:
    return int(db.value("SELECT count(*) FROM vectors WHERE embedder_n = :n", n=embedder_n))
