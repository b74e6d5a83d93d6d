from __future__ import annotations

import pytest

from lore.store import confirmations, fragments, sessions
from lore.store.sqlite import Connection
from tests.store.samples import NOON, Cycle, add_fragment, minutes


def test_a_confirmed_fragment_is_surer_and_stands_on_more(db: Connection) -> None:
    n = add_fragment(db, 1, confidence=0.7)
    confirmations.confirm(db, n, sources=["a", "b"], surer_by=0.05, now=NOON)
    held = fragments.get(db, n)
    assert held.confidence == pytest.approx(0.75)
    assert held.source_messages == ("a", "b")


def test_nothing_is_surer_than_sure(db: Connection) -> None:
    n = add_fragment(db, 1, confidence=0.98)
    confirmations.confirm(db, n, sources=(), surer_by=0.05, now=NOON)
    assert fragments.get(db, n).confidence == 1.0


def test_a_confirmation_is_taken_back_with_the_newer_words(db: Connection, cycle: Cycle) -> None:
    n = add_fragment(db, 1, "old words", confidence=0.7, source_messages=("a",))
    before = fragments.get(db, n)
    cycle.watch(db, confirmations.before_confirming(db, n))
    confirmations.confirm(db, n, sources=["a", "b"], surer_by=0.05, now=minutes(5))
    fragments.update(
        db, n, content="new words", summary="", mentioned=(), now=minutes(5), reason="said again"
    )
    assert cycle.take_back() == [True]
    after = fragments.get(db, n)
    assert (after.content, after.confidence, after.source_messages, after.updated_at) == (
        before.content,
        before.confidence,
        before.source_messages,
        before.updated_at,
    )


def test_a_fragment_that_changed_twice_since_is_left(db: Connection, cycle: Cycle) -> None:
    n = add_fragment(db, 1, confidence=0.7)
    cycle.watch(db, confirmations.before_confirming(db, n))
    for text in ("one", "two"):
        fragments.update(db, n, content=text, summary="", mentioned=(), now=NOON, reason="")
    assert cycle.take_back() == [False]
    assert fragments.get(db, n).content == "two"


def test_counts_go_back_by_one_and_vanish_at_none(db: Connection, cycle: Cycle) -> None:
    n = add_fragment(db, 1)
    project_n = sessions.ensure_project(db, "/code/a", now=NOON)
    cycle.watch(db, confirmations.before_counting(db, n, project_n))
    confirmations.count(db, n, project_n, now=NOON)
    confirmations.count(db, n, project_n, now=minutes(5))
    assert list(confirmations.by_project(db, n).values()) == [2]
    assert cycle.take_back() == [True]
    assert list(confirmations.by_project(db, n).values()) == [1]
    cycle.take_back()
    assert confirmations.by_project(db, n) == {}


def test_what_holds_in_many_projects_is_found_if_it_is_sure_and_trusted(db: Connection) -> None:
    own = sessions.ensure_project(db, "/code/0", now=NOON)
    found, unsure, rare = (
        add_fragment(db, i, project_n=own, confidence=c) for i, c in ((1, 0.8), (2, 0.5), (3, 0.9))
    )
    others = [sessions.ensure_project(db, f"/code/{i}", now=NOON) for i in (1, 2)]
    for project_n in (own, *others):
        confirmations.count(db, found, project_n, now=NOON)
        confirmations.count(db, unsure, project_n, now=NOON)
    confirmations.count(db, rare, own, now=NOON)
    wide = confirmations.widely_confirmed(db, projects=3, confidence=0.8, trust=0)
    assert wide == [(found, 3)]
