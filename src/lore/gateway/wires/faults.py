"""Faults: what the errors of upstreams say about the size of a prompt."""

from __future__ import annotations

import re

from lore.gateway.wires.wire import Fault

UNREADABLE = "unreadable"
"""The kind of a fault that is no error in the words of a provider."""

_SIZES = (
    re.compile(r"prompt is too long: ([\d,]+) tokens > ([\d,]+)"),
    re.compile(r"input token count \(([\d,]+)\) exceeds the maximum[^()]*\(([\d,]+)\)"),
)
"""Anthropic's and Gemini's words: first the prompt, then the most."""

_SIZES_REVERSED = re.compile(
    r"maximum context length is ([\d,]+) tokens.{0,80}?(?:resulted in|requested) ([\d,]+) tokens",
    re.DOTALL,
)
"""OpenAI's: first the most, then the prompt."""

_LONG = (
    "prompt is too long",
    "context_length_exceeded",
    "exceeds the context window",
    "maximum context length",
    "exceeds the maximum number of tokens",
)


def fault(kind: str, message: str) -> Fault:
    """Return a fault of these words, with the sizes that they tell."""
    for pattern in _SIZES:
        if found := pattern.search(message):
            return _too_long(kind, message, found[1], found[2])
    if found := _SIZES_REVERSED.search(message):
        return _too_long(kind, message, found[2], found[1])
    is_long = kind == "context_length_exceeded" or any(one in message for one in _LONG)
    return Fault(kind, message, is_long)


def _too_long(kind: str, message: str, prompt: str, most: str) -> Fault:
    sizes = [int(digits.replace(",", "")) for digits in (prompt, most)]
    return Fault(kind, message, is_too_long=True, prompt_tokens=sizes[0], most_tokens=sizes[1])
