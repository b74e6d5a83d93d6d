"""Keyword search on PostgreSQL scores as SQLite does."""

from __future__ import annotations

import random
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest

from lore.store import keywords
from lore.store.database import open_database
from lore.store.postgres.server_database import PostgresDatabase
from lore.store.sql_connection import Connection
from tests.store.samples import at_noon

WORDS = "harbour ferry harbours noon tide Größe café timetable port_5433 run running runs".split()
PHRASES = ('"port_5433"', '"ferry noon"')


def fill(db: Connection) -> None:
    chance = random.Random(7)
    for n in range(1, 200):
        summary = " ".join(chance.choices(WORDS, k=chance.randrange(1, 6)))
        content = " ".join(
            chance.choices([*WORDS, *map(str, range(50))], k=chance.randrange(1, 80))
        )
        keywords.add_fragment(db, n, summary, content, "fact")


@pytest.mark.parametrize(
    "query",
    ['"harbour"', '"cafe" OR "ferry"', '"grosse" OR "größe"', '"running" OR "7" OR "8"',
     '"noon" OR "tide" OR "timetable" OR "missing"', '"port_5433"', '"ferry noon"', '"…"'],
)  # fmt: skip
def test_scores_are_those_of_sqlite(query: str, database: PostgresDatabase, tmp_path: Path) -> None:
    file = open_database(tmp_path / "m.db", busy_timeout_s=5, backups=None, now=at_noon)
    with closing(file):
        found = []
        for one in (file, database):
            one.write(fill)
            with one.read() as db:
                weights = (2.0, 1.0, 0.5)
                found.append(
                    keywords.search(db, "fragment_words", query, limit=500, weights=weights)
                )
    expected, scores = (dict(hits) for hits in found)
    assert scores.keys() == expected.keys()
    # A phrase counts once in each column, however often it is there.
    assert scores == pytest.approx(expected, rel=0.5 if query in PHRASES else 1e-6)


def fill_with_one_word(db: Connection) -> None:
    """Add rows with a word up to seven times in a column, and 40 times in some."""
    counts = [*product(range(8), range(8)), (1, 40), (40, 0), (20, 21)]
    for n, (in_summary, in_content) in enumerate(counts, 1):
        kind = "fact" if n % 2 else "decision"
        keywords.add_fragment(db, n, "fact " * in_summary, "fact " * in_content + "tide", kind)
    for n in range(100, 300):  # that the word is rare enough to count
        keywords.add_fragment(db, n, "ferry", "tide", "decision")


def test_uses_count_by_column_however_many_they_are(
    database: PostgresDatabase, tmp_path: Path
) -> None:
    file = open_database(tmp_path / "m.db", busy_timeout_s=5, backups=None, now=at_noon)
    found = []
    with closing(file):
        for one in (file, database):
            one.write(fill_with_one_word)
            with one.read() as db:
                weights = (6.0, 2.0, 3.0)
                hits = keywords.search(db, "fragment_words", '"fact"', limit=500, weights=weights)
                found.append(dict(hits))
    assert len(found[0]) > 60
    assert found[1] == pytest.approx(found[0], rel=1e-6)


def test_counts_and_phrases_are_those_of_the_index(database: PostgresDatabase) -> None:
    def work(db: Connection) -> tuple[list[int], list[int], list[int]]:
        keywords.add_fragment(db, 1, "the ferry", "leaves the harbour at noon", "fact")
        keywords.add_fragment(db, 2, "the harbour", "has two ferries", "fact")
        words = db.words
        in_content = words.match_query("fragment_words", "phrase")
        return (
            keywords.count_rows(db, "fragment_words", "ferries", "otter", "noon"),
            db.column(in_content, phrase=words.phrase_query("the harbour", column="content")),
            sorted(db.column(in_content, phrase=words.phrase_query("the harbour"))),
        )

    assert database.write(work) == ([2, 0, 1], [1], [1, 2])


def test_removed_rows_leave_the_totals(database: PostgresDatabase) -> None:
    def work(db: Connection) -> list[tuple[object, ...]]:
        fill(db)
        keywords.remove(db, list(range(1, 300)), type="fragment")
        return db.rows("SELECT entries, length FROM word_totals WHERE name = 'fragment_words'")

    assert database.write(work) == [(0, 0)]


def test_a_word_is_stored_with_letters_of_its_owner(database: PostgresDatabase) -> None:
    database.write(fill)
    with database.read() as db:
        assert db.value("SELECT owned_query('''' || chr(1) || 'noon''')::text") == (
            f"'{str(database.owner)[:6]}noon'"
        )


def test_words_beyond_the_limits_of_the_engine_are_stored(database: PostgresDatabase) -> None:
    text = " ".join([*(f"w{i}" for i in range(70_000)), "x" * 5_000, "it's", "back\\slash"])

    def work(db: Connection) -> list[tuple[int, float]]:
        db.words.add(db, "long_words", ("text", "meta"), [(1, text, "")])
        return db.words.search(db, "long_words", '"w5"', limit=5, weights=(1.0, 0.5))

    assert [n for n, _ in database.write(work)] == [1]
