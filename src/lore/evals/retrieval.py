"""Retrieval: every evaluation file through the product's own capture and recall."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from lore import settings
from lore.embed import open_embedder
from lore.errors import EvaluationError
from lore.evals import baselines as rivals
from lore.evals.cached import CachedEmbedder
from lore.evals.scores import Outcome, Scores, score
from lore.evals.trials import Trial, trials_of
from lore.memory import Memory

Report = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Result:
    """The scores of every set, and of the baselines where they were asked for."""

    recipe: str
    notice: str
    sets: dict[str, Scores]
    baselines: dict[str, dict[str, Scores]]

    def as_json(self) -> dict[str, object]:
        """Return the result under the names that programs read."""
        shown: dict[str, object] = {
            "recipe": self.recipe,
            "sets": {name: scores.as_json() for name, scores in self.sets.items()},
        }
        if self.baselines:
            shown["baselines"] = {
                stem: {name: scores.as_json() for name, scores in found.items()}
                for stem, found in self.baselines.items()
            }
        if self.notice:
            shown["notice"] = self.notice
        return shown

    def as_table(self) -> str:
        """Return the result as a table for people, in percent."""
        head = f"{'set':<34}{'n':>6}" + "".join(f"{name:>7}" for name in _COLUMNS) + f"{'ms':>8}"
        lines = [head, "-" * len(head)]
        for stem, scores in self.sets.items():
            lines.append(_line(stem, scores))
            lines += [_line(f"  {name}", split) for name, split in scores.by_category.items()]
            rival_scores = self.baselines.get(stem, {})
            lines += [_line(f"  = {name}", rival) for name, rival in rival_scores.items()]
        if self.notice:
            lines.append(self.notice)
        lines.append("R+ is R@10 with the standing instructions at hand counted as found.")
        return "\n".join(lines)


_COLUMNS = {
    "R@5": "r5", "R@10": "r10", "R@20": "r20", "H@1": "h1", "H@5": "h5", "H@10": "h10",
    "MRR": "mrr", "R+": "r10_standing",
}  # fmt: skip


def _line(name: str, scores: Scores) -> str:
    figures = "".join(f"{100 * getattr(scores, field):7.1f}" for field in _COLUMNS.values())
    return f"{name:<34}{scores.n:>6}{figures}{scores.ms_p50:>8.1f}"


def run(
    data: Path,
    *,
    corpus: Path | None = None,
    recipe: str = "learned",
    baselines: bool = False,
    cache: Path | None = None,
    report: Report | None = None,
) -> Result:
    """Evaluate every file in a folder whose name is known."""
    if not data.is_dir():
        msg = f"There is no folder {data}."
        raise EvaluationError(msg)
    files = {
        path.name.removesuffix(".jsonl.gz"): found
        for path in sorted(data.glob("*.jsonl.gz"))
        if (found := trials_of(path, corpus))
    }
    if not files:
        msg = f"No file in {data} has a name that is known."
        raise EvaluationError(
            msg,
            hint="Known: locomo*, beam-*, coding-queries*, multihop-*, long-session-* (.jsonl.gz).",
        )
    config = replace(settings.load().settings, embed_threads=0)
    opened = open_embedder(config)
    embedder = CachedEmbedder(opened.embedder, cache or _default_cache())
    total = sum(len(trial.asks) for found in files.values() for trial in found)
    done = 0
    sets: dict[str, Scores] = {}
    rival_scores: dict[str, dict[str, Scores]] = {}
    try:
        for stem, found in files.items():
            outcomes: list[Outcome] = []
            for trial in found:
                outcomes += _play(trial, embedder, recipe)
                done += len(trial.asks)
                if report:
                    report(done, total)
            sets[stem] = score(outcomes, found[0].apart)
            if baselines:
                rival_scores[stem] = rivals.score_all(found, embedder)
    finally:
        embedder.close()
    return Result(recipe, opened.notice, sets, rival_scores)


def _default_cache() -> Path:
    return Path(tempfile.gettempdir()) / "lore-eval-cache"


def _play(trial: Trial, embedder: CachedEmbedder, recipe: str) -> list[Outcome]:
    """Fill a fresh memory and ask it everything."""
    with (
        tempfile.TemporaryDirectory(prefix="lore-eval-") as scratch,
        Memory.open(home=scratch, embedder=embedder) as memory,
    ):
        units = trial.fill(memory)
        memory.embed_waiting()
        embedder.embed([ask.text for ask in trial.asks], query=True)
        outcomes = []
        for ask in trial.asks:
            at_hand = frozenset(
                units[hit.id] for hit in memory.standing(question=ask.text) if hit.id in units
            )
            started = time.process_time()
            ranked = trial.rank(memory, ask, recipe, units)
            took_ms = (time.process_time() - started) * 1000
            outcomes.append(Outcome(ask.category, tuple(ranked), ask.gold, took_ms, at_hand))
    return outcomes
