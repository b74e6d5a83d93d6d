"""Write logs by rules: quote the most informative clauses of a segment or of older logs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p

from lore.llm.offline.clauses import Clause, split_clauses, weigh_words
from lore.records import Log, LogLine, MessageText, Segment
from lore.text import instructions, tokens

PERSON_WEIGHT, ASSISTANT_WEIGHT, TOOL_WEIGHT = 1.5, 0.7, 0.4
"""Weight of each speaker's words: what a person says is searched for most often."""

FIRST_WEIGHT = 1.5
"""The first statement of a message counts more, so that each message gets a line."""

REPEATED_WEIGHT = 0.35
"""The remaining value of a word that another line of the log already has."""

LINE_TOKENS = 2.0
"""The cost of a line besides its words."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    place: int
    order: int
    clause: Clause
    share: float


def observe(segment: Segment, *, limit_tokens: int) -> Log:
    """Write a dated log of a segment within a token limit."""
    chosen = _choose_clauses(_candidates(segment), segment, limit_tokens)
    log = _segment_log(segment, chosen)
    while chosen and tokens.count(log.text) > limit_tokens:
        chosen.pop()
        log = _segment_log(segment, chosen)
    return log


def _candidates(segment: Segment) -> list[_Candidate]:
    candidates = []
    for place, one in enumerate(segment.said):
        share = _voice_weight(one)
        for order, clause in enumerate(split_clauses(one.text, person=one.origin == "user")):
            candidates.append(_Candidate(place, order, clause, share))
    return candidates


def _voice_weight(one: MessageText) -> float:
    if one.voice in ("tool", "system"):
        return TOOL_WEIGHT
    return ASSISTANT_WEIGHT if one.voice == "assistant" else PERSON_WEIGHT


def _choose_clauses(
    candidates: list[_Candidate], segment: Segment, limit_tokens: int
) -> list[_Candidate]:
    """Choose clauses greedily by value per cost while they fit the limit."""
    uses: dict[str, int] = {}
    for candidate in candidates:
        for word in candidate.clause.weights:
            uses[word] = uses.get(word, 0) + 1
    tokens_left = float(limit_tokens - 4)
    used_here: dict[int, set[str]] = {}
    used_words: set[str] = set()
    chosen: list[_Candidate] = []
    remaining = list(candidates)
    while remaining:
        best, best_worth, best_cost = None, 0.0, 0.0
        for candidate in remaining:
            cost = _clause_cost(candidate, segment, used_here)
            if cost > tokens_left:
                continue
            worth = (
                _clause_worth(candidate, uses, used_here.get(candidate.place, set()), used_words)
                / cost**0.8
            )
            if worth > best_worth:
                best, best_worth, best_cost = candidate, worth, cost
        if best is None:
            break
        chosen.append(best)
        remaining = [one for one in remaining if one.clause.text != best.clause.text]
        tokens_left -= best_cost
        used_here.setdefault(best.place, set()).update(best.clause.weights)
        used_words.update(best.clause.weights)
    return chosen


def _clause_cost(candidate: _Candidate, segment: Segment, used_here: dict[int, set[str]]) -> float:
    cost = tokens.count(candidate.clause.text) + 0.5
    if candidate.place not in used_here:
        cost += LINE_TOKENS + tokens.count(segment.said[candidate.place].voice)
    return cost


def _clause_worth(
    candidate: _Candidate, uses: dict[str, int], here: set[str], used_words: set[str]
) -> float:
    total = candidate.clause.bonus
    for word, weight in candidate.clause.weights.items():
        if word not in here:
            value = weight * (1 + 0.3 * log1p(uses[word] - 1))
            total += value * (REPEATED_WEIGHT if word in used_words else 1.0)
    if candidate.clause.is_tool_line:
        return total * TOOL_WEIGHT
    return total * candidate.share * (1.0 if here else FIRST_WEIGHT)


def _segment_log(segment: Segment, chosen: list[_Candidate]) -> Log:
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
        parts = sorted(by_place[place], key=lambda candidate: candidate.order)
        text = "; ".join(candidate.clause.text.rstrip(".;") for candidate in parts)
        lines.append(LogLine(f"{one.voice}: {text}", (one.ordinal,)))
    return Log(tuple(lines))


STATE, DECISIONS, CHANGES, TIMELINE = "Current state", "Decisions", "Changes", "Timeline"
SECTIONS = (STATE, DECISIONS, CHANGES, TIMELINE)

FORMER_WEIGHT = 0.8
"""Lines of a former log count a little less each time they are repeated."""

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_DATED = re.compile(r"(\d{4}-\d\d-\d\d) (.+)")
_DECIDED = re.compile(
    r"\b(?:decid|chose|agreed|prefer|always|never|from now on|must|will use|going with|opted)\w*",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    r"\b(?:switch|replac|instead of|renam|migrat|moved|upgrad|no longer|chang|remov|fixed)\w*",
    re.IGNORECASE,
)
_STATES = re.compile(r"\b(?:now|is|are|uses?|runs?|works?|has|current(?:ly)?)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Line:
    order: int
    day: str
    text: str
    section: str
    weights: dict[str, float]
    share: float


def condense(logs: Sequence[str], former: str, *, limit_tokens: int) -> Log:
    """Condense several logs into one within a token limit, by section and day."""
    lines = _parse_log(former, 0, FORMER_WEIGHT)
    for log in logs:
        lines += _parse_log(log, len(lines), 1.0)
    chosen = _choose_lines(lines, limit_tokens)
    condensed = _condensed_log(chosen)
    while chosen and tokens.count(condensed.text) > limit_tokens:
        chosen.remove(min(chosen, key=lambda line: _line_worth(line, set())))
        condensed = _condensed_log(chosen)
    return condensed


def _condensed_log(chosen: Sequence[_Line]) -> Log:
    lines: list[LogLine] = []
    for section in SECTIONS:
        inside = [line for line in chosen if line.section == section]
        if inside:
            lines.append(LogLine(f"{section}:"))
            lines += [LogLine(f"{line.day} {line.text}".strip()) for line in inside]
    return Log(tuple(lines))


def _parse_log(log: str, start: int, share: float) -> list[_Line]:
    """Parse the lines of a log with their days, and of a condensed log with their sections."""
    lines: list[_Line] = []
    day, section = "", ""
    for text in log.splitlines():
        if text.rstrip(":") in SECTIONS:
            section = text.rstrip(":")
        elif _DAY.fullmatch(text):
            day = text
        elif text.strip():
            dated = _DATED.fullmatch(text)
            own, body = (dated[1], dated[2]) if dated else (day, text)
            kind = section or _section_of(body)
            lines.append(_Line(start + len(lines), own, body, kind, weigh_words(body), share))
    return lines


def _section_of(text: str) -> str:
    if _CHANGED.search(text):
        return CHANGES
    if _DECIDED.search(text) or instructions.find_standing(text.partition(": ")[2] or text):
        return DECISIONS
    return STATE if _STATES.search(text) and not text.endswith("?") else TIMELINE


def _choose_lines(lines: Sequence[_Line], limit_tokens: int) -> list[_Line]:
    """Choose lines greedily by value while they fit the limit; return them in order."""
    tokens_left = float(limit_tokens - 12)
    used_words: set[str] = set()
    remaining, chosen = list(lines), []
    while remaining:
        worth = [_line_worth(line, used_words) for line in remaining]
        best = remaining.pop(max(range(len(remaining)), key=worth.__getitem__))
        cost = _line_cost(best)
        if cost <= tokens_left:
            tokens_left -= cost
            chosen.append(best)
            used_words.update(best.weights)
    return sorted(chosen, key=lambda line: line.order)


_SECTION_WEIGHTS = {STATE: 1.0, DECISIONS: 1.4, CHANGES: 1.3, TIMELINE: 0.8}


_DATE_TOKENS = 4.0

_COST_POWER: float = 0.8
"""A compromise: value per token prefers scraps, value alone prefers long lines."""


def _line_worth(line: _Line, used_words: set[str]) -> float:
    """Return the value of a line per cost; words that are in the log already add little."""
    new = sum(
        weight * (0.3 if word in used_words else 1.0) for word, weight in line.weights.items()
    )
    worth: float = (
        line.share * _SECTION_WEIGHTS[line.section] * new / _line_cost(line) ** _COST_POWER
    )
    return worth


def _line_cost(line: _Line) -> float:
    return tokens.count(line.text) + _DATE_TOKENS
