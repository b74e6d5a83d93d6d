"""Extraction rules: propose drafts from an exchange without a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lore.llm.offline import agent_rules, decisions, user_rules
from lore.llm.offline.sentence_rules import (
    LOW,
    MEDIUM,
    Finding,
    has_statement_length,
    parse_tool_calls,
)
from lore.records import ROLES, TRUST, UNASKED_TRUST, Extract, MessageText, Segment
from lore.text import call_text, entities, goals, sentences, statements, words
from lore.text.regex import PatternFile
from lore.text.statements import Statement, stands_alone, strip_opening

_re = PatternFile("extraction_rules")

_PURPOSES = {
    "test": "run the tests of this project",
    "lint": "lint this project",
    "build": "build this project",
}


_MAX_COMMAND_CHARS = 80


def find_commands(
    messages: Sequence[MessageText], later: Sequence[MessageText] = ()
) -> Iterator[Finding]:
    """Yield the commands in an exchange that are worth keeping; `later` shows which ones recur."""
    yield from _successful_checks(messages, _count_runs((*messages, *later)))
    for one in messages:
        if one.voice == "assistant":
            for statement in statements.split_statements(one.text):
                finding = _recommended_command(one, statement)
                if finding is not None:
                    yield finding


def _count_runs(messages: Sequence[MessageText]) -> Counter[str]:
    calls = (parse_tool_calls(one.text) for one in messages if one.voice == "assistant")
    read = (call_text.read_call(*call) for several in calls for call in several)
    return Counter(call_text.bare_command(call.command) for call in read if call.command)


def _successful_checks(messages: Sequence[MessageText], times: Counter[str]) -> Iterator[Finding]:
    """Yield each successful check of the project once, by its call and not by its output."""
    reported: set[str] = set()
    for one, after in pairwise(messages):
        calls = parse_tool_calls(one.text) if one.voice == "assistant" else []
        if len(calls) != 1 or after.voice != "tool":
            continue
        call = call_text.read_call(*calls[0])
        command = call_text.bare_command(call.command)
        if not call.check or command in reported or not _is_general(command):
            continue
        if _re.probe.search(call.command) or (_re.option.search(command) and times[command] < 2):
            continue
        if call_text.classify_result(call, after.text, failed=False) == "ok":
            reported.add(command)
            purpose = _PURPOSES[call.check]
            text = f"To {purpose}, `{command}` works."
            yield Finding(text, "workflow", MEDIUM, 1.2, (one.id,),
                        {"command": command, "trigger": f"to {purpose}"})  # fmt: skip


def _is_general(command: str) -> bool:
    return bool(
        len(command) <= _MAX_COMMAND_CHARS
        and _re.of_the_project.match(command)
        and not _re.narrow.search(command)
    )


def _recommended_command(one: MessageText, statement: Statement) -> Finding | None:
    text = strip_opening(statement.text)
    command = _re.command.search(text)
    if command is None or not has_statement_length(text) or _re.transient.search(text):
        return None
    trigger = _re.trigger.search(text)
    if trigger is None or not stands_alone(text):
        return None
    if _re.to_do.search(f"{statement.heading} {statement.lead}") or _re.probe.search(command[1]):
        return None
    payload = {"command": command[1], "trigger": (trigger[1] or trigger[2]).strip()}
    return Finding(text, "workflow", LOW, 1.1, (one.id,), payload)


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


def extract(exchange: Segment, *, embed: Embed | None = None) -> list[Extract]:
    """Return the knowledge in an exchange that is worth keeping, broad before specific."""
    messages = [one for one in exchange.messages if not goals.is_repeated(one.text)]
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
            if _re.tool_failed.search(one.text[:4_000]):
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
        yield from find_commands(_filter_trusted(messages), _filter_trusted(later))


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
    return any(one.voice == "assistant" and _re.at_work.search(one.text) for one in messages)


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
