from __future__ import annotations

from lore.store import distillations, keywords
from lore.store.sqlite import Connection
from tests.store.samples import NOON, add_messages, new_distillation, new_session, numbered_id


def test_a_distillation_is_kept_and_found_by_its_words(db: Connection) -> None:
    session_n = new_session(db, project="/p")
    ids = add_messages(db, session_n, "one", "two")
    new = new_distillation(9, "They spoke of okapis", ids[0], ids[1])
    n = distillations.add(db, session_n, new, now=NOON)
    (found,) = distillations.of_session(db, session_n)
    assert (found.id, found.text, found.from_message) == (numbered_id(9), new.text, ids[0])
    assert (found.archived, found.source_tokens, found.created_at) == (False, 100, NOON)
    assert distillations.by_number(db, [n]) == {n: found}
    assert distillations.by_number(db, []) == {}
    assert keywords.count_rows(db, "log_words", "okapi") == 1
    assert db.value("SELECT project_n FROM items WHERE n = :n", n=n) is not None
