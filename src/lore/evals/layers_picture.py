"""A picture of the layers: how long each prompt of a replayed session was, and of what."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from lore.evals.economics import Result
from lore.evals.replaying import Outcome, Size

WIDTH, HEIGHT = 900, 420
_LEFT, _TOP, _BOTTOM, _RIGHT = 70, 56, 60, 20
_COLOURS = {"full": "#b8b8b8", "raw": "#3b7dd8", "prefix": "#e08a1e", "bust": "#b3261e"}
_STEPS = (10_000, 20_000, 50_000, 100_000, 200_000)
_MOST_LINES = 7


def draw(result: Result) -> str:
    """Return an SVG of the first session: full context behind, what the horizon sent in front."""
    model, sessions = next(iter(result.models.items()))
    stem, found = next(iter(sessions.items()))
    full, sent = found["full"], found["gradient_horizon"]
    most = max((size.tokens for size in full.sizes), default=1)
    frame = _Frame(len(full.sizes), most)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _title(f"{stem}, {model}", full, sent),
        *frame.grid(),
        frame.area([size.tokens for size in full.sizes], _COLOURS["full"]),
        frame.area([size.tokens for size in sent.sizes], _COLOURS["raw"]),
        frame.area([size.prefix_tokens for size in sent.sizes], _COLOURS["prefix"]),
        *frame.busts(sent.sizes),
        *_legend(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


class _Frame:
    """Where a request and a number of tokens lie in the picture."""

    def __init__(self, requests: int, most_tokens: int) -> None:
        self._requests = max(1, requests)
        self._most = max(1, most_tokens)

    def x(self, request: int) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * request / self._requests

    def y(self, tokens: int) -> float:
        return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * tokens / self._most

    def grid(self) -> list[str]:
        """Return lines for tokens and a scale of requests."""
        step = next((s for s in _STEPS if self._most / s <= _MOST_LINES), _STEPS[-1])
        found = []
        for tokens in range(0, self._most + 1, step):
            y = self.y(tokens)
            found.append(
                f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"'
                f' stroke="#e4e4e4"/>'
            )
            found.append(_text(_LEFT - 8, y + 4, f"{tokens // 1000} K", anchor="end"))
        each = max(1, self._requests // 8 // 10 * 10)
        below = HEIGHT - _BOTTOM + 18
        found += [_text(self.x(n), below, str(n)) for n in range(0, self._requests + 1, each)]
        found.append(_text(_LEFT, HEIGHT - 24, "requests of the session", anchor="start"))
        return found

    def area(self, tokens: Sequence[int], colour: str) -> str:
        """Return the surface below a line of sizes."""
        tops = " ".join(
            f"{self.x(n):.1f},{self.y(size):.1f} {self.x(n + 1):.1f},{self.y(size):.1f}"
            for n, size in enumerate(tokens)
        )
        ground = f"{self.y(0):.1f}"
        points = f"{self.x(0):.1f},{ground} {tops} {self.x(len(tokens)):.1f},{ground}"
        return f'<polygon points="{points}" fill="{colour}"/>'

    def busts(self, sizes: Sequence[Size]) -> list[str]:
        """Return a mark below each request that was a bust."""
        y = self.y(0)
        return [
            f'<line x1="{self.x(n):.1f}" x2="{self.x(n):.1f}" y1="{y:.1f}" y2="{y + 7:.1f}"'
            f' stroke="{_COLOURS["bust"]}" stroke-width="1.5"/>'
            for n, size in enumerate(sizes)
            if size.busts
        ]


def _title(name: str, full: Outcome, sent: Outcome) -> str:
    told = (
        f"{name}: ${sent.usd:.2f} with layers, ${full.usd:.2f} with full context; evidence of"
        f" {sent.available} of {sent.questions} questions at hand"
    )
    return _text(_LEFT, 22, told, anchor="start", size=14)


def _legend() -> list[str]:
    told = {
        "full": "full context",
        "raw": "raw window",
        "prefix": "distilled prefix",
        "bust": "bust (below the line)",
    }
    found = []
    for number, (name, text) in enumerate(told.items()):
        x = _LEFT + 190 * number
        found.append(f'<rect x="{x}" y="34" width="12" height="12" fill="{_COLOURS[name]}"/>')
        found.append(_text(x + 18, 44, text, anchor="start"))
    return found


def _text(x: float, y: float, text: str, *, anchor: str = "middle", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#333333">'
        f"{escape(text)}</text>"
    )
