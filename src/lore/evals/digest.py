"""Digest evaluation: recall over messages, over messages and digest, and over the digest alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from lore.errors import EvaluationError
from lore.evals.datasets import Query, RetrievalTask, open_scratch_memory, read_folder
from lore.evals.vector_cache import DiskCachedEmbedder, open_cached_embedder
from lore.memory import Memory
from lore.records import Hit, ItemType

BUDGETS = (500, 1_500, 4_000)
"""Token budgets at which the variants are compared."""

TOP = 10
_MAX_HITS, _UNLIMITED_TOKENS = 60, 1_000_000

VARIANTS: dict[str, tuple[ItemType, ...]] = {
    "raw": ("message",),
    "both": ("message", "distillation", "fragment"),
    "digest": ("distillation", "fragment"),
}
"""The item types of each variant: (a) messages, (b) messages and digest, (c) digest alone."""

Report = Callable[[int, int], None]


class ShownItem(NamedTuple):
    """One item that recall shows: its size, and the units that it covers."""

    tokens: int
    units: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of one query in one variant."""

    half: int
    gold: frozenset[str]
    shown: tuple[ShownItem, ...]

    def at_top(self) -> float:
        """Return the share of the gold units among the first ten units."""
        units = list(dict.fromkeys(unit for one in self.shown for unit in one.units))
        return len(self.gold & set(units[:TOP])) / len(self.gold)

    def within(self, budget_tokens: int) -> float:
        """Return the share of the gold units within a token budget."""
        units: set[str] = set()
        for one in self.shown:
            budget_tokens -= one.tokens
            if budget_tokens < 0:
                break
            units.update(one.units)
        return len(self.gold & units) / len(self.gold)


@dataclass(frozen=True, slots=True)
class SetResult:
    """The results of one dataset by variant, and the size of the digest."""

    n: int
    raw_tokens: int
    digest_tokens: int
    results: dict[str, list[QueryResult]]

    @property
    def share(self) -> float:
        """Return the size of the digest as a share of the raw tokens."""
        return self.digest_tokens / max(1, self.raw_tokens)

    def figures(self, way: str, half: int | None = None) -> dict[str, float]:
        """Return the figures of one variant, over all queries or one half of them."""
        chosen = [one for one in self.results[way] if half is None or one.half == half]
        if not chosen:
            return {}
        return {
            "r10": mean(one.at_top() for one in chosen),
            **{f"at_{b}": mean(one.within(b) for one in chosen) for b in BUDGETS},
        }


@dataclass(frozen=True, slots=True)
class Result:
    """The results of every dataset."""

    notice: str
    sets: dict[str, SetResult]

    def as_json(self) -> dict[str, object]:
        """Return the result as JSON."""
        shown: dict[str, object] = {
            stem: {
                "n": result.n,
                "raw_tokens": result.raw_tokens,
                "digest_tokens": result.digest_tokens,
                "share": round(result.share, 4),
                **{way: _rounded(result.figures(way)) for way in VARIANTS},
                "halves": [
                    {way: _rounded(result.figures(way, half)) for way in VARIANTS}
                    for half in (0, 1)
                ],
            }
            for stem, result in self.sets.items()
        }
        return {"sets": shown} | ({"notice": self.notice} if self.notice else {})

    def as_table(self) -> str:
        """Return the result as a table in percent."""
        columns = ("R@10", *(f"@{budget}" for budget in BUDGETS))
        head = f"{'set':<34}{'n':>6}" + "".join(f"{name:>8}" for name in columns)
        lines = [head, "-" * len(head)]
        for stem, result in self.sets.items():
            lines.append(
                f"{stem:<34}{result.n:>6}  digest {100 * result.share:.1f} % of raw tokens"
            )
            for way, label in _LABELS.items():
                lines.append(_line(label, result.figures(way)))
                halves = {half: result.figures(way, half) for half in (0, 1)}
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
    report: Report | None = None,
) -> Result:
    """Evaluate every conversation dataset in a folder, or those whose names start as in `sets`."""
    files = {
        stem: conversations
        for stem, tasks in read_folder(data, prefixes=sets).items()
        if (conversations := [trial for trial in tasks if trial.unit != "fragment"])
    }
    if not files:
        msg = f"No file in {data} holds conversations under a name that is known."
        raise EvaluationError(msg, hint="Known: locomo*, beam-*, coding-queries*, long-session-*.")
    total = sum(len(trial.queries) for tasks in files.values() for trial in tasks)
    done = 0
    results: dict[str, SetResult] = {}
    with open_cached_embedder(cache) as (embedder, notice):
        for stem, tasks in files.items():
            played = []
            for place, trial in enumerate(tasks):
                played.append(_run_task(trial, place, embedder))
                done += len(trial.queries)
                if report:
                    report(done, total)
            results[stem] = _combine(played)
    return Result(notice, results)


