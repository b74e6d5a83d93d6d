from __future__ import annotations

from lore.records import Spend
from lore.store import spend
from lore.store.sql_connection import Connection
from tests.store.samples import NOON, minutes, new_session, newest_spend


def test_spending_is_entered_once(db: Connection) -> None:
    n = new_session(db, project="/p")
    project_n = db.value("SELECT n FROM projects")
    first = Spend("a", NOON, "distil", "m", {"input": 5}, 0.25)
    assert spend.add(db, first, session_n=n, project_n=project_n)
    assert not spend.add(db, first)
    assert spend.add(db, Spend("b", minutes(5), "answer", "m", {}, 0.5))
    assert [(entry.key, entry.usd) for entry in newest_spend(db)] == [("b", 0.5), ("a", 0.25)]
    assert newest_spend(db)[1].project_id
    db.run("DELETE FROM sessions")
    assert newest_spend(db)[1].session_id is None


def test_spend_is_summed_by_the_word_its_purpose_begins_with(db: Connection) -> None:
    for key, at, purpose, usd in (
        ("a", NOON, "background:observe", 1.0),
        ("b", minutes(5), "background:judge", 2.0),
        ("c", minutes(5), "background", 4.0),
        ("d", minutes(5), "backgrounds:x", 8.0),
    ):
        spend.add(db, Spend(key, at, purpose, "m", {}, usd))
    until = minutes(600)
    assert spend.spent_on(db, "background", since=NOON, until=until) == 3.0
    assert spend.spent_on(db, "background", since=minutes(1), until=until) == 2.0
    assert spend.spent_on(db, "background", since=minutes(9), until=until) == 0.0
    assert spend.spent_on(db, "background", since=NOON, until=minutes(5)) == 1.0


def test_what_is_set_aside_is_adjusted_and_given_back_by_its_key(db: Connection) -> None:
    held = [
        spend.SpendReservation(key, NOON, "background:x", 1.0, "7.a", "m", 0.25) for key in "abc"
    ]
    for one in held:
        spend.add_reservation(db, one)
    assert spend.list_reservations(db) == held
    spend.remove_reservation(db, "a")
    spend.update_reservation(db, "b", 0.5)
    assert spend.reserved_for(db, "background") == 1.5
    assert spend.reserved_for(db, "request") == 0.0


def test_the_fields_of_a_request_are_stored(db: Connection) -> None:
    told = Spend("a", NOON, "request:turn", "m", {"input": 5}, 0.25, None, None, 2, True, 900, 0.5)
    spend.add(db, told)
    assert newest_spend(db) == [told]
    assert list(spend.entries_since(db, NOON)) == [told]
    assert list(spend.entries_since(db, minutes(1))) == []


def test_all_that_was_spent_is_added_up(db: Connection) -> None:
    until = minutes(600)
    assert spend.total_spent(db, since=NOON, until=until) == 0.0
    assert spend.first_entry_at(db, since=NOON) is None
    for place, purpose in enumerate(("background:x", "request:turn", "answer")):
        spend.add(db, Spend(purpose, minutes(place), purpose, "m", {}, 1.0))
        spend.add_reservation(db, spend.SpendReservation(purpose, minutes(place), purpose, 2.0))
    assert spend.total_spent(db, since=NOON, until=until) == 3.0
    assert spend.total_spent(db, since=minutes(1), until=until) == 2.0
    assert spend.total_spent(db, since=NOON, until=minutes(1)) == 1.0
    assert spend.first_entry_at(db, since=minutes(1)) == minutes(1)
    assert spend.total_reserved(db) == 6.0
