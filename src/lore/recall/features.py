"""Features: cheap numbers about each candidate, from which the recipes make a score."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from lore import clock
from lore.recall import fusion
from lore.recall.pool import Pool
from lore.recall.question import Question, exact
from lore.recall.texts import plain
from lore.recall.time_spans import Span
from lore.store import items
from lore.text import traits

CLOSE_CHARS = 320
"""Words of the question within so many characters belong together."""

WHOLE, LONG_CHARS = 0.85, 5_000
"""From this share of its words on, a question counts as standing in a text as a whole; of a
text that is no longer than this the model sees as much by itself."""

SOLE_HOLDERS = 2
"""A word that no more candidates have than this points at them."""

FAR_ABOVE = 4.0
"""So many deviations above the rest is as much as a keyword score can say: where a single
candidate has the word at all, it would otherwise outweigh everything else."""

LONGEST = 6.0
"""Logarithm of the words from which on a text counts as long, and not as longer still."""

_OCCURRENCES = 6
"""Occurrences of a word that are looked at in one text."""

TOOL_SHARE, TURN_SHARE = 0.02, 0.6
"""More tool traffic than the first among the candidates, or fewer turns than the second, and it
is an agent at work that speaks."""

_RANK_SCALE = 10.0
_BEST_OTHERS = 3

Floats = NDArray[np.float64]


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


def profile_of(pool: Pool, around: Surroundings) -> str:
    """Return what sort of talk the candidates come from; each sort has its own weights.

    Where two take turns, every message is a person's or follows one; an agent at work speaks
    and uses tools many times between.
    """
    rows = pool.rows
    messages = int((rows.types == items.type_number("message")).sum())
    if not messages or sum(map(bool, rows.speakers)) > messages / 2:
        return "people"
    spoken = (rows.traits & (traits.FROM_USER | traits.FROM_ASSISTANT)) > 0
    by_tools = (rows.traits > 0) & ~spoken
    if by_tools.sum() > TOOL_SHARE * messages:
        return "agent"
    turns = ((rows.traits | around.before_traits) & traits.FROM_USER) > 0
    return "chat" if turns[spoken].sum() >= TURN_SHARE * spoken.sum() else "agent"


def describe(
    question: Question,
    pool: Pool,
    around: Surroundings,
    stems: dict[str, str],
    *,
    wanted: Container[str],
) -> dict[str, Floats]:
    """Return the features of the candidates by name; costly ones only if they are wanted."""
    rows = pool.rows
    count = len(rows.ns)
    found: dict[str, Floats] = {"one": np.ones(count)}
    keyword = np.maximum.reduce([
        fusion.shares(column) for column in (pool.head, pool.long, pool.log, pool.fragment)
    ])
    found["keyword"] = keyword
    logs = rows.types == items.type_number("distillation")
    found["keyword_z"] = np.minimum(_standardised(keyword, logs), FAR_ABOVE)
    found["cosine"] = pool.cosine
    found["cosine_z"] = _standardised(pool.cosine, logs)
    found["cosine_before"] = around.before_cosine
    found["cosine_before_that"] = around.before_that_cosine
    found["cosine_beside"] = np.maximum(
        pool.cosine, np.maximum(around.before_cosine, around.after_cosine)
    )
    found["keyword_rank"] = _RANK_SCALE / (
        _RANK_SCALE + np.minimum.reduce([pool.head_rank, pool.log_rank, pool.fragment_rank])
    )
    found["long_rank"] = _RANK_SCALE / (_RANK_SCALE + pool.long_rank)
    found["cosine_rank"] = _RANK_SCALE / (_RANK_SCALE + pool.cosine_rank)
    found |= _coverage(question, pool, around, stems, wanted)
    found["exact"] = _exact(question, around.own)
    found |= _speaker(rows.speakers, around)
    found["date"] = _date_match(question, rows.created_at)
    found |= _traits(question, pool, around)
    found |= _session(pool, logs)
    place = np.argsort(np.argsort(rows.created_at, kind="stable"), kind="stable")
    when = place / max(1, count - 1)
    found["late_if_early"] = (when - 0.5) * question.asks_early
    found["late_if_late"] = (when - 0.5) * question.asks_late
    found["length_if_list"] = found["length"] * question.asks_list
    found["session_if_list"] = found["session_best"] * question.asks_list
    found["first_if_advice"] = found["first_person"] * question.asks_advice
    found["keyword_if_long"] = (min(len(question.terms), 16) / 8 - 1) * found["keyword_z"]
    return found


def _coverage(
    question: Question,
    pool: Pool,
    around: Surroundings,
    stems: dict[str, str],
    wanted: Container[str],
) -> dict[str, Floats]:
    """How much of the question stands in a candidate, before it, after it, anywhere near."""
    needles = [needle(term, stems[term]) for term in question.terms]
    weights = pool.rarity / max(1e-9, float(pool.rarity.sum()))
    own = _contains(around.own, needles)
    before = _contains(around.before, needles)
    after = _contains(around.after, needles)
    found = {
        "covered": own @ weights,
        "covered_before": (before & ~own) @ weights,
        "covered_after": (after & ~own & ~before) @ weights,
        "covered_near": (own | before | after) @ weights,
        "pairs": _pairs(question, around.own, stems),
    }
    if "covered_close" in wanted:
        found["covered_close"] = _closest(around.own, own, needles, weights)
    found["together"] = _together(around.own, own, needles, weights)
    alone: Floats = np.where(own.sum(axis=0) <= SOLE_HOLDERS, weights, 0.0)
    found["sole"] = own.astype(float) @ alone
    return found


def _together(
    texts: list[str], own: NDArray[np.bool_], needles: list[str], weights: Floats
) -> Floats:
    """Return 1 where nearly the whole question stands in one place of a long text."""
    together = np.zeros(len(texts))
    if len(needles) < 2:
        return together
    long = np.array([len(text) > LONG_CHARS for text in texts], np.bool_)
    likely = np.flatnonzero((own @ weights >= WHOLE) & long)
    close = _closest([texts[row] for row in likely], own[likely], needles, weights)
    together[likely] = close >= WHOLE
    return together


def _closest(
    texts: list[str], own: NDArray[np.bool_], needles: list[str], weights: Floats
) -> Floats:
    """How much of the question stands close together, in the best stretch of a text."""
    best: Floats = own @ weights
    worth = weights.tolist()
    several = own.sum(axis=1) > 1
    for row, text in enumerate(texts):
        if len(text) > CLOSE_CHARS and several[row]:
            present = [(needles[which], worth[which]) for which in np.flatnonzero(own[row])]
            best[row] = _best_stretch(text, present)
    return best


def _best_stretch(text: str, present: list[tuple[str, float]]) -> float:
    """Return the most that needles weigh together within a short stretch of a text."""
    places: list[tuple[int, int]] = []
    for which, (needle_, _) in enumerate(present):
        place = text.find(needle_)
        for _ in range(_OCCURRENCES):
            if place < 0:
                break
            places.append((place, which))
            place = text.find(needle_, place + 1)
    places.sort()
    counts = [0] * len(present)
    start = 0
    total = best = 0.0
    for place, which in places:
        counts[which] += 1
        total += present[which][1] * (counts[which] == 1)
        while places[start][0] < place - CLOSE_CHARS:
            gone = places[start][1]
            counts[gone] -= 1
            total -= present[gone][1] * (counts[gone] == 0)
            start += 1
        best = max(best, total)
    return best


def _contains(texts: list[str], needles: list[str]) -> NDArray[np.bool_]:
    """Tell which texts have which needles, looking through all of them in one go."""
    found = np.zeros((len(texts), len(needles)), np.bool_)
    together = "\n".join(texts)
    ends = list(accumulate(len(text) + 1 for text in texts))
    for column, needle_ in enumerate(needles):
        place = together.find(needle_)
        while place >= 0:
            row = bisect_right(ends, place)
            found[row, column] = True
            place = together.find(needle_, ends[row])
    return found


def _follows(text: str, begin: str, second: str) -> bool:
    """Tell whether some word that starts as `begin` stands before one that starts as `second`."""
    place = text.find(begin)
    while place >= 0:
        end = text.find(" ", place + len(begin))
        if end < 0:
            return False
        if text[end : end + len(second) + 12].lstrip(" ").startswith(second):
            return True
        place = text.find(begin, end)
    return False


def _pairs(question: Question, texts: list[str], stems: dict[str, str]) -> Floats:
    """Which share of the question's neighbouring words are neighbours in a text too."""
    if not question.pairs:
        return np.zeros(len(texts))
    words = dict.fromkeys(word for pair in question.pairs for word in pair)
    starts = {word: needle(word, stems.get(word, word)).strip() for word in words}
    present = _contains(texts, [f" {start}" for start in starts.values()])
    columns = dict(zip(starts, present.T, strict=True))
    total = np.zeros(len(texts))
    for a, b in question.pairs:
        for row in np.flatnonzero(columns[a] & columns[b]):
            total[row] += _follows(texts[row], f" {starts[a]}", starts[b])
    return total / len(question.pairs)


