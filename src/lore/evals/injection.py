"""Injection evaluation: what prompts get unasked, and whether it is right.

Each project's sessions are captured and digested. Then its questions are submitted as prompts
(right is what shows their evidence), and prompts for which nothing is right: questions that its
sessions do not answer, and prompts of other projects and of daily life.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Literal

from lore import settings
from lore.context import prompt_text
from lore.embed import Embedder
from lore.errors import EvaluationError
from lore.evals.datasets import (
    UNANSWERABLE,
    Query,
    RetrievalTask,
    open_scratch_memory,
    read_tasks,
    units_of,
)
from lore.evals.vector_cache import open_cached_embedder
from lore.memory import Memory
from lore.records import PromptCandidate
from lore.text import tokens

Report = Callable[[int, int], None]
Kind = Literal["direct", "unanswerable", "unrelated"]

THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Probabilities for the curve; the setting is added to them."""

QUESTIONS = 200
"""Questions of a project that are asked, unless the caller says otherwise."""

DAILY = (
    "What should I cook for six people tonight?",
    "thanks, that works",
    "Can you explain how photosynthesis works?",
    "Write a short poem about autumn for my grandmother.",
    "How do I get a red wine stain out of a white shirt?",
    "let's take a break and continue tomorrow",
    "Which countries did the Danube flow through, again?",
    "Please translate 'good evening, everybody' into Portuguese.",
    "Is it better to stretch before or after running?",
    "How long does a parcel from Lisbon to Oslo usually take?",
    "what does idempotent mean?",
    "Give me three name ideas for a small bakery.",
)
"""Prompts of daily life: no project's memory has anything on them."""


