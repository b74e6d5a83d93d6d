from __future__ import annotations

import pytest

from lore.store.sql_connection import Connection
from lore.store.sqlite import full_text


@pytest.mark.parametrize(("word", "kept"), [("running", "run"), ("Éclair", "eclair"), ("", "")])
def test_stem_equals_that_of_the_index(word: str, kept: str) -> None:
    assert full_text.stem(word) == kept


def test_a_phrase_is_searched_in_one_column_or_in_all(db: Connection) -> None:
    row = (7, "", "a red fox ran", "fact")
    full_text.add(db, "fragment_words", ("summary", "content", "kind"), [row])

    def found(query: str) -> list[tuple[int, ...]]:
        return db.rows(full_text.match_query("fragment_words", "query"), query=query)

    assert found(full_text.phrase_query("red fox")) == [(7,)]
    assert found(full_text.phrase_query("red fox", column="content")) == [(7,)]
    assert found(full_text.phrase_query("red fox", column="summary")) == []
    assert found(full_text.phrase_query("fox red")) == []


def test_search_is_limited_to_allowed_rows(db: Connection) -> None:
    rows = [(n, "fox") for n in (1, 2, 3)]
    full_text.add(db, "fragment_words", ("summary",), rows)
    best = full_text.search(
        db, "fragment_words", '"fox"', limit=9, weights=(1, 1, 1), only="SELECT :n", n=2
    )
    assert [n for n, _ in best] == [2]
    full_text.remove(db, "fragment_words", [2])
    assert db.rows(full_text.all_rows_query("fragment_words")) == [(1,), (3,)]
