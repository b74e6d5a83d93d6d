from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore import clock
from lore.errors import StoreDamaged
from lore.records import ORIGINS, PART_KINDS, ROLES, Job, Part, PartKind, Role
from lore.store import codec
from lore.store.sql_connection import Connection
from lore.text.message_features import part_origin

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
def test_parts_survive_packing(parts: list[Part]) -> None:
    assert codec.unpack_parts(codec.pack_parts(parts)) == tuple(parts)


def test_one_plain_text_is_stored_unchanged() -> None:
    assert codec.pack_parts([Part("text", 'say "hello"')]) == 'say "hello"'
    assert codec.unpack_text("hello") == "hello"
    assert codec.unpack_text(codec.pack_parts([Part("text", "[1] see below")])) == ("[1] see below")


def is_so(db: Connection, condition: str, *parts: Part) -> bool:
    sql = f"SELECT {condition} FROM (SELECT :packed AS parts) t"
    return bool(db.value(sql, packed=codec.pack_parts(parts)))


@pytest.mark.parametrize("beside", [(), (Part("text", "said"),)], ids=["alone", "beside words"])
@pytest.mark.parametrize("kind", [kind for kind in PART_KINDS if kind != "text"])
def test_sql_condition_finds_parts_of_each_kind(
    db: Connection, kind: PartKind, beside: tuple[Part, ...]
) -> None:
    part = Part(kind, "x", name="n", call_id="c", origin="web", failed=True)
    for found in (part, Part(kind, "")):
        assert is_so(db, codec.has_part_kind("t.parts", kind), *beside, found)
        for other in PART_KINDS:
            assert is_so(db, codec.has_part_kind("parts", other), found) is (other == kind)


@pytest.mark.parametrize("text", ["said", "[said", "", 'of "origin": and {"kind":"tool_result"}'])
@pytest.mark.parametrize("beside", [(), (Part("text", "said"),)], ids=["alone", "beside words"])
@pytest.mark.parametrize("kind", PART_KINDS)
def test_sql_condition_finds_parts_of_other_origins(
    db: Connection, kind: PartKind, beside: tuple[Part, ...], text: str
) -> None:
    for own in (None, *ORIGINS):
        part = Part(kind, text, origin=own)
        for whose in ORIGINS:
            if part_origin(part, whose) != whose:
                assert is_so(db, codec.may_have_other_origins("t.parts"), *beside, part)
    if beside:
        found = is_so(db, codec.may_have_other_origins("t.parts"), *beside, Part(kind, text))
        assert found is (kind == "tool_result")


@given(TEXTS)
def test_an_unpacked_key_packs_to_the_same_number(key: str) -> None:
    kept = codec.pack_key(key)
    assert codec.pack_key(codec.unpack_key(kept)) == kept
    assert -(2**63) <= kept < 2**63


@pytest.mark.parametrize("role", ROLES)
def test_a_role_survives_packing(role: Role) -> None:
    assert codec.unpack_role(codec.pack_role(role)) == role


def test_an_unknown_role_is_reported_as_damage() -> None:
    with pytest.raises(StoreDamaged):
        codec.unpack_role(99)


@given(st.datetimes(datetime(1970, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_a_time_survives_packing(moment: datetime) -> None:
    assert codec.unpack_time(clock.to_us(moment)) == moment


@pytest.mark.parametrize("garbage", ["[", "[1]", '[{"nonsense": 1}]', b"bytes"])
def test_undecodable_parts_are_reported_as_damage(garbage: Any) -> None:
    with pytest.raises(StoreDamaged):
        codec.unpack_parts(garbage)
    with pytest.raises(StoreDamaged):
        codec.unpack_text(garbage)


def test_an_undecodable_value_or_time_is_reported_as_damage() -> None:
    with pytest.raises(StoreDamaged):
        codec.unpack_json("{")
    with pytest.raises(StoreDamaged):
        codec.unpack_time(2**62)
    with pytest.raises(StoreDamaged):
        codec.unpack_number(None)


def test_a_record_is_unpacked_by_the_types_of_its_fields() -> None:
    row = (1, "embed", "all", "pending", 0, "", 2, 3, 0, 1_000_000)
    job = codec.unpack_record(Job, row, subject=str.upper)
    assert job.subject == "ALL"
    assert job.due_at - job.updated_at == timedelta(seconds=1)
