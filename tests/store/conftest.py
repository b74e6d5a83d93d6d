from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.memory import Memory
from lore.store import consolidation, sqlite
from lore.store.database import Database
from lore.store.sqlite import Connection
from tests.store.samples import NOON, Cycle, open_at, open_memory


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A fresh database."""
    opened = open_at(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def db(database: Database) -> Iterator[Connection]:
    """A connection to a fresh database, each statement of which commits."""
    connection = sqlite.open_connection(database.path, busy_timeout_s=5, read_only=False)
    yield connection
    connection.close()


@pytest.fixture
def cycle(db: Connection) -> Cycle:
    """A cycle that has begun."""
    return Cycle(db, consolidation.begin_cycle(db, ["merge"], now=NOON))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A fresh memory without an embedder."""
    with open_memory(tmp_path) as opened:
        yield opened
