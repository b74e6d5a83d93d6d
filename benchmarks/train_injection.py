"""Train the probability that an item answers a prompt or matters for it.

    uv run python benchmarks/injection_table.py --data benchmarks/data --corpus SESSIONS --out TABLE
    uv run --with scipy python benchmarks/train_injection.py --table TABLE \\
        --data benchmarks/data --write

Each project is left out once: what is printed was not seen in training. (The encoder and the
ranking that are shipped know the questions of all projects; what they add is not held out.)
`--apart` are more questions, which are printed apart.
Needs scipy.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from injection_table import NEAR, NEEDS, TASK, Row
from lore.evals.datasets import UNANSWERABLE, read_rows
from lore.recall.fusion import CLIPPED
from lore.recall.prompt_model import NAMES, SCREEN_NAMES
from lore.text import words

Floats = NDArray[np.float64]

HIDDEN, PENALTY = 8, 4.0
SHARES = {"direct": 1.0, "needs": 1.0, "near": 1.5, "none": 1.5, "foreign": 2.0, "task": 3.0}
"""What a prompt counts in training: most of what people type are tasks, and few have labels."""

ANSWERED = 0.8
"""An item with this share of the answer's words may be right without being named as evidence: it
is not trained on."""

UNKNOWN = 0.25
"""An item for a piece of work that is this likely by an earlier estimate, but neither evidence nor
judged, is not trained on: of 120 such items readers found 70 helpful, and 10 noise."""

HELPS, MILD = 1.5, 0.75
"""Mean labels from which readers find that an item helps, and below which it is noise."""

PROMPT_CHARS, TEXT_CHARS = 700, 750
"""Beginnings of a prompt and a passage by which their judgement is found."""

MOST_ITEMS = 3
"""As many items as the budget of tokens usually has room for."""

THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
LIKELY, LOST = 0.3, 0.01
"""Share of what has this probability that an earlier estimate may lose."""

DATA = Path(__file__).parent.parent / "src" / "lore" / "data"


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt with its candidates as rows, which of them are right, and which of them count."""

    row: Row
    kind: str
    matrix: Floats
    right: NDArray[np.bool_]
    counts: NDArray[np.bool_]
    is_judged: NDArray[np.bool_]
    is_apart: bool = False

    @property
    def is_of_facts(self) -> bool:
        """Return whether the memory has stored statements only."""
        return self.row.project.startswith("facts")

    def narrow(self, width: int) -> Example:
        """Return the example with the first features only."""
        return replace(self, matrix=self.matrix[:, :width])


@dataclass(frozen=True, slots=True)
class Fitted:
    """A linear model with a hidden layer beside it."""

    mean: Floats
    deviation: Floats
    linear: Floats
    hidden: Floats
    hidden_bias: Floats
    output: Floats
    bias: float

    def odds(self, matrix: Floats) -> Floats:
        """Return the log odds of each row."""
        z = np.clip((matrix - self.mean) / self.deviation, -CLIPPED, CLIPPED)
        layer = np.tanh(z @ self.hidden + self.hidden_bias)
        return np.asarray(z @ self.linear + layer @ self.output + self.bias)

    def scaled(self, factor: float, offset: float) -> Fitted:
        """Return the model whose log odds are scaled and moved."""
        return Fitted(
            self.mean, self.deviation, factor * self.linear, self.hidden, self.hidden_bias,
            factor * self.output, factor * self.bias + offset,
        )  # fmt: skip

    def as_json(self) -> dict[str, object]:
        """Return the coefficients as JSON."""
        return {name: np.round(getattr(self, name), 5).tolist() for name in self.__slots__}


