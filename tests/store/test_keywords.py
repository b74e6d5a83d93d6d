from __future__ import annotations

from functools import partial

import pytest

from lore.store import keywords, messages, sessions
from lore.store.sql_connection import Connection
from tests.store.samples import add_fragment, add_messages, new_session


def found(db: Connection, table: str, word: str) -> int:
    weights = {"message_words": 2, "long_words": 2, "fragment_words": 3}[table]
    return len(keywords.search(db, table, f'"{word}"', limit=99, weights=[1.0] * weights))


@pytest.mark.parametrize("word", ["getUserName", "user", "name", "get_user_name", "ECONNREFUSED"])
def test_identifiers_are_found_whole_and_by_part(db: Connection, word: str) -> None:
    add_fragment(db, 1, "call getUserName or get_user_name after ECONNREFUSED")
    assert found(db, "fragment_words", word) == 1


def test_a_long_message_is_found_by_its_end_too(db: Connection) -> None:
    add_messages(db, new_session(db), "filler " * 400 + "okapi")
    assert found(db, "message_words", "okapi") == 0
    assert found(db, "long_words", "okapi") == 1


def test_a_search_stays_within_its_project_or_session(db: Connection) -> None:
    places = [
        new_session(db, name, project=project) for name, project in (("a", "/a"), ("b", "/b"))
    ]
    for session_n in places:
        add_messages(db, session_n, "okapi")
    project_n = db.value("SELECT n FROM projects WHERE path = '/b'")

    def count(
        query: str = '"okapi"', *, project_n: int | None = None, session_n: int | None = None
    ) -> int:
        bounds = partial(keywords.search, within=keywords.SearchScope(project_n, session_n))
        return len(bounds(db, "message_words", query, limit=9, weights=(1.0, 1.0)))

    assert count() == 2
    assert count(session_n=places[0]) == count(project_n=project_n) == 1
    assert count("") == 0


def ranked(db: Connection, query: str) -> list[str]:
    rows = keywords.search(db, "message_words", query, limit=9, weights=keywords.MESSAGE_WEIGHTS)
    said = messages.get_messages(db, [n for n, _ in rows])
    return [said[n].parts[0].text for n, _ in rows]


def test_a_message_shares_the_scores_of_its_neighbours(db: Connection) -> None:
    texts = ("far away", "what is the animal called", "okapi", "thank you", "good bye")
    add_messages(db, new_session(db), *texts)
    assert ranked(db, '"okapi"') == ["okapi", "thank you", "what is the animal called"]


def test_a_message_shares_the_title_score_of_its_session(db: Connection) -> None:
    for name, title in (("a", ""), ("b", "Moving to Postgres"), ("c", "")):
        session_n = new_session(db, name)
        sessions.describe_session(db, session_n, title=title)
        add_messages(db, session_n, f"the pool has {name} size")
    assert ranked(db, '"pool" OR "postgres"')[0] == "the pool has b size"


def test_removed_items_are_not_found(db: Connection) -> None:
    a, b = add_fragment(db, 1, "okapi one"), add_fragment(db, 2, "okapi two")
    keywords.remove(db, [a], type="fragment")
    rows = keywords.search(db, "fragment_words", '"okapi"', limit=9, weights=(1, 1, 1))
    assert [n for n, _ in rows] == [b]
    assert keywords.count_indexed(db) == 1
    keywords.clear(db)
    assert keywords.count_indexed(db) == 0
    assert keywords.find_damage(db) == []
