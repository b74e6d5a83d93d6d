"""The pool of connections: bounded, with a share for writers, and sound after failures."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from lore.errors import InvalidInput, StoreBusy, StoreUnreachable
from lore.store.postgres.owner_connection import Pool, connect
from lore.store.postgres.server_database import PostgresDatabase
from tests import engines
from tests.store.samples import add_fragment


@pytest.fixture
def pool(database: PostgresDatabase) -> Pool:
    """A pool of four connections, of which one is for writers."""
    return Pool(engines.current_url(), most=4, wait_s=0.01)


def test_no_more_connections_than_the_most_are_in_use(pool: Pool) -> None:
    taken = [pool.take() for _ in range(3)]
    with pytest.raises(StoreBusy):
        pool.take()
    taken.append(pool.take(writes=True))
    with pytest.raises(StoreBusy):
        pool.take(writes=True)
    for raw in taken:
        pool.give_back(raw)
    pool.give_back(pool.take())


def test_who_waits_gets_what_another_gives_back(pool: Pool) -> None:
    pool.wait_s = 60
    taken = [pool.take() for _ in range(3)]
    got: list[Any] = []
    waiting = threading.Thread(target=lambda: got.append(pool.take()))
    waiting.start()
    pool.give_back(taken.pop())
    waiting.join(60)
    for raw in (*got, *taken):
        pool.give_back(raw)
    assert len(got) == 1


def test_a_connection_that_fails_takes_no_place(pool: Pool, admin: Any) -> None:
    away = Pool("postgresql://127.0.0.1:1/x", most=4, wait_s=0.01)
    for _ in range(5):
        with pytest.raises(StoreUnreachable):
            away.take()
    for _ in range(5):
        raw = pool.take()
        pid = raw.info.backend_pid
        admin.execute("SELECT pg_terminate_backend(%s, 60000)", [pid])
        pool.give_back(raw)
    with pool.take() as raw:
        assert raw.execute("SELECT 1").fetchone() == (1,)


def test_a_write_within_a_read_finds_a_connection_when_readers_have_all_others(
    database: PostgresDatabase,
) -> None:
    pool = database._pool
    former, pool.most = pool.most, 4
    try:
        others = [pool.take() for _ in range(2)]
        with database.read():
            database.write(lambda db: add_fragment(db, 1))
        for raw in others:
            pool.give_back(raw)
        with database.read() as db:
            assert db.value("SELECT count(*) FROM fragments") == 1
    finally:
        pool.most = former


@pytest.mark.parametrize("password", ["hunter%2", "hunter 2", "hunter@2"])
def test_an_address_that_cannot_be_read_is_refused_without_its_password(password: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        connect(f"postgresql://lore:{password}@db.example/memories")
    assert "hunter" not in f"{refused.value} {refused.value.hint}"
