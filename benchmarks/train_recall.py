"""Train the `learned` recipe: coefficients of recall, of sessions and of deep search.

Uses only the development data (`--data`), through the product's own capture and recall, and
splits by conversation: what is printed was never seen in training. Needs scipy:

    uv run --with scipy python benchmarks/train_recall.py --data ../shared/bench --write
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lore import settings
from lore.embed import open_embedder
from lore.evals.datasets import UNDATED, Query, RetrievalTask, read_tasks
from lore.evals.vector_cache import DiskCachedEmbedder
from lore.memory import Memory
from lore.recall import search
from lore.recall.candidates import Bounds
from lore.recall.question import parse
from lore.recall.ranking import rank
from lore.store import items, sessions
from lore.store.fragments import FragmentFilter

Floats = NDArray[np.float64]

SHARES = {"locomo": 1.0, "beam": 1.0}
"""How much each set counts in the profiles of people and of chat."""

PROFILE_OF = {"locomo": "people", "beam": "chat", "long": "agent", "coding": "agent"}

AGENT_FEATURES = (
    "keyword", "keyword_z", "keyword_rank", "long_rank", "covered", "covered_before",
    "covered_after", "covered_near", "covered_close", "pairs", "cosine", "cosine_z",
    "cosine_beside", "cosine_rank", "length", "user", "reply", "after_user", "asks",
    "number_if_many", "late_if_early", "late_if_late", "session_best",
)  # fmt: skip
"""Few questions about agents' sessions are at hand, so their profile has few features."""

AGENT_SHARES = {"locomo": 0.5, "beam": 0.5, "coding": 0.5, "long": 1.0}
AGENT_PENALTY = 100.0
AGENT_ONLY = ("late_if_early", "late_if_late", "covered_close", "exact", "together")
"""Features that the other profiles do without: there they would prefer what is stale, or cost
more than they bring; the last two belong to the rules that stand above the model."""

PENALTY = 20.0
FOLDS = 5
COSTLY = ("covered_close",)
"""Features that are computed only where a profile has them."""

DATA = Path(__file__).parent.parent / "src" / "lore" / "data"


@dataclass(frozen=True, slots=True)
class Example:
    """One question: candidates with their units and features, and the right units."""

    set: str
    group: str
    category: str
    units: list[str]
    matrix: Floats
    gold: frozenset[str]


@dataclass(frozen=True, slots=True)
class Table:
    """Examples with the names of their features."""

    names: tuple[str, ...]
    examples: list[Example]


def main() -> None:
    """Train, print held-out figures, and write the coefficients if asked to."""
    options = _options()
    opened = open_embedder(replace(settings.load().settings, embed_threads=0))
    embedder = DiskCachedEmbedder(opened.embedder, options.cache)
    kinds = ("recall", "commits", "sessions", "deep")
    tables = {name: _collect(options.data, embedder, name) for name in kinds}
    spoken, commits = tables["recall"], tables["commits"]
    together = Table(spoken.names, spoken.examples + commits.examples)
    models = {
        "recall": {**_train_recall(spoken), "agent": _train_agent(together)},
        "sessions": _train_simple(tables["sessions"], "sessions"),
        "deep-search": _train_simple(tables["deep"], "deep search"),
    }
    if options.write:
        for name, weights in models.items():
            _write(name, weights)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "lore-eval-cache"
    )
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


def _collect(data: Path, embedder: DiskCachedEmbedder, what: str) -> Table:
    patterns = {
        "recall": ("locomo*.gz", "beam-*.gz", "long-session-*.gz"),
        "commits": ("coding-queries*.gz",),
        "sessions": ("coding-queries*.gz",),
        "deep": ("multihop-*.gz",),
    }
    describe = {
        "recall": _describe_recall,
        "commits": _describe_commits,
        "sessions": _describe_sessions,
        "deep": _describe_deep,
    }
    names: tuple[str, ...] = ()
    examples: list[Example] = []
    for pattern in patterns[what]:
        for path in sorted(data.glob(pattern)):
            for trial in read_tasks(path, None):
                names, found = _play(trial, path.name, embedder, describe[what])
                examples += found
    return Table(names, examples)


Describe = Callable[[Memory, Query], tuple[list[str], dict[str, Floats]]]


