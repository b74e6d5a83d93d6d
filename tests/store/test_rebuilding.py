from __future__ import annotations

from lore.store import checks, distillations, keywords, rebuilding, sessions
from lore.store.sqlite import Connection
from tests.store.samples import NOON, add_fragment, add_messages, new_distillation, new_session

TABLES = ("message_words", "long_words", "log_words", "fragment_words", "session_words")


def vocabulary(db: Connection) -> list[object]:
    return [db.rows(f"SELECT term, doc, cnt FROM {table}_vocabulary") for table in TABLES]


def test_a_rebuilt_index_is_the_same_as_the_one_that_grew(db: Connection) -> None:
    session_n = new_session(db)
    sessions.describe(db, session_n, title="Okapis", files=["src/zoo.py"])
    for i in range(30):
        add_messages(db, session_n, f"message {i} about topic{i % 3}" + " long" * (i * 20))
    distillations.add(db, session_n, new_distillation(9, "They spoke"), now=NOON)
    for i in range(5):
        add_fragment(db, i, f"fact {i}")
    keywords.optimize(db)
    before = vocabulary(db)
    count = keywords.count(db)
    assert rebuilding.rebuild_keywords(db) == count
    keywords.optimize(db)
    assert vocabulary(db) == before
    assert checks.keyword_agreement(db) == []
