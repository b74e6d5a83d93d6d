"""States of a moment: symptoms without a cause, and what the session itself changed later."""

from __future__ import annotations

from collections.abc import Sequence

from lore.llm.offline.sentence_rules import parse_tool_calls
from lore.llm.offline.statement_classifier import straighten
from lore.records import FragmentKind, MessageText
from lore.text import call_text, entities, words
from lore.text.regex import PatternFile

_re = PatternFile("session_states")

MIN_SHARED_WORDS, MIN_SHARED, REPEATED_SHARE = 2, 0.4, 0.7
"""A later report is about a state with so many and this share of its words; it repeats the state
with the last. Chosen on four projects of `fragments.jsonl.gz`."""

MIN_NAME_CHARS, MIN_WORD_CHARS = 4, 4
"""Shorter names and words occur everywhere."""

LASTING: tuple[FragmentKind, ...] = ("decision", "preference", "workflow")
"""What was decided holds although 'still' or 'yet' stands in it."""


def is_explained(text: str) -> bool:
    """Return whether a text says why something happens, or what to do about it."""
    text = straighten(text)
    return bool(_re.cause.search(text) or _re.remedy.search(text))


def is_failure(text: str) -> bool:
    """Return whether a text says that something does not work."""
    return bool(_re.failure.search(straighten(text)))


def is_changed_later(text: str, kind: FragmentKind, after: Sequence[MessageText]) -> bool:
    """Return whether a text states what held for the moment, and work on the same thing followed.

    A report of a change is no such state. What the last message of an agent repeats as it was
    holds still.
    """
    plain = straighten(text)
    if kind in LASTING or not _re.for_now.search(plain) or _re.done.search(plain):
        return False
    telling = _telling_words(text)
    names = {name.strip("`()").lower() for name in entities.identifiers(text)}
    names = {name for name in names if len(name) >= MIN_NAME_CHARS}
    agent = [one for one in after if one.voice == "assistant"]
    if agent and _repeats(agent[-1].text, telling):
        return False
    return any(_edits(one.text, names) or _reports_change(one.text, telling) for one in agent)


def _telling_words(text: str) -> set[str]:
    return {
        words.stem(word)
        for word in words.split(text)
        if word not in words.STOP_WORDS and len(word) >= MIN_WORD_CHARS
    }


def _repeats(message: str, telling: set[str]) -> bool:
    shared = len(telling & _telling_words(message))
    return shared >= REPEATED_SHARE * len(telling) and not _re.done.search(message)


def _edits(message: str, names: set[str]) -> bool:
    """Return whether a message edits something that has one of the names."""
    return any(
        call_text.read_call(tool, argument).action in ("edit", "write")
        and any(name in argument.lower() for name in names)
        for tool, argument in parse_tool_calls(message)
    )


def _reports_change(message: str, telling: set[str]) -> bool:
    if not _re.done.search(message):
        return False
    shared = len(telling & _telling_words(message))
    return shared >= max(MIN_SHARED_WORDS, MIN_SHARED * len(telling))
