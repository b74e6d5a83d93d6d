"""Economics evaluation: the cost of prompt strategies in long sessions, and the evidence left.

Recorded sessions are replayed request by request through a simulated cache. Every strategy pays for
its prompts at the prices of a model, and for its own requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from html import escape
from itertools import count, groupby
from pathlib import Path

from lore.budget.prices import PriceCatalogue
from lore.errors import EvaluationError
from lore.evals.datasets import (
    ReplaySession,
    open_scratch_memory,
    read_long_sessions,
    replay_session_of,
)
from lore.evals.replay import (
    DEFAULT_CLIENT,
    STRATEGIES,
    PromptSize,
    RememberedSession,
    ReplayClient,
    ReplayOutcome,
    ReplaySetting,
    has_evidence_in_recall,
    remember_session,
    replay_session,
)
from lore.evals.vector_cache import DiskCachedEmbedder, open_cached_embedder
from lore.memory import Memory
from lore.records.gateway import ModelPrice

MODELS = ("claude-sonnet-4-5", "gpt-5.1")
"""The first model is that of the main figures:

its window is too small for the sessions, and cache writes cost extra. The second one caches
automatically, and writes are free."""

PRICED_AT = datetime(2026, 11, 1, 12, tzinfo=UTC)
"""Prices at this moment make the figures reproducible: some models cost half as much at night."""

Report = Callable[[int, int], None]


Sessions = dict[str, dict[str, ReplayOutcome]]


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of every strategy, by model, session and strategy."""

    notice: str
    models: dict[str, Sessions]
    missed: tuple[str, ...] = ()
    """Questions without evidence under the last strategy, with the first model."""
    windows: Mapping[str, int] = field(default_factory=dict)
    """The window of each model in tokens."""

    def as_json(self) -> dict[str, object]:
        """Return the figures of the first model, and those of the others under `others`."""
        shown = {model: _as_json(sessions) for model, sessions in self.models.items()}
        first = next(iter(shown))
        others = {model: {"sessions": one} for model, one in shown.items() if model != first}
        result: dict[str, object] = {"sessions": shown[first], "model": first, "others": others}
        return result | ({"notice": self.notice} if self.notice else {})

    def as_table(self) -> str:
        """Return the figures as a table."""
        head = f"{'':<24}{'USD':>9}{'of full':>9}{'M tokens':>10}{'busts':>7}{'at hand':>10}"
        lines = []
        for model, sessions in self.models.items():
            for stem, outcomes in sessions.items():
                lines += [f"{stem}, {model}", head + f"{'prompt':>8}{'recall':>8}"]
                full = outcomes["full"].usd
                lines += [_line(name, one, full) for name, one in outcomes.items()]
        lines += [f"Nothing at hand: {one}" for one in self.missed]
        return "\n".join([*lines, *_LEGEND, *filter(None, [self.notice])])


_LEGEND = (
    "USD: prompts only, since answers are the same; compaction also pays for its summaries.",
    "full: priced as if the window were large enough, at the price of shorter prompts.",
    "at hand: evidence in the prompt or in what recall gives; full and compaction have no recall.",
)


def _as_json(sessions: Sessions) -> dict[str, object]:
    return {
        stem: {name: one.as_json() for name, one in outcomes.items()}
        for stem, outcomes in sessions.items()
    }


def _line(name: str, one: ReplayOutcome, full_usd: float) -> str:
    share = 100 * one.usd / full_usd if full_usd else 0.0
    answered = f"{one.available}/{one.questions}" if one.questions else "-"
    figures = f"{one.usd:>9.2f}{share:>8.1f}%{one.tokens_in / 1e6:>10.2f}{one.busts:>7}"
    return f"  {name:<22}{figures}{answered:>10}{one.by_prompt:>8}{one.by_recall:>8}"


