"""Train what an answer quotes: the pair model's odds and the ranking, by two small models.

    uv run --with scipy python benchmarks/train_quotations.py collect --data DATA \\
        --corpus SESSIONS --sets coding-qa-nimbus --questions 150 --out EXAMPLES
    uv run --with scipy python benchmarks/train_quotations.py fit EXAMPLES... [--write]

`collect` asks the questions as `Memory.ask` does and writes the hits with their features. `fit`
trains on half of the projects and conversations, prints the scores of the other half, and then
those of the sets that are never trained on (LoCoMo, BEAM) with the model of all.

The pair model was trained on the questions over coding sessions and conversations: it knows their
answers, and a fit to its odds there would trust it too much. Noise is therefore added to the odds
in training, set by set, until they tell evidence from other hits no better than on projects that
the pair model was trained without.
"""

from __future__ import annotations

import argparse
import json
import pickle
import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lore import settings
from lore.embed.pair_model import open_pair_model
from lore.evals.datasets import Query, RetrievalTask, open_scratch_memory, read_folder, units_of
from lore.evals.vector_cache import DiskCachedEmbedder, open_cached_embedder
from lore.memory import Memory
from lore.recall import cited_answer, quotations
from lore.recall.quotations import (
    ANSWER_NAMES,
    NAMES,
    READ_HITS,
    JudgedHit,
    QuotationModel,
)
from lore.records import Hit
from lore.records.answers import strength_of

Floats = NDArray[np.float64]

DATA = Path(__file__).parent.parent / "src" / "lore" / "data"

NEVER_TRAINED = ("locomo", "beam")
"""Sets for scoring only: their licences do not allow more."""

HELD_OUT_AUC = 0.85
"""How often evidence has higher odds than another near passage, on projects that a pair model was
trained without (`train_pairs.py --held-out`: 83, 85 and 87 %)."""

PENALTY, COPIES, REFUSED = 1.0, 3, 0.01
"""The penalty of weights, the noisy copies of each question, and the share of answerable questions
that may be refused."""

UNANSWERABLE_WEIGHT = 3.0
"""Questions without an answer count more: there are few of them."""


@dataclass(slots=True)
class Example:
    """A question: its hits in the order of the ranking, and which of them are evidence."""

    set: str
    group: str
    question: str
    answerable: bool
    hits: list[Hit]
    odds: Floats
    is_evidence: NDArray[np.bool_]
    ranking: float
    relevant: bool
    quoted_before: list[int]
    """Places of the hits that the ranking alone would quote."""


def collect(options: argparse.Namespace) -> None:
    """Ask questions, and write their hits."""
    reader = open_pair_model(settings.load().settings)
    if reader is None:
        msg = "The pair model is not at hand."
        raise SystemExit(msg)
    examples: list[Example] = []
    random.seed(3)
    with open_cached_embedder(options.cache) as (embedder, _):
        for folder in options.data:
            for stem, tasks in read_folder(folder, options.corpus, options.sets).items():
                for task in tasks:
                    queries = list(task.queries)
                    chosen = random.sample(queries, min(options.questions, len(queries)))
                    examples += ask_all(stem, task, chosen, embedder, reader)
                    print(stem, task.name, len(chosen), flush=True)
                    options.out.write_bytes(pickle.dumps(examples))


def ask_all(
    stem: str,
    task: RetrievalTask,
    queries: Sequence[Query],
    embedder: DiskCachedEmbedder,
    reader: quotations.PassageReader,
) -> list[Example]:
    """Return the examples of some questions of a task."""
    with open_scratch_memory(embedder) as memory:
        units = task.fill(memory)
        memory.maintenance.embed_waiting(judge=False)
        return [_example(stem, task, query, memory, units, reader) for query in queries]


def _example(
    stem: str,
    task: RetrievalTask,
    query: Query,
    memory: Memory,
    units: dict[str, str],
    reader: quotations.PassageReader,
) -> Example:
    answer = memory.recall(
        query.text, limit=READ_HITS, budget_tokens=10**6, recipe="learned", now=query.now, log=False
    )
    hits = list(answer.hits)
    gold = frozenset().union(*query.groups) if query.groups else frozenset()
    odds = quotations.read_passages(reader, query.text, [hit.text for hit in hits])
    quoted = cited_answer.select_quotable(hits) if answer.relevant else []
    is_answerable = bool(gold) and query.category not in task.separate_categories
    return Example(
        stem, f"{stem} {task.name}", query.text, is_answerable, hits, odds,
        np.array([bool(units_of(hit, units) & gold) for hit in hits], np.bool_),
        answer.confidence, answer.relevant, [hits.index(hit) for hit in quoted],
    )  # fmt: skip


# Fit


