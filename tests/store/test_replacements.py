"""Links from replaced statements to newer ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from lore.capture.message_capture import prepare
from lore.errors import StoreError
from lore.records import Role
from lore.store import (
    dialogue_state,
    fragments,
    hard_delete,
    items,
    link_upgrade,
    messages,
    replacements,
)
from lore.store.database import Database
from lore.store.hard_delete import ForgetSelection
from lore.store.replacements import Replacement
from lore.store.sql_connection import Connection
from tests.store.samples import NOON, add_fragment, insert_former_link, new_message, new_session


def link(older: int, newer: int, **changes: Any) -> Replacement:
    made = Replacement(older, "port is 80", newer, "port is 81", "replaces", 0.9, 100)
    return made._replace(**changes)


def test_the_last_of_a_chain_holds(db: Connection) -> None:
    a, b, c = (add_fragment(db, place) for place in (1, 2, 3))
    second = link(b, c, older_text="port is 81", newer_text="port is 82", at=200)
    replacements.record(db, [], [link(a, b), second])
    found = replacements.successors(db, [a, b, c])
    assert {n: one.text for n, one in found.items()} == {a: "port is 82", b: "port is 82"}
    assert found[a].at == 200


def test_a_doubtful_link_does_not_go_on_a_certain_one(db: Connection) -> None:
    a, b, c = (add_fragment(db, place) for place in (1, 2, 3))
    doubt = link(b, c, older_text="port is 81", newer_text="we print at noon", at=200)
    replacements.record(db, [], [link(a, b), doubt._replace(relation="may_replace")])
    found = replacements.successors(db, [a, b])
    assert (found[a].text, found[a].relation) == ("port is 81", "replaces")
    assert (found[b].text, found[b].relation) == ("we print at noon", "may_replace")


def test_an_item_is_replaced_as_a_whole_once_all_its_statements_are(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    replacements.record(db, [], [link(a, b, statements=2)])
    assert not replacements.successors(db, [a])[a].is_whole
    replacements.record(db, [], [link(a, b, older_text="host is x", statements=2)])
    assert replacements.successors(db, [a])[a].is_whole


def test_a_link_that_is_judged_again_keeps_the_more_certain_relation(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    replacements.record(db, [], [link(a, b)])
    replacements.record(db, [], [link(a, b, relation="may_replace", certainty=0.4)])
    assert replacements.successors(db, [a])[a].relation == "replaces"


def test_a_statement_of_any_length_is_linked_once_on_either_engine(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    long = " ".join(f"{n:x}ü{n * n:x}" for n in range(2_000))
    for certainty in (0.4, 0.9):
        replacements.record(db, [], [link(a, b, older_text=long, certainty=certainty)])
    pair = replacements.find_pair(db, link(a, b, older_text=long))
    assert pair
    assert pair.certainty == 0.9
    (stored,) = replacements.links_to(db, b)
    assert long.startswith(stored.older_text)


@pytest.mark.parametrize("length", [10, 996, 1_000, 1_200])
def test_a_statement_that_was_cut_is_found_again_among_those_of_its_item(length: int) -> None:
    whole = "ü".ljust(length, "x")
    stored = whole.encode()[: replacements.STATEMENT_BYTES].decode()
    assert replacements.find_whole(stored, ["another", whole]) == whole
    assert (replacements.find_whole(stored, ["another"]) is None) == (length > 994)


def test_links_to_an_item_that_is_gone_are_not_stored(db: Connection) -> None:
    a = add_fragment(db, 1)
    assert replacements.record(db, [a], [link(a, 999)]) == 0
    assert replacements.links_of(db, [a]) == {}


@pytest.mark.parametrize("forgets_older", [True, False])
def test_forgetting_either_end_deletes_the_link(database: Database, *, forgets_older: bool) -> None:
    a, b = (database.write(partial(add_fragment, i=i)) for i in (1, 2))
    database.write(lambda db: replacements.record(db, [], [link(a, b)]))
    gone = ForgetSelection((a if forgets_older else b,))
    database.write(lambda db: hard_delete.forget(db, gone, now=NOON))
    with database.read() as db:
        assert db.value("SELECT count(*) FROM replacements") == 0


@pytest.mark.parametrize("column", ["newer_asked_n", "older_asked_n"])
def test_a_link_goes_with_a_message_that_it_quotes(database: Database, column: str) -> None:
    def fill(db: Connection) -> tuple[int, int, int]:
        a, b, asked = (add_fragment(db, place) for place in (1, 2, 3))
        replacements.record(db, [], [link(a, b, **{column: asked})])
        return a, b, asked

    a, b, asked = database.write(fill)
    forgotten = ForgetSelection((asked,))
    database.write(lambda db: hard_delete.forget(db, forgotten, now=NOON))
    with database.read() as db:
        assert db.rows("SELECT * FROM replacements") == []
        assert replacements.waiting_items(db, limit=9) == [b]
        assert set(items.ids_of(db, [a, b])) == {a, b}


def test_a_text_across_a_question_and_its_answer_is_forgotten(database: Database) -> None:
    def fill(db: Connection) -> None:
        a, b = add_fragment(db, 1), add_fragment(db, 2)
        replacements.record(db, [], [link(a, b, newer_text="Which port? 81")])
        replacements.record(db, [], [link(a, b, older_text="Which port? 80")])

    database.write(fill)
    for text in ("PORT? 81", "port? 80"):
        work = partial(hard_delete.forget, selection=ForgetSelection(), text=text, now=NOON)
        database.write(work)
    with database.read() as db:
        assert db.rows("SELECT * FROM replacements") == []


def test_what_was_judged_with_a_question_that_is_gone_is_judged_again(db: Connection) -> None:
    a, b, asked = (add_fragment(db, place) for place in (1, 2, 3))
    db.run("DELETE FROM items WHERE n = :n", n=asked)
    assert replacements.record(db, [b], [link(a, b, newer_asked_n=asked)]) == 0
    assert db.rows("SELECT * FROM replacements") == []
    assert replacements.waiting_items(db, limit=9) == [b]


@pytest.mark.parametrize(
    ("roles", "question", "answer"),
    [
        (
            ("assistant", "user"),
            "Is it **81**? Should the [port](http://x.y) be 81?",
            "Yes, 81 now.",
        ),
        (("user", "assistant"), "Set the port to 81", "The port is 81 now."),
    ],
)
def test_former_links_are_noted_with_the_message_that_they_quote(
    db: Connection, roles: tuple[Role, Role], question: str, answer: str
) -> None:
    said = [
        prepare(new_message(text, i, role=role, key=str(i)))
        for i, (role, text) in enumerate(zip(roles, (question, answer), strict=True))
    ]
    ids = messages.add_messages(db, new_session(db), said, now=NOON)
    asked, newer = items.numbers_of(db, ids).values()
    older, last = add_fragment(db, 1, "port is 80"), add_fragment(db, 2, "port is 82")
    quoted = f"{question.rpartition('? ')[2].replace('[port](http://x.y)', 'port')} {answer}"
    for one in (
        link(older, newer, newer_text=quoted),
        link(newer, last, older_text=quoted, newer_text="port is 82"),
        link(older, last, newer_text="port is 82"),
        link(last, newer, older_text="port is 82", newer_text=f"What is forgotten? {answer}"),
    ):
        insert_former_link(db, one)
    link_upgrade.note_asked_messages(db)
    sql = "SELECT newer_asked_n, older_asked_n FROM replacements ORDER BY n"
    assert db.rows(sql) == [(asked, None), (None, asked), (None, None)]
    assert replacements.waiting_items(db, limit=9) == [newer]


def test_a_deleted_successor_lets_the_older_one_hold_again(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    replacements.record(db, [], [link(a, b)])
    fragments.set_deleted(db, b, NOON, now=NOON)
    assert replacements.successors(db, [a]) == {}


def test_a_superseded_successor_still_replaces_and_gives_way_to_what_superseded_it(
    db: Connection,
) -> None:
    a, b, c = (add_fragment(db, place) for place in (1, 2, 3))
    replacements.record(db, [], [link(a, b)])
    ids = items.ids_of(db, [a, b, c])
    fragments.set_superseded(db, b, ids[c], now=NOON)
    found = replacements.successors(db, [a])[a]
    assert (found.n, found.text) == (c, fragments.get(db, c).content)
    assert replacements.extents(db, [a]) == {a: ("replaces", True)}
    fragments.set_superseded(db, b, ids[a], now=NOON)
    assert replacements.successors(db, [a]) == {}


def test_a_change_of_either_end_is_counted(database: Database) -> None:
    def count(db: Connection) -> int:
        return int(db.value("SELECT value FROM meta WHERE key = 'standing_changes'") or 0)

    a, b = (database.write(partial(add_fragment, i=i)) for i in (1, 2))
    database.write(lambda db: replacements.record(db, [], [link(a, b)]))
    changes: list[Callable[[Connection], object]] = [
        lambda db: fragments.set_deleted(db, b, NOON, now=NOON),
        lambda db: fragments.set_deleted(db, b, None, now=NOON),
        lambda db: hard_delete.forget(db, ForgetSelection((b,)), now=NOON),
    ]
    for change in changes:
        before = database.write(count)
        database.write(change)
        assert database.write(count) > before


def test_a_running_session_is_told_of_what_is_replaced_as_a_whole(db: Connection) -> None:
    a, b, c = (add_fragment(db, place) for place in (1, 2, 3))
    dialogue_state.add_injections(db, "s", [(a, 1), (c, 1)], now=NOON)
    replacements.record(db, [], [link(a, b), link(c, b, statements=2)])
    assert dialogue_state.find_outdated_injections(db, "s").gone == [a]
    fragments.set_deleted(db, b, NOON, now=NOON)
    assert dialogue_state.find_outdated_injections(db, "s").gone == []


def test_a_dismissed_pair_is_not_doubtful_and_stays_dismissed(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    doubtful = link(a, b, relation="may_replace", certainty=0.4)
    replacements.record(db, [], [doubtful])
    assert replacements.settle(db, a, b, "dismissed")
    replacements.record(db, [], [doubtful])
    assert replacements.doubtful_links(db, project_n=None, limit=9) == []
    assert not replacements.settle(db, a, b, "replaces")


def test_links_and_queue_change_in_one_transaction(database: Database) -> None:
    a, b = (database.write(partial(add_fragment, i=i)) for i in (1, 2))
    database.write(lambda db: replacements.queue(db, [a, b]))

    def fail(db: Connection) -> None:
        replacements.record(db, [a, b], [link(a, b)])
        msg = "stopped"
        raise StoreError(msg)

    with pytest.raises(StoreError):
        database.write(fail)
    with database.read() as db:
        assert replacements.waiting_items(db, limit=9) == [a, b]
        assert replacements.links_of(db, [a]) == {}


def test_the_same_statement_in_other_words_is_another_statement() -> None:
    assert replacements.is_same_statement("the port is 80", "The port is 80.")
    assert not replacements.is_same_statement("the port is 80", "tests run in parallel")
    assert not replacements.is_same_statement("", "the port is 80")
