"""Fit the first head of the pair model on, over vectors of the model as it is shipped.

    uv run python benchmarks/fit_pair_head.py --out OUT

`refine_pairs.py` trains body and head with histories, in which much changes. In real sessions
hardly anything does, and each new project says what changes nothing in its own way. This goes on
with the head alone, with all pairs and histories and pairs of projects that came later (`LATER`),
on the vectors of the shipped model in int8, so that it sees what the product sees. Needs no torch;
some minutes on a CPU. Writes `pairs.json`; with `--folds` only figures, half of the later
statements left out at a time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore.embed.pair_model import RELATIONS, PairModel, open_pair_model
from lore.settings import Settings

DATA = Path(__file__).parent / "data"
SHIPPED = Path(__file__).parents[1] / "src" / "lore" / "data" / "pairs.json"
SCRIPT = "benchmarks/fit_pair_head.py"

LATER = ("real-5", "real-6")
"""The authors of labels for pairs that the model called a change in sessions it did not know."""

APART = ("j", "k")
"""Authors of pairs that no model is trained on: see the card of the data."""

UNLINKED = 12
"""Pairs of a history that change nothing."""

WEIGHTS = {"pairs": 1.0, "histories": 0.5, "later": 8.0}
PULL, STEPS, RATE, SMOOTHING = 1e-5, 300, 0.05, 0.05
"""How strongly the head stays where it is, the steps, their rate, and smoothing of labels. (Weights
of 1 to 10 and pulls of 1e-4 and 1e-5 differ little.)"""

FOLDS = 2

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Vectors of pairs, what the newer statement does to the older, a weight, and a fold."""

    vectors: Numbers
    labels: NDArray[np.int64]
    weights: Numbers
    folds: NDArray[np.int64]

    def choose(self, chosen: NDArray[np.bool_]) -> Pairs:
        """Return some of the pairs."""
        return Pairs(
            self.vectors[chosen], self.labels[chosen], self.weights[chosen], self.folds[chosen]
        )


@dataclass(frozen=True, slots=True)
class Head:
    """A linear layer over the vectors of the model."""

    weight: Numbers
    bias: Numbers

    def chances(self, vectors: Numbers) -> Numbers:
        """Return the probability of each relation."""
        scores = vectors @ self.weight.T + self.bias
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances: Numbers = powers / powers.sum(axis=1, keepdims=True)
        return chances


