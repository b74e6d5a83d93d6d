from __future__ import annotations

import pytest

from lore.store.sqlite import Connection, word_tables


@pytest.mark.parametrize(("word", "kept"), [("running", "run"), ("Éclair", "eclair"), ("", "")])
def test_a_word_is_stemmed_as_the_index_does_it(word: str, kept: str) -> None:
    assert word_tables.stem(word) == kept


def test_a_phrase_is_looked_for_in_one_column_or_in_all(db: Connection) -> None:
    row = (7, "", "a red fox ran", "fact")
    word_tables.add(db, "fragment_words", ("summary", "content", "kind"), [row])

    def found(query: str) -> list[tuple[int, ...]]:
        return db.rows(word_tables.holding("fragment_words", "query"), query=query)

    assert found(word_tables.phrase("red fox")) == [(7,)]
    assert found(word_tables.phrase("red fox", column="content")) == [(7,)]
    assert found(word_tables.phrase("red fox", column="summary")) == []
    assert found(word_tables.phrase("fox red")) == []


def test_only_rows_that_are_allowed_are_found(db: Connection) -> None:
    rows = [(n, "fox") for n in (1, 2, 3)]
    word_tables.add(db, "fragment_words", ("summary",), rows)
    best = word_tables.best(
        db, "fragment_words", '"fox"', limit=9, weights=(1, 1, 1), only="SELECT :n", n=2
    )
    assert [n for n, _ in best] == [2]
    word_tables.remove(db, "fragment_words", [2])
    assert db.rows(word_tables.row_numbers("fragment_words")) == [(1,), (3,)]
