"""Train the model that says what to keep of what extraction found, and measure it held out.

    uv run python benchmarks/train_findings.py [--write] [--out FILE]

Reads `data/fragments.jsonl.gz`: what extraction found in real sessions, with a reader's verdict.
Each project is left out once: what is printed was not seen in training, except by the shipped
encoder and pair model, which know eight of the projects. The model is linear: ridge regression on
the features that the classifier of statements reads, too, with a logistic link that is fitted on
what was left out. People and agents have weights of their own; those of the one learn from the
findings of the other, which count `OTHERS`. A minute on a CPU.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore.embed import open_embedder
from lore.embed.models import DEFAULT
from lore.embed.pair_model import open_pair_model
from lore.llm.offline.extractor import KEPT_THRESHOLD
from lore.llm.offline.finding_judge import JUDGED_FORMS, JUDGED_USES, WEIGHTS
from lore.llm.offline.statement_classifier import (
    Form,
    SpokenStatement,
    Use,
    plain_features,
    reading_pair,
)
from lore.settings import load
from train_statements import (
    FEATURE_SCALE,
    KEPT_GRADES,
    READING_SCALE,
    area_under_curve,
    fit_link,
    probability,
)

Floats = NDArray[np.float64]

DATA = Path(__file__).parent / "data" / "fragments.jsonl.gz"
SPEAKERS: dict[str, Use] = {"user": "person", "assistant": "agent"}
PENALTY, OTHERS = 20.0, 0.5
"""Chosen on the projects left out; 10 to 30 and 0.3 to 1 differ little."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found: features, vectors, readings, and whether a reader would keep it."""

    projects: NDArray[np.str_]
    uses: NDArray[np.str_]
    plain: Floats
    vectors: Floats
    readings: Floats
    is_kept: Floats


def read_rows() -> list[dict[str, Any]]:
    """Return the judged findings of people and agents."""
    with gzip.open(DATA, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    return [row for row in rows if row["role"] in SPEAKERS]


def spoken(row: dict[str, Any]) -> SpokenStatement:
    """Return a finding as the product judges it."""
    return SpokenStatement(
        row["text"], row["before"], is_user=row["role"] == "user", place=row["at"],
        count=row["of"], is_item=row["item"], around=tuple(row["around"]),
    )  # fmt: skip


def read_findings(rows: list[dict[str, Any]]) -> Findings:
    """Return the features of judged findings, by the shipped models."""
    settings = load().settings
    model, embedder = open_pair_model(settings), open_embedder(settings).embedder
    if embedder.name != DEFAULT:
        sys.exit(f"The weights are for {DEFAULT}: unset embed.provider and embed.model.")
    if model is None:
        sys.exit("The pair model is not installed: 'uv sync' installs its weights.")
    found = [spoken(row) for row in rows]
    uses = [SPEAKERS[row["role"]] for row in rows]
    pairs = [reading_pair(one, use) for one, use in zip(found, uses, strict=True)]
    parts = [model.statements(pairs[at : at + 256]) for at in range(0, len(pairs), 256)]
    return Findings(
        np.array([row["project"] for row in rows]),
        np.array(uses),
        np.array([plain_features(one) for one in found]),
        embedder.embed([one.text for one in found]).astype(np.float64),
        np.concatenate(parts).astype(np.float64),
        np.array([float(row["mode"] == "settled") for row in rows]),
    )


@dataclass(frozen=True, slots=True)
class Layer:
    """The weights for one use and form."""

    mean: Floats
    scale: Floats
    weights: Floats
    form: Form

    def __call__(self, findings: Findings) -> Floats:
        """Return the scores of findings."""
        out: Floats = self.rows(findings) @ self.weights
        return out

    def rows(self, findings: Findings) -> Floats:
        """Return the scaled features of findings, with a constant."""
        scaled = (features(findings, self.form) - self.mean) * self.scale
        return np.hstack([findings.vectors, scaled, np.ones((len(scaled), 1))])


def features(findings: Findings, form: Form) -> Floats:
    """Return the features that are scaled."""
    return np.hstack([findings.plain, findings.readings]) if form == "read" else findings.plain


def train(findings: Findings, use: str, form: Form, chosen: NDArray[np.bool_]) -> Layer:
    """Return the weights that the chosen findings give for a use."""
    values = features(findings, form)[chosen]
    weight = np.full(values.shape[1], FEATURE_SCALE)
    weight[findings.plain.shape[1] :] = READING_SCALE
    mean, scale = values.mean(axis=0), weight / (values.std(axis=0) + 0.05)
    layer = Layer(mean, scale, np.zeros(0), form)
    rows = layer.rows(findings)[chosen]
    counts = np.where(findings.uses[chosen] == use, 1.0, OTHERS)[:, None]
    gram = (rows * counts).T @ rows + PENALTY * np.eye(rows.shape[1])
    weights = np.linalg.solve(gram, (rows * counts).T @ findings.is_kept[chosen])
    return Layer(mean, scale, weights.astype(np.float64), form)


def held_out(findings: Findings, use: str, form: Form) -> Floats:
    """Return the scores of a use from weights that have not seen the finding's project."""
    scores = np.zeros(len(findings.projects))
    for project in sorted(set(findings.projects.tolist())):
        left_out = findings.projects == project
        scores[left_out] = train(findings, use, form, ~left_out)(findings)[left_out]
    return scores


def report(findings: Findings, use: str, form: Form) -> tuple[Floats, list[float]]:
    """Print what is kept at several thresholds; return link and fifths of the probabilities."""
    group = findings.uses == use
    scores, truth = held_out(findings, use, form)[group], findings.is_kept[group]
    link = fit_link(scores, truth)
    chances = probability(scores, link)
    area = area_under_curve(scores, truth > 0)
    print(f"{use}, {form}: {len(truth)} judged, {truth.mean():.2f} to keep, area {area:.2f}")
    for least in sorted({0.3, 0.4, 0.5, 0.6, 0.7, KEPT_THRESHOLD}):
        kept = chances >= least
        mark = " *" if least == KEPT_THRESHOLD else ""
        share = truth[kept].mean() if kept.any() else float("nan")
        print(
            f"  from {least:<4} {int(kept.sum()):>5} kept, right {share:.2f}"
            f", of what is to keep {truth[kept].sum() / truth.sum():.2f}{mark}"
        )
    above = chances[chances >= KEPT_THRESHOLD]
    return link, [float(np.quantile(above, share)) for share in (0, 0.2, 0.4, 0.6, 0.8, 0.99)]


def main() -> None:
    """Print the held-out figures, and write the weights if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=WEIGHTS, help="where to write the weights")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    findings = read_findings(read_rows())
    stored: dict[str, Any] = {
        "encoder": np.array(DEFAULT),
        "provenance": np.array(
            "benchmarks/train_findings.py on benchmarks/data/fragments.jsonl.gz"
        ),
    }
    everything = np.ones(len(findings.projects), bool)
    for use in JUDGED_USES:
        for form in JUDGED_FORMS:
            link, fifths = report(findings, use, form)
            layer = train(findings, use, form, everything)
            arrays = {
                "mean": layer.mean, "scale": layer.scale, "weights": layer.weights[:, None],
                "link": link, "grades": np.array([fifths, KEPT_GRADES]),
            }  # fmt: skip
            stored |= {f"{use}_{form}_{key}": one.astype(np.float32) for key, one in arrays.items()}
    if options.write:
        with options.out.open("wb") as file:
            np.savez_compressed(file, **stored)
        print(f"{options.out}: {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
