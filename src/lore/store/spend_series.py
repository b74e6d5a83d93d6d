"""Spend over time: the ledger added up by steps of time and groups in the database."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from lore import clock
from lore.records import SeriesGroup, SeriesStep
from lore.store.spend import ESTIMATED, REQUEST, UNPRICED
from lore.store.sql_connection import Connection, count_if, json_field, json_number

STEP_US: dict[SeriesStep, int] = {"hour": 3_600_000_000, "day": 86_400_000_000}

_GROUPS: dict[SeriesGroup, str] = {
    "": "''",
    "model": "e.model",
    "project": "coalesce((SELECT p.id FROM projects p WHERE p.n = e.project_n), '')",
}


class SpendSum(NamedTuple):
    """The sum of some ledger entries; token classes as in `TokenUse`."""

    step: int
    group: str
    requests: int
    background: int
    input: int
    read: int
    written: int
    written_1h: int
    output: int
    usd: float
    without_usd: float
    busts: int
    delayed: int
    delay_ms: int
    unpriced: int
    estimated: int


def sum_spend(
    db: Connection,
    *,
    since: datetime,
    until: datetime,
    step: SeriesStep,
    group: SeriesGroup,
    project_n: int | None = None,
) -> list[SpendSum]:
    """Return the spend of each step of time and group, in order; `step` counts from 1970."""

    def tokens(name: str) -> str:
        return f"sum(coalesce({json_number('e.usage', name)}, 0))"

    def has(name: str) -> str:
        return count_if(f"{json_field('e.usage', name)} IS NOT NULL")

    is_request = f"e.purpose LIKE '{REQUEST}:%'"
    rows = db.rows(
        f"SELECT e.at / :width, {_GROUPS[group]} AS name, {count_if(is_request)},"
        f" {count_if(f'NOT {is_request}')}, {tokens('input')}, {tokens('cache_read')},"
        f" {tokens('cache_write')}, {tokens('cache_write_1h')}, {tokens('output')}, sum(e.usd),"
        f" sum(e.without_usd), sum(e.busts), {count_if('e.delay_ms > 0')},"
        " sum(e.delay_ms),"
        f" {has(UNPRICED)}, {has(ESTIMATED)} FROM spend e"
        " WHERE e.at >= :since AND e.at < :until"
        " AND (:project_n IS NULL OR e.project_n = :project_n) GROUP BY 1, 2 ORDER BY 1, 2",
        width=STEP_US[step],
        since=clock.to_us(since),
        until=clock.to_us(until),
        project_n=project_n,
    )
    return [SpendSum(*row) for row in rows]
