"""Fields of foreign JSON are read as what they should be."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.capture.adapters import json_fields

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "written",
    [
        "2026-05-04T12:00:00Z",
        "2026-05-04T12:00:00.000Z",
        "2026-05-04T14:00:00+02:00",
        "2026-05-04 12:00:00",
        1_777_896_000,
        1_777_896_000.0,
        1_777_896_000_000,
        "1777896000",
        "1777896000000",
    ],
)
def test_a_time_is_read_in_many_forms(written):
    assert json_fields.as_datetime(written) == NOON


@pytest.mark.parametrize(
    "written",
    [None, True, "", "soon", [], {}, 0, -5, 1e308, float("nan"), float("inf"), 10**40,
     "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-13-45", "1e400"],
)  # fmt: skip
def test_a_time_that_cannot_be_is_none(written):
    assert json_fields.as_datetime(written) is None


@given(st.one_of(st.text(), st.integers(), st.floats(), st.none(), st.binary()))
def test_no_value_breaks_the_reading_of_a_time(value: object):
    read = json_fields.as_datetime(value)
    assert read is None or read.tzinfo is UTC


def test_texts_and_counts_take_what_is_there():
    values: list[object] = ["a", 3, 2.5, True, None, [], 10**30, 10**400, -(10**400)]
    assert list(map(json_fields.as_text, values)) == ["a", "3", "2.5", "", "", "", "1e+30", "", ""]
    usage = {"input": 3, "none": 0, "bad": "7", "yes": True, "minus": -1, "cache": {"read": 2}}
    assert json_fields.as_counts(usage) == {"input": 3, "read": 2}
    assert json_fields.as_counts([1]) == {}


def test_json_is_compact_and_never_fails():
    deep: object = 1
    for _ in range(50_000):
        deep = [deep]
    assert json_fields.to_json({"a": [1, "ü"]}) == '{"a":[1,"ü"]}'
    assert json_fields.to_json({"big": 10**30}) == '{"big":1000000000000000000000000000000}'
    assert json_fields.to_json("\ud800")
    assert json_fields.to_json(deep) == "[cannot be shown]"


def test_names_are_kept_once_and_not_without_end():
    assert json_fields.extend_bounded(["b", "a", "", "b"], ("a",), 9) == ("a", "b")
    assert json_fields.extend_bounded(["b", "c"], ("a",), 2) == ("a", "b")
