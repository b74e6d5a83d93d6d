from __future__ import annotations

from functools import partial

import pytest

from lore.errors import StoreBusy
from lore.store import keywords, sqlite
from lore.store.db import Database
from lore.store.sqlite import Connection
from tests.store.samples import add_fragment


def test_a_check_sees_no_damage_where_others_have_only_written(database: Database) -> None:
    for i in range(20):
        database.write(partial(add_fragment, i=i, content=f"fact {i}"))
    with database.read() as db:
        assert keywords.search(db, "fragment_words", '"fact"', limit=9, weights=(1, 1, 1))
    for i in range(20, 60):
        database.write(partial(add_fragment, i=i, content=f"fact {i}"))
    database.write(keywords.optimize)
    with database.read():
        assert sqlite.damage(database.path) == []


def test_the_log_is_not_emptied_under_a_reader_but_told(database: Database) -> None:
    database.write(lambda db: add_fragment(db, 1))
    impatient = sqlite.open_connection(database.path, busy_timeout_s=0.05, read_only=False)
    with database.read() as db:
        assert db.value("SELECT count(*) FROM fragments") == 1
        database.write(lambda db: add_fragment(db, 2))
        with pytest.raises(StoreBusy, match="kept reading"):
            sqlite.empty_log(impatient, patience_s=0.2)
    sqlite.empty_log(impatient)
    impatient.close()
    assert database.path.with_name("memory.db-wal").stat().st_size == 0


def test_a_database_tells_its_size_and_its_journal(db: Connection) -> None:
    sqlite.empty_log(db)
    assert sqlite.count_bytes(db) == db.path.stat().st_size
    assert sqlite.journal_of(db) == "wal"