def _play(
    trial: RetrievalTask, file: str, embedder: DiskCachedEmbedder, describe: Describe
) -> tuple[tuple[str, ...], list[Example]]:
    names: tuple[str, ...] = ()
    examples = []
    with (
        tempfile.TemporaryDirectory(prefix="lore-train-") as home,
        Memory.open(home=home, embedder=embedder) as memory,
    ):
        units = trial.fill(memory)
        memory.maintenance.embed_waiting()
        for place, ask in enumerate(trial.queries):
            if ask.category == UNDATED:
                continue
            ids, found = describe(memory, ask)
            names = tuple(found)
            group = trial.name if len(trial.queries) < 200 or "locomo" in file else f"{place}"
            kind = file.split("-")[0].split(".")[0]
            examples.append(
                Example(
                    kind,
                    group if kind in PROFILE_OF else f"{file}:{place}",
                    ask.category,
                    [units.get(id_, "") for id_ in ids],
                    np.column_stack([found[name] for name in names]),
                    ask.gold,
                )
            )
    return names, examples


def _describe_recall(memory: Memory, ask: Query) -> tuple[list[str], dict[str, Floats]]:
    question = parse(ask.text, ask.now or memory.database.now())
    with memory.database.read() as db:
        ranked = rank(memory.sources, db, question, Bounds(), "learned", COSTLY)
        ids = items.ids_of(db, ranked.pool.ns.tolist())
        return [ids[int(n)] for n in ranked.pool.ns], ranked.features


def _describe_commits(memory: Memory, ask: Query) -> tuple[list[str], dict[str, Floats]]:
    """Describe messages where the session that they belong to is the unit."""
    question = parse(ask.text, ask.now or memory.database.now())
    with memory.database.read() as db:
        ranked = rank(memory.sources, db, question, Bounds(types=("message",)), "learned", COSTLY)
        of = ranked.pool.rows.sessions.tolist()
        found = sessions.get_sessions(db, sorted(set(of)))
        return [found[n].id for n in of], ranked.features


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


def fit(examples: Sequence[Example], weights: Floats, penalty: float) -> Floats:
    """Fit a group softmax: each right unit against all wrong ones of its question."""
    kept = [(e, w) for e, w in zip(examples, weights, strict=True) if e.gold & set(e.units)]
    matrix = np.concatenate([e.matrix for e, _ in kept])
    deviation = matrix.std(axis=0) + 1e-6
    matrix = (matrix - matrix.mean(axis=0)) / deviation
    unit_of, right, question_of = [], [], []
    count = 0
    for place, (example, _) in enumerate(kept):
        unique, inverse = np.unique(example.units, return_inverse=True)
        unit_of.append(inverse + count)
        right.append(np.isin(unique, list(example.gold)))
        question_of.append(np.full(len(unique), place))
        count += len(unique)
    units, is_right = np.concatenate(unit_of), np.concatenate(right)
    questions = np.concatenate(question_of)
    by_row = questions[units]
    gold = np.flatnonzero(is_right)
    gold_question = questions[gold]
    share = np.array([w for _, w in kept])
    each = share[gold_question] / np.bincount(gold_question, minlength=len(kept))[gold_question]
    starts = np.r_[0, np.flatnonzero(np.diff(by_row)) + 1]

    def loss(beta: Floats) -> tuple[float, Floats]:
        score = matrix @ beta
        score = score - np.maximum.reduceat(score, starts)[by_row]
        odds = np.exp(score)
        unit_odds = np.bincount(units, odds, count)
        wrong = np.bincount(questions, unit_odds * ~is_right, len(kept))
        mine = unit_odds[gold] + 1e-300
        total = wrong[gold_question] + mine
        value = -(each * np.log(mine / total)).sum() / share.sum()
        gradient = np.zeros(count)
        gradient[gold] = -each * (1 / mine - 1 / total)
        gradient += ~is_right * np.bincount(gold_question, each / total, len(kept))[questions]
        slope = matrix.T @ (gradient[units] * odds) / share.sum()
        return value + penalty * 0.0005 * beta @ beta, slope + penalty * 0.001 * beta

    found = minimize(
        loss, np.zeros(matrix.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 150}
    )
    result: Floats = found.x / deviation
    return result


def _with_profiles(examples: Sequence[Example]) -> list[Example]:
    """Add, for each profile, a copy of the features that is zero elsewhere."""
    blocks = ("locomo", "beam")
    return [
        replace(
            e,
            matrix=np.hstack([e.matrix, *(e.matrix * (e.set == block) for block in blocks)]),
        )
        for e in examples
    ]


def _weights(examples: Sequence[Example], shares: dict[str, float]) -> Floats:
    counts = {name: max(1, sum(e.set == name for e in examples)) for name in shares}
    return np.array([shares[e.set] / counts[e.set] for e in examples])


def _folds(examples: Sequence[Example]) -> NDArray[np.int64]:
    groups: dict[str, int] = {}
    seen: dict[str, int] = {}
    for example in examples:
        key = f"{example.set}:{example.group}"
        if key not in groups:
            groups[key] = seen.get(example.set, 0) % FOLDS
            seen[example.set] = seen.get(example.set, 0) + 1
    return np.array([groups[f"{e.set}:{e.group}"] for e in examples])


