"""Rules about single sentences that the extraction from users and agents shares."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lore.records import FragmentKind
from lore.text.regex import PatternFile

_re = PatternFile("sentence_rules")

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


def parse_tool_calls(text: str) -> list[tuple[str, str]]:
    """Return the tool calls in a message, each with the tool's name and its input."""
    return [(name, argument) for name, argument in _re.call.findall(text)]


def strip_tool_calls(text: str) -> str:
    """Return the prose of a message, without tool calls."""
    return _re.call.sub("\n", text)


def is_command(sentence: str) -> bool:
    """Return whether a sentence is a command to the agent."""
    return bool(_re.command.match(_re.purpose.sub("", sentence)))


_REPLACED = (
    _re.moved_from, _re.replaced_with, _re.no_longer, _re.forget, _re.decision_against,
    _re.instead_of,
)  # fmt: skip
"""Patterns whose group is the former state."""


def replaced_value(statement: str) -> str:
    """Return the former state that a statement names; empty if it names none."""
    for form in _REPLACED:
        match = form.search(statement)
        if match:
            return match[1].strip(" `\"'")
    return ""


def states_change(statement: str) -> bool:
    """Return whether a statement says that something changed."""
    return bool(_re.changed.search(statement)) or bool(replaced_value(statement))


def decision_payload(text: str) -> dict[str, Any]:
    """Return the payload of a decision, with its reason and the alternative if stated."""
    reason = _re.reason.search(text)
    former = replaced_value(text)
    return {
        "decision": text,
        **({"rationale": reason[1].rstrip(".")} if reason else {}),
        **({"alternatives": [former]} if former else {}),
    }


class Setting(NamedTuple):
    """A setting, its value and its location."""

    name: str
    value: str
    location: str


def find_setting(sentence: str) -> Setting | None:
    """Return the setting that a sentence assigns a value; None if there are several."""
    matches = list(_re.constant.finditer(sentence))
    if len(matches) != 1 or _re.hypothetical.search(sentence):
        return None
    one = matches[0]
    name = one["inner"] or one["setting"] or one["set"]
    value = (one["inner_value"] or one["value"] or one["set_value"]).strip('`"')
    place = _re.place.search(sentence)
    return Setting(name, value, place[1] if place else "")


def strip_commit_hash(sentence: str) -> str:
    """Return a sentence without the commit hash that it reports."""
    return _re.commit.sub("", sentence)
