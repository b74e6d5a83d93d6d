from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lore.curate.events import FEWEST_TURNS, NEVER_SPLIT, split
from tests.fakes import FakeEmbedder

GARDEN = [f"roses tulips garden soil water plant a{n % 3}" for n in range(10)]
BOAT = [f"boat harbour sail anchor wind captain b{n % 3}" for n in range(10)]


def test_a_session_is_split_where_it_turns_to_something_else():
    embed = FakeEmbedder(dimension=256).embed
    assert split(GARDEN + BOAT, embed) == [range(10), range(10, 20)]
    assert split(GARDEN + BOAT) == [range(10), range(10, 20)]


def test_twelve_turns_are_one_event():
    turns = GARDEN[:6] + BOAT[:6]
    assert split(turns, FakeEmbedder().embed) == [range(NEVER_SPLIT)]
    assert split(turns) == [range(NEVER_SPLIT)]


def test_a_session_that_stays_with_its_matter_is_one_event():
    assert split(GARDEN * 3) == [range(30)]
    assert split(GARDEN[:1] * 30, FakeEmbedder().embed) == [range(30)]


def test_a_session_without_turns_has_no_events():
    assert split([]) == []


words = st.sampled_from(["boat", "garden", "tax", "song", "tree", "road", ""])
turns = st.lists(st.lists(words, max_size=4).map(" ".join), max_size=60)


@given(turns, st.booleans())
def test_events_follow_each_other_without_gaps_and_are_never_short(said, has_embedder):
    found = split(said, FakeEmbedder().embed if has_embedder else None)
    assert [n for event in found for n in event] == list(range(len(said)))
    if len(found) > 1:
        assert len(said) > NEVER_SPLIT
        assert min(map(len, found)) >= FEWEST_TURNS


def test_vectors_of_nothing_do_not_split():
    assert split(["x"] * 20, lambda texts: np.zeros((len(texts), 8), np.float32)) == [range(20)]
