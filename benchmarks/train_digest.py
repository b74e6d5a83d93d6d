"""Train how distillations rank beside messages: their own coefficients, and the lift they give.

Works on digested memories of the development data, offline, through the product's own way; the
coefficients of messages stay as `train_recall.py` made them. Halves of the conversations are
held out in turn: what is printed was never seen in training. Needs scipy:

    uv run --with scipy python benchmarks/train_digest.py --data DATA --corpus SESSIONS \\
        --vectors OUT --write
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lore import settings
from lore.embed import Embedder, open_embedder
from lore.evals.datasets import Query, RetrievalTask, open_scratch_memory, read_tasks
from lore.evals.vector_cache import DiskCachedEmbedder
from lore.memory import Memory
from lore.recall import features, hit_selection
from lore.recall.candidates import Bounds
from lore.recall.question import parse
from lore.recall.ranking import rank
from lore.records import ItemType
from lore.store import distillations, items
from train_recall import HeldOutEmbedder

Floats = NDArray[np.float64]

LOG = (
    "one", "keyword", "keyword_z", "keyword_rank", "covered", "pairs", "cosine", "cosine_z",
    "cosine_rank", "length", "date", "session_best", "session_next", "session_cosine", "line",
    "tells", "line_cosine", "people",
)  # fmt: skip
TOLD = ("told", "told_cosine")
SET_BY_HAND = {"condensed": -0.5, "archived": -1.0}
"""No conversation of the data is long enough to learn these from: an archived distillation ranks
behind the one that tells it anew, and that one behind what it was made of."""

SHARES = {"chats": 0.5, "coding-qa-ctxeval": 0.5, "coding-qa-minsky": 0.5}
PENALTY = 20.0
DATA = Path(__file__).parent.parent / "src" / "lore" / "data" / "logs.json"


@dataclass(frozen=True, slots=True)
class Example:
    """One question: the units of each candidate, what is fixed and what is learned of scores."""

    set: str
    half: int
    units: list[frozenset[str]]
    fixed: Floats
    matrix: Floats
    groups: tuple[frozenset[str], ...]


def main() -> None:
    """Train, print held-out figures, and write the coefficients if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, action="append", required=True)
    parser.add_argument("--corpus", type=Path, help="folder of the coding sessions")
    parser.add_argument("--vectors", type=Path, required=True, help="see train_recall.py")
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "lore-eval-cache"
    )
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    opened = open_embedder(replace(settings.load().settings, embed_threads=0))
    embedder = HeldOutEmbedder(DiskCachedEmbedder(opened.embedder, options.cache), options.vectors)
    examples = list(_collect(options, embedder))
    for half in (0, 1):
        beta = fit([e for e in examples if e.half != half])
        _show(f"half {half + 1}, held out", [e for e in examples if e.half == half], beta)
    beta = fit(examples)
    if options.write:
        _write(beta)


def _collect(options: argparse.Namespace, embedder: Embedder) -> Iterator[Example]:
    for number, name in enumerate(SHARES):
        for path in sorted(p for data in options.data for p in data.glob(f"{name}*.jsonl.gz")):
            for place, trial in enumerate(read_tasks(path, options.corpus)):
                print(f"{path.name} {trial.name}", flush=True)
                yield from _play(trial, embedder, name, (place + number) % 2)


def _play(trial: RetrievalTask, embedder: Embedder, name: str, half: int) -> Iterator[Example]:
    with open_scratch_memory(embedder) as memory:
        units = trial.fill(memory)
        memory.maintenance.embed_waiting()
        memory.digest(knowledge=False)
        for ask in trial.queries:
            if ask.category not in trial.separate_categories:
                for types in (_BOTH, _ALONE):
                    yield _example(memory, ask, units, types, name, half)


_BOTH: tuple[ItemType, ...] = ("message", "distillation")
_ALONE: tuple[ItemType, ...] = ("distillation",)