def fit(options: argparse.Namespace) -> None:
    """Train on half of the groups, score the other half, and train on all."""
    examples = [e for path in options.examples for e in _read(path) if e.hits]
    own = [e for e in examples if not e.set.startswith(NEVER_TRAINED)]
    apart = [e for e in examples if e.set.startswith(NEVER_TRAINED)]
    noise = {name: find_noise([e for e in own if e.set == name]) for name in {e.set for e in own}}
    print(f"AUC of the odds: trained on {auc(own):.3f}, never trained on {auc(apart):.3f};"
          f" noise {noise}")  # fmt: skip
    held: list[tuple[Example, list[int], float]] = []
    for half in (0, 1):
        learned = [e for e in own if _half(e) != half]
        models = train(learned, noise)
        held += [(e, *choose(models, e)) for e in own if _half(e) == half]
    for name in sorted({e.set for e in own}):
        show(f"{name}, left out", [one for one in held if one[0].set == name])
    show("all left out", held)
    models = train(own, noise)
    for name in sorted({e.set for e in apart}):
        show(name, [(e, *choose(models, e)) for e in apart if e.set == name])
    everything = [(e, *choose(models, e)) for e in apart]
    show("never trained on", everything)
    calibration("left out", held)
    calibration("never trained on", everything)
    chances = [chance for e, _, chance in held if e.answerable]
    none = float(np.quantile(chances, REFUSED))
    for name, some in (("left out", held), ("never trained on", everything)):
        refused = [chance < none for e, _, chance in some if e.answerable]
        recognised = [chance < none for e, _, chance in some if not e.answerable]
        before = [not e.relevant for e, _, _ in some if not e.answerable]
        print(f"{name}: none below {none:.3f}: {_share(refused)} of answerable refused,"
              f" {_share(recognised)} of {len(recognised)} without an answer recognised"
              f" (by the ranking {_share(before)})")  # fmt: skip
    if options.write:
        content = {
            "script": "benchmarks/train_quotations.py", "sets": sorted({e.set for e in own}),
            "features": NAMES, "hit": _round(models.hit), "answer_features": ANSWER_NAMES,
            "mean": _round(models.mean), "deviation": _round(models.deviation),
            "answer": _round(models.answer), "bias": round(models.bias, 5), "none": round(none, 4),
        }  # fmt: skip
        (DATA / "quotations.json").write_text(json.dumps(content, indent=1) + "\n")


def _round(values: Floats) -> list[float]:
    rounded: list[float] = np.round(values, 5).tolist()
    return rounded


def _read(path: Path) -> list[Example]:
    examples: list[Example] = pickle.loads(path.read_bytes())  # noqa: S301  # `collect` wrote it
    return examples


def train(examples: Sequence[Example], noise: Mapping[str, float]) -> QuotationModel:
    """Return the model of hits and of answers."""
    random_ = np.random.default_rng(11)
    noisy = [
        replace(e, odds=_noisy(e.odds, noise[e.set], random_))
        for _ in range(COPIES)
        for e in examples
    ]
    weights = _fit_softmax(
        [quotations.describe_hits(e.hits, e.odds) for e in noisy], [e.is_evidence for e in noisy]
    )
    unfitted = QuotationModel(weights, np.zeros(4), np.ones(4), np.zeros(4), 0.0, 0.0)
    rows, answered = [], []
    for example in noisy:
        quoted = select(unfitted, example)
        rows.append(quotations.describe_answer([one for _, one in quoted], example.ranking))
        answered.append(bool(example.is_evidence[[place for place, _ in quoted]].any()))
    share = np.array([1.0 if e.answerable else UNANSWERABLE_WEIGHT for e in noisy])
    matrix, right = np.array(rows), np.array(answered)
    mean, deviation = matrix.mean(axis=0), matrix.std(axis=0) + 1e-6
    beta = _fit_logistic((matrix - mean) / deviation, right, share)
    return QuotationModel(weights, mean, deviation, beta[:-1], float(beta[-1]), 0.0)


def choose(model: QuotationModel, example: Example) -> tuple[list[int], float]:
    """Return the places of the quoted hits, and the probability that one of them answers."""
    quoted = select(model, example)
    row = quotations.describe_answer([one for _, one in quoted], example.ranking)
    return [place for place, _ in quoted], model.probability(row)


def select(model: QuotationModel, example: Example) -> list[tuple[int, JudgedHit]]:
    """Return the hits that are quoted with their places, best first."""
    judged = quotations.weigh_hits(model, example.question, example.hits, example.odds)
    places = {id(hit): place for place, hit in enumerate(example.hits)}
    return [(places[id(one.hit)], one) for one in cited_answer.select_likely(judged)]


