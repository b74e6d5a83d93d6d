from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore import clock
from lore.errors import StoreDamaged
from lore.records import ORIGINS, PART_KINDS, ROLES, Part, Role
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


def test_one_plain_text_is_kept_as_it_is() -> None:
    assert packing.pack_parts([Part("text", 'say "hello"')]) == 'say "hello"'
    assert packing.unpack_text("hello") == "hello"
    assert packing.unpack_text(packing.pack_parts([Part("text", "[1] see below")])) == (
        "[1] see below"
    )


@given(TEXTS)
def test_a_key_that_was_given_back_is_the_same_key(key: str) -> None:
    kept = packing.pack_key(key)
    assert packing.pack_key(packing.unpack_key(kept)) == kept
    assert -(2**63) <= kept < 2**63


@pytest.mark.parametrize("role", ROLES)
def test_a_role_comes_back_as_it_was(role: Role) -> None:
    assert packing.unpack_role(packing.pack_role(role)) == role


def test_a_role_that_nobody_has_is_told_as_damage() -> None:
    with pytest.raises(StoreDamaged):
        packing.unpack_role(99)


@given(st.datetimes(datetime(1970, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_a_moment_comes_back_as_it_was(moment: datetime) -> None:
    assert packing.moment(clock.to_us(moment)) == moment


@pytest.mark.parametrize("garbage", ["[", "[1]", '[{"nonsense": 1}]', b"bytes"])
def test_garbage_is_told_as_damage(garbage: Any) -> None:
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