def _exact(question: Question, texts: list[str]) -> Floats:
    """Which share of what the question names letter by letter stands in a text."""
    spelled = [plain(name).split() for name in exact(question)]
    wanted = [f" {' '.join(parts)} " for parts in spelled if parts]
    if not wanted:
        return np.zeros(len(texts))
    shares = np.zeros(len(texts))
    likely = _contains(texts, [f" {name.split()[0]} " for name in wanted]).any(axis=1)
    for row in np.flatnonzero(likely):
        tight = f" {' '.join(texts[row].split())} "
        shares[row] = sum(name in tight for name in wanted) / len(wanted)
    return shares


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
    return np.maximum(match, 0.5 * within(question.spans, created_at))


def within(spans: Sequence[Span], created_at: NDArray[np.int64]) -> Floats:
    """Return 1 for each moment that lies in one of the spans."""
    inside = np.zeros(len(created_at), np.bool_)
    for span in spans:
        inside |= (created_at >= clock.to_us(span.start)) & (created_at < clock.to_us(span.end))
    return inside.astype(float)


def _traits(question: Question, pool: Pool, around: Surroundings) -> dict[str, Floats]:
    rows = pool.rows

    def has(trait: int, of: NDArray[np.int64] = rows.traits) -> Floats:
        return ((of & trait) > 0).astype(float)

    unnamed = np.array([not speaker for speaker in rows.speakers], float)
    user = has(traits.FROM_USER) * unnamed
    after_user = has(traits.FROM_USER, around.before_traits) * unnamed
    share = max(0.01, float(user.mean())) if len(user) else 1.0
    standing = has(traits.STANDING)
    return {
        "opens": ((rows.ordinals == 0) & (rows.sessions > 0)).astype(float),
        "asks": has(traits.ASKS),
        "answers": has(traits.LEAVES_QUESTION, around.before_traits)
        * ~around.same_speaker_before
        * (rows.before > 0),
        "length": np.minimum(np.log1p(0.75 * rows.tokens), LONGEST),
        "user": user,
        "user_rare": user * np.log(1 / share),
        "reply": (1 - has(traits.FROM_USER)) * after_user,
        "after_user": after_user,
        "first_person": has(traits.FIRST_PERSON),
        "standing": standing,
        "standing_if_advice": standing * question.asks_advice,
        "time_if_when": has(traits.HAS_TIME) * question.asks_when,
        "number_if_many": has(traits.HAS_NUMBER) * question.asks_number,
    }


