"""Compute the features of each candidate, from which ranking makes a score."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, takewhile

import numpy as np
from numpy.typing import NDArray

from lore import clock
from lore.lazy_dataclass import dataclass
from lore.recall import fusion
from lore.recall.candidates import Pool
from lore.recall.question import Question, exact_names
from lore.recall.sources import BESIDE_CHARS, Sources, plain
from lore.recall.time_spans import Span
from lore.records import Distillation
from lore.store import distillations
from lore.store.candidate_rows import CandidateRows
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

FEW = 60
"""Among fewer candidates than this, a text's own words and meaning may count more than its
surroundings."""

_ANNOUNCING = (" let me ", " i ll ", " now i ", " now let me ", " i will ", " next ", " first ")
_ANNOUNCED_CHARS = 240
"""Short texts that begin so announce work and answer nothing."""

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
    same_speaker_before: NDArray[np.bool_]
    speakers_named: frozenset[str]


def load_surroundings(
    sources: Sources, db: Connection, query: NDArray[np.float32], pool: Pool, speakers: list[str]
) -> Surroundings:
    """Load the texts and cosines of the candidates and of their neighbours."""
    rows = pool.rows
    near = np.concatenate([rows.before, rows.before_that, rows.after])
    cosines = sources.cosines(query, near).reshape(3, -1)
    own = sources.texts.of(db, rows.ns, rows.ns[pool.is_type("fragment")])
    short = {n: text[: BESIDE_CHARS + 2] for n, text in own.items()}
    missing = np.array(
        sorted({*rows.before.tolist(), *rows.after.tolist()} - {0, *rows.ns.tolist()}), np.int64
    )
    short |= sources.beginnings.of(db, missing, missing[:0])
    return Surroundings(
        own=[own[n] for n in rows.ns.tolist()],
        before=[short.get(n, "") for n in rows.before.tolist()],
        after=[short.get(n, "") for n in rows.after.tolist()],
        before_cosine=cosines[0],
        before_that_cosine=cosines[1],
        after_cosine=cosines[2],
        same_speaker_before=_same_speaker(rows),
        speakers_named=frozenset(name.lower() for name in speakers),
    )


def _same_speaker(rows: CandidateRows) -> NDArray[np.bool_]:
    """Return where the message before is by the same speaker, or by the same role if unnamed."""
    from_mask = message_features.FROM_USER | message_features.FROM_ASSISTANT
    same: NDArray[np.bool_] = (rows.traits & from_mask) == (rows.before_traits & from_mask)
    for place, (speaker, other) in enumerate(zip(rows.speakers, rows.before_speakers, strict=True)):
        if speaker or other:
            same[place] = speaker == other
    return same


@lru_cache(maxsize=20_000)
def needle(word: str) -> str:
    """Return what to search for in a plain text: the prefix that a word shares with its stem."""
    pairs = zip(word, stem(word), strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    if shared >= 4:
        return f" {word[:shared]}"
    return f" {word} " if len(word) <= 3 else f" {word}"


def profile_of(pool: Pool) -> str:
    """Return the kind of conversation the candidates come from: people, chat or agent.

    In a chat, every message is a person's or follows one; an agent speaks and uses tools many times
    in between.
    """
    rows = pool.rows
    messages = int(pool.is_type("message").sum())
    if not messages or sum(map(bool, rows.speakers)) > messages / 2:
        return "people"
    spoken = (rows.traits & (message_features.FROM_USER | message_features.FROM_ASSISTANT)) > 0
    by_tools = (rows.traits > 0) & ~spoken
    if by_tools.sum() > TOOL_SHARE * messages:
        return "agent"
    turns = ((rows.traits | rows.before_traits) & message_features.FROM_USER) > 0
    return "chat" if turns[spoken].sum() >= TURN_SHARE * spoken.sum() else "agent"


def describe(question: Question, pool: Pool, around: Surroundings) -> dict[str, Floats]:
    """Return the features of the candidates by name."""
    rows = pool.rows
    count = len(rows.ns)
    columns: dict[str, Floats] = {"one": np.ones(count)}
    keyword = np.maximum.reduce([
        fusion.shares(column) for name, column in pool.scores.items() if name != "cosine"
    ])
    columns["keyword"] = keyword
    logs = pool.is_type("distillation")
    columns["keyword_z"] = np.minimum(_standardised(keyword, logs), FAR_ABOVE)
    columns["cosine"] = pool.cosine
    columns["cosine_z"] = _standardised(pool.cosine, logs)
    columns["cosine_before"] = around.before_cosine
    columns["cosine_before_that"] = around.before_that_cosine
    columns["cosine_beside"] = np.maximum(
        pool.cosine, np.maximum(around.before_cosine, around.after_cosine)
    )
    short_ranks = [pool.ranks[name] for name in ("head", "log", "fragment")]
    columns["keyword_rank"] = _RANK_SCALE / (_RANK_SCALE + np.minimum.reduce(short_ranks))
    columns["long_rank"] = _RANK_SCALE / (_RANK_SCALE + pool.ranks["long"])
    columns["cosine_rank"] = _RANK_SCALE / (_RANK_SCALE + pool.ranks["cosine"])
    columns |= _coverage(question, pool, around)
    columns["exact"] = _exact(question, around.own)
    columns |= _speaker(rows.speakers, around)
    columns["date"] = _date_match(question, rows.created_at)
    columns |= _traits(question, pool, around)
    columns |= _session(pool, logs)
    place = np.argsort(np.argsort(rows.created_at, kind="stable"), kind="stable")
    when = place / max(1, count - 1)
    columns["late_if_early"] = (when - 0.5) * question.asks_early
    columns["late_if_late"] = (when - 0.5) * question.asks_late
    columns["first_if_advice"] = columns["first_person"] * question.asks_advice
    columns["keyword_if_long"] = (min(len(question.terms), 16) / 8 - 1) * columns["keyword_z"]
    columns["late"] = when - 0.5
    columns["in_time"] = within(question.spans, rows.created_at)
    columns["latest_if_now"] = _newest_fitting(columns["covered"], when) * question.asks_now
    columns["cosine_top"] = pool.cosine - pool.cosine.max(initial=0.0)
    few = max(0.0, 1.0 - count / FEW)
    columns["covered_if_few"] = few * columns["covered"]
    columns["cosine_if_few"] = few * np.maximum(pool.cosine, 0.0)
    return columns


def _newest_fitting(covered: Floats, when: Floats) -> Floats:
    """Return 0 for the oldest to 1 for the newest of the candidates with most of the words."""
    newest = np.zeros(len(covered))
    fitting = np.flatnonzero((covered > 0) & (covered >= 0.5 * covered.max(initial=0.0)))
    order = fitting[np.argsort(when[fitting], kind="stable")]
    newest[order] = np.arange(1, len(order) + 1) / max(1, len(order))
    return newest


def _coverage(question: Question, pool: Pool, around: Surroundings) -> dict[str, Floats]:
    """Return how much of the question a candidate and its neighbours contain."""
    needles = [needle(term) for term in question.terms]
    weights = pool.word_weights()
    own = _contains(around.own, needles)
    before = _contains(around.before, needles)
    after = _contains(around.after, needles)
    columns = {
        "covered": own @ weights,
        "covered_before": (before & ~own) @ weights,
        "covered_after": (after & ~own & ~before) @ weights,
        "covered_near": (own | before | after) @ weights,
        "pairs": _pairs(question, around.own),
    }
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


def _pairs(question: Question, texts: list[str]) -> Floats:
    """Return the share of the question's word pairs that are neighbours in a text."""
    if not question.pairs:
        return np.zeros(len(texts))
    words = dict.fromkeys(word for pair in question.pairs for word in pair)
    starts = {word: needle(word).strip() for word in words}
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
    after_user = has(message_features.FROM_USER, rows.before_traits) * unnamed
    share = max(0.01, float(user.mean())) if len(user) else 1.0
    standing = has(message_features.STANDING)
    spoken = rows.traits & (message_features.FROM_USER | message_features.FROM_ASSISTANT)
    return {
        "opens": ((rows.ordinals == 0) & (rows.sessions > 0)).astype(float),
        "asks": has(message_features.ENDS_IN_QUESTION),
        "answers": has(message_features.HAS_OPEN_QUESTION, rows.before_traits)
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
        "tool": ((rows.traits > 0) & (spoken == 0)).astype(float),
        "announces": np.array(
            [text.startswith(_ANNOUNCING) and len(text) < _ANNOUNCED_CHARS for text in around.own],
            float,
        ),
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


OF_FRAGMENTS = frozenset((
    "keyword", "keyword_z", "keyword_if_long", "long_rank", "cosine", "cosine_z", "cosine_rank",
    "cosine_top", "cosine_beside", "covered", "covered_near", "covered_close", "pairs", "together",
    "sole", "exact", "date", "late", "late_if_early", "late_if_late", "people", "agent",
))  # fmt: skip
"""Features that fragments have, too: the others are about messages and their neighbours."""

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


def describe_logs(db: Connection, question: Question, pool: Pool) -> dict[str, Floats]:
    """Return the features that distillations and their source messages gain from each other."""
    columns = {name: np.zeros(len(pool.ns)) for name in LOG_FEATURES}
    places = np.flatnonzero(pool.is_type("distillation")).tolist()
    if not places:
        return columns
    log_ns = pool.ns[places].tolist()
    records = distillations.get_distillations(db, log_ns)
    line_sources = distillations.source_messages_by_line(db, log_ns)
    needles = [needle(term) for term in question.terms]
    weights = pool.word_weights()
    place_of = {n: place for place, n in enumerate(pool.ns.tolist())}
    for place, log_n in zip(places, log_ns, strict=True):
        record = records[log_n]
        fits = [_line_fit(plain(line), needles, weights) for line in record.text.split("\n")]
        columns["line"][place] = max(fits)
        columns["brief"][place] = _brevity(record)
        columns["condensed"][place] = record.generation > 0
        columns["archived"][place] = record.archived
        for fit, source_ns in zip(fits, line_sources[log_n], strict=False):
            for source in (place_of[n] for n in source_ns if n in place_of):
                _raise_to(columns["told"], source, fit)
                _raise_to(columns["told_cosine"], source, float(pool.cosine[place]))
                _raise_to(columns["tells"], place, float(pool.base[source]))
                _raise_to(columns["line_cosine"], place, float(pool.cosine[source]))
    return columns


def _brevity(record: Distillation) -> float:
    """Return the share of a shown message's tokens that one line of a distillation saves."""
    ordinals = [ordinal for line in record.sources for ordinal in line]
    if not ordinals:
        return 0.0
    shown = min(EXCERPT_TOKENS, record.source_tokens / (max(ordinals) - min(ordinals) + 1))
    line = record.tokens / sum(map(bool, record.sources))
    return max(0.0, 1.0 - line / max(1.0, shown))


def _raise_to(column: Floats, place: int, value: float) -> None:
    column[place] = max(column[place], value)


def _line_fit(text: str, needles: Sequence[str], weights: Floats) -> float:
    return float(
        sum(weight for needle_, weight in zip(needles, weights, strict=True) if needle_ in text)
    )