def main() -> None:
    """Train, print held-out figures, and write the coefficients if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--apart", type=Path, help="folder of questions that are printed apart")
    parser.add_argument("--labels", type=Path)
    parser.add_argument("--show", type=float, help="print what is wrong above this probability")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    examples = read_examples(options)
    first = Held.of(examples)
    examples = [leave_unknown(*both) for both in zip(examples, first.likely, strict=True)]
    narrow = [one.narrow(len(SCREEN_NAMES)) for one in examples]
    decided, screened = Held.of(examples), Held.of(narrow)
    show(examples, decided.likely)
    least = _threshold(decided.likely, screened.likely)
    print(f"screened below {least:.4f}")
    if options.show:
        show_wrong(examples, decided.likely, options.show)
    if options.write:
        content = {
            "script": "benchmarks/train_injection.py",
            "features": NAMES,
            "least": round(least, 5),
            "decision": decided.fit(examples).as_json(),
            "screen": screened.fit(narrow).as_json(),
        }
        (DATA / "injection.json").write_text(json.dumps(content) + "\n", "utf-8")


@dataclass(frozen=True, slots=True)
class Held:
    """Probabilities by models that were not trained on the project, and how to scale odds."""

    likely: list[Floats]
    factor: float
    offset: float

    @classmethod
    def of(cls, examples: Sequence[Example]) -> Held:
        """Leave out each project once."""
        held = hold_out(examples)
        factor, offset = calibrate(examples, held)
        return cls([_logistic(factor * odds + offset) for odds in held], factor, offset)

    def fit(self, examples: Sequence[Example]) -> Fitted:
        """Return a model of all projects, calibrated like those that were held out."""
        return fit(examples).scaled(self.factor, self.offset)


def read_examples(options: argparse.Namespace) -> list[Example]:
    """Return the prompts of a table, with labels from evidence and from readers."""
    sys.modules["__main__"].Row = Row  # type: ignore[attr-defined]  # the table's script pickled it
    questions = [
        raw for path in options.data.glob("coding-qa*.jsonl.gz") for raw in read_rows(path)
    ]
    by_id = {raw["id"]: raw for raw in questions}
    answers = {raw["question"]: raw.get("answer") or "" for raw in questions}
    for raw in read_rows(options.data / "injection-tasks.jsonl.gz"):
        answers[raw["task"]] = by_id[raw["id"]].get("answer") or ""
    apart = {
        raw["question"]: raw.get("answer") or ""
        for path in (options.apart.glob("coding-qa*.jsonl.gz") if options.apart else ())
        for raw in read_rows(path)
    }
    labels = {
        (raw["prompt"], tuple(raw["item"])): bool(raw["helps"])
        for raw in read_rows(options.labels or options.data / "injection-labels.jsonl.gz")
    }
    judged = {
        (raw["prompt"][:PROMPT_CHARS], raw["text"][:TEXT_CHARS]): float(np.mean(raw["labels"]))
        for raw in read_rows(options.data / "injection-judged.jsonl.gz")
    }
    examples = []
    for path in sorted(options.table.glob("*.pickle")):
        rows: list[Row] = pickle.loads(path.read_bytes())  # noqa: S301 - the table's script wrote it
        for row in rows:
            example = _example(row, apart | answers, labels) if len(row.right) else None
            if example is not None:
                example = judge(example, judged)
                examples.append(replace(example, is_apart=row.prompt in apart))
    return examples


def leave_unknown(example: Example, likely: Floats) -> Example:
    """Return a piece of work without the likely items of which nobody knows whether they help."""
    if example.kind not in (NEEDS, NEAR):
        return example
    is_known = example.right | example.is_judged | (likely < UNKNOWN)
    return replace(example, counts=example.counts & is_known)


Judged = dict[tuple[str, str], float]


def judge(example: Example, judged: Judged) -> Example:
    """Return an example in which what readers said counts: helps, noise, or neither."""
    start = example.row.prompt[:PROMPT_CHARS]
    labels = [judged.get((start, text[:TEXT_CHARS])) for text in example.row.texts]
    known = np.array([label is not None for label in labels], np.bool_)
    value = np.array([label or 0.0 for label in labels])
    return replace(
        example,
        right=np.where(known, value >= HELPS, example.right),
        counts=np.where(known, (value >= HELPS) | (value < MILD), example.counts),
        is_judged=known,
    )


def _example(
    row: Row, answers: dict[str, str], labels: dict[tuple[str, tuple[str, ...]], bool]
) -> Example | None:
    everything = np.ones(len(row.right), np.bool_)
    if row.kind == TASK:
        found = [labels.get((row.memory, tuple(units))) for units in row.units]
        counts = np.array([label is not None for label in found], np.bool_)
        return Example(row, "task", row.matrix, np.array(found, np.bool_), counts, ~everything)
    if row.kind in (UNANSWERABLE, "foreign", NEAR):
        kind = "none" if row.kind == UNANSWERABLE else row.kind
        return Example(row, kind, row.matrix, ~everything, everything, ~everything)
    if not row.possible:
        return None
    may_answer = [_may_answer(row.prompt, answers.get(row.prompt, ""), text) for text in row.texts]
    counts = row.right | ~np.array(may_answer, np.bool_)
    kind = NEEDS if row.kind == NEEDS else "direct"
    return Example(row, kind, row.matrix, row.right, counts, ~everything)


def _may_answer(question: str, answer: str, text: str) -> bool:
    wanted = {w for w in words.split(answer) if w not in words.STOP_WORDS}
    wanted -= set(words.split(question))
    return len(wanted) > 1 and len(wanted & set(words.split(text))) >= ANSWERED * len(wanted)


def fit(examples: Sequence[Example]) -> Fitted:
    """Fit the features of the candidates that count, each kind of prompt by its share."""
    matrix = np.concatenate([e.matrix[e.counts] for e in examples])
    width = matrix.shape[1]
    right = np.concatenate([e.right[e.counts] for e in examples]).astype(float)
    share = np.concatenate([np.full(int(e.counts.sum()), SHARES[e.kind]) for e in examples])
    share /= share.sum()
    mean, deviation = matrix.mean(axis=0), matrix.std(axis=0) + 1e-3
    z = np.clip((matrix - mean) / deviation, -CLIPPED, CLIPPED)
    chance = np.random.default_rng(7)
    start = np.concatenate([
        np.zeros(width), chance.normal(0, 0.3 / width**0.5, width * HIDDEN), np.zeros(HIDDEN),
        chance.normal(0, 0.1, HIDDEN), [0.0],
    ])  # fmt: skip

    def parts(beta: Floats) -> tuple[Floats, Floats, Floats, Floats, float]:
        cut = np.split(beta, np.cumsum([width, width * HIDDEN, HIDDEN, HIDDEN]))
        return cut[0], cut[1].reshape(width, HIDDEN), cut[2], cut[3], float(cut[4][0])

    def loss(beta: Floats) -> tuple[float, Floats]:
        linear, hidden, hidden_bias, output, bias = parts(beta)
        layer = np.tanh(z @ hidden + hidden_bias)
        odds = z @ linear + layer @ output + bias
        slope = share * (_logistic(odds) - right)
        back = slope[:, None] * output * (1 - layer**2)
        gradient = np.concatenate([
            z.T @ slope, (z.T @ back).ravel(), back.sum(axis=0), layer.T @ slope, [slope.sum()],
        ])  # fmt: skip
        small = 0.001 * PENALTY * np.append(beta[:-1], 0.0)
        value = float((share * (np.logaddexp(0, odds) - right * odds)).sum())
        return value + 0.5 * float(small @ beta), gradient + small

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return Fitted(mean, deviation, *parts(found.x))


def hold_out(examples: Sequence[Example]) -> list[Floats]:
    """Return log odds by models that were not trained on the project."""
    odds: list[Floats] = [np.zeros(0)] * len(examples)
    for project in sorted({e.row.project for e in examples}):
        fitted = fit([e for e in examples if e.row.project != project])
        for place, example in enumerate(examples):
            if example.row.project == project:
                odds[place] = fitted.odds(example.matrix)
    return odds


def calibrate(examples: Sequence[Example], held: Sequence[Floats]) -> tuple[float, float]:
    """Return factor and offset by which held-out odds become probabilities (Platt scaling)."""
    odds = np.concatenate([o[e.counts] for e, o in zip(examples, held, strict=True)])
    right = np.concatenate([e.right[e.counts] for e in examples]).astype(float)
    share = np.concatenate([np.full(int(e.counts.sum()), SHARES[e.kind]) for e in examples])

    def loss(beta: Floats) -> float:
        scaled = beta[0] * odds + beta[1]
        return float((share * (np.logaddexp(0, scaled) - right * scaled)).sum())

    factor, offset = minimize(loss, np.array([1.0, 0.0]), method="Nelder-Mead").x
    return float(factor), float(offset)


def _threshold(likely: Sequence[Floats], before: Sequence[Floats]) -> float:
    """Return what an earlier estimate gives hardly anything less of all that is likely."""
    passing = np.concatenate([b[p >= LIKELY] for p, b in zip(likely, before, strict=True)])
    return float(np.quantile(passing, LOST))


def show(examples: Sequence[Example], likely: Sequence[Floats]) -> None:
    """Print precision and recall by threshold, by size of memory and by project."""
    groups: dict[str, Callable[[Example], bool]] = {
        "all": lambda e: not e.is_apart and not e.is_of_facts,
        "apart": lambda e: e.is_apart,
        "facts": lambda e: e.is_of_facts,
    }
    for name in ("full", "small", "tiny"):
        groups[name] = lambda e, name=name: e.row.memory.startswith(name)  # type: ignore[misc]
    for name in sorted({e.row.project for e in examples}):
        groups[name] = lambda e, name=name: e.row.project == name  # type: ignore[misc]
    for name, belongs in groups.items():
        chosen = [(e, p) for e, p in zip(examples, likely, strict=True) if belongs(e)]
        print(f"{name}: {len(chosen)} prompts")
        for threshold in THRESHOLDS:
            print(f"  {threshold:.1f} {_figures(chosen, threshold)}", flush=True)
    flat = np.concatenate([p[e.counts] for e, p in zip(examples, likely, strict=True)])
    right = np.concatenate([e.right[e.counts] for e in examples])
    for low in np.arange(0, 1, 0.1):
        inside = (flat >= low) & (flat < low + 0.1)
        if inside.any():
            print(f"  said {low:.1f}: {100 * right[inside].mean():5.1f} % right, n={inside.sum()}")


def _figures(chosen: Sequence[tuple[Example, Floats]], threshold: float) -> str:
    cells = []
    for kind in ("direct", NEEDS, NEAR, "none", "foreign", "task"):
        given = [
            (e, (p >= threshold) & (np.argsort(np.argsort(-p)) < MOST_ITEMS))
            for e, p in chosen
            if e.kind == kind
        ]
        if not given:
            continue
        items = sum(int((shown & e.counts).sum()) for e, shown in given)
        right = sum(int((shown & e.counts & e.right).sum()) for e, shown in given)
        prompts = sum(bool(shown.any()) for _, shown in given)
        good = sum(bool((shown & e.right).any()) for e, shown in given)
        cell = f"{kind} {100 * prompts / len(given):.1f}% of {len(given)} get any"
        if kind in ("direct", NEEDS, "task"):
            cell += f", right {100 * right / max(1, items):.1f}% of items, "
            cell += f"{100 * good / max(1, prompts):.1f}% of prompts"
        if kind in ("direct", NEEDS):
            cell += f", recall {100 * good / len(given):.1f}%"
        cells.append(cell)
    return " | ".join(cells)


def show_wrong(examples: Sequence[Example], likely: Sequence[Floats], least: float) -> None:
    """Print items that are wrong although they look right."""
    for example, chances in zip(examples, likely, strict=True):
        for place in np.flatnonzero((chances >= least) & ~example.right & example.counts):
            row = example.row
            print(f"{example.kind} {row.project} {chances[place]:.2f}\n  {row.prompt[:300]}")
            print(f"  > {' '.join(row.texts[place].split())[:400]}")


def _logistic(odds: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-odds)))


if __name__ == "__main__":
    main()
