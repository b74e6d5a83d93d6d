"""Digest: what recall finds in raw messages, in messages and their digest, in the digest alone."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from lore import settings
from lore.embed import open_embedder
from lore.errors import EvaluationError
from lore.evals.cached import CachedEmbedder
from lore.evals.trials import Ask, Trial, trials_of
from lore.memory import Memory
from lore.records import Hit, ItemType

BUDGETS = (500, 1_500, 4_000)
"""Tokens of shown text at which the ways are compared."""

TOP = 10
_SHOWN, _WIDE = 60, 1_000_000
_MANY = 100_000

WAYS: dict[str, tuple[ItemType, ...]] = {
    "raw": ("message",),
    "both": ("message", "distillation", "fragment"),
    "digest": ("distillation", "fragment"),
}
"""What may be found: (a) messages, (b) these and what was made of them, (c) the latter alone."""

Report = Callable[[int, int], None]


class Shown(NamedTuple):
    """One thing that recall shows: its size, and the units that it is or tells."""

    tokens: int
    units: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What one question brought in one way."""

    half: int
    gold: frozenset[str]
    shown: tuple[Shown, ...]

    def at_top(self) -> float:
        """Return the share of the gold units among the first ten units shown."""
        units = list(dict.fromkeys(unit for one in self.shown for unit in one.units))
        return len(self.gold & set(units[:TOP])) / len(self.gold)

    def within(self, budget_tokens: int) -> float:
        """Return the share of the gold units that are shown within a budget."""
        units: set[str] = set()
        for one in self.shown:
            budget_tokens -= one.tokens
            if budget_tokens < 0:
                break
            units.update(one.units)
        return len(self.gold & units) / len(self.gold)


