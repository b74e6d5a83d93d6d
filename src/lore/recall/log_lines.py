"""Log lines: which lines of a distillation fit a question, and which messages they tell."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from lore.recall.features import Floats, needle
from lore.recall.question import Question
from lore.recall.texts import plain
from lore.store.keywords import stem
from lore.text import tokens

EXCERPT_TOKENS = 220
"""A longer text is shown around the words of the question; `read` gives the whole."""

FITTING = 0.5
"""Lines that have at least this share of what the best line has are shown beside it."""

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_HEADING = re.compile(r"^\d{4}-\d\d-\d\d$|:$|^\s*$")


class Shown(NamedTuple):
    """The lines of a distillation that are shown, and the messages they tell, best first."""

    text: str
    sources: tuple[str, ...]


def choose(
    text: str,
    told: Sequence[Sequence[str]],
    question: Question,
    rarity: Floats,
    *,
    most_tokens: int,
    known: Collection[str] = (),
) -> Shown:
    """Return the lines that fit a question best, in their order; none that tells what is known.

    `told` has for each line the ids of its messages. Lines that have none of the words are
    shown only where no line has any: the distillation was found by its meaning then.
    """
    lines = text.split("\n")
    sources = [tuple(told[i]) if i < len(told) else () for i in range(len(lines))]
    fit = _fit(lines, question, rarity)
    open_ = [
        i
        for i, line in enumerate(lines)
        if any(id_ not in known for id_ in sources[i]) or not (sources[i] or _HEADING.search(line))
    ]
    if not open_:
        return Shown("", ())
    best = max(fit[i] for i in range(len(lines)))
    wanted = [i for i in open_ if fit[i] >= FITTING * best and (fit[i] > 0 or best <= 0)]
    order = sorted(wanted, key=lambda i: -fit[i])
    kept: list[int] = []
    spent = 0
    for i in order:
        size = tokens.count(lines[i])
        if kept and spent + size > most_tokens:
            continue
        kept.append(i)
        spent += size
    found = tuple(dict.fromkeys(n for i in kept for n in sources[i]))
    return Shown(_with_days(lines, sorted(kept)), found)


def _fit(lines: Sequence[str], question: Question, rarity: Floats) -> Floats:
    """Return how much of the question stands in each line, by how telling its words are."""
    fit = np.zeros(len(lines))
    levelled = [plain(line) for line in lines]
    for term, weight in zip(question.terms, rarity.tolist(), strict=True):
        wanted = needle(term, stem(term))
        fit += [weight * (wanted in line) for line in levelled]
    return fit


def _with_days(lines: Sequence[str], kept: Sequence[int]) -> str:
    """Return lines in order, each day before the first line of it."""
    shown: list[str] = []
    days = [i for i, line in enumerate(lines) if _DAY.fullmatch(line)]
    last = -1
    for i in kept:
        day = max((d for d in days if d < i), default=-1)
        if day > last:
            shown.append(lines[day])
            last = day
        shown.append(lines[i])
    return "\n".join(shown)
