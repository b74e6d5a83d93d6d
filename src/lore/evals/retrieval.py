"""Retrieval evaluation: run datasets through capture and recall, and score the ranks."""

from __future__ import annotations

import importlib.util
import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median

import numpy as np
from numpy.typing import NDArray

from lore.embed import Embedder
from lore.errors import EvaluationError
from lore.evals.datasets import (
    MAX_RANK,
    UNANSWERABLE,
    Query,
    RetrievalTask,
    Shown,
    open_scratch_memory,
    read_folder,
    units_of,
)
from lore.evals.vector_cache import DiskCachedEmbedder, open_cached_embedder
from lore.memory import Memory
from lore.text import words


@dataclass(frozen=True, slots=True)
class QueryOutcome:
    """The result of one query."""

    category: str
    ranked: tuple[Shown, ...]
    groups: tuple[frozenset[str], ...]
    took_ms: float
    at_hand: Shown = frozenset()
    in_budget: Shown = frozenset()
    refused: bool = False
    cluster: str = ""

    def recall(self, k: int) -> float:
        """Return the share of the needed units among the first k hits."""
        return self._share(frozenset().union(*self.ranked[:k]))

    def recall_with_standing(self, k: int) -> float:
        """Return the same with standing instructions counted as found: prompts contain them."""
        return self._share(self.at_hand.union(*self.ranked[:k]))

    def recall_in_budget(self) -> float:
        """Return the share of the needed units that the default answer shows."""
        return self._share(self.in_budget)

    def hit(self, k: int) -> float:
        """Return 1 if any needed unit is among the first k hits."""
        return float(self.recall(k) > 0)

    def reciprocal_rank(self) -> float:
        """Return 1 / rank of the first needed unit, 0 if there is none."""
        for rank, shown in enumerate(self.ranked, 1):
            if self._share(shown):
                return 1 / rank
        return 0.0

    def _share(self, shown: Shown) -> float:
        return sum(bool(group & shown) for group in self.groups) / max(1, len(self.groups))


Interval = tuple[float, float]
"""The lower and the upper end of a 95 % confidence interval."""

_SAMPLED: dict[str, Callable[[QueryOutcome], float]] = {
    "r1": lambda outcome: outcome.recall(1),
    "r5": lambda outcome: outcome.recall(5),
    "r10": lambda outcome: outcome.recall(10),
    "evidence_at_budget": QueryOutcome.recall_in_budget,
}
"""The scores that have an interval."""

_RESAMPLES, _SEED = 2_000, 20_261_117
"""Samples of a bootstrap, and the seed that makes its output the same in every run."""


def bootstrap(outcomes: Sequence[QueryOutcome]) -> dict[str, Interval]:
    """Return 95 % percentile intervals of mean scores, with whole clusters resampled.

    Queries are resampled one by one if all have the same cluster.
    """
    clusters = [outcome.cluster or f"query {place}" for place, outcome in enumerate(outcomes)]
    names, cluster_of = np.unique(clusters, return_inverse=True)
    if len(names) == 1:
        cluster_of = np.arange(len(outcomes))
    values = np.array([[score(outcome) for score in _SAMPLED.values()] for outcome in outcomes])
    sizes = np.bincount(cluster_of)
    sums = np.zeros((len(sizes), len(_SAMPLED)))
    np.add.at(sums, cluster_of, values)
    random = np.random.default_rng(_SEED)
    draws = random.multinomial(len(sizes), np.full(len(sizes), 1 / len(sizes)), _RESAMPLES)
    means = (draws @ sums) / (draws @ sizes)[:, None]
    ends = np.percentile(means, (2.5, 97.5), axis=0).T
    return {
        name: (float(low), float(high)) for name, (low, high) in zip(_SAMPLED, ends, strict=True)
    }


