from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.memory import Memory
from lore.store import consolidation
from lore.store.database import Database
from lore.store.sql_connection import Connection
from tests.engines import engine as engine
from tests.engines import postgres_url as postgres_url
from tests.engines import pytest_generate_tests as pytest_generate_tests
from tests.store.samples import NOON, Cycle, open_at, open_memory


@pytest.fixture
def database(tmp_path: Path, engine: str) -> Iterator[Database]:
    """A fresh database."""
    opened = open_at(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def db(database: Database) -> Iterator[Connection]:
    """A connection to a fresh database, each statement of which commits."""
    connection = database.connect()
    yield connection
    connection.close()


@pytest.fixture
def cycle(db: Connection) -> Cycle:
    """A cycle that has begun."""
    return Cycle(db, consolidation.begin_cycle(db, ["merge"], now=NOON))


@pytest.fixture
def memory(tmp_path: Path, engine: str) -> Iterator[Memory]:
    """A fresh memory without an embedder."""
    with open_memory(tmp_path) as opened:
        yield opened
