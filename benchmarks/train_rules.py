"""Train the model that recognizes lasting rules in what a person types (`lore.text.rule_model`).

Prints figures for each project by a model that has not seen it, and writes the model of all data:

    uv run python benchmarks/train_rules.py --write

Sentences that resemble one of a held-out project (`near`) are left out with it. Sentences made of
templates show the same words as a rule, as a request of the moment and as a report.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from base64 import b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lore.text import instructions
from lore.text.rule_model import BUCKETS, LONG, feature_names, hash_features, is_said_as_lasting

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DATA = Path(__file__).parent / "data"
MODEL = Path(__file__).parent.parent / "src" / "lore" / "data" / "rules.json"

PENALTY, WORD_PENALTY, FEWEST, STEPS, RATE = 1.0, 3.0, 3, 300, 0.3
"""L2 penalty of kinds of words, factor for single words, how often a feature must occur, and
AdaGrad's steps and rate: the best of a few tries on the projects other than minsky and entire."""

RULE_WEIGHT, REAL_WEIGHT, MADE_WEIGHT = 2.0, 2.0, 0.4
SUGGESTED, STANDS = 0.7, 0.85
EACH, SEED = 20, 16


class Sentence(NamedTuple):
    """One sentence of the training data."""

    text: str
    chars: int
    is_rule: bool
    is_certain: bool
    project: str
    near: str = ""
    is_unsure: bool = False


def main() -> None:
    """Print held-out figures, and write the model if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--show", action="store_true", help="print what is listed")
    options = parser.parse_args()
    trainer = Trainer(list(read_sentences()))
    for project in sorted({one.project for one in trainer.sentences} - {"made", "invented"}):
        trainer.show_held_out(project, show=options.show)
    if options.write:
        write(*trainer.fit(np.arange(len(trainer.sentences))))


def read_sentences() -> Iterator[Sentence]:
    """Yield the labelled sentences, invented ones, and those made of templates."""
    for row in _rows("rules.jsonl.gz"):
        chars = len(row["before"]) + len(row["text"])
        yield Sentence(row["text"], chars, row["rule"], row["certain"], "invented")
    for row in _rows("instructions.jsonl.gz"):
        labels = (row["rule"], row["certain"], row["project"], row.get("near", ""))
        yield Sentence(row["text"], row["chars"], *labels, row.get("unsure", False))
    for row in _rows("statements.jsonl.gz"):
        is_rule = row["first"]["rule"] or row["second"]["rule"]
        if not is_rule and is_said_as_lasting(row["text"]):
            yield Sentence(row["text"], LONG // 4, is_rule, is_rule, row["project"])
    yield from make_sentences(random.Random(SEED))


def _rows(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def make_sentences(chance: random.Random) -> Iterator[Sentence]:
    """Yield sentences made of templates."""
    parts = json.loads((DATA / "rule-templates.json").read_text("utf-8"))
    words = {key: values for key, values in parts.items() if key not in ("rules", "others")}
    for name, is_rule in (("rules", True), ("others", False)):
        for template in parts[name]:
            for _ in range(EACH):
                text = template.format(**{key: chance.choice(some) for key, some in words.items()})
                if not text.endswith("?"):
                    text = chance.choice(words["heads"]) + text + chance.choice(words["tails"])
                if chance.random() < 0.5:
                    text = text[0].upper() + text[1:] + ("" if text.endswith("?") else ".")
                yield Sentence(text, len(text), is_rule, is_rule, "made")


class Trainer:
    """The features of all sentences, and logistic models fitted to some of them."""

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        self.sentences = sentences
        self._penalty = np.full(BUCKETS, PENALTY * WORD_PENALTY)
        self._features = [self._hash(one) for one in sentences]

    def _hash(self, one: Sentence) -> Integers:
        names = set(feature_names(instructions.mask_quotes(one.text), one.chars))
        broad = hash_features(name for name in names if name[0] in "/#")
        self._penalty[list(broad)] = PENALTY
        return np.array(sorted(hash_features(names)), np.int64)

    def fit(self, places: Integers) -> tuple[Floats, float]:
        """Return weights and bias for some of the sentences."""
        rows = np.concatenate([np.full(len(self._features[i]), k) for k, i in enumerate(places)])
        columns = np.concatenate([self._features[i] for i in places])
        is_common = np.bincount(columns, minlength=BUCKETS)[columns] >= FEWEST
        rows, columns = rows[is_common], columns[is_common]
        is_rule = np.array([self.sentences[i].is_rule for i in places], np.float64)
        weight = np.array([_weight(self.sentences[i]) for i in places])
        weights, squares, bias, bias_square = np.zeros(BUCKETS), np.full(BUCKETS, 1e-8), 0.0, 1e-8
        for _ in range(STEPS):
            score = np.bincount(rows, weights[columns], len(places)) + bias
            error = weight * (1 / (1 + np.exp(-score)) - is_rule)
            gradient = np.bincount(columns, error[rows], BUCKETS) + self._penalty * weights
            squares += gradient**2
            weights -= RATE * gradient / np.sqrt(squares)
            bias_square += error.sum() ** 2
            bias -= RATE * error.sum() / np.sqrt(bias_square)
        return weights, float(bias)

    def show_held_out(self, project: str, *, show: bool) -> None:
        """Print how a model without a project does on it."""
        rest = [i for i, one in enumerate(self.sentences) if project not in (one.project, one.near)]
        weights, bias = self.fit(np.array(rest))
        own = [i for i, one in enumerate(self.sentences) if one.project == project]
        total = sum(self.sentences[i].is_rule for i in own)
        figures = [f"{project:12} {total:3} rules"]
        for title, threshold in (("suggested", SUGGESTED), ("stands", STANDS)):
            listed = [i for i in own if self._probability(i, weights, bias) >= threshold]
            if title == "stands":
                listed = [i for i in listed if is_said_as_lasting(self.sentences[i].text)]
            right = sum(self.sentences[i].is_rule for i in listed)
            unsure = sum(self.sentences[i].is_unsure for i in listed)
            figures.append(f"{title} {len(listed):3}: right {right:3}, unsure {unsure:2}")
            if show:
                _print_listed(title, [self.sentences[i] for i in listed])
        print("   ".join(figures), flush=True)

    def _probability(self, place: int, weights: Floats, bias: float) -> float:
        return float(1 / (1 + np.exp(-(weights[self._features[place]].sum() + bias))))


def _print_listed(title: str, listed: Sequence[Sentence]) -> None:
    for one in listed:
        label = "right" if one.is_rule else "unsure" if one.is_unsure else "wrong"
        print(f"  {title} {label}: {one.text}")


def _weight(one: Sentence) -> float:
    if one.is_unsure:
        return 0.0
    source = {"made": MADE_WEIGHT, "invented": 1.0}.get(one.project, REAL_WEIGHT)
    return source * (RULE_WEIGHT if one.is_rule else 1.0)


def write(weights: Floats, bias: float) -> None:
    """Write the model with one byte for each weight."""
    scale = float(np.abs(weights).max()) / 127
    codes = np.round(weights / scale).astype(np.int8)
    model = {
        "script": "benchmarks/train_rules.py",
        "scale": round(scale, 8),
        "bias": round(bias, 6),
        "suggested": SUGGESTED,
        "stands": STANDS,
        "weights": b64encode(codes.tobytes()).decode(),
    }
    MODEL.write_text(json.dumps(model, indent=1) + "\n", "utf-8")
    print(f"{MODEL.name}: {MODEL.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