@dataclass(frozen=True, slots=True)
class Scores:
    """Mean scores of some queries."""

    n: int
    r1: float
    r5: float
    r10: float
    r20: float
    h1: float
    h5: float
    h10: float
    mrr: float
    ms_p50: float
    r10_standing: float
    in_budget: float
    refused: float
    intervals: dict[str, Interval] = field(default_factory=dict)
    by_category: dict[str, Scores] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """Return the scores as JSON."""
        values: dict[str, object] = {
            "n": self.n,
            **{name: round(getattr(self, name), 4) for name in
               ("r1", "r5", "r10", "r20", "h1", "h5", "h10", "mrr", "r10_standing")},
            "evidence_at_budget": round(self.in_budget, 4),
            "answerable_refused": round(self.refused, 4),
            "intervals": {
                name: [round(low, 4), round(high, 4)]
                for name, (low, high) in self.intervals.items()
            },
        }  # fmt: skip
        if UNANSWERABLE in self.by_category:
            recognised = self.by_category[UNANSWERABLE].refused
            values["unanswerable_recognised"] = round(recognised, 4)
        if self.by_category:
            values["by_category"] = {k: v.as_json() for k, v in self.by_category.items()}
        values["ms_p50"] = round(self.ms_p50, 2)
        return values


def score_outcomes(outcomes: Sequence[QueryOutcome], apart: frozenset[str] = frozenset()) -> Scores:
    """Average outcomes; separate categories are not part of the total."""
    counted = [o for o in outcomes if o.category not in apart] or list(outcomes)
    categories = sorted({o.category for o in outcomes})
    split = {name: _means([o for o in outcomes if o.category == name]) for name in categories}
    return _means(counted, split)


