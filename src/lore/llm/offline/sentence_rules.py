"""Rules about single sentences that the extraction from users and agents shares."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lore.records import FragmentKind

HIGH, MEDIUM, LOW = 0.9, 0.5, 0.2
"""The three importances of the specification."""

MIN_CHARS, MAX_CHARS = 24, 420
"""A shorter sentence says too little alone, a longer one is an essay."""

MIN_WORDS = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """One statement worth keeping; `score` ranks it within its exchange."""

    text: str
    kind: FragmentKind
    importance: float
    score: float
    sources: tuple[str, ...]
    payload: dict[str, Any] = field(default_factory=dict)
    corrects: str = ""


def has_statement_length(text: str) -> bool:
    """Return whether a sentence has the length of a statement."""
    return MIN_CHARS <= len(text) <= MAX_CHARS and len(text.split()) >= MIN_WORDS


_CALL = re.compile(r"^\[([A-Za-z][\w:.-]{0,60})\] (.*)$", re.MULTILINE)


def parse_tool_calls(text: str) -> list[tuple[str, str]]:
    """Return the tool calls in a message, each with the tool's name and its input."""
    return [(name, argument) for name, argument in _CALL.findall(text)]


def strip_tool_calls(text: str) -> str:
    """Return the prose of a message, without tool calls."""
    return _CALL.sub("\n", text)


_COMMAND = re.compile(
    r"^(?:please\s+|now\s+|just\s+|ok(?:ay)?\s+|also\s+|and\s+|then\s+)*(?:add|address|adjust|answer"
    r"|apply|ask|build|bump|change|check|clean|close|commit|compare|continue|convert|copy|create"
    r"|cut|debug|delete|deploy|describe|design|do|document|draft|drop|ensure|explain|explore"
    r"|extract|fetch|find|finish|fix|follow|format|generate|get|give|go|have|help|implement"
    r"|improve|include|install|investigate|keep|leave|list|look|make|merge|migrate|move|open"
    r"|optimi[sz]e|port|prepare|print|proceed|provide|pull|push|put|read|rebase|refactor|remove"
    r"|rename|replace|report|research|reset|resolve|restore|return|revert|review|rewrite|run|see"
    r"|set|show|simplify|skip|solve|split|squash|start|stop|summari[sz]e|switch|take|tell|test"
    r"|trace|translate|try|undo|update|upgrade|use|verify|wait|write|yes|no|handle|consider|avoid|pass|call|store|validate|treat|wire|define|register|determine|detect|allow|guard|wrap|track|load|parse|persist|reuse|mark|group)\b",
    re.IGNORECASE,
)


_PURPOSE = re.compile(r"^(?:for|in|on) [^,;:.]{3,50}, (?=[a-z])", re.IGNORECASE)
"""A purpose may precede a command."""


def is_command(sentence: str) -> bool:
    """Return whether a sentence is a command to the agent."""
    return bool(_COMMAND.match(_PURPOSE.sub("", sentence)))


CHANGE_VERBS = (
    "switch|mov|migrat|chang|upgrad|downgrad|rais|lower|increas|decreas|reduc|extend|postpon"
    "|reschedul|renam|bump|updat|revis|transition|convert"
)
"""Stems of verbs that report a change."""

_REPLACED = (
    re.compile(
        rf"\b(?:switch|went|(?:{CHANGE_VERBS}|port)(?:ed|ing))\b[^,.;]{{0,80}}?\bfrom\s+"
        r"([^,.;]{2,60}?)\s+(?:to|over to)\s+[^,.;]{2,}",
        re.IGNORECASE,
    ),
    re.compile(r"\breplac(?:ed|ing|es)\s+([^,.;]{2,60}?)\s+(?:with|by)\s+", re.IGNORECASE),
    re.compile(r"\b(?:no longer|not anymore|stopped|don't|do not)\s+(?:use|using|need|want|run|"
               r"support)\w*\s+([^,.;]{2,60})", re.IGNORECASE),
    re.compile(r"\bforget (`[^`]{2,60}`|[\w./-]{2,40}),", re.IGNORECASE),
    re.compile(r"^(?:the |our |final )*decision: [\w./@-]{2,40} (?:instead of|rather than|not) "
               r"([\w./@-]{2,40})", re.IGNORECASE),
    re.compile(r"\b(?:use|uses|using|used|is|are|was|call|with)\s+[^,.;]{2,60}?,?\s+(?:instead of"
               r"|rather than|not)\s+([^,.;]{2,60})", re.IGNORECASE),
)  # fmt: skip
_CHANGED = re.compile(
    rf"\b(?:now|no longer|anymore|instead|replaced|actually|correction|(?:{CHANGE_VERBS})ed)\b",
    re.IGNORECASE,
)