@dataclass(frozen=True, slots=True)
class PromptResult:
    """What one prompt gets at one threshold: for each item whether it is right, and the tokens."""

    project: str
    kind: Kind
    right: tuple[bool, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Precision, recall and size of what some prompts get."""

    prompts: int
    precision: float
    """Share of the injected items that are right."""
    prompt_precision: float
    """Share of the prompts with an injection of which an item is right."""
    recall: float
    """Share of the direct questions that get what answers them."""
    unanswerable: float
    """Share of the questions without an answer that get anything."""
    unrelated: float
    """Share of the prompts on other matters that get anything."""
    items: int
    tokens: float
    """Tokens of an injection."""

    @classmethod
    def of(cls, results: Sequence[PromptResult]) -> Figures:
        """Summarize what prompts get."""
        injected = [one for one in results if one.right]
        items = [right for one in injected for right in one.right]

        def share(kind: Kind, *, right: bool) -> float:
            of_kind = [one for one in results if one.kind == kind]
            return _mean([any(one.right) if right else bool(one.right) for one in of_kind])

        return cls(
            prompts=len(results),
            precision=_mean(items),
            prompt_precision=_mean([any(one.right) for one in injected]),
            recall=share("direct", right=True),
            unanswerable=share("unanswerable", right=False),
            unrelated=share("unrelated", right=False),
            items=len(items),
            tokens=_mean([one.tokens for one in injected]),
        )

    def as_json(self) -> dict[str, float]:
        """Return the figures as JSON."""
        return {name: round(getattr(self, name), 4) for name in self.__slots__}

    def as_row(self, name: str) -> str:
        """Return the figures as a row of a table."""
        shares = (
            self.precision, self.prompt_precision, self.recall, self.unanswerable, self.unrelated
        )  # fmt: skip
        cells = "".join(f"{100 * share:>11.1f}%" for share in shares)
        return f"{name:<14}{self.prompts:>8}{cells}{self.items:>7}{self.tokens:>8.0f}"


def _mean(values: Sequence[float]) -> float:
    return mean(values) if values else 0.0


_HEAD = (
    f"{'':<14}{'prompts':>8}{'precision':>12}{'by prompt':>12}{'recall':>12}{'unanswered':>12}"
    f"{'unrelated':>12}{'items':>7}{'tokens':>8}"
)

_LEGEND = (
    "precision: right items of all that is injected; by prompt: prompts with a right item of those"
    " that get any;\nrecall: direct questions that get what answers them; unanswered, unrelated:"
    " questions without an answer\nand prompts on other matters that get anything. * the setting."
)


@dataclass(slots=True)
class Result:
    """The curve over thresholds, and the figures of each project at the setting."""

    threshold: float
    results: dict[float, list[PromptResult]] = field(default_factory=dict)
    samples: list[tuple[str, str]] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    notice: str = ""

    def figures(self, threshold: float, project: str = "") -> Figures:
        """Return the figures at a threshold, of all projects or one."""
        results = self.results.get(threshold, [])
        return Figures.of([one for one in results if not project or one.project == project])

    @property
    def projects(self) -> list[str]:
        """Return the projects in the order in which they were played."""
        return list(dict.fromkeys(one.project for one in self.results.get(self.threshold, [])))

    def as_json(self) -> dict[str, object]:
        """Return the result as JSON."""
        return {
            "threshold": self.threshold,
            "default": self.figures(self.threshold).as_json(),
            "curve": {f"{t:g}": self.figures(t).as_json() for t in sorted(self.results)},
            "projects": {
                name: self.figures(self.threshold, name).as_json() for name in self.projects
            },
            "cpu_ms": round(_mean(self.cpu_ms), 2),
            **({"notice": self.notice} if self.notice else {}),
        }

    def as_table(self) -> str:
        """Return the curve and the projects as tables."""
        lines = [_HEAD, "-" * len(_HEAD)]
        for threshold in sorted(self.results):
            mark = "*" if threshold == self.threshold else ""
            lines.append(self.figures(threshold).as_row(f"{threshold:g}{mark}"))
        lines += ["", f"at {self.threshold:g}, by project:"]
        lines += [self.figures(self.threshold, name).as_row(name) for name in self.projects]
        lines += [_LEGEND, f"A prompt takes {_mean(self.cpu_ms):.1f} ms of processor time."]
        return "\n".join([*lines, self.notice] if self.notice else lines)


def run(
    data: Path,
    *,
    corpus: Path | None = None,
    sets: Sequence[str] = (),
    questions: int = QUESTIONS,
    cache: Path | None = None,
    samples: int = 0,
    report: Report | None = None,
) -> Result:
    """Submit the questions of each project and prompts on other matters as prompts."""
    tasks = _read_tasks(data, corpus, sets)
    loaded = settings.load().settings
    result = Result(loaded.inject_threshold)
    with open_cached_embedder(cache) as (embedder, notice):
        result.notice = notice
        for place, task in enumerate(tasks):
            prompts = _prompts(task, tasks, questions)
            _play(task, prompts, embedder, result, loaded.inject_budget_tokens, samples)
            if report:
                report(place + 1, len(tasks))
    return result


def _read_tasks(data: Path, corpus: Path | None, sets: Sequence[str]) -> list[RetrievalTask]:
    paths = [
        path
        for path in sorted(data.glob("coding-qa*.jsonl.gz"))
        if not sets or path.name.startswith(tuple(sets))
    ]
    if not paths:
        msg = f"There is no file coding-qa*.jsonl.gz in {data}."
        raise EvaluationError(msg)
    return [task for path in paths for task in read_tasks(path, corpus)]


def _prompts(
    task: RetrievalTask, tasks: Sequence[RetrievalTask], most: int
) -> list[tuple[Kind, Query]]:
    """Return a fixed sample: questions with and without an answer, and unrelated prompts."""
    chance = random.Random(task.name)  # noqa: S311 - a fixed sample
    direct = [query for query in task.queries if query.category != UNANSWERABLE]
    none = [query for query in task.queries if query.category == UNANSWERABLE]
    others = [query.text for other in tasks if other.name != task.name for query in other.queries]
    foreign = [*DAILY, *chance.sample(others, min(len(others), most // 2))]
    return [
        *(("direct", query) for query in chance.sample(direct, min(len(direct), most))),
        *(("unanswerable", query) for query in none[:most]),
        *(("unrelated", Query(text, "unrelated", frozenset())) for text in foreign),
    ]


def _play(
    task: RetrievalTask,
    prompts: Sequence[tuple[Kind, Query]],
    embedder: Embedder,
    result: Result,
    budget_tokens: int,
    samples: int,
) -> None:
    """Fill a memory with a project, digest it, and submit prompts."""
    with open_scratch_memory(embedder) as memory:
        units = task.fill(memory)
        for session in memory.sessions(limit=10_000):
            memory.distill(session.id)
            memory.digest.curate(session.id)
        memory.maintenance.embed_waiting()
        for place, (kind, query) in enumerate(prompts):
            if place % _TIMED == 0:
                result.cpu_ms.append(_time(memory, query.text, result.threshold))
            candidates = memory.prompts.find_candidates(query.text)
            for threshold in sorted({*THRESHOLDS, result.threshold}):
                shown, text = _select(query.text, candidates, threshold, budget_tokens)
                right = tuple(
                    bool((units_of(one.hit, units) | _same(one, units)) & query.gold)
                    for one in shown
                )
                outcome = PromptResult(task.name, kind, right, tokens.count(text))
                result.results.setdefault(threshold, []).append(outcome)
                wanted = len(result.samples) < samples and len(result.samples) <= place // _TIMED
                if text and threshold == result.threshold and wanted:
                    result.samples.append((query.text, text))


_TIMED = 7
"""Every so many prompts one is timed, and one shown: those of a kind stand together."""


def _time(memory: Memory, prompt: str, threshold: float) -> float:
    """Return the milliseconds of processor time that a prompt takes."""
    before = time.process_time()
    memory.prompts.find_candidates(prompt, threshold=threshold)
    return 1_000 * (time.process_time() - before)


def _same(candidate: PromptCandidate, units: dict[str, str]) -> frozenset[str]:
    return frozenset(units[id_] for id_ in candidate.hit.same if id_ in units)


def _select(
    prompt: str, candidates: Sequence[PromptCandidate], threshold: float, budget_tokens: int
) -> tuple[list[PromptCandidate], str]:
    """Return what a prompt gets at a threshold, and its text."""
    passing = prompt_text.select_fits(prompt, candidates, threshold)
    short = {one.hit.id: one.hit.id[:13] for one in passing}
    worded = prompt_text.format_hits(
        [one.hit for one in passing], short, budget_tokens=budget_tokens
    )
    return [one for one in passing if one.hit.id in worded.ids], worded.text