def _noisy(odds: Floats, noise: float, random_: np.random.Generator) -> Floats:
    return np.asarray(odds + noise * random_.standard_normal(len(odds)))


def auc(examples: Sequence[Example], noise: float = 0.0) -> float:
    """Return how often evidence has higher odds than another hit for the same question."""
    random_ = np.random.default_rng(5)
    shares = []
    for example in examples:
        odds, right = _noisy(example.odds, noise, random_), example.is_evidence
        if right.any() and not right.all():
            shares.append(np.mean(odds[right][:, None] > odds[~right][None, :]))
    return float(np.mean(shares)) if shares else 0.0


def find_noise(examples: Sequence[Example]) -> float:
    """Return the noise that makes the odds as good as on questions never trained on."""
    steps = np.arange(0, 8, 0.25)
    return float(next((one for one in steps if auc(examples, one) <= HELD_OUT_AUC), steps[-1]))


def _fit_softmax(matrices: Sequence[Floats], right: Sequence[NDArray[np.bool_]]) -> Floats:
    """Return weights by which the right rows of each matrix stand out."""
    pairs = [(matrix, mask) for matrix, mask in zip(matrices, right, strict=True) if mask.any()]

    def loss(beta: Floats) -> tuple[float, Floats]:
        value, slope = PENALTY * float(beta @ beta), 2 * PENALTY * beta
        for matrix, mask in pairs:
            shares = quotations.shares_of(matrix @ beta)
            among = shares * mask / (shares @ mask)
            value -= float(np.log(shares @ mask))
            slope = slope - matrix.T @ (among - shares)
        return value, slope

    start = np.zeros(len(NAMES))
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B").x)


def _fit_logistic(z: Floats, right: NDArray[np.bool_], share: Floats) -> Floats:
    def loss(beta: Floats) -> tuple[float, Floats]:
        p = 1 / (1 + np.exp(-(z @ beta[:-1] + beta[-1])))
        value = -(share * np.log(np.where(right, p, 1 - p) + 1e-12)).sum()
        slope = share * (p - right)
        return value + PENALTY * beta @ beta, np.append(z.T @ slope, slope.sum()) + 2 * beta

    start = np.zeros(z.shape[1] + 1)
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B").x)


# Scores


def show(name: str, some: Sequence[tuple[Example, list[int], float]]) -> None:
    """Print how often the first, and any, quotation is evidence, before and after."""
    asked = [(e, quoted) for e, quoted, _ in some if e.answerable]
    if not asked:
        return
    before = [e.is_evidence[e.quoted_before] for e, _ in asked]
    after = [e.is_evidence[quoted] for e, quoted in asked]
    print(f"{name:32} n={len(asked):4}  before: first {_first(before)} any {_any(before)}"
          f" quoted {np.mean([len(one) for one in before]):.1f}"
          f"   after: first {_first(after)} any {_any(after)}"
          f" quoted {np.mean([len(one) for one in after]):.1f}"
          f"   among {READ_HITS}: {_share([e.is_evidence.any() for e, _ in asked])}")  # fmt: skip


def calibration(name: str, some: Sequence[tuple[Example, list[int], float]]) -> None:
    """Print how often each word is right."""
    said: dict[str, list[bool]] = {}
    for example, quoted, chance in some:
        word = strength_of(chance)
        said.setdefault(word, []).append(bool(example.is_evidence[quoted].any()))
    words = ", ".join(f"{word} {_share(said[word])} of {len(said[word])}" for word in said)
    print(f"{name}: right when it says {words}")


def _first(some: Sequence[NDArray[np.bool_]]) -> str:
    return _share([bool(len(one)) and bool(one[0]) for one in some])


def _any(some: Sequence[NDArray[np.bool_]]) -> str:
    return _share([bool(one.any()) for one in some])


def _share(values: Sequence[object]) -> str:
    return f"{100 * float(np.mean(np.array(values, float))):.1f} %" if len(values) else "-"


def _half(example: Example) -> int:
    return zlib.crc32(example.group.encode()) % 2


def main() -> None:
    """Collect examples, or fit the models to them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    collecting = commands.add_parser("collect")
    collecting.add_argument("--data", type=Path, action="append", required=True)
    collecting.add_argument("--corpus", type=Path)
    collecting.add_argument("--sets", action="append", default=[])
    collecting.add_argument("--questions", type=int, default=150, help="most of each task")
    collecting.add_argument("--cache", type=Path)
    collecting.add_argument("--out", type=Path, required=True)
    collecting.set_defaults(run=collect)
    fitting = commands.add_parser("fit")
    fitting.add_argument("examples", type=Path, nargs="+")
    fitting.add_argument("--write", action="store_true")
    fitting.set_defaults(run=fit)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
