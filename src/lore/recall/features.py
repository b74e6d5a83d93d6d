"""Features: cheap numbers about each candidate, from which the recipes make a score."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lore import clock
from lore.recall import fusion
from lore.recall.pool import Pool
from lore.recall.question import Question
from lore.text import traits

OWN_CHARS, BESIDE_CHARS = 6_000, 300
"""So much of a candidate's text, and of the messages beside it, is compared with the question."""

_RANK_SCALE = 10.0
_BEST_OTHERS = 3

Floats = NDArray[np.float64]

_BLANKS = {code: " " for code in range(128) if not chr(code).isalnum()}
_NOT_ALNUM = re.compile(r"[^\w]+|_")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stands around the candidates: texts, and cosines of the messages beside them."""

    own: list[str]
    before: list[str]
    after: list[str]
    before_cosine: Floats
    before_that_cosine: Floats
    after_cosine: Floats
    before_traits: NDArray[np.int64]
    same_speaker_before: NDArray[np.bool_]
    speakers_named: frozenset[str]


def plain(text: str) -> str:
    """Return a text in lower case with blanks for all that is no letter or digit."""
    lowered = text.lower()
    if lowered.isascii():
        return f" {lowered.translate(_BLANKS)} "
    return f" {_NOT_ALNUM.sub(' ', lowered)} "


@lru_cache(maxsize=20_000)
def needle(word: str, stem: str) -> str:
    """Return what to look for in a plain text: the beginning that a word shares with its stem."""
    shared = 0
    for a, b in zip(word, stem, strict=False):
        if a != b:
            break
        shared += 1
    if shared >= 4:
        return f" {word[:shared]}"
    return f" {word} " if len(word) <= 3 else f" {word}"


def describe(
    question: Question, pool: Pool, around: Surroundings, stems: dict[str, str]
) -> dict[str, Floats]:
    """Return all features of the candidates by name."""
    rows = pool.rows
    count = len(rows.ns)
    found: dict[str, Floats] = {}
    keyword = np.maximum(pool.head, pool.fragment)
    found["keyword"] = fusion.shares(pool.head) + fusion.shares(pool.fragment)
    found["keyword_z"] = fusion.standardised(keyword)
    found["cosine"] = pool.cosine
    found["cosine_z"] = fusion.standardised(pool.cosine)
    found["cosine_before"] = around.before_cosine
    found["cosine_before_that"] = around.before_that_cosine
    found["cosine_beside"] = np.maximum(
        pool.cosine, np.maximum(around.before_cosine, around.after_cosine)
    )
    found["keyword_rank"] = _RANK_SCALE / (_RANK_SCALE + pool.head_rank)
    found["long_rank"] = _RANK_SCALE / (_RANK_SCALE + pool.long_rank)
    found["cosine_rank"] = _RANK_SCALE / (_RANK_SCALE + pool.cosine_rank)
    found |= _coverage(question, pool, around, stems)
    found |= _speaker(rows.speakers, around)
    found["date"] = _date_match(question, rows.created_at)
    found |= _traits(question, pool, around)
    found |= _session(pool)
    place = np.argsort(np.argsort(rows.created_at, kind="stable"), kind="stable")
    when = place / max(1, count - 1)
    found["late"] = when
    found["late_if_early"] = (when - 0.5) * question.asks_early
    found["late_if_late"] = (when - 0.5) * question.asks_late
    found["length_if_list"] = found["length"] * question.asks_list
    found["session_if_list"] = found["session_best"] * question.asks_list
    found["first_if_advice"] = found["first_person"] * question.asks_advice
    found["keyword_if_long"] = (min(len(question.terms), 16) / 8 - 1) * found["keyword_z"]
    return found


def _coverage(
    question: Question, pool: Pool, around: Surroundings, stems: dict[str, str]
) -> dict[str, Floats]:
    """How much of the question stands in a candidate, before it, after it, anywhere near."""
    needles = [needle(term, stems[term]) for term in question.terms]
    weights = pool.rarity / max(1e-9, float(pool.rarity.sum()))
    own = _contains(around.own, needles)
    before = _contains(around.before, needles)
    after = _contains(around.after, needles)
    return {
        "covered": own @ weights,
        "covered_before": (before & ~own) @ weights,
        "covered_after": (after & ~own & ~before) @ weights,
        "covered_near": (own | before | after) @ weights,
        "pairs": _pairs(question, around.own, stems),
    }


def _contains(texts: list[str], needles: list[str]) -> NDArray[np.bool_]:
    if not texts or not needles:
        return np.zeros((len(texts), len(needles)), np.bool_)
    return np.array([[needle in text for needle in needles] for text in texts], np.bool_)


def _pairs(question: Question, texts: list[str], stems: dict[str, str]) -> Floats:
    """Which share of the question's neighbouring words are neighbours in a text too."""
    if not question.pairs:
        return np.zeros(len(texts))
    total = np.zeros(len(texts))
    for a, b in question.pairs:
        first = needle(a, stems.get(a, a)).strip()
        second = needle(b, stems.get(b, b)).strip()
        pattern = re.compile(rf" {re.escape(first)}\w* +{re.escape(second)}")
        begin = f" {first}"
        total += [bool(begin in text and pattern.search(text)) for text in texts]
    return total / len(question.pairs)