def read(name: str) -> list[dict[str, Any]]:
    """Return the rows of a file of the data."""
    with gzip.open(DATA / name, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


Labelled = tuple[str, str, str]


def read_labelled() -> dict[str, list[Labelled]]:
    """Return (older, newer, relation) by kind: pairs, histories, later ones, and those apart."""
    kinds: dict[str, list[Labelled]] = {"pairs": [], "histories": [], "later": [], "apart": []}
    named = {**dict.fromkeys(LATER, "later"), **dict.fromkeys(APART, "apart")}
    for row in read("pairs.jsonl.gz"):
        kind = named.get(row["author"], "pairs")
        newer = f"{row.get('before', '')} {row['newer']}".strip()
        kinds[kind].append((row["older"], newer, row["relation"]))
    chance = random.Random(3)
    for row in read("changes.jsonl.gz"):
        links = {(i, j): relation for i, j, relation in row["links"]}
        places = [(i, j) for i in range(len(row["old"])) for j in range(len(row["new"]))]
        unlinked = [place for place in places if place not in links]
        for i, j in (*links, *chance.sample(unlinked, min(UNLINKED, len(unlinked)))):
            relation = links.get((i, j), "none")
            kinds["histories"].append((row["old"][i], row["new"][j], relation))
    return kinds


def embed(model: PairModel, labelled: Sequence[Labelled], weight: float) -> Pairs:
    """Return the vectors of labelled pairs; a newer statement is in one fold only."""
    texts = [(older, newer) for older, newer, _ in labelled]
    parts = [model.vectors(texts[at : at + 256]) for at in range(0, len(texts), 256)]
    return Pairs(
        np.concatenate(parts).astype(np.float64),
        np.array([RELATIONS.index(relation) for *_, relation in labelled]),
        np.full(len(texts), weight),
        np.array([zlib.crc32(newer.encode()) % FOLDS for _, newer, _ in labelled]),
    )


def join(some: Sequence[Pairs]) -> Pairs:
    """Return all of some pairs."""
    return Pairs(
        np.concatenate([one.vectors for one in some]),
        np.concatenate([one.labels for one in some]),
        np.concatenate([one.weights for one in some]),
        np.concatenate([one.folds for one in some]),
    )


def fit(start: Head, pairs: Pairs) -> Head:
    """Return the head after some steps of Adam on the cross entropy of all pairs."""
    target = np.full((len(pairs.labels), len(RELATIONS)), SMOOTHING / len(RELATIONS))
    target[np.arange(len(pairs.labels)), pairs.labels] += 1 - SMOOTHING
    weights = pairs.weights / pairs.weights.sum()
    first = np.hstack([start.weight, start.bias[:, None]])
    head, mean, square = first.copy(), np.zeros_like(first), np.zeros_like(first)
    inputs = np.hstack([pairs.vectors, np.ones((len(pairs.vectors), 1))])
    for step in range(1, STEPS + 1):
        error = Head(head[:, :-1], head[:, -1]).chances(pairs.vectors) - target
        slope = (error * weights[:, None]).T @ inputs + PULL * (head - first)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        rate = RATE * (1 - step / STEPS) + 1e-4
        head -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return Head(head[:, :-1], head[:, -1])


def report(name: str, before: Head, after: Head, pairs: Pairs) -> None:
    """Print how many pairs are called a change, and how many of them rightly."""
    least = RELATIONS.index("partly")
    is_change = pairs.labels >= least
    print(f"{name}: {len(pairs.labels)} pairs, {is_change.sum()} changes")
    for title, head in (("before", before), ("after", after)):
        chance = head.chances(pairs.vectors)[:, least:].sum(axis=1)
        called = {threshold: chance >= threshold for threshold in (0.15, 0.3, 0.5, 0.7, 0.9)}
        cells = [f"{at}: {some.sum()}, {(some & is_change).sum()}" for at, some in called.items()]
        print(f"  {title:<7}", "   ".join(cells), flush=True)


def main() -> None:
    """Fit the head and write it, or print figures of what was left out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--start", type=Path, default=SHIPPED, help="what refine_pairs.py wrote")
    parser.add_argument("--folds", action="store_true", help="only figures of what is left out")
    options = parser.parse_args()
    model = open_pair_model(Settings())
    if model is None:
        parser.error("the pair model is not installed")
    content = json.loads(options.start.read_bytes())
    start = Head(*(np.array(content["heads"][f"relations.{part}"]) for part in ("weight", "bias")))
    labelled = read_labelled()
    sets = {kind: embed(model, rows, WEIGHTS.get(kind, 1.0)) for kind, rows in labelled.items()}
    known, later = [sets["pairs"], sets["histories"]], sets["later"]
    for fold in range(FOLDS if options.folds else 0):
        is_left_out = later.folds == fold
        head = fit(start, join([*known, later.choose(~is_left_out)]))
        report(f"later, fold {fold}", start, head, later.choose(is_left_out))
        report("authors apart", start, head, sets["apart"])
    if options.out:
        head = fit(start, join([*known, later]))
        report("authors apart", start, head, sets["apart"])
        content["heads"]["relations.weight"] = np.round(head.weight, 5).tolist()
        content["heads"]["relations.bias"] = np.round(head.bias, 5).tolist()
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "pairs.json").write_text(json.dumps(content | {"script": SCRIPT}))


if __name__ == "__main__":
    main()
