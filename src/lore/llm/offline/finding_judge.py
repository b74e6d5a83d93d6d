"""A small trained model says how likely a reader would keep what extraction found."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lore.llm.offline.statement_classifier import (
    Embed,
    Form,
    Read,
    SpokenStatement,
    Use,
    load_linear_models,
    plain_features,
    reading_pair,
    statement_use,
)

WEIGHTS = Path(__file__).parents[2] / "data" / "findings.npz"
"""Made by `benchmarks/train_findings.py`, which also measures it on projects left out."""

JUDGED_USES: tuple[Use, ...] = ("person", "agent")
"""Readers judged what was found in sessions of work, not in talk."""

JUDGED_FORMS: tuple[Form, ...] = ("vectors", "read")
"""Plain features alone tell too little of a finding."""


class Judgement(NamedTuple):
    """How likely a reader would keep a finding, and its grade of importance from 0 to 1."""

    chance: float
    importance: float


class FindingJudge:
    """Reads a finding as a whole, with the words that complete it and where it was said.

    It tells what readers keep from what is trivial, cannot be understood alone, or did not last.
    """

    def __init__(self, path: Path = WEIGHTS) -> None:
        with np.load(path) as stored:
            self.encoder = str(stored["encoder"])
            self._models = load_linear_models(stored, product(JUDGED_USES, JUDGED_FORMS))

    def judge(
        self,
        findings: Sequence[SpokenStatement],
        embed: Embed | None,
        *,
        at_work: bool,
        read: Read | None = None,
    ) -> list[Judgement | None]:
        """Judge each; None for what is of talk, and for all without the encoder `self.encoder`."""
        judgements: dict[int, Judgement] = {}
        uses = [statement_use(one, at_work=at_work) for one in findings]
        for use in JUDGED_USES:
            places = [place for place, other in enumerate(uses) if other == use]
            if embed and places:
                judged = self._judge(use, [findings[place] for place in places], embed, read)
                judgements |= zip(places, judged, strict=True)
        return [judgements.get(place) for place in range(len(findings))]

    def _judge(
        self, use: Use, some: Sequence[SpokenStatement], embed: Embed, read: Read | None
    ) -> list[Judgement]:
        features = np.array([plain_features(one) for one in some], np.float32)
        vectors = embed([one.text for one in some])
        readings = read([reading_pair(one, use) for one in some]) if read else None
        form: Form = "vectors" if readings is None else "read"
        if readings is not None:
            features = np.hstack([features, readings])
        model = self._models[use, form]
        chances = model.probabilities(model.outputs(features, vectors)[:, 0])
        importance = model.grade(chances)
        return list(map(Judgement, chances.tolist(), importance.tolist()))


@cache
def shipped_judge() -> FindingJudge:
    """Return the judge of this package, loaded on the first call."""
    return FindingJudge()
