"""Faults: what the errors of upstreams say about the size of a prompt."""

from __future__ import annotations

import re

from lore.gateway.apis.wire import Fault

UNREADABLE = "unreadable"
"""The kind of a fault that is no error in the words of a provider."""

_SIZES = (
    re.compile(r"prompt is too long: ([\d,]+) tokens > ([\d,]+)", re.IGNORECASE),
    re.compile(
        r"input token count \(([\d,]+)\) exceeds the maximum[^()]*\(([\d,]+)\)", re.IGNORECASE
    ),
    re.compile(r"input token count is ([\d,]+) but.{0,40}?supports up to ([\d,]+)", re.IGNORECASE),
)
"""Anthropic's and Gemini's words: first the prompt, then the most."""

_SIZES_REVERSED = re.compile(
    r"(?:maximum context length is|exceed the configured limit of) ([\d,]+) tokens"
    r".{0,80}?(?:resulted in|requested(?: about)?) ([\d,]+) tokens",
    re.IGNORECASE | re.DOTALL,
)
"""OpenAI's: first the most, then the prompt."""

_SIZES_WITH_ANSWER = re.compile(
    r"exceed context limit: ([\d,]+) \+ ([\d,]+) > ([\d,]+)", re.IGNORECASE
)
"""Anthropic's where the answer would find no room: the prompt, the answer, and the most of both."""

_LONG = (
    "prompt is too long",
    "input is too long",
    "exceed context limit",
    "context_length_exceeded",
    "exceeds the context window",
    "exceed the configured limit of",
    "maximum context length",
    "exceeds the maximum number of tokens",
)
"""What providers say of a prompt that is too long, with sizes or without, in lower case."""


def fault(kind: str, message: str) -> Fault:
    """Return a fault of these words, with the sizes that they tell."""
    for pattern in _SIZES:
        if found := pattern.search(message):
            return _too_long(kind, message, _number(found[1]), _number(found[2]))
    if found := _SIZES_REVERSED.search(message):
        return _too_long(kind, message, _number(found[2]), _number(found[1]))
    if found := _SIZES_WITH_ANSWER.search(message):
        prompt, answer, most = map(_number, found.groups())
        return _too_long(kind, message, prompt, max(0, most - answer))
    told = message.lower()
    is_long = kind == "context_length_exceeded" or any(one in told for one in _LONG)
    return Fault(kind, message, is_long)


def _too_long(kind: str, message: str, prompt: int, most: int) -> Fault:
    return Fault(kind, message, is_too_long=True, prompt_tokens=prompt, most_tokens=most)


def _number(digits: str) -> int:
    return int(digits.replace(",", ""))
