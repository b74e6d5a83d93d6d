from __future__ import annotations

from lore.store import edges, fragments, superseding
from lore.store.sqlite import Connection
from tests.store.samples import NOON, Cycle, add_fragment, minutes


def test_the_older_one_points_at_the_newer_and_no_longer_holds(db: Connection) -> None:
    older, newer = add_fragment(db, 1), add_fragment(db, 2)
    superseding.supersede(db, older, newer, now=minutes(5))
    held = fragments.get(db, older)
    assert (held.superseded_by, held.valid_to) == (fragments.get(db, newer).id, minutes(5))
    assert edges.find(db, newer, older, "supersedes") is not None
    assert fragments.get(db, newer).superseded_by is None


def test_both_stand_again_as_before_when_it_is_taken_back(db: Connection, cycle: Cycle) -> None:
    older, newer = add_fragment(db, 1), add_fragment(db, 2)
    before = fragments.get(db, older)
    superseding.supersede(db, older, newer, now=minutes(5), watch=cycle.watch)
    assert cycle.take_back() == [True, True]
    assert fragments.get(db, older) == before
    assert edges.of_fragment(db, older) == []


def test_what_was_changed_since_is_left(db: Connection, cycle: Cycle) -> None:
    a, b, c = (add_fragment(db, i) for i in (1, 2, 3))
    superseding.supersede(db, a, b, now=NOON, watch=cycle.watch)
    superseding.supersede(db, a, c, now=NOON)
    assert cycle.take_back() == [True, False]
    assert fragments.get(db, a).superseded_by == fragments.get(db, c).id


def test_one_that_was_superseded_before_is_so_again_when_it_is_taken_back(
    db: Connection, cycle: Cycle
) -> None:
    a, b, c = (add_fragment(db, i) for i in (1, 2, 3))
    superseding.supersede(db, a, b, now=NOON)
    before = fragments.get(db, a)
    superseding.supersede(db, a, c, now=minutes(5), watch=cycle.watch)
    assert cycle.take_back() == [True, True]
    assert fragments.get(db, a) == before
