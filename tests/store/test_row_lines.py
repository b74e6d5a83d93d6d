"""Dumps of rows: how two of them are compared."""

from __future__ import annotations

import orjson
import pytest

from lore.store.row_lines import RowTally


def tally_of(value: float) -> RowTally:
    lines = ({"rows": 1}, {"table": "task_metrics"}, {"n": 1, "value": value}, {"end": 1})
    return RowTally.of(map(orjson.dumps, lines))


@pytest.mark.parametrize("value", [2.0**53, 1e19, 1e20, -1e300])
def test_a_number_that_is_too_large_for_an_integer_is_counted(value: float) -> None:
    assert tally_of(value).differences(tally_of(value)) == []
    assert tally_of(value).differences(tally_of(value * 2)) == ["task_metrics"]


def test_a_whole_number_is_the_same_with_and_without_a_point() -> None:
    assert tally_of(7.0).differences(tally_of(7)) == []
