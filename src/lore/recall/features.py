"""Compute the features of each candidate, from which ranking makes a score."""

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
from lore.recall.candidates import Pool
from lore.recall.question import Question, exact_names
from lore.recall.sources import plain
from lore.recall.time_spans import Span
from lore.records import Distillation
from lore.store import distillations, items
from lore.store.database import Connection
from lore.store.keywords import stem
from lore.text import message_features

EXCERPT_TOKENS = 220
"""A longer text is shown as an excerpt around the question's words; `read` returns all of it."""

CLOSE_CHARS = 320
"""Words of the question within this many characters count as close together."""

WHOLE, LONG_CHARS = 0.85, 5_000
"""From this share of its words on, a question counts as contained in a text; shorter texts than
this many characters are covered by the model's other features."""

SOLE_HOLDERS = 2
"""A word that at most this many candidates contain points at them."""

FAR_ABOVE = 4.0
"""Cap of a standardized keyword score: a word that a single candidate contains would otherwise
outweigh everything else."""

LONGEST = 6.0
"""Logarithm of the word count from which a text counts as long."""

_OCCURRENCES = 6
"""Occurrences of a word that are examined in one text."""

TOOL_SHARE, TURN_SHARE = 0.02, 0.6
"""With more tool messages among the candidates than the first, or fewer turns than the second, the
conversation is an agent at work."""

_RANK_SCALE = 10.0
_BEST_OTHERS = 3

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The texts of the candidates and of their neighbours, and the neighbours' cosines."""

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
    """Return what to search for in a plain text: the prefix that a word shares with its stem."""
    shared = 0
    for a, b in zip(word, stem, strict=False):
        if a != b:
            break
        shared += 1
    if shared >= 4:
        return f" {word[:shared]}"
    return f" {word} " if len(word) <= 3 else f" {word}"


def profile_of(pool: Pool, around: Surroundings) -> str:
    """Return the kind of conversation the candidates come from: people, chat or agent.

    Each has its own weights. In a chat, every message is a person's or follows one; an agent speaks
    and uses tools many times in between.
    """
    rows = pool.rows
    messages = int((rows.types == items.type_number("message")).sum())
    if not messages or sum(map(bool, rows.speakers)) > messages / 2:
        return "people"
    spoken = (rows.traits & (message_features.FROM_USER | message_features.FROM_ASSISTANT)) > 0
    by_tools = (rows.traits > 0) & ~spoken
    if by_tools.sum() > TOOL_SHARE * messages:
        return "agent"
    turns = ((rows.traits | around.before_traits) & message_features.FROM_USER) > 0
    return "chat" if turns[spoken].sum() >= TURN_SHARE * spoken.sum() else "agent"


def describe(
    question: Question,
    pool: Pool,
    around: Surroundings,
    stems: dict[str, str],
    *,
    wanted: Container[str],
) -> dict[str, Floats]:
    """Return the features of the candidates by name; costly ones only if they are in `wanted`."""
    rows = pool.rows
    count = len(rows.ns)
    columns: dict[str, Floats] = {"one": np.ones(count)}
    keyword = np.maximum.reduce([
        fusion.shares(column) for column in (pool.head, pool.long, pool.log, pool.fragment)
    ])
    columns["keyword"] = keyword
    logs = rows.types == items.type_number("distillation")
    columns["keyword_z"] = np.minimum(_standardised(keyword, logs), FAR_ABOVE)
    columns["cosine"] = pool.cosine
    columns["cosine_z"] = _standardised(pool.cosine, logs)
    columns["cosine_before"] = around.before_cosine
    columns["cosine_before_that"] = around.before_that_cosine
    columns["cosine_beside"] = np.maximum(
        pool.cosine, np.maximum(around.before_cosine, around.after_cosine)
    )
    columns["keyword_rank"] = _RANK_SCALE / (
        _RANK_SCALE + np.minimum.reduce([pool.head_rank, pool.log_rank, pool.fragment_rank])
    )
    columns["long_rank"] = _RANK_SCALE / (_RANK_SCALE + pool.long_rank)
    columns["cosine_rank"] = _RANK_SCALE / (_RANK_SCALE + pool.cosine_rank)
    columns |= _coverage(question, pool, around, stems, wanted)
    columns["exact"] = _exact(question, around.own)
    columns |= _speaker(rows.speakers, around)
    columns["date"] = _date_match(question, rows.created_at)
    columns |= _traits(question, pool, around)
    columns |= _session(pool, logs)
    place = np.argsort(np.argsort(rows.created_at, kind="stable"), kind="stable")
    when = place / max(1, count - 1)
    columns["late_if_early"] = (when - 0.5) * question.asks_early
    columns["late_if_late"] = (when - 0.5) * question.asks_late
    columns["length_if_list"] = columns["length"] * question.asks_list
    columns["session_if_list"] = columns["session_best"] * question.asks_list
    columns["first_if_advice"] = columns["first_person"] * question.asks_advice
    columns["keyword_if_long"] = (min(len(question.terms), 16) / 8 - 1) * columns["keyword_z"]
    return columns