def _standardised(values: Floats, logs: NDArray[np.bool_]) -> Floats:
    """Standardise distillations and the rest each among themselves: they tell the same twice."""
    if not logs.any():
        return fusion.standardised(values)
    found = np.zeros(len(values))
    found[logs], found[~logs] = (fusion.standardised(values[some]) for some in (logs, ~logs))
    return found


def _session(pool: Pool, logs: NDArray[np.bool_]) -> dict[str, Floats]:
    """How well the rest of a candidate's session fits: its best other, its next three.

    Distillations and the rest are apart here too, as if they were of different sessions.
    """
    alone = pool.rows.sessions == 0
    sessions = np.where(alone, -np.arange(len(alone)) - 1, 2 * pool.rows.sessions + logs)
    base = pool.base
    count = len(sessions)
    order = np.lexsort((-base, sessions))
    grouped, values = sessions[order], np.append(base[order], np.zeros(_BEST_OTHERS + 1))
    starts = np.searchsorted(grouped, grouped, side="left")
    ends = np.searchsorted(grouped, grouped, side="right")
    top = np.stack([
        np.where(starts + k < ends, values[starts + k], 0.0) for k in range(_BEST_OTHERS + 1)
    ])
    place = np.arange(count) - starts
    own = top[np.minimum(place, _BEST_OTHERS), np.arange(count)]
    best, following, cosine = np.zeros(count), np.zeros(count), np.zeros(count)
    best[order] = np.where(place == 0, top[1], top[0])
    following[order] = (top.sum(axis=0) - own) / _BEST_OTHERS
    totals = np.concatenate([[0.0], np.cumsum(pool.cosine[order])])
    cosine[order] = (totals[ends] - totals[starts]) / np.maximum(1, ends - starts)
    return {"session_best": best, "session_next": following, "session_cosine": cosine}
