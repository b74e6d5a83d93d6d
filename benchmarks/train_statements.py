"""Train the classifier that decides offline what is worth keeping, and measure it held out.

    uv run python benchmarks/train_statements.py --corpus SESSIONS --sentences FILE
    uv run python benchmarks/train_statements.py --corpus SESSIONS --readings FILE [--cache FILE]
                                                 [--write] [--without PROJECT --out FILE]

The first command writes the sentences for `train_pairs.py --held-out`, whose readings of them (by
models that have not seen the project) the second takes.

Reads the labels of `data/statements.jsonl.gz`, and the sessions that `fetch_sessions.py` writes and
those of the evaluation data. Each project is left out once: what is printed was not seen in
training, except by the encoder, which was trained on questions over all. Of talk, a fifth of
the conversations is left out at a time. Both readers' labels count half; sentences with one reader
were drawn for what they might be worth, so they are not measured, and those of people at work are
trained on. Of 827 statements of agents one reader said whether they hold for good (`mode`).

The model is linear: ridge regression on the mean of 'worth 1 or more' and 'worth 2 or more', and on
the kinds of what is worth something, with a logistic link to 'worth 1 or more' fitted on what was
left out. People at work, agents and talk have models of their own.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore.embed import open_embedder
from lore.embed.models import DEFAULT
from lore.llm.offline.extractor import TALK_THRESHOLD, WORK_THRESHOLD
from lore.llm.offline.statement_classifier import (
    FORMS,
    KINDS,
    USES,
    WEIGHTS,
    Form,
    SpokenStatement,
    Turn,
    Use,
    describe_message,
    plain_features,
    reading_pair,
    statement_use,
)
from lore.settings import load
from lore.text.statements import split_statements

Floats = NDArray[np.float64]

DATA = Path(__file__).parent / "data"
BENCH = Path(__file__).parents[1] / ".." / "shared" / "bench"
PENALTY = 10.0
"""Chosen on the projects left out."""

THRESHOLDS: dict[Use, float] = {
    "person": WORK_THRESHOLD,
    "agent": WORK_THRESHOLD,
    "talk": TALK_THRESHOLD,
}
TALK_FOLDS = 5

ONE_READER: tuple[Use, ...] = ("person",)
"""Whose sentences with one reader are trained on. Of agents and talk there are enough others, and
there the held-out figures did not change. `worth.py` was looked at for this choice: 112 of 263
items with all of them (before commit messages were read), 115 with none, 118 with these.
"""

PROVENANCE = "benchmarks/train_statements.py on benchmarks/data/statements.jsonl.gz"

FEATURE_SCALE = 1 / 7
"""A plain feature of average spread weighs about as much as a component of the vector."""

READING_SCALE = 1.0
"""Readings weigh more: there are few of them, and they say most."""

KEPT_GRADES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.65)
"""Importance at the threshold, and at each further fifth of what is kept.

What is new to a memory gets up to half as much again: see `placement.raise_importance`.
"""

_TURNS: dict[str, Turn] = {
    "user": "user", "assistant": "assistant", "tool": "call", "result": "result",
}  # fmt: skip
_ITEM = re.compile(r"^\s*(?:[-*•+]|\d{1,3}[.)])\s+")
_MARK = re.compile(r"^\s*(?:[-*•+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?|^#+\s+|^>\s*|^\||\|$")


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a compressed file."""
    with gzip.open(path) as file:
        yield from map(json.loads, file)


def session_path(project: str, corpus: Path) -> Path:
    """Return where the sessions of a project are."""
    name = f"coding-sessions{'' if project == 'entire' else '-' + project}.jsonl.gz"
    return next((p for p in (corpus / name, BENCH / name) if p.exists()), corpus / name)


def read_turns(project: str, corpus: Path) -> dict[str, list[tuple[str, str]]]:
    """Return the turns of each session of a project, as role and text."""
    if project == "chats":
        rows = read_lines(DATA / "chats-lore.jsonl.gz")
        return {
            row["id"]: [
                ("assistant" if turn["speaker"].lower() == "assistant" else "user", turn["text"])
                for turn in row["turns"]
            ]
            for row in rows
        }
    rows = read_lines(session_path(project, corpus))
    return {row["sid"]: [(role, text) for role, text, _ in row["turns"]] for row in rows}


