"""Observing offline: the statements of a segment that say most, word for word, as a dated log."""

from __future__ import annotations

from dataclasses import dataclass
from math import log1p

from lore.llm.offline.clauses import Clause, clauses
from lore.records import Log, LogLine, Said, Segment
from lore.text import tokens

PERSON, ASSISTANT, TOOL = 1.5, 0.7, 0.4
"""How much the words of each count: what a person says is asked for most often."""

FIRST = 1.5
"""The first statement of a message counts more: a line for each that says something."""

REPEATED = 0.35
"""What a word is still worth that another line of the log has."""

PART_TOKENS = 2.0
"""What a line costs besides its words."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    place: int
    order: int
    clause: Clause
    share: float


def observe(segment: Segment, *, limit_tokens: int) -> Log:
    """Write a dated log of a segment within a limit."""
    chosen = _choose(_candidates(segment), segment, limit_tokens)
    log = _log(segment, chosen)
    while chosen and tokens.count(log.text) > limit_tokens:
        chosen.pop()
        log = _log(segment, chosen)
    return log


def _candidates(segment: Segment) -> list[_Candidate]:
    found = []
    for place, one in enumerate(segment.said):
        share = _share(one)
        for order, clause in enumerate(clauses(one.text, person=one.origin == "user")):
            found.append(_Candidate(place, order, clause, share))
    return found


def _share(one: Said) -> float:
    if one.voice in ("tool", "system"):
        return TOOL
    return ASSISTANT if one.voice == "assistant" else PERSON


def _choose(candidates: list[_Candidate], segment: Segment, limit_tokens: int) -> list[_Candidate]:
    """Take statements while they fit, each time the one that adds most for what it costs."""
    uses: dict[str, int] = {}
    for candidate in candidates:
        for word in candidate.clause.weights:
            uses[word] = uses.get(word, 0) + 1
    left = float(limit_tokens - 4)
    told_here: dict[int, set[str]] = {}
    told: set[str] = set()
    chosen: list[_Candidate] = []
    open_ = list(candidates)
    while open_:
        best, best_worth, best_cost = None, 0.0, 0.0
        for candidate in open_:
            cost = _cost(candidate, segment, told_here)
            if cost > left:
                continue
            worth = _worth(candidate, uses, told_here.get(candidate.place, set()), told) / cost**0.8
            if worth > best_worth:
                best, best_worth, best_cost = candidate, worth, cost
        if best is None:
            break
        chosen.append(best)
        open_ = [one for one in open_ if one.clause.text != best.clause.text]
        left -= best_cost
        told_here.setdefault(best.place, set()).update(best.clause.weights)
        told.update(best.clause.weights)
    return chosen


def _cost(candidate: _Candidate, segment: Segment, told_here: dict[int, set[str]]) -> float:
    cost = tokens.count(candidate.clause.text) + 0.5
    if candidate.place not in told_here:
        cost += PART_TOKENS + tokens.count(segment.said[candidate.place].voice)
    return cost


def _worth(candidate: _Candidate, uses: dict[str, int], here: set[str], told: set[str]) -> float:
    total = candidate.clause.bonus
    for word, weight in candidate.clause.weights.items():
        if word not in here:
            value = weight * (1 + 0.3 * log1p(uses[word] - 1))
            total += value * (REPEATED if word in told else 1.0)
    if candidate.clause.used:
        return total * TOOL
    return total * candidate.share * (1.0 if here else FIRST)


def _log(segment: Segment, chosen: list[_Candidate]) -> Log:
    by_place: dict[int, list[_Candidate]] = {}
    for candidate in chosen:
        by_place.setdefault(candidate.place, []).append(candidate)
    lines: list[LogLine] = []
    day = ""
    for place in sorted(by_place):
        one = segment.said[place]
        if f"{one.at:%Y-%m-%d}" != day:
            day = f"{one.at:%Y-%m-%d}"
            lines.append(LogLine(day))
        told = sorted(by_place[place], key=lambda candidate: candidate.order)
        text = "; ".join(candidate.clause.text.rstrip(".;") for candidate in told)
        lines.append(LogLine(f"{one.voice}: {text}", (one.ordinal,)))
    return Log(tuple(lines))
