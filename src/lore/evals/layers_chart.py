"""SVG chart of the layers: the size of each prompt in a replayed session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from lore.evals.economics import Result
from lore.evals.replay import PromptSize, ReplayOutcome

WIDTH, PANEL = 900, 380
_HEAD, _LEFT, _TOP, _BOTTOM, _RIGHT = 78, 74, 74, 60, 24
_STEPS = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000)
_MOST_LINES = 7
_NARROW_PX = 9
"""A narrower band has no room for its number."""

_TITLE = "What a model is sent in a long session, request by request"
_LEGEND = {
    "full": "full context, without Lore",
    "raw": "sent: the talk as it was said",
    "told": "sent: Lore's log of what went before",
    "bust": "bust: its beginning changed",
}
_LEGEND_X = (74, 268, 462, 690)
_LIGHT = {
    "paper": "#ffffff", "ink": "#222222", "line": "#e2e2e2", "full": "#cfcfcf",
    "raw": "#3b7dd8", "told": "#e08a1e", "bust": "#b3261e",
}  # fmt: skip
_DARK = {
    "paper": "#0d1117", "ink": "#e6edf3", "line": "#2d333b", "full": "#3d444d",
    "raw": "#5b9bf0", "told": "#f0a040", "bust": "#ff7b72",
}  # fmt: skip
_BANDS = ("#8a8a8a", "#2e7d4f", "#7a4fb5", "#b0578d", "#b3261e")
"""Colours of layers 0 to 4; readable with white letters on light and dark backgrounds."""


def draw(result: Result) -> str:
    """Return an SVG of the first session with a panel for each model.

    It shows full context in the background, the prompts of the break-even rule in front, and the
    layer above.
    """
    panels: list[str] = []
    stem = ""
    for number, (model, sessions) in enumerate(result.models.items()):
        stem, outcomes = next(iter(sessions.items()))
        window = result.windows.get(model, 0)
        drawn = _panel(model, window, outcomes["full"], outcomes["gradient_horizon"])
        panels.append(f'<g transform="translate(0 {_HEAD + PANEL * number})">')
        panels += [*drawn, "</g>"]
    height = _HEAD + PANEL * len(result.models)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        f' font-family="sans-serif" font-size="12">',
        f"<title>{escape(_TITLE)}</title>",
        f"<style>{_style()}</style>",
        f'<rect width="{WIDTH}" height="{height}" class="paper"/>',
        _text(_LEFT, 26, f"{_TITLE} ({stem})", anchor="start", size=16),
        *_legend(),
        *panels,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _style() -> str:
    light, dark = (
        "".join(f".{name}{{fill:{colour};stroke:none}}" for name, colour in colours.items())
        + f".line{{stroke:{colours['line']}}}.bust{{stroke:{colours['bust']};stroke-width:1.5}}"
        + f".edge{{stroke:{colours['ink']};stroke-dasharray:5 4}}"
        for colours in (_LIGHT, _DARK)
    )
    return f"{light}@media(prefers-color-scheme:dark){{{dark}}}"


def _panel(model: str, window: int, full: ReplayOutcome, sent: ReplayOutcome) -> list[str]:
    most = max((size.tokens for size in full.sizes), default=1)
    frame = _Frame(len(full.sizes), most)
    return [
        _heading(model, full, sent),
        *frame.grid(),
        frame.area([size.tokens for size in full.sizes], "full"),
        frame.area([size.tokens for size in sent.sizes], "raw"),
        frame.area([size.prefix_tokens for size in sent.sizes], "told"),
        *frame.window(window),
        *frame.busts(sent.sizes),
        *frame.layers(sent.sizes),
    ]


class _Frame:
    """Coordinates of requests and token counts in a panel."""

    def __init__(self, requests: int, most_tokens: int) -> None:
        self._requests = max(1, requests)
        self._most = max(1, most_tokens)

    def x(self, request: int) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * request / self._requests

    def y(self, tokens: int) -> float:
        return PANEL - _BOTTOM - (PANEL - _TOP - _BOTTOM) * tokens / self._most

    def grid(self) -> list[str]:
        """Return the grid lines, both scales and their labels."""
        step = next((s for s in _STEPS if self._most / s <= _MOST_LINES), _STEPS[-1])
        parts = []
        for tokens in range(0, self._most + 1, step):
            y = self.y(tokens)
            parts.append(
                f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="line"/>'
            )
            parts.append(_text(_LEFT - 8, y + 4, f"{tokens // 1000} K", anchor="end"))
        each = max(1, self._requests // 8 // 10 * 10)
        below = PANEL - _BOTTOM + 22
        parts += [_text(self.x(n), below, str(n)) for n in range(0, self._requests + 1, each)]
        parts.append(_text((_LEFT + WIDTH - _RIGHT) / 2, below + 18, "request of the session"))
        middle = (_TOP + PANEL - _BOTTOM) / 2
        parts.append(
            f'<text transform="translate(20 {middle:.0f}) rotate(-90)" text-anchor="middle"'
            ' class="ink">tokens in the prompt</text>'
        )
        return parts

    def area(self, tokens: Sequence[int], name: str) -> str:
        """Return the area below a curve, in steps of one request."""
        path = [f"M{self.x(0):.1f} {self.y(0):.1f}"]
        for size, run in groupby(enumerate(tokens), key=lambda one: round(self.y(one[1]), 1)):
            last = max(number for number, _ in run)
            path.append(f"V{size:g}H{self.x(last + 1):.1f}")
        return f'<path d="{"".join(path)}V{self.y(0):.1f}z" class="{name}"/>'

    def window(self, tokens: int) -> list[str]:
        """Return a line at the window of the model, if prompts reach it."""
        if not 0 < tokens <= self._most:
            return []
        y = self.y(tokens)
        return [
            f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="edge"/>',
            _text(_LEFT + 6, y - 5, f"window of the model: {tokens // 1000} K", anchor="start"),
        ]

    def busts(self, sizes: Sequence[PromptSize]) -> list[str]:
        """Return a mark below each bust."""
        y = self.y(0)
        return [
            f'<line x1="{self.x(n):.1f}" x2="{self.x(n):.1f}" y1="{y:.1f}" y2="{y + 8:.1f}"'
            ' class="bust"/>'
            for n, size in enumerate(sizes)
            if size.busts
        ]

    def layers(self, sizes: Sequence[PromptSize]) -> Iterator[str]:
        """Return a band with the layer of each request."""
        top = _TOP - 24
        yield _text(_LEFT - 8, top + 12, "layer", anchor="end")
        for layer, run in groupby(enumerate(sizes), key=lambda one: one[1].layer):
            numbers = [number for number, _ in run]
            left, right = self.x(numbers[0]), self.x(numbers[-1] + 1)
            colour = _BANDS[min(layer, len(_BANDS) - 1)]
            yield (
                f'<rect x="{left:.1f}" y="{top}" width="{right - left:.1f}" height="16"'
                f' fill="{colour}"/>'
            )
            if right - left >= _NARROW_PX:
                yield (
                    f'<text x="{(left + right) / 2:.1f}" y="{top + 12}" text-anchor="middle"'
                    f' fill="#ffffff">{layer}</text>'
                )


def _heading(model: str, full: ReplayOutcome, sent: ReplayOutcome) -> str:
    heading = (
        f"{model}: ${sent.usd:.2f} with layers, ${full.usd:.2f} with full context;"
        f" {sent.busts} busts; evidence for {sent.available} of {sent.questions} questions at hand"
    )
    return _text(_LEFT, _TOP - 38, heading, anchor="start", size=14)


def _legend() -> list[str]:
    parts = []
    for x, (name, text) in zip(_LEGEND_X, _LEGEND.items(), strict=True):
        parts.append(f'<rect x="{x}" y="44" width="12" height="12" class="{name}"/>')
        parts.append(_text(x + 17, 54, text, anchor="start"))
    return parts


def _text(x: float, y: float, text: str, *, anchor: str = "middle", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" class="ink">'
        f"{escape(text)}</text>"
    )
