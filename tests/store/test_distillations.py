from __future__ import annotations

from dataclasses import replace

from lore.store import distillations, items, keywords
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


def test_spans_are_the_ordinals_that_generation_0_covers(db: Connection) -> None:
    session_n = new_session(db)
    ids = add_messages(db, session_n, "one", "two", "three", "four")
    late = distillations.add(db, session_n, new_distillation(8, "b", ids[2], ids[3]), now=NOON)
    early = distillations.add(db, session_n, new_distillation(9, "a", ids[0], ids[1]), now=NOON)
    meta = replace(new_distillation(10, "c", ids[0], ids[3]), generation=1)
    distillations.add(db, session_n, meta, now=NOON)
    assert distillations.spans(db, session_n) == [(early, 0, 1), (late, 2, 3)]


def test_the_lines_of_a_distillation_lead_to_their_messages(db: Connection) -> None:
    session_n = new_session(db)
    ids = add_messages(db, session_n, "one", "two")
    new = replace(
        new_distillation(9, "2026-03-01\na\nb", ids[0], ids[1]), sources=((), (1,), (0, 1, 7))
    )
    n = distillations.add(db, session_n, new, now=NOON)
    ns = items.numbers_of(db, [*ids, numbered_id(77)])
    assert list(ns) == ids
    assert distillations.told_by(db, [n]) == {n: ((), (ns[ids[1]],), (ns[ids[0]], ns[ids[1]]))}
    assert distillations.told_by(db, []) == {}


def test_a_distillation_is_archived_and_taken_back(db: Connection) -> None:
    session_n = new_session(db)
    ids = add_messages(db, session_n, "one")
    n = distillations.add(db, session_n, new_distillation(9, "a", ids[0], ids[0]), now=NOON)
    assert distillations.among_items(db, [1, n, 99]) == [n]
    distillations.archive(db, [n])
    assert distillations.by_number(db, [n])[n].archived
    distillations.archive(db, [n], archived=False)
    assert not distillations.by_number(db, [n])[n].archived