def run(
    data: Path | None,
    *,
    sessions: Sequence[str] = (),
    home: Path | None = None,
    models: Sequence[str] = MODELS,
    client: ReplayClient = DEFAULT_CLIENT,
    cache: Path | None = None,
    report: Report | None = None,
) -> Result:
    """Replay every long session of a folder, and the named sessions of a home."""
    talks = _load_sessions(data, sessions, home)
    prices = {model: _find_price(model) for model in models}
    outcomes: dict[str, Sessions] = {model: {} for model in models}
    missed: list[str] = []
    steps = len(talks) * (1 + len(prices) * len(STRATEGIES))
    done = count(1)

    def step() -> None:
        if report:
            report(next(done), steps)

    with open_cached_embedder(cache) as (embedder, notice):
        for stem, talk in talks.items():
            remembered, recalled = _remember_in_scratch(talk, embedder)
            step()
            for model, price in prices.items():
                setting = ReplaySetting(model, price, remembered, recalled, client)
                for name in STRATEGIES:
                    outcomes[model].setdefault(stem, {})[name] = replay_session(talk, name, setting)
                    step()
            missed += outcomes[models[0]][stem][STRATEGIES[-1]].missed
    windows = {model: price.window_tokens for model, price in prices.items()}
    return Result(notice, outcomes, tuple(missed), windows)


def _remember_in_scratch(
    talk: ReplaySession, embedder: DiskCachedEmbedder
) -> tuple[RememberedSession, tuple[bool, ...]]:
    """Return a session in a fresh memory, and which questions its recall answers."""
    with open_scratch_memory(embedder) as memory:
        remembered = remember_session(memory, talk)
        ids = dict(enumerate(remembered.ids))
        return remembered, tuple(has_evidence_in_recall(memory, one, ids) for one in talk.questions)


def _load_sessions(
    data: Path | None, sessions: Sequence[str], home: Path | None
) -> dict[str, ReplaySession]:
    loaded = _read_folder(data) if data is not None else {}
    if sessions:
        with Memory.open(home, create=False) as memory:
            loaded |= {
                name: replay_session_of(name, memory.sessions.messages(name)) for name in sessions
            }
    if not loaded:
        where = f"There is no long-session-*.jsonl.gz in {data}." if data else "Nothing is named."
        raise EvaluationError(
            where, hint="--data names a folder with them, --sessions captured sessions."
        )
    return loaded


def _read_folder(data: Path) -> dict[str, ReplaySession]:
    if not data.is_dir():
        msg = f"There is no folder {data}."
        raise EvaluationError(msg)
    loaded: dict[str, ReplaySession] = {}
    for path in sorted(data.glob("long-session-*.jsonl.gz")):
        stem = path.name.removesuffix(".jsonl.gz")
        talks = read_long_sessions(path)
        loaded |= {stem if not n else f"{stem}-{n}": talk for n, talk in enumerate(talks)}
    return loaded


def _find_price(model: str) -> ModelPrice:
    pricing = PriceCatalogue(now=lambda: PRICED_AT).find(model)
    if pricing is None:
        msg = f"The price of {model} is not known."
        raise EvaluationError(msg)
    return replace(pricing, longer=())


WIDTH, PANEL = 900, 380
_HEAD, _LEFT, _TOP, _BOTTOM, _RIGHT = 78, 74, 74, 60, 24
_STEPS = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000)
_MOST_LINES = 7
_NARROW_PX = 9
"""A narrower band has no room for its number."""

_TITLE = "What a model is sent in a long session, request by request"
_CHART_LEGEND = {
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
    for x, (name, text) in zip(_LEGEND_X, _CHART_LEGEND.items(), strict=True):
        parts.append(f'<rect x="{x}" y="44" width="12" height="12" class="{name}"/>')
        parts.append(_text(x + 17, 54, text, anchor="start"))
    return parts


def _text(x: float, y: float, text: str, *, anchor: str = "middle", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" class="ink">'
        f"{escape(text)}</text>"
    )
