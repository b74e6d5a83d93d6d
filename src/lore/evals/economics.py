"""Economics: what long sessions cost in each way of making prompts, and what is still at hand.

Recorded sessions are replayed request by request through a simulated cache. What every strategy
pays for is the same: prompts, at the prices of a model, and what it asks for on its own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from lore import settings
from lore.embed import open_embedder
from lore.errors import EvaluationError
from lore.evals.cached import CachedEmbedder
from lore.evals.evidence import Remembered, recalled, remember
from lore.evals.long_talks import Talk, read_talks, talk_of
from lore.evals.replaying import USUAL, Client, Outcome, Setting, replay
from lore.evals.strategies import STRATEGIES
from lore.memory import Memory
from lore.memory.costing import Catalogue
from lore.records.dialogues import ModelPrice

MODELS = ("claude-sonnet-4-5", "gpt-5.1")
"""The first is the one of the main figures: a window that the sessions exceed, and a price for
writing. The second caches by itself and charges nothing for that."""

PRICED_AT = datetime(2026, 11, 1, 12, tzinfo=UTC)
"""Prices are those of this moment, so that figures can be drawn again: some models cost half as
much at night."""

Report = Callable[[int, int], None]


Sessions = dict[str, dict[str, Outcome]]


@dataclass(frozen=True, slots=True)
class Result:
    """What every strategy took, by model, session and strategy."""

    notice: str
    models: dict[str, Sessions]
    missed: tuple[str, ...] = ()
    """Questions for which nothing was at hand with the last strategy."""
    windows: Mapping[str, int] = field(default_factory=dict)
    """How many tokens a prompt of each model may have."""

    def as_json(self) -> dict[str, object]:
        """Return the figures of the first model, and those of the others beside them."""
        shown = {model: _shown(sessions) for model, sessions in self.models.items()}
        first = next(iter(shown))
        others = {model: {"sessions": one} for model, one in shown.items() if model != first}
        result: dict[str, object] = {"sessions": shown[first], "model": first, "others": others}
        return result | ({"notice": self.notice} if self.notice else {})

    def as_table(self) -> str:
        """Return the figures as a table for people."""
        head = f"{'':<24}{'USD':>9}{'of full':>9}{'M tokens':>10}{'busts':>7}{'at hand':>10}"
        lines = []
        for model, sessions in self.models.items():
            for stem, found in sessions.items():
                lines += [f"{stem}, {model}", head + f"{'prompt':>8}{'recall':>8}"]
                full = found["full"].usd
                lines += [_line(name, one, full) for name, one in found.items()]
        lines += [f"Nothing at hand: {one}" for one in self.missed]
        return "\n".join([*lines, *_EXPLAINED, *filter(None, [self.notice])])


_EXPLAINED = (
    "USD: prompts only, since answers are the same; compaction also pays for its summaries.",
    "full: priced as if the window were large enough, at the price of shorter prompts.",
    "at hand: evidence in the prompt or in what recall gives; full and compaction have no recall.",
)


def _shown(sessions: Sessions) -> dict[str, object]:
    return {
        stem: {name: one.as_json() for name, one in found.items()}
        for stem, found in sessions.items()
    }


def _line(name: str, one: Outcome, full_usd: float) -> str:
    share = 100 * one.usd / full_usd if full_usd else 0.0
    asked = f"{one.available}/{one.questions}" if one.questions else "-"
    figures = f"{one.usd:>9.2f}{share:>8.1f}%{one.tokens_in / 1e6:>10.2f}{one.busts:>7}"
    return f"  {name:<22}{figures}{asked:>10}{one.by_prompt:>8}{one.by_recall:>8}"


def run(
    data: Path | None,
    *,
    sessions: Sequence[str] = (),
    home: Path | None = None,
    models: Sequence[str] = MODELS,
    client: Client = USUAL,
    cache: Path | None = None,
    report: Report | None = None,
) -> Result:
    """Replay every long session of a folder, and those of a home that are named."""
    talks = _talks(data, sessions, home)
    prices = {model: _price(model) for model in models}
    opened = open_embedder(replace(settings.load().settings, embed_threads=0))
    embedder = CachedEmbedder(opened.embedder, cache or _default_cache())
    found: dict[str, Sessions] = {model: {} for model in models}
    missed: list[str] = []
    steps = len(talks) * (1 + len(prices) * len(STRATEGIES))
    done = count(1)

    def step() -> None:
        if report:
            report(next(done), steps)

    try:
        for stem, talk in talks.items():
            known, asked = _remembered(talk, embedder)
            step()
            for model, price in prices.items():
                setting = Setting(model, price, known, asked, client)
                for name in STRATEGIES:
                    found[model].setdefault(stem, {})[name] = replay(talk, name, setting)
                    step()
            missed += [q.text for q, hit in zip(talk.questions, asked, strict=True) if not hit]
    finally:
        embedder.close()
    windows = {model: price.window_tokens for model, price in prices.items()}
    return Result(opened.notice, found, tuple(missed), windows)


def _remembered(talk: Talk, embedder: CachedEmbedder) -> tuple[Remembered, tuple[bool, ...]]:
    """Return a session as a fresh memory holds it, and which questions its recall answers."""
    with (
        tempfile.TemporaryDirectory(prefix="lore-eval-") as scratch,
        Memory.open(home=scratch, embedder=embedder) as memory,
    ):
        known = remember(memory, talk)
        ids = dict(enumerate(known.ids))
        return known, tuple(recalled(memory, one, ids) for one in talk.questions)


def _talks(data: Path | None, sessions: Sequence[str], home: Path | None) -> dict[str, Talk]:
    found = _recorded(data) if data is not None else {}
    if sessions:
        with Memory.open(home, create=False) as memory:
            found |= {name: talk_of(name, memory.messages(name)) for name in sessions}
    if not found:
        where = f"There is no long-session-*.jsonl.gz in {data}." if data else "Nothing is named."
        raise EvaluationError(
            where, hint="--data names a folder with them, --sessions captured sessions."
        )
    return found


def _recorded(data: Path) -> dict[str, Talk]:
    """Return the sessions of a folder by the names of their files."""
    if not data.is_dir():
        msg = f"There is no folder {data}."
        raise EvaluationError(msg)
    found: dict[str, Talk] = {}
    for path in sorted(data.glob("long-session-*.jsonl.gz")):
        stem = path.name.removesuffix(".jsonl.gz")
        talks = read_talks(path)
        found |= {stem if not n else f"{stem}-{n}": talk for n, talk in enumerate(talks)}
    return found


def _price(model: str) -> ModelPrice:
    found = Catalogue(now=lambda: PRICED_AT).find(model)
    if found is None:
        msg = f"The price of {model} is not known."
        raise EvaluationError(msg)
    return found.usual


def _default_cache() -> Path:
    return Path(tempfile.gettempdir()) / "lore-eval-cache"
