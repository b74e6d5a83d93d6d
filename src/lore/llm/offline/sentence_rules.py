"""Rules about single sentences: what a statement replaces or sets, and what is withdrawn later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lore.records import ROLES, FragmentKind, MessageText
from lore.text import entities, instructions, words
from lore.text.regex import PatternFile

_re = PatternFile("sentence_rules")


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


def parse_tool_calls(text: str) -> list[tuple[str, str]]:
    """Return the tool calls in a message, each with the tool's name and its input."""
    return [(name, argument) for name, argument in _re.call.findall(text)]


def is_asked(sentence: str) -> bool:
    """Return whether a person's sentence is a question, also without its mark."""
    return sentence.endswith("?") or bool(_re.asks.match(sentence))


def orders_review(request: str) -> bool:
    """Return whether a request orders a code review, such as a command or a reviewer's role."""
    return bool(_re.reviews.match(request))


def strip_inserted(text: str, *, is_agent: bool) -> str:
    """Return what someone wrote: without tool calls, or without text that programs inserted."""
    return (_re.call if is_agent else _re.pasted).sub("\n", text)


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


def replaced_by(text: str) -> str:
    """Return what a statement says is no longer so; empty if there is nothing."""
    withdrawal = instructions.find_withdrawal(text)
    if withdrawal:
        return withdrawal.withdrawn
    return replaced_value(text)


def decision_payload(text: str) -> dict[str, Any]:
    """Return the payload of a decision, with its reason and the alternative if stated."""
    reason = _re.reason.search(text)
    former = replaced_value(text)
    return {
        "decision": text,
        **({"rationale": reason[1].rstrip(".")} if reason else {}),
        **({"alternatives": [former]} if former else {}),
    }


def config_payload(sentence: str) -> dict[str, str]:
    """Return the one setting that a sentence gives a value; empty if there is none or several."""
    matches = list(_re.constant.finditer(sentence))
    if len(matches) != 1:
        return {}
    one = matches[0].groupdict()
    name = one["inner"] or one["setting"] or one["set"]
    value = (one["inner_value"] or one["value"] or one["set_value"]).strip('`"')
    place = _re.place.search(sentence)
    return {"setting": name, "value": value, **({"location": place[1]} if place else {})}


def command_payload(text: str) -> dict[str, str]:
    """Return the command that a sentence names and what it is for, as far as it says that."""
    command, trigger = _re.command.search(text), _re.trigger.search(text)
    return {
        **({"command": command[1]} if command else {}),
        **({"trigger": (trigger[1] or trigger[2]).strip()} if trigger else {}),
    }


def with_speaker(one: MessageText, text: str) -> str:
    """Return a statement with its speaker's name, and with its day if it says 'yesterday'."""
    day = f"{one.at.day} {one.at:%B %Y}"
    if one.voice not in ROLES:
        return (
            f"{one.voice} ({day}): {text}"
            if entities.has_relative_date(text)
            else (f"{one.voice}: {text}")
        )
    return f"{text} (said on {day})" if _re.by_day.search(text) else text


MIN_SHARED_NAMES, MIN_SHARED_WORDS = 0.5, 2
"""A message is about a claim with this share of its names, or with so many of its words."""


def is_withdrawn(claim: str, after: Sequence[MessageText]) -> bool:
    """Return whether the user doubts a claim next, or the agent says later that it was wrong."""
    names = {name.strip("`()") for name in entities.identifiers(claim)}
    reply = next((one for one in after if one.voice not in ("assistant", "tool", "system")), None)
    if reply and _re.doubted.search(reply.text) and _is_about(claim, reply.text):
        return True
    return any(
        sum(name in one.text for name in names) >= MIN_SHARED_NAMES * len(names)
        for one in after
        if names and one.voice == "assistant" and _re.withdrawn.search(one.text)
    )


def _is_about(claim: str, doubt: str) -> bool:
    one, other = (
        {words.stem(word) for word in words.split(text) if word not in words.STOP_WORDS}
        for text in (claim, doubt)
    )
    return len(one & other) >= MIN_SHARED_WORDS
