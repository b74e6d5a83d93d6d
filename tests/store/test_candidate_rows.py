from __future__ import annotations

from lore import clock
from lore.store import candidate_rows
from lore.store.candidate_rows import Retrieval
from lore.store.items import type_number
from lore.store.sql_connection import Connection
from tests.store.samples import NOON, add_fragment, add_messages, minutes, new_session

MESSAGE, FRAGMENT = type_number("message"), type_number("fragment")


def of_time(db: Connection, first: float, last: float, *types: int, limit: int = 9) -> list[int]:
    start, end = clock.to_us(minutes(first)), clock.to_us(minutes(last))
    return candidate_rows.items_between(db, start, end, list(types), limit=limit)


def test_items_of_a_time_range_come_newest_first(db: Connection) -> None:
    add_messages(db, new_session(db), "at noon", "a minute later", "two minutes later")
    messages = [row[0] for row in db.rows("SELECT n FROM messages ORDER BY n")]
    fragment = add_fragment(db, 1, created_at=minutes(1.5))
    add_fragment(db, 2, created_at=minutes(60))
    assert of_time(db, 0, 2, MESSAGE) == [messages[1], messages[0]]
    assert of_time(db, 0, 9, MESSAGE, FRAGMENT) == [
        messages[2], fragment, messages[1], messages[0]
    ]  # fmt: skip
    assert of_time(db, 0, 9, FRAGMENT) == [fragment]
    assert of_time(db, 0, 9, MESSAGE, FRAGMENT, limit=1) == [messages[2]]
    assert of_time(db, -9, 0, MESSAGE, FRAGMENT) == []


def test_the_text_of_an_item_is_its_searchable_beginning(db: Connection) -> None:
    add_messages(db, new_session(db), "hello there", "[1] see below")
    fragment = add_fragment(db, 1, "a plain fact", summary="fact")
    ns = [row[0] for row in db.rows("SELECT n FROM items ORDER BY n")]
    texts = candidate_rows.searchable_texts(db, ns, 5)
    assert list(texts.values()) == ["hello", "[1] s", "fact "]
    assert texts[fragment] == "fact "


def test_the_latest_retrievals_come_first(db: Connection) -> None:
    for i in range(3):
        candidate_rows.log_retrieval(
            db, Retrieval(NOON, "recall", f"question {i}", ("a", "b"), 1.5)
        )
    found = candidate_rows.recent_retrievals(db, limit=2)
    assert [entry.query for entry in found] == ["question 2", "question 1"]
    assert found[0].hits == ("a", "b")


def test_long_queries_are_truncated_and_old_entries_deleted(db: Connection) -> None:
    candidate_rows.log_retrieval(db, Retrieval(NOON, "recall", "x" * 10_000, (), 0))
    assert len(candidate_rows.recent_retrievals(db)[0].query) == 2_000
    db.run("UPDATE retrievals SET n = :n", n=candidate_rows.MAX_RETRIEVALS + 498)
    db.run(
        "INSERT INTO retrievals (n, at, verb, query, hits, took_ms)"
        " VALUES (5, 0, 'recall', 'old', '[]', 0)"
    )
    for _ in range(2):
        candidate_rows.log_retrieval(db, Retrieval(NOON, "recall", "new", (), 0))
    assert "old" not in [entry.query for entry in candidate_rows.recent_retrievals(db)]
