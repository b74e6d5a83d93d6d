"""Train the pair model's first head again, on its frozen vectors and pairs of real sessions.

    uv run python benchmarks/train_relations.py [--write]

`train_pairs.py` trains the whole model, mostly on invented pairs, of which a third replace
something; of near pairs of real sessions hardly any do. Here only the head `relations` is trained
on, from what `train_pairs.py` made of it (`data/relations-head.json`: replace it when that
script has trained anew), so that the other heads and what was trained on them stay as
they are. Needs no GPU: two minutes on one core. Prints how many pairs of real sessions are called a
change, each project by a head that was trained without it, before and after; and what two authors
whose pairs nothing was trained on get. `--write` trains on all projects and writes the head.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore.embed import pair_model
from lore.embed.models import DATA
from lore.settings import load

PAIRS = Path(__file__).parent / "data" / "pairs.jsonl.gz"
START = PAIRS.with_name("relations-head.json")
HEADS = DATA / "pairs.json"
APART = ("j", "k")
"""Authors that no model is trained on: see the card of the data."""

STEPS, BATCH, REAL_BATCH, STRANGERS, RATE = 800, 27, 21, 6, 3e-3
"""Steps; invented pairs, real pairs and pairs of unrelated statements in each; learning rate."""

SMOOTHING = 0.05
THRESHOLDS = (0.15, 0.2, 0.3, 0.4, 0.5, 0.7)
Floats = NDArray[np.float64]


class Pairs:
    """Labelled pairs with their vectors."""

    def __init__(self, rows: list[dict[str, Any]], model: pair_model.PairModel) -> None:
        self.relation = np.array([pair_model.RELATIONS.index(row["relation"]) for row in rows])
        self.author = np.array([row["author"] for row in rows])
        self.project = np.array([row.get("project", "") for row in rows])
        self.is_real = np.char.startswith(self.author, "real")
        older = [row["older"] for row in rows]
        newer = [f"{row.get('before', '')} {row['newer']}".strip() for row in rows]
        self.vectors = _with_constant(model.vectors(list(zip(older, newer, strict=True))))
        others = np.random.default_rng(1).permutation(len(rows))
        self.strangers = _with_constant(
            model.vectors([(older[one], newer[other]) for one, other in enumerate(others)][::4])
        )


def _with_constant(vectors: NDArray[np.float32]) -> Floats:
    return np.hstack([vectors, np.ones((len(vectors), 1))]).astype(np.float64)


def read_head() -> Floats:
    """Return the weights that `train_pairs.py` gave the head, the constant last."""
    heads = json.loads(START.read_bytes())["heads"]
    bias = np.array(heads["relations.bias"])[:, None]
    return np.hstack([np.array(heads["relations.weight"]), bias])


def chances(head: Floats, vectors: Floats) -> Floats:
    """Return the probability of each relation."""
    scores = vectors @ head.T
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    out: Floats = powers / powers.sum(axis=1, keepdims=True)
    return out


def train(start: Floats, pairs: Pairs, chosen: NDArray[np.bool_]) -> Floats:
    """Return the head after some steps of Adam on the chosen pairs."""
    random = np.random.default_rng(7)
    invented, real = np.flatnonzero(chosen & ~pairs.is_real), np.flatnonzero(chosen & pairs.is_real)
    count = len(pair_model.RELATIONS)
    soft = np.eye(count) * (1 - SMOOTHING) + SMOOTHING / count
    head, mean, square = start.copy(), np.zeros_like(start), np.zeros_like(start)
    for step in range(1, STEPS + 1):
        rows = np.concatenate([random.choice(invented, BATCH), random.choice(real, REAL_BATCH)])
        apart = random.choice(len(pairs.strangers), STRANGERS)
        vectors = np.vstack([pairs.vectors[rows], pairs.strangers[apart]])
        target = np.vstack([soft[pairs.relation[rows]], np.repeat(soft[:1], STRANGERS, axis=0)])
        slope = (chances(head, vectors) - target).T @ vectors / len(vectors)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        rate = RATE * min(1.0, step / 30) * max(0.02, 1 - step / STEPS)
        move = (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        head = head - rate * move
    return head


def report(name: str, change: Floats, pairs: Pairs, chosen: NDArray[np.bool_]) -> None:
    """Print how many pairs are called a change, and how many of these are one."""
    truth = pairs.relation[chosen] >= pair_model.RELATIONS.index("partly")
    counts = []
    for threshold in THRESHOLDS:
        called = change[chosen] >= threshold
        counts.append(f"{threshold}: {called.sum()} ({(called & truth).sum()})")
    total = f"{chosen.sum()} pairs, {truth.sum()} changes"
    print(f"{name}, {total}; called so (rightly) from {', '.join(counts)}")


def main() -> None:
    """Train without each project, print the figures, and write the head if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with gzip.open(PAIRS, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    with tempfile.TemporaryDirectory() as home:
        model = pair_model.open_pair_model(load(home=Path(home)).settings)
        assert model is not None
        pairs = Pairs(rows, model)
        model.close()
    start = read_head()
    known = ~np.isin(pairs.author, APART)
    trained = train(start, pairs, known)
    change = {"before": _change(start, pairs), "after": _change(trained, pairs)}
    for project in sorted(set(pairs.project[pairs.is_real].tolist())):
        left_out = pairs.is_real & (pairs.project == project)
        change["after"][left_out] = _change(train(start, pairs, known & ~left_out), pairs)[left_out]
    for name, values in change.items():
        for author in sorted(set(pairs.author[pairs.is_real].tolist())):
            report(f"{name}: {author}", values, pairs, pairs.author == author)
        report(f"{name}: authors apart", values, pairs, ~known)
        report(f"{name}: authors trained on", values, pairs, known & ~pairs.is_real)
    if options.write:
        content = json.loads(HEADS.read_bytes())
        content["heads"]["relations.weight"] = np.round(trained[:, :-1], 5).tolist()
        content["heads"]["relations.bias"] = np.round(trained[:, -1], 5).tolist()
        content["relations script"] = "benchmarks/train_relations.py"
        HEADS.write_text(json.dumps(content))


def _change(head: Floats, pairs: Pairs) -> Floats:
    """Return the probability of each pair that the newer statement changes something."""
    out: Floats = chances(head, pairs.vectors)[:, pair_model.RELATIONS.index("partly") :].sum(
        axis=1
    )
    return out


if __name__ == "__main__":
    main()