def _speaker(speakers: list[str], around: Surroundings) -> dict[str, Floats]:
    if len(around.speakers_named) != 1:
        nothing = np.zeros(len(speakers))
        return {"speaker": nothing, "other_speaker": nothing}
    said = np.array([speaker.lower() in around.speakers_named for speaker in speakers], float)
    named = np.array([bool(speaker) for speaker in speakers], float)
    return {"speaker": said, "other_speaker": (1 - said) * named}


def _date_match(question: Question, created_at: NDArray[np.int64]) -> Floats:
    match = np.zeros(len(created_at))
    if question.months or question.years:
        for place, us in enumerate(created_at.tolist()):
            date = clock.from_us(us)
            month = date.month in question.months
            match[place] = (
                0.5 * month
                + 0.2 * (date.year in question.years)
                + 1.0 * (month and date.day in question.days)
            )
    for span in question.spans:
        start, end = _bounded(span.start), _bounded(span.end)
        match = np.maximum(match, 0.5 * ((created_at >= start) & (created_at < end)))
    return match


def _bounded(moment: clock.datetime) -> int:
    return clock.to_us(moment)


def _traits(question: Question, pool: Pool, around: Surroundings) -> dict[str, Floats]:
    rows = pool.rows

    def has(trait: int, of: NDArray[np.int64] = rows.traits) -> Floats:
        return ((of & trait) > 0).astype(float)

    user = has(traits.FROM_USER)
    after_user = has(traits.FROM_USER, around.before_traits)
    share = max(0.01, float(user.mean())) if len(user) else 1.0
    standing = has(traits.STANDING)
    return {
        "asks": has(traits.ASKS),
        "answers": has(traits.LEAVES_QUESTION, around.before_traits)
        * ~around.same_speaker_before
        * (rows.before > 0),
        "length": np.log1p(0.75 * rows.tokens),
        "user": user,
        "user_rare": user * np.log(1 / share),
        "reply": (1 - user) * after_user,
        "after_user": after_user,
        "first_person": has(traits.FIRST_PERSON),
        "standing": standing,
        "standing_if_advice": standing * question.asks_advice,
        "time_if_when": has(traits.HAS_TIME) * question.asks_when,
        "number_if_many": has(traits.HAS_NUMBER) * question.asks_number,
    }


def _session(pool: Pool) -> dict[str, Floats]:
    """How well the rest of a candidate's session fits: its best other, its next three."""
    sessions, base = pool.rows.sessions, pool.base
    count = len(sessions)
    best, mean, cosine = np.zeros(count), np.zeros(count), np.zeros(count)
    order = np.lexsort((-base, sessions))
    edges = np.flatnonzero(np.diff(sessions[order])) + 1
    for part in np.split(order, edges) if count else []:
        top = np.zeros(_BEST_OTHERS + 1)
        top[: min(len(part), len(top))] = base[part[: len(top)]]
        total = top.sum()
        own = top[np.minimum(np.arange(len(part)), _BEST_OTHERS)]
        best[part] = np.where(np.arange(len(part)) == 0, top[1], top[0])
        mean[part] = (total - own) / _BEST_OTHERS
        cosine[part] = pool.cosine[part].mean()
    return {"session_best": best, "session_next": mean, "session_cosine": cosine}