def _means(outcomes: Sequence[QueryOutcome], split: dict[str, Scores] | None = None) -> Scores:
    if not outcomes:
        return Scores(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    return Scores(
        n=len(outcomes),
        r1=mean(o.recall(1) for o in outcomes),
        r5=mean(o.recall(5) for o in outcomes),
        r10=mean(o.recall(10) for o in outcomes),
        r20=mean(o.recall(20) for o in outcomes),
        h1=mean(o.hit(1) for o in outcomes),
        h5=mean(o.hit(5) for o in outcomes),
        h10=mean(o.hit(10) for o in outcomes),
        mrr=mean(o.reciprocal_rank() for o in outcomes),
        ms_p50=median(o.took_ms for o in outcomes),
        r10_standing=mean(o.recall_with_standing(10) for o in outcomes),
        in_budget=mean(o.recall_in_budget() for o in outcomes),
        refused=mean(o.refused for o in outcomes),
        intervals=bootstrap(outcomes),
        by_category=split or {},
    )


_K1, _B = 1.2, 0.75
_RRF_K = 60

Ranker = Callable[[Query], list[int]]
Vector = NDArray[np.float32]


def run_baselines(
    trials: Sequence[RetrievalTask], embedder: Embedder
) -> dict[str, list[QueryOutcome]]:
    """Run all queries through every baseline whose package is installed."""
    makers: dict[str, Callable[[RetrievalTask, Embedder], Ranker]] = {"bm25": _bm25}
    if embedder.dimension:
        makers |= {"cosine": _cosine, "rrf60": _rrf}
        if importlib.util.find_spec("chromadb"):
            makers["chroma"] = _chroma
        if importlib.util.find_spec("mem0"):
            makers["mem0"] = _mem0
    if any(ask.now for trial in trials for ask in trial.queries):
        makers["latest"] = _latest
        if embedder.dimension:
            makers["rrf60+date"] = _rrf_with_date
    return {
        name: [outcome for trial in trials for outcome in run_ranker(trial, make(trial, embedder))]
        for name, make in makers.items()
    }


def run_ranker(trial: RetrievalTask, rank: Ranker) -> list[QueryOutcome]:
    """Run all queries through a function that ranks documents."""
    outcomes = []
    for ask in trial.queries:
        started = time.process_time()
        places = rank(ask)
        units = dict.fromkeys(trial.documents[place].unit for place in places)
        ranked = tuple(frozenset({unit}) for unit in units)[:MAX_RANK]
        took_ms = (time.process_time() - started) * 1000
        outcomes.append(
            QueryOutcome(ask.category, ranked, ask.groups, took_ms, cluster=ask.cluster)
        )
    return outcomes


def _bm25(trial: RetrievalTask, _embedder: Embedder) -> Ranker:
    """Rank by BM25 over each text, without stop words."""
    counts = [Counter(words.split(doc.text)) for doc in trial.documents]
    lengths = np.array([sum(count.values()) for count in counts], np.float64)
    average = lengths.mean() or 1.0
    postings: dict[str, list[tuple[int, int]]] = {}
    for place, count in enumerate(counts):
        for word, times in count.items():
            postings.setdefault(word, []).append((place, times))

    def rank(ask: Query) -> list[int]:
        total = np.zeros(len(counts))
        for word in words.search_terms(ask.text):
            matches = postings.get(word, [])
            if not matches:
                continue
            weight = math.log(1 + (len(counts) - len(matches) + 0.5) / (len(matches) + 0.5))
            for place, times in matches:
                norm = _K1 * (1 - _B + _B * lengths[place] / average)
                total[place] += weight * times * (_K1 + 1) / (times + norm)
        order = np.argsort(-total, kind="stable")
        return [int(place) for place in order[: 40 * MAX_RANK] if total[place] > 0]

    return rank


def _vectors(trial: RetrievalTask, embedder: Embedder) -> Vector:
    return embedder.embed([doc.text for doc in trial.documents])


def _cosine(trial: RetrievalTask, embedder: Embedder) -> Ranker:
    matrix = _vectors(trial, embedder)

    def rank(ask: Query) -> list[int]:
        query = embedder.embed([ask.text], query=True)[0]
        return [
            int(place) for place in np.argsort(-(matrix @ query), kind="stable")[: 40 * MAX_RANK]
        ]

    return rank


def _latest(trial: RetrievalTask, _embedder: Embedder) -> Ranker:
    """Rank by date alone: the unit that was last active before the query's date comes first."""
    by_time = sorted(
        ((doc.at, place) for place, doc in enumerate(trial.documents) if doc.at), reverse=True
    )

    def rank(ask: Query) -> list[int]:
        return [place for at, place in by_time if ask.now and at <= ask.now]

    return rank


def _rrf(trial: RetrievalTask, embedder: Embedder) -> Ranker:
    return _fuse(_bm25(trial, embedder), _cosine(trial, embedder))


def _rrf_with_date(trial: RetrievalTask, embedder: Embedder) -> Ranker:
    """Fuse the ranks of units by words, by meaning and by date."""
    first: dict[str, int] = {}
    for place, doc in enumerate(trial.documents):
        first.setdefault(doc.unit, place)

    def rank_units(arm: Ranker) -> Ranker:
        return lambda ask: list(
            dict.fromkeys(first[trial.documents[place].unit] for place in arm(ask))
        )

    return _fuse(*(rank_units(make(trial, embedder)) for make in (_bm25, _cosine, _latest)))


def _fuse(*arms: Ranker) -> Ranker:
    def rank(ask: Query) -> list[int]:
        total: Counter[int] = Counter()
        for arm in arms:
            for place, doc in enumerate(arm(ask)[:200], 1):
                total[doc] += 1 / (_RRF_K + place)  # type: ignore[assignment]  # scores, not counts
        return [doc for doc, _ in total.most_common()]

    return rank


def _chroma(trial: RetrievalTask, embedder: Embedder) -> Ranker:
    import chromadb
    from chromadb.config import Settings

    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    name = f"lore-{abs(hash(trial.name))}"
    collection = client.create_collection(name, metadata={"hnsw:space": "cosine"})
    matrix = _vectors(trial, embedder)
    for start in range(0, len(matrix), 2_000):
        part = range(start, min(start + 2_000, len(matrix)))
        collection.add(
            ids=[str(i) for i in part], embeddings=matrix[part.start : part.stop].tolist()
        )

    def rank(ask: Query) -> list[int]:
        query = embedder.embed([ask.text], query=True)[0]
        response = collection.query(
            query_embeddings=[query.tolist()], n_results=min(200, len(matrix))
        )
        return [int(id_) for id_ in response["ids"][0]]

    return rank


def _mem0(trial: RetrievalTask, embedder: Embedder) -> Ranker:
    """Rank by mem0's local vector store as its `Memory` calls it, without a model."""

    from mem0.vector_stores.faiss import FAISS

    matrix = _vectors(trial, embedder)
    store = FAISS(
        collection_name="lore",
        path=tempfile.mkdtemp(prefix="lore-mem0-"),
        embedding_model_dims=embedder.dimension,
        distance_strategy="cosine",
    )
    store.insert(
        vectors=matrix.tolist(),
        payloads=[{"data": doc.text} for doc in trial.documents],
        ids=[str(place) for place in range(len(matrix))],
    )

    def rank(ask: Query) -> list[int]:
        query = embedder.embed([ask.text], query=True)[0]
        hits = store.search(query=ask.text, vectors=query.tolist(), limit=min(200, len(matrix)))
        return [int(hit.id) for hit in hits]

    return rank


Report = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Result:
    """The scores of every dataset, and of the baselines if requested."""

    recipe: str
    notice: str
    sets: dict[str, Scores]
    baselines: dict[str, dict[str, Scores]]

    def as_json(self) -> dict[str, object]:
        """Return the result as JSON."""
        shown: dict[str, object] = {
            "recipe": self.recipe,
            "sets": {name: scores.as_json() for name, scores in self.sets.items()},
        }
        if self.baselines:
            shown["baselines"] = {
                stem: {name: scores.as_json() for name, scores in baseline_scores.items()}
                for stem, baseline_scores in self.baselines.items()
            }
        if self.notice:
            shown["notice"] = self.notice
        return shown

    def as_table(self) -> str:
        """Return the result as a table in percent."""
        head = f"{'set':<34}{'n':>6}" + "".join(f"{name:>8}" for name in _COLUMNS) + f"{'ms':>8}"
        lines = [head, "-" * len(head)]
        for stem, scores in self.sets.items():
            lines.append(_line(stem, scores))
            lines += [_line(f"  {name}", split) for name, split in scores.by_category.items()]
            rival_scores = self.baselines.get(stem, {})
            lines += [_line(f"  = {name}", rival) for name, rival in rival_scores.items()]
        if self.notice:
            lines.append(self.notice)
        lines += [
            "R+ is R@10 with the standing instructions at hand counted as found; budget: the",
            "evidence is in the default answer; none: the answer says that nothing answers.",
            "",
            self.as_table_of_intervals(),
        ]
        return "\n".join(lines)

    def as_table_of_intervals(self) -> str:
        """Return recall and its intervals as a table in percent."""
        head = f"{'95 % intervals':<34}{'n':>6}" + "".join(f"{name:>22}" for name in _INTERVALS)
        lines = [head, "-" * len(head)]
        for stem, scores in self.sets.items():
            lines.append(_interval_line(stem, scores))
            lines += [_interval_line(f"  {name}", one) for name, one in scores.by_category.items()]
            lines += [
                _interval_line(f"  = {name}", one, budget=False)
                for name, one in self.baselines.get(stem, {}).items()
            ]
        lines.append("Bootstrap; questions that the same session answers are resampled together.")
        return "\n".join(lines)


_COLUMNS = {
    "R@1": "r1", "R@5": "r5", "R@10": "r10", "R@20": "r20", "H@1": "h1", "H@5": "h5", "H@10": "h10",
    "MRR": "mrr", "R+": "r10_standing", "budget": "in_budget", "none": "refused",
}  # fmt: skip


def _line(name: str, scores: Scores) -> str:
    figures = "".join(f"{100 * getattr(scores, field):8.1f}" for field in _COLUMNS.values())
    return f"{name:<34}{scores.n:>6}{figures}{scores.ms_p50:>8.1f}"


_INTERVALS = {
    "R@1": ("r1", "r1"), "R@5": ("r5", "r5"), "R@10": ("r10", "r10"),
    "budget": ("in_budget", "evidence_at_budget"),
}  # fmt: skip
"""The columns of intervals: the score, and the name of its interval."""


def _interval_line(name: str, scores: Scores, *, budget: bool = True) -> str:
    """Return a line of the table of intervals; baselines have no answer of a default size."""
    figures = ""
    for score, interval in _INTERVALS.values():
        if budget or score != "in_budget":
            low, high = scores.intervals.get(interval, (0.0, 0.0))
            text = f"{100 * getattr(scores, score):.1f} ({100 * low:.1f} to {100 * high:.1f})"
            figures += f"{text:>22}"
    return f"{name:<34}{scores.n:>6}{figures}"


@dataclass(frozen=True, slots=True)
class SetOutcomes:
    """The outcomes of one dataset: Lore's, and those of each baseline."""

    lore: list[QueryOutcome]
    baselines: dict[str, list[QueryOutcome]]
    separate_categories: frozenset[str]


POOLED = "coding-qa"
"""Files whose names start with this are also scored together, as the set `coding-qa*`."""


def score_sets(recipe: str, notice: str, sets: Mapping[str, SetOutcomes]) -> Result:
    """Score each dataset, and all questions over coding sessions together."""
    pooled = [one for stem, one in sets.items() if stem.startswith(POOLED)]
    if len(pooled) > 1:
        everything = SetOutcomes(
            [outcome for one in pooled for outcome in one.lore],
            {
                name: [outcome for one in pooled for outcome in one.baselines[name]]
                for name in pooled[0].baselines
                if all(name in one.baselines for one in pooled)
            },
            pooled[0].separate_categories,
        )
        sets = {**sets, f"{POOLED}*": everything}
    return Result(
        recipe,
        notice,
        {stem: score_outcomes(one.lore, one.separate_categories) for stem, one in sets.items()},
        {
            stem: {
                name: score_outcomes(outcomes, one.separate_categories)
                for name, outcomes in one.baselines.items()
            }
            for stem, one in sets.items()
            if one.baselines
        },
    )


def run(  # noqa: PLR0913 - one for each option of the command
    data: Path,
    *,
    corpus: Path | None = None,
    sets: Sequence[str] = (),
    recipe: str = "learned",
    baselines: bool = False,
    cache: Path | None = None,
    store: str = "",
    vectors: str = "",
    report: Report | None = None,
) -> Result:
    """Evaluate every file in a folder whose name is known, or those whose names start with sets."""
    files = read_known_files(data, corpus, sets)
    total = sum(len(trial.queries) for tasks in files.values() for trial in tasks)
    done = 0
    outcomes: dict[str, SetOutcomes] = {}
    with open_cached_embedder(cache) as (embedder, notice):
        for stem, tasks in files.items():
            own: list[QueryOutcome] = []
            for trial in tasks:
                own += run_task(trial, embedder, recipe, store=store, vectors=vectors)
                done += len(trial.queries)
                if report:
                    report(done, total)
            others = run_baselines(tasks, embedder) if baselines else {}
            outcomes[stem] = SetOutcomes(own, others, tasks[0].separate_categories)
    return score_sets(recipe, notice, outcomes)


def read_known_files(
    data: Path, corpus: Path | None, sets: Sequence[str]
) -> dict[str, list[RetrievalTask]]:
    """Return the tasks of each file, and fail if there is none."""
    files = read_folder(data, corpus, sets)
    if not files:
        msg = f"No file in {data} has a name that is known."
        raise EvaluationError(
            msg,
            hint="Known: locomo*, chats*, beam-*, coding-qa*, coding-queries*, multihop-*,"
            " long-session-* (.jsonl.gz).",
        )
    return files


def run_task(
    trial: RetrievalTask,
    embedder: DiskCachedEmbedder,
    recipe: str,
    *,
    store: str = "",
    vectors: str = "",
) -> list[QueryOutcome]:
    """Fill a fresh memory with the documents of a task, and run all queries."""
    with open_scratch_memory(embedder, store=store, vectors=vectors) as memory:
        units = trial.fill(memory)
        memory.maintenance.embed_waiting()
        embedder.embed([ask.text for ask in trial.queries], query=True)
        outcomes = []
        for ask in trial.queries:
            at_hand = frozenset(
                units[hit.id]
                for hit in memory.search.standing_instructions(question=ask.text)
                if hit.id in units
            )
            started = time.process_time()
            ranked = trial.rank(memory, ask, recipe, units)
            took_ms = (time.process_time() - started) * 1000
            in_budget, refused = _default_answer(memory, ask, recipe, units, trial.unit)
            outcomes.append(
                QueryOutcome(
                    ask.category,
                    tuple(ranked),
                    ask.groups,
                    took_ms,
                    at_hand,
                    in_budget,
                    refused,
                    ask.cluster,
                )
            )
    return outcomes


def _default_answer(
    memory: Memory, ask: Query, recipe: str, units: dict[str, str], unit: str
) -> tuple[Shown, bool]:
    """Return what the default answer shows, and whether it says that nothing answers."""
    if unit != "message":
        return frozenset(), False
    answer = memory.recall(ask.text, recipe=recipe, now=ask.now, log=False)
    shown: Shown = frozenset().union(*(units_of(hit, units) for hit in answer.hits))
    return shown, not answer.relevant