def replaced_value(statement: str) -> str:
    """Return the former state that a statement names; empty if it names none."""
    for form in _REPLACED:
        match = form.search(statement)
        if match:
            return match[1].strip(" `\"'")
    return ""


def states_change(statement: str) -> bool:
    """Return whether a statement says that something changed."""
    return bool(_CHANGED.search(statement)) or bool(replaced_value(statement))


_REASON = re.compile(
    r"\b(?:because|since|so that|in order to|to avoid|to prevent)\s+(.{6,200})", re.IGNORECASE
)


def decision_payload(text: str) -> dict[str, Any]:
    """Return the payload of a decision, with its reason and the alternative if stated."""
    reason = _REASON.search(text)
    former = replaced_value(text)
    return {
        "decision": text,
        **({"rationale": reason[1].rstrip(".")} if reason else {}),
        **({"alternatives": [former]} if former else {}),
    }


_NAME = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
_VALUE = r"`[^`\s]{1,60}`|\"[^\"\n]{1,60}\"|-?\d[\w.]{0,20}|true|false|on|off|enabled|disabled"
_CONSTANT = re.compile(
    rf"`(?P<inner>{_NAME})\s?=\s?(?P<inner_value>[^`\s]{{1,80}})`"
    rf"|`?\b(?P<setting>{_NAME})\b`?\s(?:now\s)?(?:=|is(?:\snow)?(?:\sset\sto)?|defaults\sto)\s"
    rf"(?P<value>{_VALUE})(?=[\s.,;)]|$)"
    rf"|\b(?:set|raised|lowered|changed)\s`?(?P<set>{_NAME})`?\s(?:from\s\S{{1,40}}\s)?to\s"
    rf"(?P<set_value>{_VALUE})(?=[\s.,;)]|$)"
)
"""A name in capitals with a value is a setting, whatever else the sentence says."""

_COMMIT = re.compile(r"^[0-9a-f]{7,12}[:.,]\s+|\s?\((?:commit )?[0-9a-f]{7,12}\)")
_HYPOTHETICAL = re.compile(
    r"\b(?:if|would|could|might|should|need|needs|when|try|tried|run|running|test|tests|tested|can"
    r"|use|uses|using|your|disables?|enables?|opt-?out|respects?|instead|e\.g\.|example|want|was"
    r"|were|unset|checks?|bypass\w*|env(?:ironment)? var\w*)\b|\?|^set `[A-Z_]+=",
    re.IGNORECASE,
)
_PLACE = re.compile(r"\b(?:in|at|under|inside)\s+`?([~./\w\-]*[/.][\w./\-]*\w)`?")


class Setting(NamedTuple):
    """A setting, its value and its location."""

    name: str
    value: str
    location: str


def find_setting(sentence: str) -> Setting | None:
    """Return the setting that a sentence assigns a value; None if there are several."""
    matches = list(_CONSTANT.finditer(sentence))
    if len(matches) != 1 or _HYPOTHETICAL.search(sentence):
        return None
    one = matches[0]
    name = one["inner"] or one["setting"] or one["set"]
    value = (one["inner_value"] or one["value"] or one["set_value"]).strip('`"')
    place = _PLACE.search(sentence)
    return Setting(name, value, place[1] if place else "")


def strip_commit_hash(sentence: str) -> str:
    """Return a sentence without the commit hash that it reports."""
    return _COMMIT.sub("", sentence)