def plain_text(text: str) -> str:
    """Return a labelled sentence as the product splits it: without its mark and emphasis."""
    parts = split_statements(_MARK.sub("", text))
    return " ".join(part.text for part in parts) or text


@dataclass(frozen=True, slots=True)
class Examples:
    """Labelled statements: features, vectors and the readers' mean labels."""

    projects: NDArray[np.str_]
    folds: NDArray[np.str_]
    uses: NDArray[np.str_]
    plain: Floats
    vectors: Floats
    readings: Floats
    """What the pair model reads, trained without the example's fold."""
    grades: Floats
    """The share of readers that gave a worth of at least 1, 2 and 3."""
    kinds: Floats
    measured: NDArray[np.bool_]
    """Drawn without regard to their words, and labelled by two readers."""

    @property
    def target(self) -> Floats:
        """Return what worth is trained on."""
        mean: Floats = self.grades[:, :2].mean(axis=1)
        return mean


Labelled = list[tuple[dict[str, Any], SpokenStatement, Use]]


def read_labels(corpus: Path) -> Labelled:
    """Read the labels, and look up the turns around them."""
    rows = list(read_lines(DATA / "statements.jsonl.gz"))
    turns = {project: read_turns(project, corpus) for project in {row["project"] for row in rows}}
    spoken = [_spoken(row, turns[row["project"]][row["session"]]) for row in rows]
    return [
        (row, one, statement_use(one, at_work=row["project"] != "chats"))
        for row, one in zip(rows, spoken, strict=True)
    ]


def write_sentences(labelled: Labelled, path: Path) -> None:
    """Write the sentences as the pair model reads them, with their labels and folds."""
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        for row, one, use in labelled:
            context, text = reading_pair(one, use)
            read = {"context": context, "read": text, "fold": _fold(row)}
            labels = {name: row[name] for name in ("first", "second") if name in row}
            stream.write(json.dumps({"id": row["id"], **read, **labels}) + "\n")


def read_examples(labelled: Labelled, readings: Path) -> Examples:
    """Return the examples: their features, vectors and readings."""
    outputs = {row["id"]: row["scores"] for row in read_lines(readings)}
    with tempfile.TemporaryDirectory() as home:
        embedder = open_embedder(load(home=Path(home)).settings).embedder
        vectors = embedder.embed([one.text for _, one, _ in labelled])
    readers = [[row[name] for name in ("first", "second") if name in row] for row, _, _ in labelled]
    worth = [np.array([one["worth"] for one in some]) for some in readers]
    return Examples(
        np.array([row["project"] for row, _, _ in labelled]),
        np.array([_fold(row) for row, _, _ in labelled]),
        np.array([use for _, _, use in labelled]),
        np.array([plain_features(one) for _, one, _ in labelled]),
        vectors.astype(np.float64),
        np.array([outputs[row["id"]] for row, _, _ in labelled]),
        np.array([[(one >= least).mean() for least in (1, 2, 3)] for one in worth]),
        np.array([
            [np.mean([one["kind"] == kind for one in some]) for kind in KINDS] for some in readers
        ]),
        np.array([len(some) == 2 for some in readers]),
    )


def _fold(row: dict[str, Any]) -> str:
    """Return the group that a statement is left out with."""
    if row["project"] != "chats":
        return str(row["project"])
    return f"chats {zlib.crc32(row['session'].encode()) % TALK_FOLDS}"


