"""Spend over time as points and totals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from lore import clock
from lore.records import SeriesStep, SpendLine, SpendPoint, TokenUse
from lore.store.spend_series import STEP_US, SpendSum


def make_points(sums: Iterable[SpendSum], step: SeriesStep) -> tuple[SpendPoint, ...]:
    """Return the points of a series in order."""
    return tuple(_point(one, clock.from_us(one.step * STEP_US[step])) for one in sums)


def _point(one: SpendSum, at: datetime) -> SpendPoint:
    return SpendPoint(
        at=at,
        group=one.group,
        requests=one.requests,
        background=one.background,
        usd=one.usd,
        without_usd=one.without_usd,
        saved_usd=one.without_usd - one.usd,
        input_tokens=one.input,
        cached_tokens=one.read,
        output_tokens=one.output,
        cache_hit_rate=one.read / one.input if one.input else None,
        busts=one.busts,
        delayed=one.delayed,
    )


def add_up(
    sums: Sequence[SpendSum], labels: Mapping[str, str]
) -> tuple[tuple[SpendLine, ...], SpendLine]:
    """Return the total of each group, most expensive first, and of all."""
    groups: dict[str, list[SpendSum]] = {}
    for one in sums:
        groups.setdefault(one.group, []).append(one)
    lines = [_line(name, own, labels.get(name, "")) for name, own in groups.items()]
    lines.sort(key=lambda line: (-line.usd, line.name))
    return tuple(lines), _line("", sums, "")


def _line(name: str, sums: Sequence[SpendSum], label: str) -> SpendLine:
    def total(field: str) -> int:
        return sum(getattr(one, field) for one in sums)

    read, written, long = total("read"), total("written"), total("written_1h")
    usd = sum(one.usd for one in sums)
    without_usd = sum(one.without_usd for one in sums)
    return SpendLine(
        name,
        total("requests"),
        total("background"),
        TokenUse(
            max(0, total("input") - read - written - long), read, written, long, total("output")
        ),
        usd,
        without_usd,
        without_usd - usd,
        total("busts"),
        total("delayed"),
        total("delay_ms"),
        total("unpriced"),
        total("estimated"),
        label,
    )