def _coverage(
    question: Question,
    pool: Pool,
    around: Surroundings,
    stems: dict[str, str],
    wanted: Container[str],
) -> dict[str, Floats]:
    """Return how much of the question a candidate and its neighbours contain."""
    needles = [needle(term, stems[term]) for term in question.terms]
    weights = pool.rarity / max(1e-9, float(pool.rarity.sum()))
    own = _contains(around.own, needles)
    before = _contains(around.before, needles)
    after = _contains(around.after, needles)
    columns = {
        "covered": own @ weights,
        "covered_before": (before & ~own) @ weights,
        "covered_after": (after & ~own & ~before) @ weights,
        "covered_near": (own | before | after) @ weights,
        "pairs": _pairs(question, around.own, stems),
    }
    if "covered_close" in wanted:
        columns["covered_close"] = _closest(around.own, own, needles, weights)
    columns["together"] = _together(around.own, own, needles, weights)
    alone: Floats = np.where(own.sum(axis=0) <= SOLE_HOLDERS, weights, 0.0)
    columns["sole"] = own.astype(float) @ alone
    return columns


def _together(
    texts: list[str], own: NDArray[np.bool_], needles: list[str], weights: Floats
) -> Floats:
    """Return 1 where nearly the whole question is in one place of a long text."""
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
    """Return how much of the question is close together, in the best stretch of each text."""
    best: Floats = own @ weights
    worth = weights.tolist()
    several = own.sum(axis=1) > 1
    for row, text in enumerate(texts):
        if len(text) > CLOSE_CHARS and several[row]:
            present = [(needles[which], worth[which]) for which in np.flatnonzero(own[row])]
            best[row] = _best_stretch(text, present)
    return best


def _best_stretch(text: str, present: list[tuple[str, float]]) -> float:
    """Return the largest total weight of needles within a short stretch of a text."""
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
            left_behind = places[start][1]
            counts[left_behind] -= 1
            total -= present[left_behind][1] * (counts[left_behind] == 0)
            start += 1
        best = max(best, total)
    return best


def _contains(texts: list[str], needles: list[str]) -> NDArray[np.bool_]:
    """Return which texts contain which needles, in one pass over all texts."""
    contained = np.zeros((len(texts), len(needles)), np.bool_)
    joined = "\n".join(texts)
    ends = list(accumulate(len(text) + 1 for text in texts))
    for column, needle_ in enumerate(needles):
        place = joined.find(needle_)
        while place >= 0:
            row = bisect_right(ends, place)
            contained[row, column] = True
            place = joined.find(needle_, ends[row])
    return contained


def _follows(text: str, begin: str, second: str) -> bool:
    """Return whether a word starting with `begin` precedes one starting with `second`."""
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
    """Return the share of the question's word pairs that are neighbours in a text."""
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
    """Return the share of the question's exact names that a text contains."""
    spelled = [plain(name).split() for name in exact_names(question)]
    patterns = [f" {' '.join(parts)} " for parts in spelled if parts]
    if not patterns:
        return np.zeros(len(texts))
    shares = np.zeros(len(texts))
    likely = _contains(texts, [f" {name.split()[0]} " for name in patterns]).any(axis=1)
    for row in np.flatnonzero(likely):
        tight = f" {' '.join(texts[row].split())} "
        shares[row] = sum(name in tight for name in patterns) / len(patterns)
    return shares


def _speaker(speakers: list[str], around: Surroundings) -> dict[str, Floats]:
    if len(around.speakers_named) != 1:
        nothing = np.zeros(len(speakers))
        return {"speaker": nothing, "other_speaker": nothing}
    is_named_speaker = np.array(
        [speaker.lower() in around.speakers_named for speaker in speakers], float
    )
    has_speaker = np.array([bool(speaker) for speaker in speakers], float)
    return {"speaker": is_named_speaker, "other_speaker": (1 - is_named_speaker) * has_speaker}


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
    """Return 1 for each time that is in one of the spans."""
    inside = np.zeros(len(created_at), np.bool_)
    for span in spans:
        inside |= (created_at >= clock.to_us(span.start)) & (created_at < clock.to_us(span.end))
    return inside.astype(float)


