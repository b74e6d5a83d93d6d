"""Retention: what is still visible after months of forgetting, by importance and use."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import escape
from itertools import pairwise, product
from typing import Literal, NamedTuple

from lore.embed.embedder import NoEmbedder
from lore.errors import NotFound
from lore.evals.datasets import open_scratch_memory
from lore.memory import Memory
from lore.records import Draft
from lore.relevance import USED_DAYS, VISIBLE

BANDS = {"low": (0.1, 0.35), "middle": (0.35, 0.5), "medium": (0.5, 0.75), "high": (0.75, 0.95)}
"""Importance by band; from 0.5 on the curve has a constant floor."""

_SHARES = {"never": 0.6, "once": 0.15, "monthly": 0.1, "weekly": 0.1, "stopped": 0.05}
"""How fragments are read, and the share of each: `stopped` is weekly for a quarter, then never."""

USES = ("never", "beside", *tuple(_SHARES)[1:])
"""Never read are those of `never` and `beside`; a neighbour of the latter is read."""

PHASES = ("rescore", "prune_edges", "prune_fragments")
"""Consolidation runs them every two hours; a day is enough here, as they depend on days alone."""

_START = datetime(2026, 1, 1, tzinfo=UTC)
_MONTH_DAYS = 30
_STOPS_AFTER_DAYS = 90
_CHILDREN = 0.6
_ROOTS_LINKED = 0.8
_SAMPLE_DAYS = (7, 14, 30, 60, 90, 180)

State = Literal["visible", "hidden", "deleted"]
STATES: tuple[State, ...] = ("visible", "hidden", "deleted")
Report = Callable[[int, int], None]


class Group(NamedTuple):
    """Fragments of one importance band and one pattern of use."""

    band: str
    use: str


@dataclass(slots=True)
class _Subject:
    group: Group
    importance: float
    read_on: frozenset[int]
    id: str = ""
    last_read: int = -1


@dataclass(frozen=True, slots=True)
class Result:
    """The share of each state by group and day, and the share of edges that are left."""

    months: int
    sizes: dict[Group, int]
    shares: dict[Group, dict[int, dict[State, float]]]
    edges: dict[str, dict[int, float]]
    lost_after_use: int
    """Fragments that were not visible although they had been read in the last 90 days."""

    days: Sequence[int] = field(default=())

    def visible(self, band: str, use: str, day: int) -> float:
        """Return the visible share of a group on a day."""
        return self.shares[Group(band, use)][day]["visible"]

    def as_json(self) -> dict[str, object]:
        """Return the result as JSON."""
        return {
            "months": self.months,
            "lost_after_use": self.lost_after_use,
            "groups": [
                {"importance": group.band, "read": group.use, "n": self.sizes[group],
                 "days": {str(day): shares for day, shares in by_day.items()}}
                for group, by_day in self.shares.items()
            ],
            "edges": {use: {str(day): left for day, left in by_day.items()}
                      for use, by_day in self.edges.items()},
        }  # fmt: skip

    def as_table(self) -> str:
        """Return the visible share in percent by day, and what became of the rest."""
        columns = [day for day in self.days if day in _SAMPLE_DAYS or day % 180 == 0]
        head = f"{'importance':<11}{'read':<9}{'n':>4}" + "".join(
            f"{_age(day):>7}" for day in columns
        )
        lines = [f"{head}   at the end", "-" * len(head)]
        for group, by_day in self.shares.items():
            visible = "".join(f"{100 * by_day[day]['visible']:>7.0f}" for day in columns)
            end = by_day[columns[-1]]
            lines.append(
                f"{group.band:<11}{group.use:<9}{self.sizes[group]:>4}{visible}"
                f"   {100 * end['hidden']:.0f} % hidden, {100 * end['deleted']:.0f} % deleted"
            )
        lines += ["", "associative edges that are left"]
        for use, left in self.edges.items():
            shares = "".join(f"{100 * left[day]:>7.0f}" for day in columns)
            lines.append(f"{use:<24}{shares}")
        lines += [
            "",
            "Percent that search can show. 'beside': never read, but a neighbour is.",
            "'stopped': read weekly for a quarter, then never.",
            f"Not visible although used in the last {USED_DAYS} days: {self.lost_after_use}",
        ]
        return "\n".join(lines)


def run(*, months: int = 24, fragments: int = 400, report: Report | None = None) -> Result:
    """Simulate the use of a memory day by day with a clock of its own, and watch what is left."""
    draw = random.Random(1)  # noqa: S311 - a simulation, the same each time
    total = months * _MONTH_DAYS
    clock = _Clock()
    with open_scratch_memory(NoEmbedder(), clock) as memory:
        subjects = list(_subjects(draw, fragments, total))
        links = _fill(memory, subjects, draw)
        days = sorted({*_SAMPLE_DAYS, *range(0, total + 1, 10), total} & set(range(total + 1)))
        snapshots: dict[int, list[State]] = {}
        edges: dict[int, set[tuple[str, str]]] = {}
        lost = 0
        for day in range(total + 1):
            clock.day = day
            read = [one for one in subjects if day in one.read_on]
            for one in read:
                lost += not _read(memory, one, day)
            memory.digest.consolidate(phases=PHASES)
            if day in days:
                snapshots[day] = [_state(memory, one) for one in subjects]
                edges[day] = {(a, b) for a, b in links if _is_linked(memory, a, b)}
                lost += _count_lost(subjects, snapshots[day], day)
            if report:
                report(day, total)
    return _summarize(months, subjects, snapshots, links, edges, lost)


class _Clock:
    """A clock that stands at noon of a day."""

    day = 0

    def __call__(self) -> datetime:
        return _START + timedelta(days=self.day, hours=12)


def _subjects(draw: random.Random, count: int, total: int) -> Iterator[_Subject]:
    for group in (Group(*pair) for pair in product(BANDS, _SHARES)):
        for _ in range(max(2, round(count * _SHARES[group.use] / len(BANDS)))):
            importance = draw.uniform(*BANDS[group.band])
            yield _Subject(group, importance, frozenset(_reading_days(group.use, draw, total)))


def _reading_days(use: str, draw: random.Random, total: int) -> Iterator[int]:
    """Yield the days on which a fragment is read; the first reading is within three weeks."""
    first = draw.randint(1, 20)
    if use == "once":
        yield first
    elif use != "never":
        every = _MONTH_DAYS if use == "monthly" else 7
        yield from range(first, _STOPS_AFTER_DAYS if use == "stopped" else total + 1, every)


def _fill(memory: Memory, subjects: list[_Subject], draw: random.Random) -> list[tuple[str, str]]:
    """Store the fragments, most of them below a root, and link the roots; return the links."""
    draw.shuffle(subjects)
    roots: list[_Subject] = []
    for number, one in enumerate(subjects):
        parent = draw.choice(roots) if roots and draw.random() < _CHILDREN else None
        draft = Draft(
            f"Fact {number} of the simulation",
            parent_id=parent.id if parent else "",
            importance=one.importance,
        )
        one.id = memory.knowledge.store_all([draft])[0]
        if parent:
            _group_neighbours(one, parent)
        else:
            roots.append(one)
    links = []
    for one, other in pairwise(roots):
        if draw.random() < _ROOTS_LINKED:
            memory.knowledge.link(one.id, other.id, "associative", weight=draw.uniform(0.35, 0.75))
            links.append((one.id, other.id))
            _group_neighbours(one, other)
    return links


def _group_neighbours(one: _Subject, other: _Subject) -> None:
    """Group a fragment that is never read by whether its neighbour is."""
    for mine, theirs in ((one, other), (other, one)):
        if not mine.read_on and theirs.read_on:
            mine.group = Group(mine.group.band, "beside")


def _read(memory: Memory, one: _Subject, day: int) -> bool:
    """Read a fragment as an agent does; return whether it was still there."""
    try:
        memory.read([one.id])
    except NotFound:
        return False
    one.last_read = day
    return True


def _state(memory: Memory, one: _Subject) -> State:
    try:
        (reading,) = memory.read([one.id], reinforce=False)
    except NotFound:
        return "deleted"
    if reading.deleted or reading.fragment is None:
        return "deleted"
    return "visible" if reading.fragment.relevance >= VISIBLE else "hidden"


def _is_linked(memory: Memory, one: str, other: str) -> bool:
    try:
        (reading,) = memory.read([one], reinforce=False)
    except NotFound:
        return False
    return any(other in (e.source, e.target) and e.kind == "associative" for e in reading.edges)


def _count_lost(subjects: Sequence[_Subject], states: Sequence[State], day: int) -> int:
    return sum(
        state != "visible" and one.last_read >= 0 and day - one.last_read < USED_DAYS
        for one, state in zip(subjects, states, strict=True)
    )


def _summarize(
    months: int,
    subjects: Sequence[_Subject],
    snapshots: dict[int, list[State]],
    links: Sequence[tuple[str, str]],
    edges: dict[int, set[tuple[str, str]]],
    lost: int,
) -> Result:
    groups = {Group(*pair): [] for pair in product(BANDS, USES)}  # type: dict[Group, list[int]]
    for place, one in enumerate(subjects):
        groups[one.group].append(place)
    shares = {
        group: {
            day: {state: _share([states[place] == state for place in places]) for state in STATES}
            for day, states in snapshots.items()
        }
        for group, places in groups.items()
    }
    in_use = {one.id for one in subjects if one.group.use in ("weekly", "monthly")}
    used = [link for link in links if in_use & set(link)]
    unused = [link for link in links if not in_use & set(link)]
    left = {
        name: {day: _share([link in alive for link in chosen]) for day, alive in edges.items()}
        for name, chosen in (("with an end in use", used), ("without", unused))
    }
    sizes = {group: len(places) for group, places in groups.items()}
    return Result(months, sizes, shares, left, lost, sorted(snapshots))


def _share(hits: Sequence[bool]) -> float:
    return round(sum(hits) / len(hits), 4) if hits else 0.0


def _age(day: int) -> str:
    return f"{day // _MONTH_DAYS} mo" if day >= _MONTH_DAYS else f"{day} d"


WIDTH, PANEL_WIDTH, PANEL_HEIGHT = 900, 200, 170
_TITLE = "Share of knowledge that search can show, by importance and use"
_COLOURS = {
    "weekly": ("#2e7d4f", "#4caf7a"), "monthly": ("#3b7dd8", "#5b9bf0"),
    "stopped": ("#7a4fb5", "#a583d8"), "once": ("#e08a1e", "#f0a040"),
    "beside": ("#8a8a8a", "#9a9a9a"), "never": ("#b3261e", "#ff7b72"),
}  # fmt: skip
"""Colours of the patterns of use on light and on dark backgrounds."""

_LABELS = {"stopped": "until month 3", "beside": "beside what is read"}


def draw(result: Result) -> str:
    """Return an SVG with a panel for each importance band."""
    height = PANEL_HEIGHT + 130
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="sans-serif" font-size="12">',
        f"<title>{escape(_TITLE)}</title>",
        f"<style>{_style()}</style>",
        f'<rect width="{WIDTH}" height="{height}" class="paper"/>',
        f'<text x="40" y="26" class="ink" font-size="16">{escape(_TITLE)}</text>',
    ]
    for number, use in enumerate(_COLOURS):
        x = 40 + 140 * number
        label = _LABELS.get(use, f"read {use}")
        parts.append(f'<line x1="{x}" x2="{x + 18}" y1="46" y2="46" class="{use}"/>')
        parts.append(f'<text x="{x + 24}" y="50" class="ink">{label}</text>')
    for number, band in enumerate(BANDS):
        parts.append(f'<g transform="translate({40 + 215 * number} 84)">')
        parts += [*_panel(result, band), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _style() -> str:
    light, dark = (
        f".paper{{fill:{paper}}}.ink{{fill:{ink}}}.grid{{stroke:{grid};stroke-width:1}}"
        + "".join(
            f".{use}{{stroke:{colours[place]};stroke-width:2;fill:none}}"
            for use, colours in _COLOURS.items()
        )
        for place, (paper, ink, grid) in enumerate((
            ("#ffffff", "#222222", "#e2e2e2"),
            ("#0d1117", "#e6edf3", "#2d333b"),
        ))
    )
    return f"{light}@media(prefers-color-scheme:dark){{{dark}}}"


def _panel(result: Result, band: str) -> list[str]:
    low, high = BANDS[band]
    last = max(result.days)
    parts = [f'<text x="0" y="-10" class="ink">importance {low} to {high}</text>']
    for percent in (0, 50, 100):
        y = PANEL_HEIGHT * (1 - percent / 100)
        parts.append(f'<line x1="0" x2="{PANEL_WIDTH}" y1="{y:.0f}" y2="{y:.0f}" class="grid"/>')
        parts.append(f'<text x="-6" y="{y + 4:.0f}" class="ink" text-anchor="end">{percent}</text>')
    for months in range(0, result.months + 1, max(1, result.months // 4)):
        x = PANEL_WIDTH * months * _MONTH_DAYS / last
        parts.append(
            f'<text x="{x:.0f}" y="{PANEL_HEIGHT + 18}" class="ink" text-anchor="middle">'
            f"{months}</text>"
        )
    parts.append(
        f'<text x="{PANEL_WIDTH / 2:.0f}" y="{PANEL_HEIGHT + 36}" class="ink"'
        ' text-anchor="middle">months</text>'
    )
    for use in _COLOURS:
        points = " ".join(
            f"{PANEL_WIDTH * day / last:.1f},{PANEL_HEIGHT * (1 - share):.1f}"
            for day in result.days
            for share in (result.visible(band, use, day),)
        )
        parts.append(f'<polyline points="{points}" class="{use}"/>')
    return parts
