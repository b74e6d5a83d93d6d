from __future__ import annotations

from datetime import timedelta

import pytest

from lore.store import cycles, edges, weights
from lore.store.sqlite import Connection
from tests.store.samples import NOON, Cycle, add_fragment

DAY = timedelta(days=1)


@pytest.fixture
def pair(db: Connection) -> tuple[int, int]:
    return add_fragment(db, 1), add_fragment(db, 2)


def weight_of(db: Connection, pair: tuple[int, int]) -> float:
    found = edges.find(db, *pair, "associative")
    assert found is not None
    return float(found[0])


def test_an_edge_keeps_95_percent_of_its_weight_a_day(
    db: Connection, cycle: Cycle, pair: tuple[int, int]
) -> None:
    edges.put(db, *pair, "associative", now=NOON, weight=0.8)
    assert weights.fade(db, cycle.n, now=NOON + 2 * DAY) == (1, 0)
    assert weight_of(db, pair) == pytest.approx(0.8 * 0.95**2)


def test_however_often_edges_fade_a_day_is_a_day(
    db: Connection, cycle: Cycle, pair: tuple[int, int]
) -> None:
    edges.put(db, *pair, "associative", now=NOON, weight=0.8)
    for hours in (6, 6, 12, 24):
        weights.fade(db, cycle.n, now=NOON + timedelta(hours=hours))
    assert weight_of(db, pair) == pytest.approx(0.8 * 0.95)


def test_what_has_faded_is_dropped_and_comes_back(
    db: Connection, cycle: Cycle, pair: tuple[int, int]
) -> None:
    edges.put(db, *pair, "associative", now=NOON, weight=weights.LEAST_WEIGHT, note="so it is")
    assert weights.fade(db, cycle.n, now=NOON + DAY) == (1, 1)
    assert edges.find(db, *pair, "associative") is None
    assert cycle.take_back() == [True, True]
    assert weight_of(db, pair) == pytest.approx(weights.LEAST_WEIGHT)
    assert cycles.find_mark(db, weights.MARK) == 0


def test_other_kinds_of_edges_never_fade(
    db: Connection, cycle: Cycle, pair: tuple[int, int]
) -> None:
    edges.put(db, *pair, "hierarchical", now=NOON, weight=0.1)
    assert weights.fade(db, cycle.n, now=NOON + 30 * DAY) == (0, 0)
    assert edges.find(db, *pair, "hierarchical") == (0.1, "")


def test_no_weight_grows_beyond_1_on_its_way_back(
    db: Connection, cycle: Cycle, pair: tuple[int, int]
) -> None:
    edges.put(db, *pair, "associative", now=NOON, weight=0.9)
    weights.fade(db, cycle.n, now=NOON + 2 * DAY)
    edges.put(db, *pair, "associative", now=NOON, weight=1.0)
    cycle.take_back()
    assert weight_of(db, pair) == 1.0
