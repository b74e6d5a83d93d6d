"""What a session was given is kept by number, and goes with its item."""

from __future__ import annotations

from datetime import timedelta

from lore.store import injections
from lore.store.db import Connection
from lore.text import digests
from tests.fakes import NOON
from tests.store.samples import add_fragment


def test_a_session_has_what_it_was_given_and_no_other_has(db: Connection):
    n = add_fragment(db, 1)
    injections.add(db, "s", [(n, digests.of_words("The cache!"))], now=NOON)
    shown = injections.of_session(db, "s")
    assert shown.items == {n}
    assert digests.of_words("the  cache") in shown.digests
    assert not injections.of_session(db, "t").items


def test_a_condensed_session_may_be_given_it_again(db: Connection):
    n = add_fragment(db, 1)
    injections.add(db, "s", [(n, 1)], now=NOON)
    injections.remove(db, "s")
    assert not injections.of_session(db, "s").items


def test_what_was_taken_back_was_not_given(db: Connection):
    n, m = add_fragment(db, 1), add_fragment(db, 2)
    injections.add(db, "s", [(n, 1), (n, 2), (m, 1)], now=NOON)
    injections.add(db, "t", [(n, 1)], now=NOON)
    injections.take_back(db, "s", [(n, 1)])
    assert injections.of_session(db, "s") == (frozenset((n, m)), frozenset((1, 2)))
    injections.take_back(db, "s", [(n, 2), (m, 7)])
    assert injections.of_session(db, "s") == (frozenset((m,)), frozenset((1,)))
    assert injections.of_session(db, "t").items == {n}


def test_what_is_forgotten_goes_and_what_is_gone_is_not_kept(db: Connection):
    n = add_fragment(db, 1)
    injections.add(db, "s", [(n, 1), (n + 999, 2)], now=NOON)
    assert injections.of_session(db, "s").items == {n}
    db.run("DELETE FROM items WHERE n = :n", n=n)
    assert not injections.of_session(db, "s").digests


def test_the_name_of_a_session_is_not_kept(db: Connection):
    injections.add(db, "quiet-heron", [(add_fragment(db, 1), 1)], now=NOON)
    [row] = db.rows("SELECT * FROM injections")
    assert "heron" not in str(row)


def test_what_is_old_is_dropped(db: Connection):
    n = add_fragment(db, 1)
    injections.add(db, "old", [(n, 1)], now=NOON)
    later = NOON + timedelta(days=injections.KEPT_DAYS + 1)
    injections.add(db, "new", [(n, digest) for digest in range(200)], now=later)
    assert not injections.of_session(db, "old").items
    assert injections.of_session(db, "new").items
