from __future__ import annotations

import pytest

from lore.store import checks, rebuilding, sessions, vectors
from lore.store.sqlite import Connection
from tests.store.samples import NOON, add_fragment, add_messages, new_session


def fill(db: Connection) -> None:
    session_n = new_session(db)
    sessions.describe(db, session_n, title="A title")
    add_messages(db, session_n, "one", "two", "")
    add_fragment(db, 1)


def test_a_sound_memory_has_no_findings(db: Connection) -> None:
    fill(db)
    assert checks.integrity(db) == []
    assert checks.keyword_agreement(db) == []


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("INSERT INTO items VALUES (99, 'x', 1, NULL, NULL, 0, 0, 0)", "without content"),
        ("UPDATE fragments SET depth = 2", "without a parent"),
        ("UPDATE fragments SET superseded_by = 'nobody'", "superseded by one"),
    ],
)
def test_rows_that_belong_to_nothing_are_found(db: Connection, sql: str, what: str) -> None:
    fill(db)
    db.rows(sql)
    (finding,) = checks.integrity(db)
    assert what in finding.what


def test_a_row_that_refers_to_nothing_is_found(db: Connection) -> None:
    fill(db)
    db.rows("PRAGMA foreign_keys = OFF")
    db.run("DELETE FROM sessions")
    assert any("missing sessions" in finding.what for finding in checks.integrity(db))


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM message_words WHERE rowid = 1",
        "DELETE FROM fragment_words",
        "DELETE FROM session_words",
        "INSERT INTO fragment_words (rowid, content) VALUES (77, 'stray')",
        "INSERT INTO session_words (rowid, title) VALUES (77, 'stray')",
    ],
)
def test_an_index_that_disagrees_is_found_and_rebuilt(db: Connection, sql: str) -> None:
    fill(db)
    db.rows(sql)
    (finding,) = checks.keyword_agreement(db)
    assert finding.what
    rebuilding.rebuild_keywords(db)
    assert checks.keyword_agreement(db) == []


def test_an_index_with_too_few_vectors_is_found(db: Connection) -> None:
    n = vectors.ensure_embedder(db, "one", 2)
    db.run(
        "INSERT INTO vectors (n, embedder_n, vector) VALUES (:n, :e, x'00')",
        n=add_fragment(db, 1, created_at=NOON),
        e=n,
    )
    assert checks.vector_agreement(db, n, 1) == []
    assert checks.vector_agreement(db, n, 0)
