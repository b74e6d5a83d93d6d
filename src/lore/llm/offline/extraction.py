"""Extract knowledge from an exchange by rules, and group it by topic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lore.llm.offline import agent_rules, commands, decisions, user_rules
from lore.llm.offline.sentence_rules import Finding
from lore.records import ROLES, TRUST, UNASKED_TRUST, Extract, MessageText, Segment
from lore.text import call_text, entities, goals, sentences, words

Embed = Callable[[Sequence[str]], NDArray[np.float32]]

NEAR_COSINE, NEAR_WORDS = 0.55, 0.3
"""From here on two statements have the same topic. Chosen by hand, not measured."""


def group_by_topic(texts: Sequence[str], embed: Embed | None) -> list[tuple[int, list[int]]]:
    """Return roots with their children: each root is the statement nearest to most of its group."""
    near = _similarity_matrix(texts, embed) >= (NEAR_COSINE if embed else NEAR_WORDS)
    ungrouped = list(range(len(texts)))
    groups: list[tuple[int, list[int]]] = []
    while ungrouped:
        root = max(ungrouped, key=lambda i: (int(near[i, ungrouped].sum()), -i))
        below = [i for i in ungrouped if i != root and near[root, i]]
        groups.append((root, below))
        ungrouped = [i for i in ungrouped if i != root and i not in below]
    return sorted(groups, key=lambda tree: min(tree[0], *tree[1], tree[0]))


def _similarity_matrix(texts: Sequence[str], embed: Embed | None) -> NDArray[np.float32]:
    if embed is not None and len(texts) > 1:
        rows = embed(texts)
        near: NDArray[np.float32] = rows @ rows.T
        return near
    word_sets = [set(words.split(text)) - words.STOP_WORDS for text in texts]
    overlaps = [[overlap(one, other) for other in word_sets] for one in word_sets]
    return np.array(overlaps, np.float32).reshape(len(texts), len(texts))


def overlap(one: set[str], other: set[str]) -> float:
    """Return the share of words that two texts have in common."""
    both = one | other
    return len(one & other) / len(both) if both else 0.0


MAX_FACTS = 10
"""Per exchange, as specified."""

KEYWORDS = 8

MAX_FOLLOWING = 60
"""The messages after an agent's statement in which it may be repaired or withdrawn."""

BRIEF_CHARS = 40
"""A shorter first sentence is no summary: the next one is added."""

_AT_WORK = re.compile(
    r"\b(?:Let me|I'll|I will) (?:\w+ )?(?:add|check|create|debug|examine|explore|find|fix"
    r"|implement|investigate|look|make|read|remove|rename|run|search|see|start|update|use|verify"
    r"|write)\b|\b[Cc]ommit(?:ted as)? [0-9a-f]{7,12}\b|\b(?:[Pp]ull request|PR) #\d+|\b(?:Added to"
    r"|Changed in|All in|Noted in) `?[\w.-]+(?:/|\.md\b)"
)
_TOOL_FAILED = re.compile(
    r"^[ \t]*(?:Exit code [1-9]|<tool_use_error>|Error:|FAIL|--- FAIL|panic:|fatal:|Traceback"
    r"|error(?:\[E\d+\])?:)",
    re.MULTILINE,
)


def extract(exchange: Segment, *, embed: Embed | None = None) -> list[Extract]:
    """Return the knowledge in an exchange that is worth keeping, broad before specific."""
    messages = [one for one in exchange.said if not goals.is_repeated(one.text)]
    findings = _deduplicate(_find_all(messages, exchange.later))
    best = sorted(findings, key=lambda one: -one.score)[:MAX_FACTS]
    selected = [one for one in findings if one in best]
    groups = group_by_topic([one.text for one in selected], embed)
    return [_build_extract(selected[root], [selected[i] for i in below]) for root, below in groups]


def _find_all(messages: list[MessageText], later: Sequence[MessageText]) -> Iterator[Finding]:
    at_work = _is_work_session(messages)
    context = agent_rules.PrecedingContext()
    for place, one in enumerate(messages):
        if one.voice == "tool":
            if _TOOL_FAILED.search(one.text[:4_000]):
                context = replace(context, error=call_text.error_line(one.text), error_id=one.id)
        elif TRUST[one.origin] < UNASKED_TRUST:
            continue
        elif one.voice == "assistant":
            if at_work:
                after = [*messages[place + 1 : place + 1 + MAX_FOLLOWING], *later][:MAX_FOLLOWING]
                yield from agent_rules.find_in_agent_message(one, context, _filter_trusted(after))
        elif one.voice == "user" or one.voice not in ROLES:
            context = agent_rules.PrecedingContext(one.text, one.id)
            yield from _find_in_person(one, at_work=at_work)
    if at_work:
        yield from commands.find_commands(_filter_trusted(messages), _filter_trusted(later))


def _filter_trusted(messages: Sequence[MessageText]) -> list[MessageText]:
    """Return the messages without those of untrusted origins; tool messages stay."""
    return [one for one in messages if one.voice == "tool" or TRUST[one.origin] >= UNASKED_TRUST]


def _find_in_person(one: MessageText, *, at_work: bool) -> Iterator[Finding]:
    if at_work and one.voice == "user":
        return decisions.find_decisions(one)
    return user_rules.find_in_user_message(
        one, is_conversation=one.voice != "user", at_work=at_work
    )


def _is_work_session(messages: list[MessageText]) -> bool:
    """Return whether an agent works on a project here, rather than answers a question."""
    if any(one.voice == "tool" for one in messages):
        return True
    return any(one.voice == "assistant" and _AT_WORK.search(one.text) for one in messages)


def _deduplicate(findings: Iterator[Finding]) -> list[Finding]:
    distinct: list[Finding] = []
    known_words: set[frozenset[str]] = set()
    for one in findings:
        word_set = frozenset(words.split(one.text))
        if word_set not in known_words:
            known_words.add(word_set)
            distinct.append(one)
    return distinct


def _build_extract(one: Finding, below: list[Finding]) -> Extract:
    first = sentences.summary(one.text)
    summary = (
        first
        if len(first) >= BRIEF_CHARS
        else sentences.one_line(one.text, sentences.SUMMARY_CHARS)
    )
    keywords = list(entities.identifiers(one.text)[:KEYWORDS])
    payload = {"summary": summary, "keywords": keywords, **one.payload}
    children = tuple(_build_extract(child, []) for child in below)
    return Extract(one.text, summary, one.kind, one.importance, one.sources, payload,
                   one.corrects, children=children)  # fmt: skip