def _spoken(row: dict[str, Any], session: Sequence[tuple[str, str]]) -> SpokenStatement:
    listed = [(role, place) for place, (role, _) in enumerate(session) if role in _TURNS]
    at = next(i for i, (_, place) in enumerate(listed) if place >= row["turn"])
    around = describe_message(session[row["turn"]][1], [_TURNS[role] for role, _ in listed], at)
    return SpokenStatement(
        plain_text(row["text"]), plain_text(row["before"]), row["role"] == "user",
        bool(row.get("speaker")), row["at"], row["of"],
        row.get("item", bool(_ITEM.match(row["text"]))),
        around,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Model:
    """The weights of one head."""

    mean: Floats
    scale: Floats
    weights: Floats
    form: Form

    def __call__(self, examples: Examples) -> Floats:
        """Return worth and kinds of examples."""
        out: Floats = self.rows(examples) @ self.weights
        return out

    def rows(self, examples: Examples) -> Floats:
        """Return the scaled features of examples, with a constant."""
        scaled = (features(examples, self.form) - self.mean) * self.scale
        parts = [scaled] if self.form == "plain" else [examples.vectors, scaled]
        return np.hstack([*parts, np.ones((len(scaled), 1))])


def features(examples: Examples, form: Form) -> Floats:
    """Return the features that are scaled: plain ones, and readings where the form has them."""
    return np.hstack([examples.plain, examples.readings]) if form == "read" else examples.plain


def train(examples: Examples, chosen: NDArray[np.bool_], form: Form) -> Model:
    """Return the model of the chosen examples."""
    values = features(examples, form)[chosen]
    weight = np.full(values.shape[1], FEATURE_SCALE)
    weight[examples.plain.shape[1] :] = READING_SCALE
    mean, scale = values.mean(axis=0), weight / (values.std(axis=0) + 0.05)
    model = Model(mean, scale, np.zeros((0, 0)), form)
    rows = model.rows(examples)[chosen]
    worth = _solve(rows, np.ones(len(rows)), examples.target[chosen][:, None])
    kinds = examples.kinds[chosen]
    balance = kinds @ (1 / np.sqrt(kinds.sum(axis=0) + 1))
    weights = np.hstack([worth, _solve(rows, balance, kinds)])
    return Model(mean, scale, weights, form)


def _solve(rows: Floats, weight: Floats, targets: Floats) -> Floats:
    """Return the weights of a ridge regression whose rows weigh 1 on average, where any do."""
    scaled = (weight / weight[weight > 0].mean())[:, None]
    gram = (rows * scaled).T @ rows + PENALTY * np.eye(rows.shape[1])
    solved: Floats = np.linalg.solve(gram, (rows * scaled).T @ targets)
    return solved


def held_out(examples: Examples, group: NDArray[np.bool_], form: Form) -> Floats:
    """Return the outputs for a group from models that have not seen the example's fold."""
    outputs = np.zeros((len(examples.projects), 1 + len(KINDS)))
    for fold in sorted(set(examples.folds[group].tolist())):
        left_out = examples.folds == fold
        model = train(examples, group & ~left_out, form)
        outputs[left_out] = model(examples)[left_out]
    return outputs


def fit_link(score: Floats, target: Floats) -> Floats:
    """Return slope and offset of the logistic link from a score to a probability (Newton steps)."""
    rows = np.stack([score, np.ones_like(score)], axis=1)
    link = np.zeros(2)
    for _ in range(30):
        guess = 1 / (1 + np.exp(-rows @ link))
        hessian = (rows * (guess * (1 - guess))[:, None]).T @ rows + 1e-6 * np.eye(2)
        link += np.linalg.solve(hessian, rows.T @ (target - guess))
    return link


def probability(score: Floats, link: Floats) -> Floats:
    """Return the probability of a score."""
    out: Floats = 1 / (1 + np.exp(-(link[0] * score + link[1])))
    return out


def report(
    examples: Examples, threshold: float, group: NDArray[np.bool_], outputs: Floats, link: Floats
) -> None:
    """Print precision and recall at several thresholds, and the kinds at the one in use."""
    worth = probability(outputs[:, 0], link)
    total = examples.grades[group].sum(axis=0)
    for line in sorted({0.5, 0.6, 0.65, 0.75, 0.8, 0.85, 0.9, threshold}):
        kept = group & (worth >= line)
        grades = examples.grades[kept]
        mark = " *" if line == threshold else ""
        print(
            f"  worth ≥ {line:<5} {int(kept.sum()):>5} of {int(group.sum())}"
            f", worth 1+ {_mean(grades[:, 0])}, worth 2+ {_mean(grades[:, 1])}"
            f"; recall of 1+ {grades[:, 0].sum() / total[0]:.2f}"
            f", of 2+ {grades[:, 1].sum() / total[1]:.2f}{mark}"
        )
    some = group & (examples.kinds.sum(axis=1) > 0)
    kinds = outputs[:, 1:].argmax(axis=1)
    right = kinds[some] == examples.kinds[some].argmax(axis=1)
    print(f"  kind right {right.mean():.2f} of {int(some.sum())} with a kind")
    for kind, name in enumerate(KINDS):
        labelled = some & (examples.kinds[:, kind] >= 0.5)
        chosen = group & (worth >= threshold) & (kinds == kind)
        print(
            f"  {name:<13} {int(labelled.sum()):>4} labelled, recall "
            f"{np.mean(worth[labelled] >= threshold):.2f}; {int(chosen.sum()):>4} kept, worth 1+ "
            f"{_mean(examples.grades[chosen][:, 0])}, right kind "
            f"{_mean(examples.kinds[chosen][:, kind])}"
        )


def _mean(values: Floats) -> str:
    return f"{values.mean():.2f}" if len(values) else "  – "


def learned_from(examples: Examples, use: Use) -> NDArray[np.bool_]:
    """Return which examples the weights of a use are trained on."""
    chosen: NDArray[np.bool_] = (examples.uses == use) & (
        examples.measured if use not in ONE_READER else True
    )
    return chosen


def held_out_head(
    examples: Examples, use: Use, form: Form, without: str = ""
) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """Return the statements of a use, their held-out outputs, and the link of these."""
    group = learned_from(examples, use)
    outputs = held_out(examples, group, form)
    group &= examples.measured
    seen = group & (examples.projects != without)
    return group, outputs, fit_link(outputs[seen, 0], examples.grades[seen, 0])


def write_weights(examples: Examples, path: Path, *, without: str = "") -> None:
    """Train on all projects, or on all but one, and write the weights."""
    stored: dict[str, Any] = {"encoder": np.array(DEFAULT), "provenance": np.array(PROVENANCE)}
    for use in USES:
        for form in FORMS:
            arrays = _head_arrays(examples, use, form, without)
            stored |= {f"{use}_{form}_{key}": array for key, array in arrays.items()}
    with path.open("wb") as file:
        np.savez_compressed(file, **stored)


def _head_arrays(
    examples: Examples, use: Use, form: Form, without: str
) -> dict[str, NDArray[np.float32]]:
    group, outputs, link = held_out_head(examples, use, form, without)
    seen = group & (examples.projects != without)
    kept = outputs[seen & (probability(outputs[:, 0], link) >= THRESHOLDS[use]), 0]
    fifths = [np.quantile(kept, share) for share in (0, 0.2, 0.4, 0.6, 0.8, 0.99)]
    low = np.quantile(outputs[seen, 0], 0.05)
    others = examples.projects != without
    model = train(examples, learned_from(examples, use) & others, form)
    arrays = {
        "mean": model.mean, "scale": model.scale, "weights": model.weights, "link": link,
        "grades": np.array([[low, *fifths], [0.0, *KEPT_GRADES]]),
    }  # fmt: skip
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def area_under_curve(score: Floats, truth: NDArray[np.bool_]) -> float:
    """Return how often a true one scores above another."""
    ranks = score.argsort().argsort()
    right, wrong = int(truth.sum()), int((~truth).sum())
    above = int(ranks[truth].sum()) - right * (right - 1) / 2
    return float(above / max(1, right * wrong))


def main() -> None:
    """Train, print the held-out figures, and write the weights if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True, help="folder of fetch_sessions.py")
    parser.add_argument("--without", default="", help="leave a project out of the weights, too")
    parser.add_argument("--out", type=Path, default=WEIGHTS, help="where to write the weights")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--cache", type=Path, help="keep the examples here, or use those here")
    parser.add_argument("--sentences", type=Path, help="only write the sentences there")
    parser.add_argument("--readings", type=Path, help="what train_pairs.py --held-out wrote")
    options = parser.parse_args()
    if options.sentences:
        write_sentences(read_labels(options.corpus), options.sentences)
        return
    examples = cached_examples(options.cache, options.corpus, options.readings)
    for use in USES:
        for form in FORMS:
            print(f"{use}, {form}:")
            group, outputs, link = held_out_head(examples, use, form)
            report(examples, THRESHOLDS[use], group, outputs, link)
    if options.write:
        write_weights(examples, options.out, without=options.without)
        print(f"{options.out}: {options.out.stat().st_size:,} bytes")


def cached_examples(path: Path | None, corpus: Path, readings: Path) -> Examples:
    """Return the examples from a file, or read them and keep them there."""
    if path and path.exists():
        with np.load(path) as stored:
            return Examples(*(stored[name] for name in Examples.__dataclass_fields__))
    examples = read_examples(read_labels(corpus), readings)
    if path:
        with path.open("wb") as file:
            np.savez(
                file, **{name: getattr(examples, name) for name in Examples.__dataclass_fields__}
            )
    return examples


if __name__ == "__main__":
    main()