def _traits(question: Question, pool: Pool, around: Surroundings) -> dict[str, Floats]:
    rows = pool.rows

    def has(trait: int, of: NDArray[np.int64] = rows.traits) -> Floats:
        return ((of & trait) > 0).astype(float)

    unnamed = np.array([not speaker for speaker in rows.speakers], float)
    user = has(message_features.FROM_USER) * unnamed
    after_user = has(message_features.FROM_USER, around.before_traits) * unnamed
    share = max(0.01, float(user.mean())) if len(user) else 1.0
    standing = has(message_features.STANDING)
    return {
        "opens": ((rows.ordinals == 0) & (rows.sessions > 0)).astype(float),
        "asks": has(message_features.ENDS_IN_QUESTION),
        "answers": has(message_features.HAS_OPEN_QUESTION, around.before_traits)
        * ~around.same_speaker_before
        * (rows.before > 0),
        "length": np.minimum(np.log1p(0.75 * rows.tokens), LONGEST),
        "user": user,
        "user_rare": user * np.log(1 / share),
        "reply": (1 - has(message_features.FROM_USER)) * after_user,
        "after_user": after_user,
        "first_person": has(message_features.FIRST_PERSON),
        "standing": standing,
        "standing_if_advice": standing * question.asks_advice,
        "time_if_when": has(message_features.HAS_TIME) * question.asks_when,
        "number_if_many": has(message_features.HAS_NUMBER) * question.asks_number,
    }


def _standardised(values: Floats, logs: NDArray[np.bool_]) -> Floats:
    """Standardize distillations and the rest separately: they say the same twice."""
    if not logs.any():
        return fusion.standardised(values)
    standard = np.zeros(len(values))
    standard[logs], standard[~logs] = (fusion.standardised(values[some]) for some in (logs, ~logs))
    return standard


def _session(pool: Pool, logs: NDArray[np.bool_]) -> dict[str, Floats]:
    """Return how well the rest of a candidate's session fits: its best other, its next three.

    Distillations and the rest are separate, as if they were of different sessions.
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


LOG_FEATURES = (
    "line",
    "line_cosine",
    "tells",
    "told",
    "told_cosine",
    "brief",
    "condensed",
    "archived",
)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a distillation in plain form, with the numbers of its source messages."""

    text: str
    source_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LogCandidate:
    """A distillation among the candidates, with its lines."""

    place: int
    lines: tuple[LogLine, ...]
    brief: float
    condensed: bool
    archived: bool


def find_logs(db: Connection, pool: Pool) -> list[LogCandidate]:
    """Return the distillations among the candidates, with the sources of their lines."""
    places = np.flatnonzero(pool.rows.types == items.type_number("distillation"))
    if not len(places):
        return []
    ns = pool.ns[places].tolist()
    records, sources_by_n = (
        distillations.get_distillations(db, ns),
        distillations.source_messages_by_line(db, ns),
    )
    logs = []
    for place, n in zip(places.tolist(), ns, strict=True):
        record = records[n]
        lines = record.text.split("\n")
        sources = [
            sources_by_n[n][i] if i < len(sources_by_n[n]) else () for i in range(len(lines))
        ]
        logs.append(
            LogCandidate(
                place,
                tuple(LogLine(plain(line), of) for line, of in zip(lines, sources, strict=True)),
                _brevity(record),
                record.generation > 0,
                record.archived,
            )
        )
    return logs


def _brevity(record: Distillation) -> float:
    """Return the share of a shown message's tokens that one line of a distillation saves."""
    ordinals = [ordinal for line in record.sources for ordinal in line]
    if not ordinals:
        return 0.0
    shown = min(EXCERPT_TOKENS, record.source_tokens / (max(ordinals) - min(ordinals) + 1))
    line = record.tokens / sum(map(bool, record.sources))
    return max(0.0, 1.0 - line / max(1.0, shown))


def describe_log_lines(
    question: Question, pool: Pool, logs: Sequence[LogCandidate]
) -> dict[str, Floats]:
    """Return the features that distillations and their source messages gain from each other."""
    columns = {name: np.zeros(len(pool.ns)) for name in LOG_FEATURES}
    if not logs:
        return columns
    needles = [needle(term, stem(term)) for term in question.terms]
    weights = pool.rarity / max(1e-9, float(pool.rarity.sum()))
    place_of = {n: place for place, n in enumerate(pool.ns.tolist())}
    for log in logs:
        cosine = float(pool.cosine[log.place])
        fits = [_line_fit(line.text, needles, weights) for line in log.lines]
        columns["line"][log.place] = max(fits, default=0.0)
        columns["brief"][log.place] = log.brief
        columns["condensed"][log.place] = float(log.condensed)
        columns["archived"][log.place] = float(log.archived)
        for line, fit in zip(log.lines, fits, strict=True):
            for n in line.source_ns:
                if n in place_of:
                    source_place = place_of[n]
                    _raise_to(columns["told"], source_place, fit)
                    _raise_to(columns["told_cosine"], source_place, cosine)
                    _raise_to(columns["tells"], log.place, float(pool.base[source_place]))
                    _raise_to(columns["line_cosine"], log.place, float(pool.cosine[source_place]))
    return columns


def _raise_to(column: Floats, place: int, value: float) -> None:
    column[place] = max(column[place], value)


def _line_fit(text: str, needles: Sequence[str], weights: Floats) -> float:
    return float(
        sum(weight for needle_, weight in zip(needles, weights, strict=True) if needle_ in text)
    )
