"""Connections for tests of PostgreSQL itself, which run on it alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lore.store.postgres.server_database import PostgresDatabase
from tests import engines
from tests.store.samples import open_at


@pytest.fixture
def database(tmp_path: Path, engine: str) -> Iterator[PostgresDatabase]:
    """A fresh memory of an owner."""
    opened = open_at(tmp_path)
    assert isinstance(opened, PostgresDatabase)
    yield opened
    opened.close()


@pytest.fixture
def admin(engine: str) -> Iterator[Any]:
    """A connection of the role that owns the tables."""
    import psycopg

    with psycopg.connect(engines.current_url(), autocommit=True) as connection:
        connection.execute("SET search_path = lore, public")
        yield connection


@pytest.fixture
def app(database: PostgresDatabase) -> Iterator[Any]:
    """A bare connection of the application role, with no owner set."""
    import psycopg

    with psycopg.connect(engines.current_url(), autocommit=True) as connection:
        connection.execute("SET search_path = lore, public")
        connection.execute("SET ROLE lore_app")
        yield connection
