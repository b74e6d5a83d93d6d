"""Train the ranking of recall, of sessions and of deep search.

    uv run --with scipy python benchmarks/train_recall.py ranking --data DATA --corpus SESSIONS \\
        --data benchmarks/data --vectors OUT --write

Runs the data through the product's own capture and recall, and splits by project and
conversation: what is printed was never seen in training. `--vectors` holds what
`train_encoder.py --folds` wrote: vectors by encoders that were not trained on the project.
LoCoMo, BEAM and the long session are scored and not trained on. `--json` writes the held-out scores
in the form of `lore eval retrieval --json`. Needs scipy.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pickle
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lore import settings
from lore.embed import Embedder, open_embedder
from lore.evals.datasets import (
    MAX_RANK,
    UNDATED,
    Query,
    RetrievalTask,
    open_scratch_memory,
    read_tasks,
)
from lore.evals.retrieval import QueryOutcome, SetOutcomes, score_sets
from lore.evals.vector_cache import DiskCachedEmbedder
from lore.memory import Memory
from lore.recall import confidence, features, search
from lore.recall.candidates import Bounds, gather
from lore.recall.fusion import CLIPPED, load_ranking
from lore.recall.question import parse
from lore.recall.ranking import describe, embed_question, rank
from lore.store import items, sessions
from lore.store.fragments import FragmentFilter

Floats = NDArray[np.float64]

HIDDEN, PENALTY, FOLDS = 24, 3.0, 5

LEFT_OUT = (
    "one", "keyword_rank", "latest_if_now", "in_time", "covered_if_few", "cosine_if_few",
)  # fmt: skip
"""Features that bring nothing, and those that the data has too rarely to learn from: they belong
to the policy above the model."""

BY_VECTORS = (
    "cosine", "cosine_z", "cosine_before", "cosine_before_that", "cosine_beside", "cosine_rank",
    "cosine_top", "session_cosine",
)  # fmt: skip
"""Features that a memory without an encoder lacks."""

LOGS_ONLY = features.LOG_FEATURES
"""Features of distillations, which have a model of their own."""

DATA = Path(__file__).parent.parent / "src" / "lore" / "data"


@dataclass(frozen=True, slots=True)
class Example:
    """One question: candidates with their units and features, and the right units.

    Of each group of units one is needed.
    """

    set: str
    group: str
    category: str
    units: list[str]
    matrix: Floats
    groups: tuple[frozenset[str], ...]

    @property
    def gold(self) -> frozenset[str]:
        """Return all right units."""
        return frozenset().union(*self.groups)


@dataclass(frozen=True, slots=True)
class Table:
    """Examples with the names of their features."""

    names: tuple[str, ...]
    examples: list[Example]


def main() -> None:
    """Train, print held-out figures, and write the coefficients if asked to."""
    options = _options()
    opened = open_embedder(replace(settings.load().settings, embed_threads=0))
    embedder: Embedder = DiskCachedEmbedder(opened.embedder, options.cache)
    if options.vectors:
        embedder = HeldOutEmbedder(embedder, options.vectors)
    if options.what in OTHERS:
        weights = _train_simple(_collect(options, embedder, options.what), options.what)
        if options.write:
            _write(options.what, {"weights": weights, "embedder": embedder.identity})
        return
    table = _table(options, embedder)
    if options.what == "ranking":
        train_ranking(options, table, embedder.identity)
    if not options.words:
        train_confidence(options, table)


OTHERS = ("sessions", "deep-search")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("ranking", "confidence", *OTHERS))
    parser.add_argument("--data", type=Path, action="append", required=True)
    parser.add_argument("--corpus", type=Path, help="folder of the coding sessions")
    parser.add_argument(
        "--vectors", type=Path, help="folder of vectors by encoders that do not know the project"
    )
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "lore-eval-cache"
    )
    parser.add_argument("--table", type=Path, help="keep what was collected in this file")
    parser.add_argument("--words", action="store_true", help="train the ranking without vectors")
    parser.add_argument("--quick", action="store_true", help="do not score what is held out")
    parser.add_argument("--json", type=Path, help="write the scores of all sets to this file")
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


class HeldOutEmbedder:
    """Returns vectors from files, made by encoders trained without the text's project."""

    def __init__(self, inner: Embedder, folder: Path) -> None:
        self.name, self.identity, self.dimension = inner.name, inner.identity, inner.dimension
        self._inner = inner
        self._known: dict[bytes, NDArray[np.float16]] = {}
        record = 16 + 2 * inner.dimension
        for path in sorted(folder.glob("vectors-*.bin")):
            raw = path.read_bytes()
            for start in range(0, len(raw) - record + 1, record):
                row = np.frombuffer(raw[start + 16 : start + record], np.float16)
                self._known[raw[start : start + 16]] = row
        self.missing = 0

    def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Return the vectors of texts; those of unknown texts by the encoder at hand."""
        kind = b"q" if query else b"p"
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for place, text in enumerate(texts):
            raw = kind + text.encode("utf-8", "replace")
            row = self._known.get(hashlib.blake2b(raw, digest_size=16).digest())
            if row is None:
                self.missing += 1
                rows[place] = self._inner.embed([text], query=query)[0]
            else:
                rows[place] = row
        return rows

    def close(self) -> None:
        """Close the encoder at hand."""
        self._inner.close()


def _collect(options: argparse.Namespace, embedder: Embedder, what: str) -> Table:
    patterns = {
        "ranking": (
            "coding-qa*.gz", "session-qa*.gz", "chats*.gz", "locomo*.gz", "beam-*.gz",
            "long-session-*.gz",
        ),
        "sessions": ("coding-queries*.gz",),
        "deep-search": ("multihop-*.gz",),
    }  # fmt: skip
    describe = {
        "ranking": _describe_recall,
        "sessions": _describe_sessions,
        "deep-search": _describe_deep,
    }
    names: tuple[str, ...] = ()
    examples: list[Example] = []
    for pattern in patterns[what]:
        for path in sorted(path for data in options.data for path in data.glob(pattern)):
            for trial in read_tasks(path, options.corpus):
                names, found = _play(trial, path.name, embedder, describe[what])
                examples += found
                print(f"{path.name} {trial.name}: {len(found)}", flush=True)
    return Table(names, examples)


Describe = Callable[[Memory, Query], tuple[list[str], dict[str, Floats]]]


def _play(
    trial: RetrievalTask, file: str, embedder: Embedder, describe: Describe
) -> tuple[tuple[str, ...], list[Example]]:
    names: tuple[str, ...] = ()
    examples = []
    with open_scratch_memory(embedder) as memory:
        units = trial.fill(memory)
        memory.maintenance.embed_waiting()
        for ask in trial.queries:
            if ask.category in (UNDATED, "adversarial"):
                continue
            kind = next(k for k in KINDS if file.startswith(k))
            for label, moved in _ask_later(kind, ask):
                ids, found = describe(memory, moved)
                names = tuple(found)
                examples.append(
                    Example(
                        label,
                        trial.name,
                        ask.category,
                        [units.get(id_, "") for id_ in ids],
                        np.column_stack([found[name] for name in names]).astype(np.float32),
                        ask.groups,
                    )
                )
    return names, examples


ASKED_AFTER_DAYS = (0, 0, 1, 14, 60)
"""When the question for a session is asked, counted from the commit that it is about. Asked only at
the commit, the model learns that the latest session is meant, and never finds older work."""


def _ask_later(kind: str, ask: Query) -> list[tuple[str, Query]]:
    """Return a question for each time at which it is asked, with the name of its set."""
    if kind != "coding-queries" or ask.now is None:
        return [(kind, ask)]
    return [
        (f"{kind} +{days} d", replace(ask, now=ask.now + timedelta(days=days)))
        for days in ASKED_AFTER_DAYS
    ]


KINDS = (
    "coding-qa", "coding-queries", "session-qa", "chats", "locomo", "beam", "long-session",
    "multihop",
)  # fmt: skip

OWN = ("coding-qa", "session-qa", "chats")
"""The sets that may be trained on."""


def _describe_recall(memory: Memory, ask: Query) -> tuple[list[str], dict[str, Floats]]:
    question = parse(ask.text, ask.now or memory.database.now())
    with memory.database.read() as db:
        query, speakers = embed_question(memory.sources, db, question)
        pool = gather(memory.sources, db, question, query, Bounds())
        described = describe(memory.sources, db, question, query, pool, speakers)
        ids = items.ids_of(db, pool.ns.tolist())
        return [ids[int(n)] for n in pool.ns], described


def _describe_sessions(memory: Memory, ask: Query) -> tuple[list[str], dict[str, Floats]]:
    assert ask.now is not None
    question = parse(ask.text, ask.now)
    with memory.database.read() as db:
        ranked = rank(memory.sources, db, question, Bounds(types=("message",)), "learned")
        ns, found = search.describe_sessions(memory.sources, db, question, ranked, ask.now)
        ids = {n: session.id for n, session in sessions.get_sessions(db, ns.tolist()).items()}
        return [ids[int(n)] for n in ns], found


def _describe_deep(memory: Memory, ask: Query) -> tuple[list[str], dict[str, Floats]]:
    question = parse(ask.text, memory.database.now())
    query = memory.sources.embed_query(question.text)
    with memory.database.read() as db:
        direct = search.find_direct(memory.sources, db, question, query, FragmentFilter())
        found = search.find_deep(memory.sources, db, question, query, direct)
        ids = items.ids_of(db, found.ns.tolist())
        return [ids[int(n)] for n in found.ns], found.features


@dataclass(frozen=True, slots=True)
class Batch:
    """All candidates of some questions as one matrix, with the groups that are needed."""

    matrix: Floats
    question_of: NDArray[np.int64]
    group_rows: NDArray[np.int64]
    group_of: NDArray[np.int64]
    group_question: NDArray[np.int64]
    is_right: NDArray[np.bool_]
    share: Floats


def batch_of(examples: Sequence[Example], shares: Sequence[float]) -> Batch:
    """Return the candidates of the questions that have a right one among them."""
    matrices, question_of, rights = [], [], []
    group_rows, group_of, group_question, share = [], [], [], []
    start = groups = 0
    kept = [(e, w) for e, w in zip(examples, shares, strict=True) if e.gold & set(e.units)]
    for place, (example, weight) in enumerate(kept):
        units = np.array(example.units)
        found = [np.flatnonzero(np.isin(units, list(group))) for group in example.groups]
        found = [rows for rows in found if len(rows)]
        for rows in found:
            group_rows.append(rows + start)
            group_of.append(np.full(len(rows), groups))
            group_question.append(place)
            share.append(weight / len(found))
            groups += 1
        matrices.append(example.matrix)
        question_of.append(np.full(len(units), place))
        rights.append(np.isin(units, list(example.gold)))
        start += len(units)
    return Batch(
        np.concatenate(matrices).astype(np.float64), np.concatenate(question_of),
        np.concatenate(group_rows), np.concatenate(group_of), np.array(group_question),
        np.concatenate(rights), np.array(share) / sum(share),
    )  # fmt: skip


def loss_of(batch: Batch, score: Floats) -> tuple[float, Floats]:
    """Return the loss of each needed group against the wrong candidates, and its slope."""
    count = int(batch.question_of[-1]) + 1
    top = np.full(count, -np.inf)
    np.maximum.at(top, batch.question_of, score)
    odds = np.exp(score - top[batch.question_of])
    wrong = np.bincount(batch.question_of, odds * ~batch.is_right, count)
    mine = np.bincount(batch.group_of, odds[batch.group_rows], len(batch.group_question)) + 1e-300
    total = wrong[batch.group_question] + mine
    value = float(-(batch.share * np.log(mine / total)).sum())
    slope = np.zeros(len(score))
    np.add.at(slope, batch.group_rows, (-batch.share * (1 / mine - 1 / total))[batch.group_of])
    by_question = np.bincount(batch.group_question, batch.share / total, count)
    slope += ~batch.is_right * by_question[batch.question_of]
    return value, slope * odds


@dataclass(frozen=True, slots=True)
class Ranker:
    """A fitted model: a linear part, and a hidden layer beside it."""

    mean: Floats
    deviation: Floats
    linear: Floats
    hidden: Floats
    bias: Floats
    output: Floats
    clipped: float

    def score(self, matrix: Floats) -> Floats:
        """Return the score of each row."""
        z = np.clip((matrix - self.mean) / self.deviation, -self.clipped, self.clipped)
        return np.asarray(z @ self.linear + np.tanh(z @ self.hidden + self.bias) @ self.output)


def fit(
    examples: Sequence[Example],
    shares: Sequence[float],
    penalty: float,
    hidden: int = 0,
    clipped: float = CLIPPED,
) -> Ranker:
    """Fit a model by the softmax of each right unit against all wrong ones of its question."""
    batch = batch_of(examples, shares)
    mean, deviation = batch.matrix.mean(axis=0), batch.matrix.std(axis=0) + 1e-6
    z = np.clip((batch.matrix - mean) / deviation, -clipped, clipped).astype(np.float32)
    width = z.shape[1]
    chance = np.random.default_rng(7)
    start = np.concatenate([
        np.zeros(width), chance.normal(0, 0.3 / width**0.5, width * hidden), np.zeros(hidden),
        chance.normal(0, 0.1, hidden),
    ])  # fmt: skip

    def parts(beta: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        cut = np.split(beta, np.cumsum([width, width * hidden, hidden]))
        return cut[0], cut[1].reshape(width, hidden), cut[2], cut[3]

    def loss(beta: Floats) -> tuple[float, Floats]:
        linear, weights, bias, output = parts(beta.astype(np.float32))
        layer = np.tanh(z @ weights + bias)
        value, exact = loss_of(batch, (z @ linear + layer @ output).astype(np.float64))
        slope = exact.astype(np.float32)
        back = slope[:, None] * output * (1 - layer**2)
        gradient = np.concatenate([
            z.T @ slope,
            (z.T @ back).ravel(),
            back.sum(axis=0),
            layer.T @ slope,
        ]).astype(np.float64)
        scale = penalty * 0.001
        return value + 0.5 * scale * float(beta @ beta), gradient + scale * beta

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return Ranker(mean, deviation, *parts(found.x), clipped)


def _table(options: argparse.Namespace, embedder: Embedder) -> Table:
    """Collect the examples, or read what an earlier run collected."""
    if options.table and options.table.exists():
        kept: Table = pickle.loads(options.table.read_bytes())  # noqa: S301 - this script wrote it
        return kept
    table = _collect(options, embedder, "ranking")
    if options.table:
        options.table.write_bytes(pickle.dumps(table))
    return table


def train_ranking(options: argparse.Namespace, table: Table, identity: str) -> None:
    """Train the ranking of messages on what may be shipped, and score all sets."""
    left_out = (*LEFT_OUT, *LOGS_ONLY, *(BY_VECTORS if options.words else ()))
    kept = [place for place, name in enumerate(table.names) if name not in left_out]
    names = [table.names[place] for place in kept]
    examples = [replace(e, matrix=e.matrix[:, kept]) for e in table.examples if e.groups]
    own = [e for e in examples if e.set in OWN]
    hidden = 0 if options.words else HIDDEN
    hard = [_hardest(e, names) for e in own]
    print(f"{len(own)} questions to train on, {len(names)} features", flush=True)
    sets: dict[str, SetOutcomes] = {}
    if not options.quick:
        scores = _held_out(own, hard, hidden)
        _show("ranking, by project and conversation held out", own, scores)
        sets |= _outcomes(own, scores)
    ranker = fit(hard, _shares(hard), PENALTY, hidden)
    apart = [e for e in examples if e.set not in OWN]
    scores = [ranker.score(e.matrix) for e in apart]
    _show("sets that were not trained on", apart, scores)
    if options.json:
        result = score_sets("learned", "", sets | _outcomes(apart, scores))
        options.json.write_text(json.dumps(result.as_json(), indent=1) + "\n", "utf-8")
    if options.write:
        model = {
            "features": names,
            **{
                key: np.round(value, 5).tolist()
                for key, value in zip(
                    ("mean", "deviation", "linear", "hidden", "hidden_bias", "output"),
                    (ranker.mean, ranker.deviation, ranker.linear, ranker.hidden, ranker.bias,
                     ranker.output),
                    strict=True,
                )
            },
        }  # fmt: skip
        if options.words:
            _write("ranking-words", {"embedder": "none", **model})
        else:
            _write("ranking", {"embedder": identity, **model})


REFUSED = 0.01
"""Share of answerable questions that may be told that nothing answers: on projects whose questions
are harder than the others it is some times as much."""


def train_confidence(options: argparse.Namespace, table: Table) -> None:
    """Train the probability that the best candidates answer, and where it means 'none'.

    Ranks by the model that is shipped.
    """
    ranker = load_ranking()
    own = [e for e in table.examples if e.set in OWN and len(e.units)]
    rows, answered, answerable = [], [], []
    for example in own:
        columns = dict(zip(table.names, example.matrix.T.astype(np.float64), strict=True))
        scores = ranker.score(columns)
        best = [example.units[place] for place in np.argsort(-scores)[: confidence.BEST]]
        rows.append(confidence.describe(scores, columns))
        answered.append(bool(example.gold & set(best)))
        answerable.append(bool(example.groups))
    matrix, right = np.array(rows), np.array(answered)
    can = np.array(answerable)
    folds = np.array([zlib.crc32(e.group.encode()) % 2 for e in own])
    mean, deviation = matrix.mean(axis=0), matrix.std(axis=0) + 1e-6
    z = np.clip((matrix - mean) / deviation, -6, 6)
    share = np.where(can, 1.0, UNANSWERABLE_WEIGHT)
    probability = np.zeros(len(own))
    for number in (0, 1):
        weights = _fit_logistic(z[folds != number], right[folds != number], share[folds != number])
        probability[folds == number] = _logistic(z[folds == number], weights)
    is_agent = matrix[:, confidence.NAMES.index("agent")] > 0
    for name, group in (("agent", is_agent), ("people", ~is_agent)):
        none = float(np.quantile(probability[can & group], REFUSED))
        recognised = (probability[~can & group] < none).mean()
        print(f"{name}: unanswerable recognised {100 * recognised:.1f} % of {(~can & group).sum()}")
    for low in np.arange(0, 1, 0.1):
        inside = (probability >= low) & (probability < low + 0.1)
        if inside.any():
            print(f"  said {low:.1f}: {100 * right[inside].mean():5.1f} % right, n={inside.sum()}")
    if options.write:
        weights = _fit_logistic(z, right, share)
        final = _logistic(z, weights)
        content: dict[str, object] = {
            "features": confidence.NAMES,
            "mean": np.round(mean, 5).tolist(),
            "deviation": np.round(deviation, 5).tolist(),
            "weights": np.round(weights[:-1], 5).tolist(),
            "bias": round(float(weights[-1]), 5),
            "none": {
                name: round(float(np.quantile(final[can & group], REFUSED)), 4)
                for name, group in (("agent", is_agent), ("people", ~is_agent))
            },
        }
        _write("confidence", content)


UNANSWERABLE_WEIGHT = 3.0
"""Questions without an answer count more: there are few of them."""


def _fit_logistic(z: Floats, right: NDArray[np.bool_], share: Floats) -> Floats:
    def loss(beta: Floats) -> tuple[float, Floats]:
        p = _logistic(z, beta)
        value = -(share * np.log(np.where(right, p, 1 - p) + 1e-12)).sum()
        slope = share * (p - right)
        return value + beta @ beta, np.append(z.T @ slope, slope.sum()) + 2 * beta

    return np.asarray(minimize(loss, np.zeros(z.shape[1] + 1), jac=True, method="L-BFGS-B").x)


def _logistic(z: Floats, beta: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-(z @ beta[:-1] + beta[-1]))))


def _shares(examples: Sequence[Example]) -> list[float]:
    """Return weights by which coding and chats count the same in all."""
    counts = Counter(e.set == "chats" for e in examples)
    return [1 / counts[e.set == "chats"] for e in examples]


def _project(example: Example) -> str:
    return example.group.partition("/")[0]


HARDEST = 60
"""Wrong candidates of a question to train on: the others are easily told apart."""


def _hardest(example: Example, names: Sequence[str]) -> Example:
    """Return an example with its right candidates and those that look most like them."""
    near = sum(example.matrix[:, names.index(n)] for n in NEAR if n in names)
    right = np.isin(np.array(example.units), list(example.gold))
    kept = np.flatnonzero(right | (np.argsort(np.argsort(-np.asarray(near))) < HARDEST))
    units = [example.units[place] for place in kept]
    return replace(example, units=units, matrix=example.matrix[kept])


NEAR = ("cosine_z", "keyword_z", "covered_near", "session_cosine")


def _held_out(examples: Sequence[Example], hard: Sequence[Example], hidden: int) -> list[Floats]:
    """Return scores by models that were not trained on the project or conversation."""
    projects = sorted({_project(e) for e in examples if e.set != "chats"})
    fold = {
        e.group: projects.index(_project(e)) % FOLDS
        if e.set != "chats"
        else zlib.crc32(e.group.encode()) % FOLDS
        for e in examples
    }
    scores: list[Floats] = [np.zeros(0)] * len(examples)
    for number in range(FOLDS):
        train = [e for e in hard if fold[e.group] != number]
        ranker = fit(train, _shares(train), PENALTY, hidden)
        for place, example in enumerate(examples):
            if fold[example.group] == number:
                scores[place] = ranker.score(example.matrix)
    return scores


def _train_simple(table: Table, label: str) -> dict[str, float]:
    """Train a linear model; it scores features as they are, so that none is clipped here."""
    penalty = PENALTY if label == "sessions" else 10.0
    equal = np.ones(len(table.examples))
    folds = np.arange(len(table.examples)) * FOLDS // max(1, len(table.examples))
    if label != "sessions":
        folds = np.arange(len(table.examples)) % FOLDS
    scores: list[Floats] = [np.zeros(0)] * len(table.examples)
    for fold in range(FOLDS):
        train = [e for e, f in zip(table.examples, folds, strict=True) if f != fold]
        ranker = fit(train, equal[: len(train)].tolist(), penalty, clipped=np.inf)
        for place in np.flatnonzero(folds == fold):
            scores[place] = ranker.score(table.examples[place].matrix)
    _show(f"{label}, held out", table.examples, scores)
    ranker = fit(table.examples, equal.tolist(), penalty, clipped=np.inf)
    beta = ranker.linear / ranker.deviation
    return dict(zip(table.names, np.round(beta, 4).tolist(), strict=True))


def _show(label: str, examples: Sequence[Example], scores: Sequence[Floats]) -> None:
    print(f"{label}: R@1 R@5 R@10 R@20, in the pool")
    rows: dict[str, list[list[float]]] = {}
    for example, score in zip(examples, scores, strict=True):
        order = np.argsort(-score, kind="stable")
        ranked = list(dict.fromkeys(example.units[place] for place in order))
        row = [
            float(np.mean([bool(group & set(ranked[:k])) for group in example.groups]))
            for k in (1, 5, 10, 20, len(ranked))
        ]
        name = example.set
        if example.set == "coding-qa":
            name = f"{example.set} {example.group}"
        rows.setdefault(name, []).append(row)
        if example.set == "coding-qa":
            rows.setdefault(example.set, []).append(row)
    for name, values in sorted(rows.items()):
        figures = " ".join(f"{100 * value:5.1f}" for value in np.mean(values, axis=0))
        print(f"  {name:<28} {figures}  n={len(values)}", flush=True)


def _outcomes(examples: Sequence[Example], scores: Sequence[Floats]) -> dict[str, SetOutcomes]:
    """Return the ranks of each set as outcomes; the sets have the names of their files."""
    sets: dict[str, SetOutcomes] = {}
    for example, score in zip(examples, scores, strict=True):
        name = example.set
        if name == "coding-qa" and example.group != "entire":
            name = f"{name}-{example.group}"
        units = dict.fromkeys(example.units[place] for place in np.argsort(-score, kind="stable"))
        ranked = tuple(frozenset({unit}) for unit in units if unit)[:MAX_RANK]
        session = min(example.gold).rpartition(":")[0]
        sets.setdefault(name, SetOutcomes([], {}, frozenset())).lore.append(
            QueryOutcome(
                example.category, ranked, example.groups, 0.0, cluster=f"{example.group} {session}"
            )
        )
    return sets


def _write(name: str, content: dict[str, object]) -> None:
    provenance = {
        "script": "benchmarks/train_recall.py",
        "objective": "group softmax, right units against wrong ones, L2",
        **content,
    }
    (DATA / f"{name}.json").write_text(json.dumps(provenance, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
