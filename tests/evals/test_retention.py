"""The simulation of forgetting: its key facts over two years."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from lore.evals import retention
from lore.evals.retention import BANDS, USES, Result


@pytest.fixture(scope="module")
def two_years() -> Result:
    return retention.run(months=24, fragments=120)


def test_unread_low_knowledge_fades_in_weeks_and_is_deleted_in_months(two_years: Result):
    by_day = two_years.shares[retention.Group("low", "never")]
    assert by_day[7]["visible"] > 0.7
    assert by_day[60]["visible"] < 0.2
    assert by_day[90]["visible"] == 0
    assert by_day[720]["deleted"] > 0.5


def test_unread_knowledge_below_the_floor_fades_in_months(two_years: Result):
    assert two_years.visible("middle", "never", 30) == 1
    assert two_years.visible("middle", "never", 180) == 0


@pytest.mark.parametrize("band", ["medium", "high"])
@pytest.mark.parametrize("use", USES)
def test_important_knowledge_stays_whether_it_is_read_or_not(
    two_years: Result, band: str, use: str
):
    assert all(two_years.visible(band, use, day) == 1 for day in two_years.days)


@pytest.mark.parametrize("band", BANDS)
def test_what_is_read_every_month_stays(two_years: Result, band: str):
    assert two_years.visible(band, "monthly", 720) == two_years.visible(band, "weekly", 720) == 1


def test_nothing_that_was_used_in_the_last_90_days_disappears(two_years: Result):
    assert two_years.lost_after_use == 0


def test_edges_without_use_fade_over_a_year_and_others_stay(two_years: Result):
    assert two_years.edges["without"][180] == 1
    assert two_years.edges["without"][720] == 0
    assert two_years.edges["with an end in use"][720] > 0.9


def test_the_table_and_the_picture_show_every_group(two_years: Result):
    table = two_years.as_table()
    assert sum(line.startswith(tuple(BANDS)) for line in table.splitlines()) == len(BANDS) * len(
        USES
    )
    root = ElementTree.fromstring(retention.draw(two_years))
    lines = root.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == len(BANDS) * len(USES)
