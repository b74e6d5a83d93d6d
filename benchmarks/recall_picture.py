"""Draw docs/pictures/recall.svg: recall by kind of question with intervals, against baselines.

    uv run lore eval retrieval --data DATA --corpus SESSIONS --baselines --json > RESULT.json
    uv run python benchmarks/recall_picture.py RESULT.json --set 'coding-qa*'

The JSON of `benchmarks/peers.py` has the same form. `--held-out` names a file of the form in which
`lore` is scored by models that were not trained on the project (`train_recall.py ranking --json`);
without it the picture says of a set on which Lore was trained that it was. A page works as well:
the held-out scores by kind are read from the table of docs/reference/benchmark.md.

    uv run python benchmarks/recall_picture.py RESULT.json --set 'coding-qa*' --against bm25 \\
        --held-out docs/reference/benchmark.md --out docs/pictures/recall-coding.svg
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from lore.evals.datasets import UNANSWERABLE

TARGET = Path(__file__).parents[1] / "docs" / "pictures" / "recall.svg"
SCORES = {"r1": "first result", "r5": "first five results", "r10": "first ten results"}
DRAWN = ("bm25", "cosine", "rrf60")
"""Baselines that are drawn unless others are named."""

POOLED = "coding-qa*"
"""The set of all questions over coding sessions."""

_CELL = r" (\d+ \(\d+–\d+\)) \|"
_KIND_ROW = re.compile(rf"^\| (\w+) \| ([\d,]+) \|{_CELL * len(SCORES)}$", re.MULTILINE)
"""A row of the table by kind: its name, its number of questions, and scores with intervals."""

TRAINED = ("coding-qa", "chats")
"""Sets on which the models that Lore ships are trained."""

LIGHT = {
    "paper": "#ffffff", "ink": "#222222", "line": "#e2e2e2",
    "m0": "#1f6fd6", "m1": "#c2701c", "m2": "#6b7280", "m3": "#2f8f5b", "m4": "#9a4fb0",
}  # fmt: skip
DARK = {
    "paper": "#0d1117", "ink": "#e6edf3", "line": "#2d333b",
    "m0": "#5b9bf0", "m1": "#f0a040", "m2": "#9aa4b2", "m3": "#56c28a", "m4": "#cc8be0",
}  # fmt: skip

WIDTH, LEFT, RIGHT = 900, 190, 30
HEAD, PANEL_HEAD, FOOT, GAP = 62, 62, 40, 11
"""Sizes in pixels: above all panels, above and below each, and between the methods of a row."""

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Point:
    """A score with its interval, in percent."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of question: its number, and a point for each method."""

    name: str
    n: int
    points: tuple[Point | None, ...]


def main() -> None:
    """Read the scores and write the picture."""
    options = _options()
    result = json.loads(options.result.read_text("utf-8"))
    held_out = read_held_out(options.held_out) if options.held_out else None
    names = options.set or list(result["sets"])
    panels = {}
    for name in names:
        own = (held_out or result)["sets"].get(name)
        if not own:
            sys.exit(f"{(options.held_out or options.result).name} has no set {name}.")
        baselines = result.get("baselines", {}).get(name, {})
        chosen = options.against or [one for one in baselines if one.startswith(DRAWN)]
        methods = {own_name(name, held_out=bool(held_out)): own}
        methods |= {one: baselines[one] for one in chosen}
        panels[name] = (list(methods), rows_of(list(methods.values()), options.score))
    options.out.write_text(draw(panels, options.score), "utf-8")
    print(f"{options.out.name}: {options.out.stat().st_size:,} bytes")


def read_held_out(path: Path) -> Json:
    """Return held-out scores of a file of JSON, or of the table by kind in a page."""
    text = path.read_text("utf-8")
    return {"sets": {POOLED: parse_table(text)}} if path.suffix == ".md" else json.loads(text)


def parse_table(page: str) -> Json:
    """Return the scores of the first table of a page with a column 'kind' and scores as columns."""
    kinds: dict[str, Json] = {}
    for name, n, *cells in _KIND_ROW.findall(page):
        figures = [tuple(int(one) / 100 for one in re.findall(r"\d+", cell)) for cell in cells]
        scores = dict(zip(SCORES, figures, strict=True))
        kinds[name] = {
            "n": int(n.replace(",", "")),
            **{score: value for score, (value, _, _) in scores.items()},
            "intervals": {score: limits for score, (_, *limits) in scores.items()},
        }
    if "all" not in kinds:
        sys.exit("The page has no table by kind with a row for all questions.")
    return {**kinds.pop("all"), "by_category": kinds}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("result", type=Path, help="JSON of lore eval retrieval or of peers.py")
    parser.add_argument("--held-out", type=Path, help="JSON or page with Lore's held-out scores")
    parser.add_argument("--set", action="append", help="a set to draw; repeatable")
    parser.add_argument(
        "--against", action="append", help="a baseline to draw; repeatable, up to 4"
    )
    parser.add_argument("--score", choices=SCORES, default="r5")
    parser.add_argument("--out", type=Path, default=TARGET)
    return parser.parse_args()


