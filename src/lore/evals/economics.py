"""Economics evaluation: the cost of prompt strategies in long sessions, and the evidence left.

Recorded sessions are replayed request by request through a simulated cache. Every strategy pays for
its prompts at the prices of a model, and for its own requests.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from lore.budget.prices import PriceCatalogue
from lore.errors import EvaluationError
from lore.evals.datasets import ReplaySession, read_long_sessions, replay_session_of
from lore.evals.embedding_cache import CachedEmbedder, open_cached_embedder
from lore.evals.replay import (
    DEFAULT_CLIENT,
    STRATEGIES,
    RememberedSession,
    ReplayClient,
    ReplayOutcome,
    ReplaySetting,
    has_evidence_in_recall,
    remember_session,
    replay_session,
)
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
    """Questions without evidence under the last strategy."""
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
            missed += [q.text for q, hit in zip(talk.questions, recalled, strict=True) if not hit]
    windows = {model: price.window_tokens for model, price in prices.items()}
    return Result(notice, outcomes, tuple(missed), windows)


def _remember_in_scratch(
    talk: ReplaySession, embedder: CachedEmbedder
) -> tuple[RememberedSession, tuple[bool, ...]]:
    """Return a session in a fresh memory, and which questions its recall answers."""
    with (
        tempfile.TemporaryDirectory(prefix="lore-eval-") as scratch,
        Memory.open(home=scratch, embedder=embedder) as memory,
    ):
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
    return pricing.usual
