"""Forgetting finds a text in stored JSON, where quotes and line ends are escaped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.memory import Memory
from lore.store.sql_connection import Connection
from tests.fakes import FakeEmbedder, FixedClock


@pytest.fixture
def memory(new_home: Path) -> Iterator[Memory]:
    with Memory.open(home=new_home, embedder=FakeEmbedder(), now=FixedClock()) as opened:
        yield opened


def test_a_waiting_record_with_an_escaped_text_is_forgotten(memory: Memory) -> None:
    bodies = {"a": 'Paint the "blue"\ndoor', "b": "Paint the red door"}

    def add(db: Connection) -> None:
        for key, text in bodies.items():
            db.rows(
                "INSERT INTO sync_pending (kind, key, waits_for, body)"
                " VALUES ('fragment', :key, '', :body)",
                key=key,
                body=json.dumps({"texts": [{"content": text}]}),
            )

    memory.database.write(add)
    memory.store('The "blue" door squeaks')
    memory.forget(match='the "blue" door')
    with memory.database.read() as db:
        assert db.column("SELECT key FROM sync_pending") == ["b"]