def _combine(played: Sequence[SetResult]) -> SetResult:
    return SetResult(
        n=sum(one.n for one in played),
        raw_tokens=sum(one.raw_tokens for one in played),
        digest_tokens=sum(one.digest_tokens for one in played),
        results={
            way: [result for one in played for result in one.results[way]] for way in VARIANTS
        },
    )


def _run_task(trial: RetrievalTask, place: int, embedder: DiskCachedEmbedder) -> SetResult:
    """Fill a fresh memory, query it, digest it offline, and query it twice more."""
    asks = [ask for ask in trial.queries if ask.category not in trial.separate_categories] or list(
        trial.queries
    )
    with open_scratch_memory(embedder) as memory:
        units = trial.fill(memory)
        memory.maintenance.embed_waiting()
        embedder.embed([ask.text for ask in asks], query=True)
        results = {"raw": _ask_all(memory, trial, asks, place, units, VARIANTS["raw"])}
        raw_tokens = memory.maintenance.stats().tokens
        memory.digest()
        for way in ("both", "digest"):
            results[way] = _ask_all(memory, trial, asks, place, units, VARIANTS[way])
        digest_tokens = memory.maintenance.stats().tokens - raw_tokens
    return SetResult(len(asks), raw_tokens, digest_tokens, results)


def _ask_all(
    memory: Memory,
    trial: RetrievalTask,
    asks: Sequence[Query],
    place: int,
    units: dict[str, str],
    types: tuple[ItemType, ...],
) -> list[QueryResult]:
    """Run all queries; halves are of conversations, or of the queries of a single one."""
    show = _show_sessions if trial.unit == "session" else _show_messages
    return [
        QueryResult(
            (number if trial.unit == "session" else place) % 2,
            ask.gold,
            tuple(show(memory, ask, units, types)),
        )
        for number, ask in enumerate(asks)
    ]


def _show_messages(
    memory: Memory, ask: Query, units: dict[str, str], types: tuple[ItemType, ...]
) -> list[ShownItem]:
    answer = memory.recall(
        ask.text,
        limit=_MAX_HITS,
        budget_tokens=_UNLIMITED_TOKENS,
        types=types,
        now=ask.now,
        log=False,
    )
    return [ShownItem(hit.tokens, _units_of(hit, units)) for hit in answer.hits]


def _units_of(hit: Hit, units: dict[str, str]) -> tuple[str, ...]:
    """Return the units that a hit is or whose lines it shows, not all that it covers."""
    ids = (hit.id,) if hit.type == "message" else hit.sources
    return tuple(dict.fromkeys(units[id_] for id_ in ids if id_ in units))


def _show_sessions(
    memory: Memory, ask: Query, units: dict[str, str], types: tuple[ItemType, ...]
) -> list[ShownItem]:
    hits = memory.search.find_sessions(ask.text, limit=2 * TOP, now=ask.now, types=types)
    return [
        ShownItem(max(1, sum(one.tokens for one in hit.best)), (units[hit.session_id],))
        for hit in hits
        if hit.session_id in units
    ]
