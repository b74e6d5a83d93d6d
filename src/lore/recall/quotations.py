"""Choose what an answer quotes: a model reads the question together with each passage."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lore.lazy_dataclass import dataclass
from lore.recall import fusion
from lore.records import Hit
from lore.records.answers import strength_of
from lore.records.kinds import Strength
from lore.text import goals, sentences, words

Floats = NDArray[np.float64]

READ_HITS = 24
"""Hits that are read. Of the questions whose evidence is in memory, nearly all have it here."""

WINDOW_CHARS = 440
"""Characters of a passage that the model reads at once; a longer one is read in two parts."""

ODDS_CLIPPED = 8.0
"""Log odds count up to this: beyond it the model only says how sure it is of its training."""

NAMES = ("score", "odds")
"""The features of a hit: how far its score is behind the best, and the log odds that it answers."""

ANSWER_NAMES = ("first", "quoted", "odds", "ranking")
"""The features of an answer: the shares of the first and of all quotations and the probability of
the ranking as log odds, and the best log odds of a quotation."""


class PassageReader(Protocol):
    """A model that reads a question and a passage together."""

    def answers(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Return the log odds that the passage answers, for pairs (question, passage)."""


@dataclass(frozen=True, slots=True)
class QuotationModel:
    """Weighs the features of hits, and of the answer that quotes some of them."""

    hit: Floats
    mean: Floats
    deviation: Floats
    answer: Floats
    bias: float
    none: float
    """The probability below which nothing answers."""

    def shares(self, matrix: Floats) -> Floats:
        """Return how likely each hit is the one that answers, if one of them does."""
        return shares_of(matrix @ self.hit)

    def probability(self, row: Floats) -> float:
        """Return the probability that one of the quotations of an answer is right."""
        z = (row - self.mean) / self.deviation
        return float(1 / (1 + np.exp(-(z @ self.answer + self.bias))))


def shares_of(scores: Floats) -> Floats:
    """Return scores as shares of their total odds."""
    powers = np.exp(scores - scores.max())
    shares: Floats = powers / powers.sum()
    return shares


@dataclass(frozen=True, slots=True)
class JudgedHit:
    """A hit with its share: how likely it is the one that answers, if one does."""

    hit: Hit
    share: float
    odds: float
    is_echo: bool = False
    """Whether it asks or repeats what was said elsewhere."""


def judge_hits(
    reader: PassageReader, question: str, hits: Sequence[Hit], repeats: Collection[str] = ()
) -> list[JudgedHit]:
    """Return hits with their shares, likeliest first.

    `repeats` are the ids of messages that only repeat an earlier conversation.
    """
    if not hits:
        return []
    odds = read_passages(reader, question, [hit.text for hit in hits])
    return weigh_hits(load_quotations(), question, hits, odds, repeats)


ECHO = 0.25
"""What the share of an echo or a prompt counts: a proper message that says the same goes first."""


def weigh_hits(
    model: QuotationModel,
    question: str,
    hits: Sequence[Hit],
    odds: Floats,
    repeats: Collection[str] = (),
) -> list[JudgedHit]:
    """Return hits that were read with their shares, likeliest first.

    Echoes come last if the model finds that a proper message answers, too.
    """
    judged = []
    shares = model.shares(describe_hits(hits, odds))
    for hit, share, own_odds in zip(hits, shares.tolist(), odds.tolist(), strict=True):
        echoes = hit.id in repeats or is_echo(hit, question)
        counted = share * ECHO if echoes or is_prompt(hit) else share
        judged.append(JudgedHit(hit, counted, own_odds, echoes))
    is_answered = any(one.odds > 0 and not one.is_echo for one in judged)
    return sorted(judged, key=lambda one: (is_answered and one.is_echo, -one.share))


NEW_SHARE = 0.2
"""A text that has fewer words than this share beside those of the question only restates it."""

REASON_SHARE = 0.5
"""The same for a person's words and a question that asks why."""


def read_passages(reader: PassageReader, question: str, texts: Sequence[str]) -> Floats:
    """Return the log odds that each passage answers; of a long one, those of its better part."""
    parts = [_parts(text) for text in texts]
    scores = reader.answers([(question, part) for some in parts for part in some])
    ends = np.cumsum([0, *(len(some) for some in parts)])
    odds = [scores[start:end].max() for start, end in pairwise(ends.tolist())]
    return np.clip(np.array(odds, np.float64), -ODDS_CLIPPED, ODDS_CLIPPED)


def _parts(text: str) -> list[str]:
    text = text.strip()
    if len(text) <= WINDOW_CHARS:
        return [text]
    return [text[:WINDOW_CHARS], text[-WINDOW_CHARS:]]


def describe_hits(hits: Sequence[Hit], odds: Floats) -> Floats:
    """Return the features of hits as rows."""
    scores = np.array([hit.score for hit in hits])
    return np.column_stack([np.maximum(scores - scores.max(), -FURTHEST), odds])


FURTHEST = 12.0
"""How far behind the best a score may count."""


def is_prompt(hit: Hit) -> bool:
    """Return whether a hit is what a person asked an assistant for."""
    return hit.type == "message" and hit.role == "user" and goals.is_request(hit.text)


def is_echo(hit: Hit, question: str) -> bool:
    """Return whether a hit only asks, or says hardly more than the question itself.

    The episode of a session that asked has the question as its goal.
    """
    if hit.kind == "episode":
        return _restates(hit, question)
    if hit.type != "message":
        return False
    parts = sentences.split_sentences(hit.text.strip(" …\n"))
    only_asks = bool(parts) and all(part.rstrip().endswith("?") for part in parts)
    return only_asks or _restates(hit, question)


def _restates(hit: Hit, question: str) -> bool:
    """Return whether a hit says hardly more than the question itself.

    Who asks why wants a reason: what a person reported in mostly the same words has none.
    """
    own, asked = set(words.split(hit.text)), words.split(question)
    new = len(own.difference(asked))
    reports = hit.role == "user" and asked[:1] == ["why"]
    return new < (REASON_SHARE if reports else NEW_SHARE) * len(own)


def rate(quoted: Sequence[JudgedHit], ranking: float) -> Strength:
    """Return how likely one of some quotations answers, in a word.

    `ranking` is the probability that the ranking alone gives. Echoes alone are a weak answer.
    """
    model = load_quotations()
    chance = model.probability(describe_answer(quoted, ranking))
    if chance < model.none:
        return "none"
    return "weak" if all(one.is_echo for one in quoted) else strength_of(chance)


def describe_answer(quoted: Sequence[JudgedHit], ranking: float) -> Floats:
    """Return the features of an answer that quotes some hits."""
    chances = np.array([quoted[0].share, sum(one.share for one in quoted), ranking])
    chances = np.clip(chances, 0.005, 0.995)
    first, together, ranked = np.log(chances / (1 - chances)).tolist()
    return np.array([first, together, max(one.odds for one in quoted), ranked])


@cache
def load_quotations() -> QuotationModel:
    """Return the model shipped with the package."""
    raw = fusion.read_data("quotations")
    arrays = {key: np.array(raw[key], np.float64) for key in ("hit", "mean", "deviation", "answer")}
    return QuotationModel(**arrays, bias=raw["bias"], none=raw["none"])
