"""Links from replaced statements to newer ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from lore.errors import StoreError
from lore.store import dialogue_state, fragments, hard_delete, items, replacements
from lore.store.database import Database
from lore.store.hard_delete import ForgetSelection
from lore.store.replacements import Replacement
from lore.store.sql_connection import Connection
from tests.store.samples import NOON, add_fragment


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