def _example(
    memory: Memory,
    ask: Query,
    units: dict[str, str],
    types: tuple[ItemType, ...],
    name: str,
    half: int,
) -> Example:
    question = parse(ask.text, ask.now or memory.database.now())
    with memory.database.read() as db:
        ranked = rank(memory.sources, db, question, Bounds(types=types), "learned")
        pool = ranked.pool
        ids = items.ids_of(db, pool.ns.tolist())
        logs = pool.rows.types == items.type_number("distillation")
        ns = pool.ns[logs].tolist()
        told, records = (
            distillations.source_messages_by_line(db, ns),
            distillations.get_distillations(db, ns),
        )
        names = items.ids_of(db, sorted({m for line in told.values() for x in line for m in x}))
    assert ranked.model is not None
    found = []
    for n, is_log in zip(pool.ns.tolist(), logs.tolist(), strict=True):
        if is_log:
            shown = hit_selection.select_lines(
                records[n].text,
                [[names[m] for m in line] for line in told[n]],
                question,
                pool.rarity,
                most_tokens=features.EXCERPT_TOKENS,
            )
            found.append(frozenset(units[id_] for id_ in shown.sources if id_ in units))
        else:
            found.append(frozenset({units[ids[n]]} if ids[n] in units else ()))
    learned = [ranked.features[feature] * logs for feature in LOG]
    learned += [ranked.features[feature] * ~logs for feature in TOLD]
    fixed = np.where(logs, 0.0, ranked.model.score(ranked.features))
    return Example(name, half, found, fixed, np.column_stack(learned), ask.groups)


def fit(examples: Sequence[Example]) -> Floats:
    """Fit a group softmax: whatever tells a right unit against what tells none."""
    counts = {name: max(1, sum(e.set == name for e in examples)) for name in SHARES}
    parts = []
    for e in examples:
        right = [np.array([bool(group & units) for units in e.units]) for group in e.groups]
        right = [mask for mask in right if mask.any()]
        if right:
            wrong = ~np.any(right, axis=0)
            parts.append((e, right, wrong, SHARES[e.set] / counts[e.set]))
    deviation = np.concatenate([e.matrix for e, *_ in parts]).std(axis=0) + 1e-6

    def loss(beta: Floats) -> tuple[float, Floats]:
        total, slope = 0.0, np.zeros(len(beta))
        for e, right, wrong, share in parts:
            matrix = e.matrix / deviation
            score = e.fixed + matrix @ beta
            odds = np.exp(score - score.max())
            against = odds[wrong].sum()
            pulled_wrong = matrix[wrong].T @ odds[wrong]
            for mask in right:
                mine = odds[mask].sum() + 1e-300
                pulled = matrix[mask].T @ odds[mask]
                weight = share / len(right)
                total -= weight * np.log(mine / (mine + against))
                slope -= weight * (pulled / mine - (pulled + pulled_wrong) / (mine + against))
        return float(total + PENALTY * 0.0005 * beta @ beta), slope + PENALTY * 0.001 * beta

    found = minimize(
        loss, np.zeros(len(deviation)), jac=True, method="L-BFGS-B", options={"maxiter": 80}
    )
    result: Floats = found.x / deviation
    return result


def _show(label: str, examples: Sequence[Example], beta: Floats) -> None:
    for name in SHARES:
        rows: tuple[list[float], list[float]] = ([], [])
        for e in examples:
            if e.set == name:
                order = np.argsort(-(e.fixed + e.matrix @ beta), kind="stable")
                units = list(dict.fromkeys(u for p in order for u in sorted(e.units[p])))[:10]
                alone = not e.fixed.any()
                rows[alone].append(float(np.mean([bool(g & set(units)) for g in e.groups])))
        both, alone_ = (100 * float(np.mean(r)) if r else 0.0 for r in rows)
        print(f"{label:<22}{name:<10} R@10 with messages {both:5.1f}, alone {alone_:5.1f}")


def _write(beta: Floats) -> None:
    raw: dict[str, Any] = {
        "script": "benchmarks/train_digest.py",
        "trained_on": ", ".join(SHARES),
        "objective": "group softmax, what tells a right unit against what tells none, L2",
        "weights": {},
    }
    values = np.round(beta, 4).tolist()
    raw["weights"]["log"] = dict(zip(LOG, values, strict=False)) | SET_BY_HAND
    raw["weights"]["told"] = dict(zip(TOLD, values[len(LOG) :], strict=True))
    DATA.write_text(json.dumps(raw, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