def own_name(name: str, *, held_out: bool) -> str:
    """Return the label of Lore's scores on a set."""
    if name.startswith(TRAINED):
        return (
            "lore, not trained on this project" if held_out else "lore, trained on these questions"
        )
    return "lore"


def rows_of(methods: Sequence[Json], score: str) -> list[Row]:
    """Return a row for all questions and one for each kind, the most frequent first."""
    kinds: dict[str, Json] = methods[0]["by_category"]
    answered = [kind for kind in kinds if kind not in (UNANSWERABLE, "adversarial")]
    rows = [Row("all", methods[0]["n"], tuple(_point(one, score) for one in methods))]
    for kind in sorted(answered, key=lambda kind: -kinds[kind]["n"]):
        points = tuple(_point(one["by_category"].get(kind), score) for one in methods)
        rows.append(Row(kind, kinds[kind]["n"], points))
    return rows


def _point(scores: Json | None, score: str) -> Point | None:
    if not scores:
        return None
    low, high = scores["intervals"][score]
    return Point(100 * scores[score], 100 * low, 100 * high)


def draw(panels: Mapping[str, tuple[list[str], list[Row]]], score: str) -> str:
    """Return an SVG for light and dark backgrounds, with a panel for each set."""
    title = f"Questions whose evidence is among the {SCORES[score]}"
    if score == "r1":
        title = "Questions whose evidence is the first result"
    body: list[str] = []
    top = HEAD
    for name, (methods, rows) in panels.items():
        body += _panel(name, methods, rows, top)
        top += PANEL_HEAD + _row_height(methods) * len(rows) + FOOT
    note = "Dots: percent of the needed evidence. Bars: 95 % bootstrap intervals, by session."
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top + 8}"'
        ' font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f"<style>{_style(LIGHT)}@media(prefers-color-scheme:dark){{{_style(DARK)}}}</style>",
        f'<rect width="{WIDTH}" height="{top + 8}" class="paper"/>',
        _text(20, 28, title, size=16),
        _text(20, 48, note),
        *body,
        "</svg>\n",
    ])  # fmt: skip


def _style(colours: Mapping[str, str]) -> str:
    return "".join(f".{name}{{fill:{c};stroke:{c}}}" for name, c in colours.items()) + (
        ".ink,.paper{stroke:none}"
    )


def _panel(name: str, methods: list[str], rows: list[Row], top: int) -> Iterator[str]:
    yield _text(20, top + 16, name, size=14)
    left = 24.0
    for place, method in enumerate(methods):
        yield f'<circle cx="{left:.0f}" cy="{top + 32}" r="4" class="m{place}"/>'
        yield _text(left + 9, top + 36, method)
        left += 32 + 6.4 * len(method)
    first = top + PANEL_HEAD
    last = first + _row_height(methods) * len(rows)
    for percent in range(0, 101, 20):
        x = _x(percent)
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{first - 8}" y2="{last}" class="line"/>'
        yield _text(x, last + 15, f"{percent} %", anchor="middle")
    for place, row in enumerate(rows):
        yield from _row(row, first + place * _row_height(methods), methods)


def _row(row: Row, top: int, methods: list[str]) -> Iterator[str]:
    middle = top + _row_height(methods) / 2 - 3
    yield _text(LEFT - 14, middle, f"{row.name} ({row.n:,})", anchor="end")
    for place, point in enumerate(row.points):
        if point is None:
            continue
        y = top + GAP * place
        yield (
            f'<g class="m{place}"><line x1="{_x(point.low):.1f}" x2="{_x(point.high):.1f}"'
            f' y1="{y}" y2="{y}" stroke-width="2"/><circle cx="{_x(point.value):.1f}" cy="{y}"'
            f' r="4"/><title>{escape(methods[place])}, {escape(row.name)}: {point.value:.1f}'
            f" ({point.low:.1f} to {point.high:.1f})</title></g>"
        )


def _row_height(methods: Sequence[str]) -> int:
    return GAP * len(methods) + 12


def _x(percent: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * percent / 100


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
        f' class="ink">{escape(text)}</text>'
    )


if __name__ == "__main__":
    main()
