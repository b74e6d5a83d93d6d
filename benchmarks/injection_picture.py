"""Draw docs/pictures/injection.svg: precision and recall of what prompts get, by threshold.

    uv run --with scipy python benchmarks/train_injection.py … > FIGURES.txt
    uv run python benchmarks/injection_picture.py FIGURES.txt

Reads what `train_injection.py` prints: figures of projects that were not trained on.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from lore.settings import Settings

TARGET = Path(__file__).parents[1] / "docs" / "pictures" / "injection.svg"
WIDTH, HEIGHT, LEFT, TOP, SIDE = 640, 460, 70, 40, 330
COLOURS = ("#1f6fd6", "#c2701c", "#2f8f5b", "#9a4fb0", "#8b6f1f")
INK, LINE = "#6b7280", "#8b949e55"

_GROUP = re.compile(r"^(\w+): \d+ prompts$")
_ROW = re.compile(r"^\s+(0\.\d) (.*)$")
_FIGURES = re.compile(
    r"(?P<kind>\w+) [\d.]+% of (?P<count>\d+) get any, right (?P<items>[\d.]+)% of items,"
    r" (?P<prompts>[\d.]+)% of prompts, recall (?P<recall>[\d.]+)%"
)
CURVES = {
    ("facts", "direct"): "questions, small memory",
    ("facts", "needs"): "work, small memory",
    ("all", "direct"): "questions over sessions",
    ("apart", "direct"): "the same by another author",
    ("all", "needs"): "work after sessions",
}


@dataclass(frozen=True, slots=True)
class Point:
    """Recall and precision at a threshold, in percent."""

    threshold: float
    recall: float
    precision: float
    count: int


def read_curves(text: str) -> dict[str, list[Point]]:
    """Return the points of each curve by its name."""
    curves: dict[str, list[Point]] = {name: [] for name in CURVES.values()}
    group = ""
    for line in text.splitlines():
        if found := _GROUP.match(line):
            group = found[1]
        elif row := _ROW.match(line):
            for part in row[2].split(" | "):
                figures = _FIGURES.match(part)
                name = CURVES.get((group, figures["kind"])) if figures else None
                if figures and name:
                    recall, precision = float(figures["recall"]), float(figures["prompts"])
                    count = int(figures["count"])
                    curves[name].append(Point(float(row[1]), recall, precision, count))
    return {name: points for name, points in curves.items() if points}


def draw(curves: dict[str, list[Point]], default: float) -> str:
    """Return the picture as SVG."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' font-family="system-ui, sans-serif" font-size="13" fill="{INK}">'
    )
    parts = [head, *_axes()]
    for place, (name, points) in enumerate(curves.items()):
        parts += _curve(name, points, COLOURS[place], default, place)
    return "\n".join([*parts, "</svg>", ""])


def _x(recall: float) -> float:
    return LEFT + recall / 100 * (WIDTH - LEFT - 30)


def _y(precision: float) -> float:
    return TOP + (100 - precision) / 60 * SIDE


def _axes() -> Iterator[str]:
    for value in range(0, 101, 20):
        x = _x(value)
        yield f'<line x1="{x:.0f}" y1="{TOP}" x2="{x:.0f}" y2="{_y(40):.0f}" stroke="{LINE}"/>'
        yield f'<text x="{x:.0f}" y="{_y(40) + 18:.0f}" text-anchor="middle">{value} %</text>'
    for value in range(40, 101, 20):
        y = _y(value)
        yield f'<line x1="{LEFT}" y1="{y:.0f}" x2="{_x(100):.0f}" y2="{y:.0f}" stroke="{LINE}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{value} %</text>'
    yield (
        f'<text x="{_x(50):.0f}" y="{_y(40) + 40:.0f}" text-anchor="middle">'
        "prompts that get an item that is right</text>"
    )
    title = "of the prompts that get anything, with a right item"
    yield f'<text x="{LEFT}" y="{TOP - 16}">{title}</text>'


def _curve(
    name: str, points: list[Point], colour: str, default: float, place: int
) -> Iterator[str]:
    path = " ".join(f"{_x(one.recall):.1f},{_y(max(40, one.precision)):.1f}" for one in points)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for one in points:
        x, y = _x(one.recall), _y(max(40, one.precision))
        radius = 6 if one.threshold == default else 2.5
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"/>'
    y = _y(40) - 14 - 20 * (len(CURVES) - place - 1)
    label = f"{name} ({points[0].count:,})"
    yield f'<circle cx="{_x(57):.0f}" cy="{y - 4:.0f}" r="5" fill="{colour}"/>'
    yield f'<text x="{_x(57) + 12:.0f}" y="{y:.0f}">{escape(label)}</text>'


def main() -> None:
    """Read the figures and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figures", type=Path)
    parser.add_argument("--out", type=Path, default=TARGET)
    options = parser.parse_args()
    curves = read_curves(options.figures.read_text("utf-8"))
    options.out.write_text(draw(curves, Settings().inject_threshold), "utf-8")


if __name__ == "__main__":
    main()