@dataclass(frozen=True, slots=True)
class SetResult:
    """The figures of one set: by way, and how large the digest is."""

    n: int
    raw_tokens: int
    digest_tokens: int
    found: dict[str, list[Found]]

    @property
    def share(self) -> float:
        """Return the size of the digest as a share of the raw tokens."""
        return self.digest_tokens / max(1, self.raw_tokens)

    def figures(self, way: str, half: int | None = None) -> dict[str, float]:
        """Return the figures of one way, over all questions or over one half of them."""
        chosen = [one for one in self.found[way] if half is None or one.half == half]
        if not chosen:
            return {}
        return {
            "r10": mean(one.at_top() for one in chosen),
            **{f"at_{b}": mean(one.within(b) for one in chosen) for b in BUDGETS},
        }


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of every set."""

    notice: str
    sets: dict[str, SetResult]

    def as_json(self) -> dict[str, object]:
        """Return the result under the names that programs read."""
        shown: dict[str, object] = {
            stem: {
                "n": found.n,
                "raw_tokens": found.raw_tokens,
                "digest_tokens": found.digest_tokens,
                "share": round(found.share, 4),
                **{way: _rounded(found.figures(way)) for way in WAYS},
                "halves": [
                    {way: _rounded(found.figures(way, half)) for way in WAYS} for half in (0, 1)
                ],
            }
            for stem, found in self.sets.items()
        }
        return {"sets": shown} | ({"notice": self.notice} if self.notice else {})

    def as_table(self) -> str:
        """Return the result as a table for people, in percent."""
        columns = ("R@10", *(f"@{budget}" for budget in BUDGETS))
        head = f"{'set':<34}{'n':>6}" + "".join(f"{name:>8}" for name in columns)
        lines = [head, "-" * len(head)]
        for stem, found in self.sets.items():
            lines.append(f"{stem:<34}{found.n:>6}  digest {100 * found.share:.1f} % of raw tokens")
            for way, label in _LABELS.items():
                lines.append(_line(label, found.figures(way)))
                halves = {half: found.figures(way, half) for half in (0, 1)}
                lines += [_line(f"      half {h + 1}", f) for h, f in halves.items() if f]
        lines.append("@500: share of the gold units within 500 tokens of shown text.")
        return "\n".join([*lines, self.notice] if self.notice else lines)


_LABELS = {
    "raw": "  (a) messages",
    "both": "  (b) messages and digest",
    "digest": "  (c) digest alone",
}


def _line(label: str, figures: dict[str, float]) -> str:
    return f"{label:<40}" + "".join(f"{100 * value:8.1f}" for value in figures.values())


def _rounded(figures: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in figures.items()}


def run(
    data: Path,
    *,
    sets: Sequence[str] = (),
    cache: Path | None = None,
    most_trials: int = _MANY,
    report: Report | None = None,
) -> Result:
    """Evaluate every file of conversations in a folder, or those whose names begin as given."""
    if not data.is_dir():
        msg = f"There is no folder {data}."
        raise EvaluationError(msg)
    files: dict[str, list[Trial]] = {}
    for path in sorted(data.glob("*.jsonl.gz")):
        if not sets or path.name.startswith(tuple(sets)):
            found = [trial for trial in trials_of(path, None) if trial.unit != "fragment"]
            if found:
                files[path.name.removesuffix(".jsonl.gz")] = found[:most_trials]
    if not files:
        msg = f"No file in {data} holds conversations under a name that is known."
        raise EvaluationError(msg, hint="Known: locomo*, beam-*, coding-queries*, long-session-*.")
    opened = open_embedder(replace(settings.load().settings, embed_threads=0))
    embedder = CachedEmbedder(opened.embedder, cache or _default_cache())
    total = sum(len(trial.asks) for found in files.values() for trial in found)
    done = 0
    results: dict[str, SetResult] = {}
    try:
        for stem, found in files.items():
            played = []
            for place, trial in enumerate(found):
                played.append(_play(trial, place, embedder))
                done += len(trial.asks)
                if report:
                    report(done, total)
            results[stem] = _joined(played)
    finally:
        embedder.close()
    return Result(opened.notice, results)


def _default_cache() -> Path:
    return Path(tempfile.gettempdir()) / "lore-eval-cache"


def _joined(played: Sequence[SetResult]) -> SetResult:
    return SetResult(
        n=sum(one.n for one in played),
        raw_tokens=sum(one.raw_tokens for one in played),
        digest_tokens=sum(one.digest_tokens for one in played),
        found={way: [found for one in played for found in one.found[way]] for way in WAYS},
    )


def _play(trial: Trial, place: int, embedder: CachedEmbedder) -> SetResult:
    """Fill a fresh memory and ask it, digest it offline and ask it twice more."""
    asks = [ask for ask in trial.asks if ask.category not in trial.apart] or list(trial.asks)
    with (
        tempfile.TemporaryDirectory(prefix="lore-eval-") as scratch,
        Memory.open(home=scratch, embedder=embedder) as memory,
    ):
        units = trial.fill(memory)
        memory.embed_waiting()
        embedder.embed([ask.text for ask in asks], query=True)
        found = {"raw": _ask_all(memory, trial, asks, place, units, WAYS["raw"])}
        raw_tokens = memory.stats().tokens
        memory.digest()
        for way in ("both", "digest"):
            found[way] = _ask_all(memory, trial, asks, place, units, WAYS[way])
        made = memory.stats().tokens - raw_tokens
    return SetResult(len(asks), raw_tokens, made, found)


def _ask_all(
    memory: Memory,
    trial: Trial,
    asks: Sequence[Ask],
    place: int,
    units: dict[str, str],
    types: tuple[ItemType, ...],
) -> list[Found]:
    """Ask everything; halves are of conversations, or of questions where there is only one."""
    show = _show_sessions if trial.unit == "session" else _show_messages
    return [
        Found(
            (number if trial.unit == "session" else place) % 2,
            ask.gold,
            tuple(show(memory, ask, units, types)),
        )
        for number, ask in enumerate(asks)
    ]


def _show_messages(
    memory: Memory, ask: Ask, units: dict[str, str], types: tuple[ItemType, ...]
) -> list[Shown]:
    answer = memory.recall(
        ask.text, limit=_SHOWN, budget_tokens=_WIDE, types=types, now=ask.now, log=False
    )
    return [Shown(hit.tokens, _units_of(hit, units)) for hit in answer.hits]


def _units_of(hit: Hit, units: dict[str, str]) -> tuple[str, ...]:
    """Return the units that a hit is, or that its shown lines tell; never all that it covers."""
    told = (hit.id,) if hit.type == "message" else hit.sources
    return tuple(dict.fromkeys(units[id_] for id_ in told if id_ in units))


def _show_sessions(
    memory: Memory, ask: Ask, units: dict[str, str], types: tuple[ItemType, ...]
) -> list[Shown]:
    found = memory.find_sessions(ask.text, limit=2 * TOP, now=ask.now, types=types)
    return [
        Shown(max(1, sum(one.tokens for one in hit.best)), (units[hit.session_id],))
        for hit in found
        if hit.session_id in units
    ]
