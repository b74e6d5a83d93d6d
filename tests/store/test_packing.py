from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore import clock
from lore.errors import StoreDamaged
from lore.records import ORIGINS, PART_KINDS, Part
from lore.store import packing

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
PARTS = st.builds(
    Part,
    kind=st.sampled_from(PART_KINDS),
    text=TEXTS,
    name=TEXTS,
    call_id=TEXTS,
    origin=st.none() | st.sampled_from(ORIGINS),
)


@given(st.lists(PARTS, max_size=5))
def test_parts_come_back_as_they_were(parts: list[Part]) -> None:
    assert packing.unpack_parts(packing.pack_parts(parts)) == tuple(parts)


@given(st.datetimes(datetime(1970, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_a_moment_comes_back_as_it_was(moment: datetime) -> None:
    assert packing.moment(clock.to_us(moment)) == moment


@pytest.mark.parametrize("garbage", ["", "{", "[1]", '[{"nonsense": 1}]', "null"])
def test_garbage_is_told_as_damage(garbage: str) -> None:
    with pytest.raises(StoreDamaged):
        packing.unpack_parts(garbage)
    with pytest.raises(StoreDamaged):
        packing.unpack_text(garbage)


def test_a_garbled_value_or_moment_is_told_as_damage() -> None:
    with pytest.raises(StoreDamaged):
        packing.unpack_json("{")
    with pytest.raises(StoreDamaged):
        packing.moment(2**62)
    with pytest.raises(StoreDamaged):
        packing.number(None)
