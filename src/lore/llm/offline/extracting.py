"""Extraction by rules: the few statements of an exchange that are worth keeping for months.

What the person and the agent said is read; of what tools, pages and files say only an error is
taken, as the symptom of a fix that the agent told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lore.llm.offline import findings, persons, settling, topics, workflows
from lore.llm.offline.finding import Found
from lore.llm.offline.topics import Embed
from lore.records import ROLES, TRUST, UNASKED_TRUST, Extract, Said, Segment
from lore.text import goals, lines, results, specifics, words

MOST_FACTS = 10
"""Of one exchange; the specification's limit."""

KEYWORDS = 8

MOST_AFTER = 60
"""Messages after an agent's words in which they may be repaired or taken back."""

BRIEF_CHARS = 40
"""A shorter first sentence does not say what a fragment is about: the next one is shown too."""

_AT_WORK = re.compile(
    r"\b(?:Let me|I'll|I will) (?:\w+ )?(?:add|check|create|debug|examine|explore|find|fix"
    r"|implement"
    r"|investigate|look|make|read|remove|rename|run|search|see|start|update|use|verify|write)\b"
    r"|\b[Cc]ommit(?:ted as)? [0-9a-f]{7,12}\b|\b(?:[Pp]ull request|PR) #\d+"
    r"|\b(?:Added to|Changed in|All in|Noted in) `?[\w.-]+(?:/|\.md\b)"
)
_FAILED = re.compile(
    r"^[ \t]*(?:Exit code [1-9]|<tool_use_error>|Error:|FAIL|--- FAIL|panic:|fatal:|Traceback"
    r"|error(?:\[E\d+\])?:)",
    re.MULTILINE,
)


def extract(exchange: Segment, *, embed: Embed | None = None) -> list[Extract]:
    """Return the knowledge in an exchange that is worth keeping, broad before specific."""
    said = [one for one in exchange.said if not goals.is_told_again(one.text)]
    found = _distinct(_found(said, exchange.later))
    best = sorted(found, key=lambda one: -one.score)[:MOST_FACTS]
    kept = [one for one in found if one in best]
    grown = topics.trees([one.text for one in kept], embed)
    return [_extract(kept[root], [kept[i] for i in below]) for root, below in grown]


def _found(said: list[Said], later: Sequence[Said]) -> Iterator[Found]:
    at_work = _is_work(said)
    heard = findings.Heard()
    for place, one in enumerate(said):
        if one.voice == "tool":
            if _FAILED.search(one.text[:4_000]):
                heard = replace(heard, error=results.message_of(one.text), error_id=one.id)
        elif TRUST[one.origin] < UNASKED_TRUST:
            continue
        elif one.voice == "assistant":
            if at_work:
                after = [*said[place + 1 : place + 1 + MOST_AFTER], *later][:MOST_AFTER]
                yield from findings.find(one, heard, _trusted(after))
        elif one.voice == "user" or one.voice not in ROLES:
            heard = findings.Heard(one.text, one.id)
            yield from _of_person(one, at_work=at_work)
    if at_work:
        yield from workflows.find(_trusted(said), _trusted(later))


def _trusted(said: Sequence[Said]) -> list[Said]:
    """Return what was said without the voices that nobody asked."""
    return [one for one in said if one.voice == "tool" or TRUST[one.origin] >= UNASKED_TRUST]


def _of_person(one: Said, *, at_work: bool) -> Iterator[Found]:
    if at_work and one.voice == "user":
        return settling.find(one)
    return persons.find(one, named=one.voice != "user", in_code=at_work)


def _is_work(said: list[Said]) -> bool:
    """Tell whether an agent works on a project here, rather than answers a question."""
    if any(one.voice == "tool" for one in said):
        return True
    return any(one.voice == "assistant" and _AT_WORK.search(one.text) for one in said)


def _distinct(found: Iterator[Found]) -> list[Found]:
    kept: list[Found] = []
    seen: set[frozenset[str]] = set()
    for one in found:
        told = frozenset(words.split(one.text))
        if told not in seen:
            seen.add(told)
            kept.append(one)
    return kept


def _extract(one: Found, below: list[Found]) -> Extract:
    first = lines.summary(one.text)
    summary = first if len(first) >= BRIEF_CHARS else lines.one_line(one.text, lines.SUMMARY_CHARS)
    keywords = list(specifics.identifiers(one.text)[:KEYWORDS])
    payload = {"summary": summary, "keywords": keywords, **one.payload}
    children = tuple(_extract(child, []) for child in below)
    return Extract(one.text, summary, one.kind, one.importance, one.sources, payload,
                   one.corrects, children=children)  # fmt: skip
