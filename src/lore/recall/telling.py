"""Telling: which messages the lines of distillations tell, and what both gain from that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lore.recall.features import Floats, needle
from lore.recall.log_lines import EXCERPT_TOKENS
from lore.recall.pool import Pool
from lore.recall.question import Question
from lore.recall.texts import plain
from lore.records import Distillation
from lore.store import distillations, items
from lore.store.db import Connection
from lore.store.keywords import stem

FEATURES = ("line", "line_cosine", "tells", "told", "told_cosine", "brief", "condensed", "archived")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a distillation in plain form, with the numbers of the messages it tells."""

    text: str
    tells: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Teller:
    """A distillation among the candidates."""

    place: int
    lines: tuple[Line, ...]
    brief: float
    condensed: bool
    archived: bool


def tellers(db: Connection, pool: Pool) -> list[Teller]:
    """Return the distillations among the candidates, with what their lines tell."""
    places = np.flatnonzero(pool.rows.types == items.type_number("distillation"))
    if not len(places):
        return []
    ns = pool.ns[places].tolist()
    records, told = distillations.by_number(db, ns), distillations.told_by(db, ns)
    found = []
    for place, n in zip(places.tolist(), ns, strict=True):
        record = records[n]
        lines = record.text.split("\n")
        tells = [told[n][i] if i < len(told[n]) else () for i in range(len(lines))]
        found.append(
            Teller(
                place,
                tuple(Line(plain(line), of) for line, of in zip(lines, tells, strict=True)),
                _brevity(record),
                record.generation > 0,
                record.archived,
            )
        )
    return found


def _brevity(record: Distillation) -> float:
    """Return which share of a shown message's tokens one line of a log saves."""
    told = [ordinal for line in record.sources for ordinal in line]
    if not told:
        return 0.0
    shown = min(EXCERPT_TOKENS, record.source_tokens / (max(told) - min(told) + 1))
    line = record.tokens / sum(map(bool, record.sources))
    return max(0.0, 1.0 - line / max(1.0, shown))


def describe(question: Question, pool: Pool, found: Sequence[Teller]) -> dict[str, Floats]:
    """Return what candidates gain from each other: lines that fit, and messages they tell."""
    columns = {name: np.zeros(len(pool.ns)) for name in FEATURES}
    if not found:
        return columns
    needles = [needle(term, stem(term)) for term in question.terms]
    weights = pool.rarity / max(1e-9, float(pool.rarity.sum()))
    place_of = {n: place for place, n in enumerate(pool.ns.tolist())}
    for teller in found:
        cosine = float(pool.cosine[teller.place])
        fits = [_fit(line.text, needles, weights) for line in teller.lines]
        columns["line"][teller.place] = max(fits, default=0.0)
        columns["brief"][teller.place] = teller.brief
        columns["condensed"][teller.place] = float(teller.condensed)
        columns["archived"][teller.place] = float(teller.archived)
        for line, fit in zip(teller.lines, fits, strict=True):
            for n in line.tells:
                if n in place_of:
                    told = place_of[n]
                    _raise(columns["told"], told, fit)
                    _raise(columns["told_cosine"], told, cosine)
                    _raise(columns["tells"], teller.place, float(pool.base[told]))
                    _raise(columns["line_cosine"], teller.place, float(pool.cosine[told]))
    return columns


def _raise(column: Floats, place: int, value: float) -> None:
    column[place] = max(column[place], value)


def _fit(text: str, needles: Sequence[str], weights: Floats) -> float:
    return float(
        sum(weight for needle_, weight in zip(needles, weights, strict=True) if needle_ in text)
    )
