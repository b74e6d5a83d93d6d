"""Every pattern that reads what people write takes time in proportion to its length."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from lore.capture.adapters import json_lists, payloads, tools
from lore.curate import correcting
from lore.llm.offline import (
    changing,
    choices,
    clauses,
    condensing,
    extracting,
    findings,
    fixes,
    orders,
    persons,
    reasons,
    settling,
    told_settings,
    workflows,
)
from lore.recall import question, time_spans
from lore.text import (
    calls,
    entities,
    fences,
    goals,
    instructions,
    lines,
    marks,
    outcomes,
    results,
    saying,
    sentences,
    specifics,
    statements,
    stories,
    tasks,
    tokens,
    told,
    traits,
    values,
    words,
)
from lore.text.later import Later

NOW = datetime(2026, 5, 13, 12, tzinfo=UTC)
# What is worse than quadratic takes minutes or hours; what is not, a fraction of a second.
HOPELESS_S = 20.0
LONG = 500_000
PATTERN_CHARS = 1_500
PIECES = (
    "a", "A", "aA", "Aa ", "AB1", '"', "'", "a'", "_", "a_", "/", "a/", "a.", ".", "-", "a-b:",
    "1", "1 ", "1st ", " ", "\n", " \t", "(", " (", ")", "`", "```", ">\n", "“", "?", "? ",
    "In ", "X In ", "Of The ", "A of ", "the order ", "clear ", "please, ", "i ", "may ", "2020 ",
    "january ", "in the last ", "a couple of ", "last ", "aAé", "AAaé",
    "日", "日。", "é", "e\u0301", "<lore-memory>", "</lore-memory", "data:", ";base64,",
    "**", "[", "](", "[x](", ", and ", "\\(", "1=", "<a ", "so, ",
)  # fmt: skip


def patterns() -> list[tuple[str, re.Pattern[Any] | Later]]:
    found = []
    for module in (
        calls, entities, goals, instructions, lines, marks, outcomes, results, stories, tasks,
        traits, words, time_spans, question, json_lists, payloads, tools, saying, clauses, condensing,
        sentences, statements, specifics, told, values, persons, findings, workflows, orders,
        changing, extracting, choices, fixes, settling, told_settings, reasons,
        correcting,
    ):  # fmt: skip
        for name, value in vars(module).items():
            held = value if isinstance(value, tuple) else (value,)
            flat = [x for item in held for x in (item if isinstance(item, tuple) else (item,))]
            found += [
                (f"{module.__name__}.{name}", x) for x in flat if isinstance(x, re.Pattern | Later)
            ]
    return found


def test_there_are_patterns_to_be_tried():
    assert len(patterns()) > 150


@pytest.mark.parametrize("piece", PIECES)
def test_no_pattern_explodes(piece):
    for end in ("", "_", "é"):
        text = piece * (PATTERN_CHARS // len(piece)) + end
        for name, pattern in patterns():
            started = time.thread_time()
            if isinstance(pattern.pattern, bytes):
                pattern.sub(b"", text.encode())
            else:
                pattern.sub("", text)
            assert time.thread_time() - started < HOPELESS_S, name


@pytest.mark.parametrize("piece", PIECES)
def test_reading_a_long_text_takes_linear_time(piece):
    text = piece * (LONG // len(piece)) + "_"
    started = time.thread_time()
    words.searchable_form(text)
    entities.extract(text[:100_000], title=text[:100_000])
    instructions.standing(text)
    lines.summary(text)
    calls.read_call("Bash", text)
    calls.read_call("apply_patch", text)
    goals.request_of(text)
    results.message_of(text)
    tokens.clip(text, 100)
    tokens.clip_around(text, 100, ["a", "in", "the", "last"])
    traits.traits_of(text, "user")
    time_spans.spans(text[:100_000], NOW)
    question.parse(f"x{text}", NOW)
    marks.split(text)
    marks.fences(text, fences.PUT_IN)
    marks.wrap(text)
    payloads.without(text)
    assert time.thread_time() - started < HOPELESS_S
