from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.curate.placing import ASSOCIATED, ATTACHED, Neighbour, Placement, place, surprising

cosines = st.floats(-1, 1, allow_nan=False)
roots = st.lists(st.builds(Neighbour, st.integers(1, 99), cosines), max_size=8)


@pytest.mark.parametrize(
    ("cosine", "placed"),
    [
        (0.8, Placement(parent=7, nearest=0.8)),
        (0.75, Placement(linked=7, weight=0.75, nearest=0.75)),
        (0.35, Placement(linked=7, weight=0.35, nearest=0.35)),
        (0.3, Placement(nearest=0.3)),
        (-0.2, Placement(nearest=0.0)),
    ],
)
def test_the_nearest_root_decides_where_a_draft_goes(cosine, placed):
    assert place([Neighbour(3, cosine - 0.1), Neighbour(7, cosine)]) == placed


def test_where_nothing_is_known_a_draft_is_a_root_of_its_own():
    assert place([]) == Placement()


@pytest.mark.parametrize(
    ("importance", "nearest", "raised"),
    [(0.5, 1, 0.5), (0.5, 0, 0.75), (0.9, 0, 1.0), (0.2, 0.5, 0.25)],
)
def test_what_nothing_known_is_like_counts_more(importance, nearest, raised):
    assert surprising(importance, nearest) == pytest.approx(raised)


@given(roots)
def test_a_draft_is_attached_or_linked_or_alone_and_never_two_of_these(known):
    placed = place(known)
    best = max((root.cosine for root in known), default=0.0)
    assert (placed.parent is not None) == (best > ATTACHED)
    assert (placed.linked is not None) == (ASSOCIATED <= best <= ATTACHED)
    assert 0 <= placed.nearest <= 1
    if placed.linked is not None:
        assert placed.weight == placed.nearest


@given(st.floats(0, 1), cosines)
def test_surprise_never_lowers_importance_nor_lifts_it_over_one(importance, nearest):
    assert importance <= surprising(importance, nearest) <= 1
