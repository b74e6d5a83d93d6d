"""Condensing offline: several logs as one, what lasts first, then what happened when."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lore.llm.offline.clauses import weigh
from lore.records import Log, LogLine
from lore.text import instructions, tokens

STATE, DECISIONS, CHANGES, TIMELINE = "Current state", "Decisions", "Changes", "Timeline"
SECTIONS = (STATE, DECISIONS, CHANGES, TIMELINE)

FORMER = 0.8
"""What a former log said counts a little less each time it is told again."""

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
    """Write one log of several within a limit: the lines that say most, by section and day."""
    found = _read(former, 0, FORMER)
    for log in logs:
        found += _read(log, len(found), 1.0)
    chosen = _choose(found, limit_tokens)
    told = _log(chosen)
    while chosen and tokens.count(told.text) > limit_tokens:
        chosen.remove(min(chosen, key=lambda line: _worth(line, set())))
        told = _log(chosen)
    return told


def _log(chosen: Sequence[_Line]) -> Log:
    lines: list[LogLine] = []
    for section in SECTIONS:
        inside = [line for line in chosen if line.section == section]
        if inside:
            lines.append(LogLine(f"{section}:"))
            lines += [LogLine(f"{line.day} {line.text}".strip()) for line in inside]
    return Log(tuple(lines))


def _read(log: str, start: int, share: float) -> list[_Line]:
    """Return the lines of a log with their days, those of a condensed log with their sections."""
    found: list[_Line] = []
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
            found.append(_Line(start + len(found), own, body, kind, weigh(body), share))
    return found


def _section_of(text: str) -> str:
    if _CHANGED.search(text):
        return CHANGES
    if _DECIDED.search(text) or instructions.standing(text.partition(": ")[2] or text):
        return DECISIONS
    return STATE if _STATES.search(text) and not text.endswith("?") else TIMELINE


def _choose(found: Sequence[_Line], limit_tokens: int) -> list[_Line]:
    """Take lines while they fit, each time the one that adds most; return them in order."""
    left = float(limit_tokens - 12)
    told: set[str] = set()
    open_, chosen = list(found), []
    while open_:
        worth = [_worth(line, told) for line in open_]
        best = open_.pop(max(range(len(open_)), key=worth.__getitem__))
        cost = _cost(best)
        if cost <= left:
            left -= cost
            chosen.append(best)
            told.update(best.weights)
    return sorted(chosen, key=lambda line: line.order)


_LASTS = {STATE: 1.0, DECISIONS: 1.4, CHANGES: 1.3, TIMELINE: 0.8}


_DATE_TOKENS = 4.0

_COST_POWER: float = 0.8
"""Between worth for each token, which prefers scraps, and worth alone, which prefers tirades."""


def _worth(line: _Line, told: set[str]) -> float:
    """Return what a line adds for what it costs; a word that was told already adds little."""
    new = sum(weight * (0.3 if word in told else 1.0) for word, weight in line.weights.items())
    worth: float = line.share * _LASTS[line.section] * new / _cost(line) ** _COST_POWER
    return worth


def _cost(line: _Line) -> float:
    return tokens.count(line.text) + _DATE_TOKENS
