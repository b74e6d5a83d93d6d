"""Every pattern takes time in proportion to the length of the text."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from lore.capture.adapters import archives, content_blocks, injected_text
from lore.digest import draft_writer, pair_judge
from lore.llm.offline import (
    extractor,
    log_writer,
    sentence_rules,
    statement_classifier,
    tool_evidence,
)
from lore.recall import question, time_spans
from lore.text import (
    call_text,
    entities,
    episodes,
    goals,
    hidden_text,
    instructions,
    memory_tags,
    message_features,
    pasted_text,
    sentences,
    shared_page,
    statements,
    tokens,
    transcript_text,
    words,
)
from lore.text.regex import LazyPattern, PatternFile

NOW = datetime(2026, 5, 13, 12, tzinfo=UTC)
# What is worse than quadratic takes minutes or hours; what is not, a fraction of a second.
HOPELESS_S = 20.0
LONG = 200_000
"""Ten thousand million steps for what is quadratic."""

PATTERN_CHARS = 1_000
PATTERN_LIMIT_S = 2.0
"""The slowest pattern, a quadratic one, takes a twentieth of it."""

PIECES = (
    "a", "A", "aA", "Aa ", "AB1", '"', "'", "a'", "_", "a_", "/", "a/", "a.", ".", "-", "a-b:",
    "1", "1 ", "1st ", " ", "\n", " \t", "(", " (", ")", "`", "```", ">\n", "“", "?", "? ",
    "In ", "X In ", "Of The ", "A of ", "the order ", "clear ", "please, ", "i ", "may ", "2020 ",
    "january ", "in the last ", "a couple of ", "last ", "aAé", "AAaé",
    "日", "日。", "é", "e\u0301", "<lore-memory>", "</lore-memory", "data:", ";base64,",
    "**", "[", "](", "[x](", ", and ", "\\(", "1=", "<a ", "so, ", "\t", "\\", "<!-- ",
    "<!-- lore:", "~~~", "\r\n", "「", ">", "-> ",
)  # fmt: skip


def patterns() -> list[tuple[str, re.Pattern[Any] | LazyPattern]]:
    found = []
    for module in (
        call_text, entities, goals, instructions, sentences, memory_tags, episodes,
        message_features, words, time_spans, question, archives, injected_text, content_blocks,
        transcript_text, log_writer, statements, extractor, tool_evidence, statement_classifier,
        sentence_rules, draft_writer, pair_judge, shared_page, hidden_text, pasted_text,
    ):  # fmt: skip
        for name, value in vars(module).items():
            values = value if isinstance(value, tuple) else (value,)
            if isinstance(value, PatternFile):
                values = tuple(getattr(value, section) for section in value.sections)
            flat = [x for item in values for x in (item if isinstance(item, tuple) else (item,))]
            found += [
                (f"{module.__name__}.{name}", x)
                for x in flat
                if isinstance(x, re.Pattern | LazyPattern)
            ]
    return found


def test_patterns_are_collected():
    assert len(patterns()) > 150


@pytest.mark.parametrize("piece", PIECES)
def test_no_pattern_takes_exponential_time(piece):
    for end in ("", "_é"[PIECES.index(piece) % 2]):
        text = piece * (PATTERN_CHARS // len(piece)) + end
        for name, pattern in patterns():
            started = time.thread_time()
            if isinstance(pattern.pattern, bytes):
                pattern.sub(b"", text.encode())
            else:
                pattern.sub("", text)
            assert time.thread_time() - started < PATTERN_LIMIT_S, name


@pytest.mark.parametrize("piece", PIECES)
def test_reading_a_long_text_takes_linear_time(piece):
    text = piece * (LONG // len(piece)) + "_"
    started = time.thread_time()
    words.searchable_form(text)
    entities.extract_mentions(text[:100_000], title=text[:100_000])
    for _, masked in instructions.masked_sentences(text):
        instructions.judge_rule(masked, len(text))
    sentences.summary(text)
    call_text.read_call("Bash", text)
    call_text.read_call("apply_patch", text)
    goals.parse_request(text)
    call_text.error_line(text)
    tokens.clip(text, 100)
    tokens.clip_around(text, 100, ["a", "in", "the", "last"])
    message_features.compute_features(text, "user")
    time_spans.spans(text[:100_000], NOW)
    question.parse(f"x{text}", NOW)
    memory_tags.split_memory(text)
    memory_tags.split_fences(text, memory_tags.INJECTED_TAGS)
    memory_tags.wrap_memory(text)
    injected_text.strip_base64(text)
    pair_judge.specific_words(text[:3_000])
    entry = f"- a{text}b\n"
    shared_page.remove_entries(entry, bool)
    shared_page.render(shared_page.parse(entry).entries)
    hidden_text.find_hidden(entry)
    assert time.thread_time() - started < HOPELESS_S
