"""Simulate how profiles are learned, and draw docs/pictures/strategies.svg.

    uv run python benchmarks/strategies.py [--runs 100] [--days 200] [--sessions 25]

Three worlds: one profile is better; the profile that was best breaks half way; all are equal. For
each: the final shares, the smallest share and the largest daily shift of any run, and rollbacks.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import mean, quantiles
from typing import Any
from xml.sax.saxutils import escape

from lore.tasks import bandit
from lore.tasks.bandit import RAILS

TARGET = Path(__file__).parents[1] / "docs" / "pictures" / "strategies.svg"
NAMES = ("task-types", "episodic-heavy", "semantic-heavy", "balanced")
"""Four of the profiles that Lore ships; what they are called makes no difference here."""

Rates = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class World:
    """The success rates of the profiles, before and after half of the days."""

    name: str
    title: str
    before: Rates
    after: Rates


def _rates(*values: float) -> Rates:
    return dict(zip(NAMES, values, strict=True))


WORLDS = (
    World("better", "One profile is better: 62 % of its sessions succeed, of the others 50 %",
          _rates(0.62, 0.5, 0.5, 0.5), _rates(0.62, 0.5, 0.5, 0.5)),
    World("breaks", "The best profile breaks half way: 62 % of its sessions succeed, then 25 %",
          _rates(0.62, 0.5, 0.5, 0.55), _rates(0.25, 0.5, 0.5, 0.55)),
    World("equal", "All profiles are equal: 55 % of their sessions succeed",
          _rates(0.55, 0.55, 0.55, 0.55), _rates(0.55, 0.55, 0.55, 0.55)),
)  # fmt: skip


@dataclass(slots=True)
class Run:
    """The shares at the end of each day, rollbacks, and successes."""

    shares: list[Mapping[str, float]]
    rollbacks: list[int] = field(default_factory=list)
    successes: int = 0
    largest_shift: float = 0.0


def simulate(world: World, days: int, sessions: int, seed: int) -> Run:
    """Run one world day by day."""
    random = Random(f"{world.name} {seed}")
    state = bandit.new_bandit(NAMES)
    run = Run([state.shares])
    for day in range(days):
        rates = world.before if day < days // 2 else world.after
        for n in range(sessions):
            name = bandit.choose_profile(state.shares, f"{seed} {day} {n}", world.name)
            succeeded = random.random() < rates[name]
            run.successes += succeeded
            state = bandit.record_outcome(state, name, succeeded=succeeded)
        step = bandit.end_day(state, random)
        if step.event == "rolled back":
            run.rollbacks.append(day)
        else:
            shifts = (abs(step.bandit.shares[name] - state.shares[name]) for name in NAMES)
            run.largest_shift = max(run.largest_shift, *shifts)
        state = step.bandit
        run.shares.append(state.shares)
    return run


def summarize(world: World, runs: Sequence[Run], days: int, sessions: int) -> dict[str, Any]:
    """Return the figures of all runs of a world."""
    last = [run.shares[-1] for run in runs]
    best = max(world.after, key=world.after.__getitem__)
    early = [run for run in runs if any(day < days // 2 for day in run.rollbacks)]
    delays = [
        min(late) - days // 2
        for run in runs
        if (late := [day for day in run.rollbacks if day >= days // 2])
    ]
    return {
        "runs": len(runs),
        "sessions": days * sessions,
        "best": best,
        "final_share_of_best": round(mean(shares[best] for shares in last), 3),
        "final_shares": {name: round(mean(s[name] for s in last), 3) for name in NAMES},
        "converged_runs": sum(shares[best] == max(shares.values()) for shares in last),
        "smallest_share": round(min(min(s.values()) for run in runs for s in run.shares), 4),
        "largest_shift": round(max(run.largest_shift for run in runs), 4),
        "success_rate": round(mean(run.successes for run in runs) / (days * sessions), 4),
        "success_rate_of_equal_shares": round(
            mean([*world.before.values(), *world.after.values()]), 4
        ),
        "runs_rolled_back_in_first_half": len(early),
        "runs_rolled_back_in_second_half": len(delays),
        "days_until_rollback": round(mean(delays), 1) if delays else None,
    }


LIGHT = {
    "paper": "#ffffff", "ink": "#222222", "line": "#d5d5d5",
    "m0": "#1f6fd6", "m1": "#c2701c", "m2": "#6b7280", "m3": "#2f8f5b",
}  # fmt: skip
DARK = {
    "paper": "#0d1117", "ink": "#e6edf3", "line": "#2d333b",
    "m0": "#5b9bf0", "m1": "#f0a040", "m2": "#9aa4b2", "m3": "#56c28a",
}  # fmt: skip
WIDTH, LEFT, RIGHT, HEAD, PANEL, PLOT = 900, 60, 30, 76, 250, 180


def draw(worlds: Mapping[World, Sequence[Run]] | Sequence[tuple[World, Sequence[Run]]]) -> str:
    """Return an SVG with a panel for each world: mean shares by day, and 5 to 95 % of the runs."""
    pairs = list(worlds.items()) if isinstance(worlds, Mapping) else list(worlds)
    height = HEAD + PANEL * len(pairs)
    title = "Shares of four profiles as Lore learns which one helps"
    note = "Lines: mean of all runs. Bands: 5 to 95 % of the runs. Dashed: the floor of 10 %."
    body: list[str] = []
    for place, (world, runs) in enumerate(pairs):
        body += _panel(world, runs, HEAD + PANEL * place)
    legend = [
        f'<circle cx="{24 + 140 * n}" cy="62" r="4" class="m{n}"/>{_text(34 + 140 * n, 66, name)}'
        for n, name in enumerate(NAMES)
    ]
    end = 24 + 140 * len(NAMES)
    legend.append(f'<line x1="{end}" x2="{end}" y1="56" y2="68" class="mark"/>')
    legend.append(_text(end + 10, 66, "runs are rolled back: the more, the longer"))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f"<style>{_style(LIGHT)}@media(prefers-color-scheme:dark){{{_style(DARK)}}}</style>",
        f'<rect width="{WIDTH}" height="{height}" class="paper"/>',
        _text(20, 28, title, size=16), _text(20, 48, note), *legend, *body, "</svg>\n",
    ])  # fmt: skip


def _style(colours: Mapping[str, str]) -> str:
    plain = "".join(f".{name}{{fill:{c};stroke:{c}}}" for name, c in colours.items())
    mark = f".mark{{stroke:{colours['ink']};stroke-width:2}}"
    return plain + mark + ".ink,.paper,.band{stroke:none}.curve{fill:none;stroke-width:2}"


def _panel(world: World, runs: Sequence[Run], top: int) -> Iterator[str]:
    days = len(runs[0].shares) - 1
    first, base = top + 30, top + 30 + PLOT
    yield _text(20, top + 16, f"{world.title} ({len(runs)} runs)", size=13)
    for percent in range(0, 81, 20):
        y = base - PLOT * percent / 80
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="line"/>'
        yield _text(LEFT - 8, y + 4, f"{percent} %", anchor="end")
    floor = base - PLOT * RAILS.floor / 0.8
    yield (
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{floor:.1f}" y2="{floor:.1f}" class="mark"'
        ' style="stroke-width:1" stroke-dasharray="4 4"/>'
    )
    for day in range(0, days + 1, max(1, days // 8)):
        yield _text(_x(day, days), base + 16, f"day {day}", anchor="middle")
    for place, name in enumerate(NAMES):
        yield from _curve(runs, name, place, days, base)
    for day in sorted({day for run in runs for day in run.rollbacks}):
        count = sum(day in run.rollbacks for run in runs)
        x, size = _x(day, days), 60 * count / len(runs)
        yield (
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{first - 4}" y2="{first + 4 + size:.1f}"'
            f' class="mark"><title>day {day}: {count} of {len(runs)} runs</title></line>'
        )


def _curve(runs: Sequence[Run], name: str, place: int, days: int, base: int) -> Iterator[str]:
    """Yield the band and the line of a profile, every second day."""
    rows = []
    for day in range(0, days + 1, 2):
        shares = [run.shares[day][name] for run in runs]
        cuts = quantiles(shares, n=20) if len(shares) > 1 else [shares[0]] * 19
        x = _x(day, days)
        rows.append((x, *(base - PLOT * s / 0.8 for s in (mean(shares), cuts[0], cuts[-1]))))
    upper = " ".join(f"{x:.1f},{high:.1f}" for x, _, _, high in rows)
    lower = " ".join(f"{x:.1f},{low:.1f}" for x, _, low, _ in reversed(rows))
    middle = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in rows)
    yield f'<polygon points="{upper} {lower}" class="m{place} band" fill-opacity="0.15"/>'
    yield f'<polyline points="{middle}" class="m{place} curve"/>'


def _x(day: int, days: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * day / days


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
        f' class="ink">{escape(text)}</text>'
    )


def main() -> None:
    """Simulate all worlds, print their figures, and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--days", type=int, default=200)
    parser.add_argument("--sessions", type=int, default=25, help="sessions a day")
    parser.add_argument("--out", type=Path, default=TARGET)
    options = parser.parse_args()
    drawn = []
    for world in WORLDS:
        runs = [simulate(world, options.days, options.sessions, n) for n in range(options.runs)]
        drawn.append((world, runs))
        print(world.name, json.dumps(summarize(world, runs, options.days, options.sessions)))
    options.out.write_text(draw(drawn), "utf-8")
    print(f"{options.out.name}: {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
