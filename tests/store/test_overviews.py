from __future__ import annotations

from lore.store import edges, fragments, overviews
from lore.store.sqlite import Connection
from tests.store.samples import NOON, Cycle, add_fragment, minutes


def test_words_come_back_with_their_version_and_times(db: Connection, cycle: Cycle) -> None:
    n = add_fragment(db, 1, "first words")
    before = fragments.get(db, n)
    overviews.reword(db, n, "an overview", "overview", now=minutes(60), watch=cycle.watch)
    assert fragments.get(db, n).content == "an overview"
    assert fragments.get(db, n).last_reinforced == before.last_reinforced
    assert cycle.take_back() == [True]
    assert fragments.get(db, n) == before
    assert fragments.versions(db, n) == []


def test_words_that_someone_gave_since_are_left(db: Connection, cycle: Cycle) -> None:
    n = add_fragment(db, 1, "first words")
    overviews.reword(db, n, "an overview", "overview", now=NOON, watch=cycle.watch)
    fragments.update(db, n, content="ours", summary="ours", mentioned=(), now=NOON, reason="")
    assert cycle.take_back() == [False]
    assert fragments.get(db, n).content == "ours"


def test_its_own_words_are_those_before_all_overviews(db: Connection) -> None:
    n = add_fragment(db, 1, "its own")
    assert overviews.find_own_words(db, n) is None
    overviews.reword(db, n, "one", "one", now=NOON)
    overviews.reword(db, n, "two", "two", now=NOON)
    own = overviews.find_own_words(db, n)
    assert own is not None
    assert own.content == "its own"


def test_overviews_above_what_goes_are_withdrawn(db: Connection) -> None:
    root, child = add_fragment(db, 1, "its own"), add_fragment(db, 2, depth=1)
    edges.put(db, root, child, "hierarchical", now=NOON)
    overviews.reword(db, root, "tells of the child", "overview", now=NOON)
    assert overviews.withdraw(db, [child], now=NOON) == 1
    assert fragments.get(db, root).content == "its own"
    assert fragments.versions(db, root) == []