def _train_recall(table: Table) -> dict[str, dict[str, float]]:
    """Train the profiles of people and of chat: what they share, and what sets them apart."""
    kept = [place for place, name in enumerate(table.names) if name not in AGENT_ONLY]
    names = [table.names[place] for place in kept]
    width = len(names)
    examples = [replace(e, matrix=e.matrix[:, kept]) for e in table.examples if e.set in SHARES]
    spread = _with_profiles(examples)
    folds = _folds(examples)
    scores: list[Floats] = [np.zeros(0)] * len(spread)
    for fold in range(FOLDS):
        train = [e for e, f in zip(spread, folds, strict=True) if f != fold]
        beta = fit(train, _weights(train, SHARES), PENALTY)
        for place in np.flatnonzero(folds == fold):
            scores[place] = spread[place].matrix @ beta
    _show("recall, held out by conversation", examples, scores)
    beta = fit(spread, _weights(spread, SHARES), PENALTY)
    parts = {
        "people": beta[:width] + beta[width : 2 * width],
        "chat": beta[:width] + beta[2 * width :],
    }
    return {
        profile: dict(zip(names, np.round(found, 4).tolist(), strict=True))
        for profile, found in parts.items()
    }


def _train_agent(table: Table) -> dict[str, float]:
    """Train the profile of agents at work; each long-session question is held out in turn."""
    places = [table.names.index(name) for name in AGENT_FEATURES]
    examples = [replace(e, matrix=e.matrix[:, places]) for e in table.examples]
    held = [place for place, e in enumerate(examples) if e.set == "long"]
    scores = []
    for place in held:
        train = examples[:place] + examples[place + 1 :]
        beta = fit(train, _weights(train, AGENT_SHARES), AGENT_PENALTY)
        scores.append(examples[place].matrix @ beta)
    _show("agent, held out by question", [examples[place] for place in held], scores)
    beta = fit(examples, _weights(examples, AGENT_SHARES), AGENT_PENALTY)
    return dict(zip(AGENT_FEATURES, np.round(beta, 4).tolist(), strict=True))


def _train_simple(table: Table, label: str) -> dict[str, float]:
    penalty = PENALTY if label == "sessions" else 10.0
    equal = np.ones(len(table.examples))
    folds = np.arange(len(table.examples)) * FOLDS // max(1, len(table.examples))
    if label != "sessions":
        folds = np.arange(len(table.examples)) % FOLDS
    scores: list[Floats] = [np.zeros(0)] * len(table.examples)
    for fold in range(FOLDS):
        train = [e for e, f in zip(table.examples, folds, strict=True) if f != fold]
        beta = fit(train, equal[: len(train)], penalty)
        for place in np.flatnonzero(folds == fold):
            scores[place] = table.examples[place].matrix @ beta
    _show(f"{label}, held out", table.examples, scores)
    beta = fit(table.examples, equal, penalty)
    return dict(zip(table.names, np.round(beta, 4).tolist(), strict=True))


def _show(label: str, examples: Sequence[Example], scores: Sequence[Floats]) -> None:
    print(f"{label}: R@5 R@10 R@20 H@1 H@5 MRR")
    rows: dict[str, list[list[float]]] = {}
    for example, score in zip(examples, scores, strict=True):
        order = np.argsort(-score, kind="stable")
        ranked = list(dict.fromkeys(example.units[place] for place in order))
        found = [len(example.gold & set(ranked[:k])) / len(example.gold) for k in (5, 10, 20)]
        first = next((r for r, u in enumerate(ranked, 1) if u in example.gold), 0)
        row = [*found, float(first == 1), float(0 < first <= 5), 1 / first if first else 0.0]
        name = example.group.split(":")[0] if example.set == "multihop" else example.set
        if example.category != "adversarial":
            rows.setdefault(name, []).append(row)
    for name, values in rows.items():
        figures = " ".join(f"{100 * value:5.1f}" for value in np.mean(values, axis=0))
        print(f"  {name:<28} {figures}  n={len(values)}", flush=True)


def _write(name: str, weights: object) -> None:
    provenance = {
        "script": "benchmarks/train_recall.py",
        "trained_on": "LoCoMo, BEAM-100K, MuSiQue, 2WikiMultihopQA, coding sessions (development)",
        "objective": "group softmax, right units against wrong ones, L2",
        "embedder": "all-MiniLM-L6-v2/float32/256",
        "weights": weights,
    }
    (DATA / f"{name}.json").write_text(json.dumps(provenance, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
