"""Outputs: how much a model may answer at most where its client sets no limit."""

from __future__ import annotations

MOST_OUTPUT = {
    "claude-3-5": 8_192,
    "claude-3-7": 64_000,
    "claude-3": 4_096,
    "claude-haiku-4": 64_000,
    "claude-opus-4-0": 32_000,
    "claude-opus-4-1": 32_000,
    "claude-opus-4-5": 64_000,
    "claude-sonnet-4": 64_000,
    "claude": 128_000,
    "deepseek": 64_000,
    "gemini-1": 8_192,
    "gemini-2.0": 8_192,
    "gemini": 65_536,
    "gpt-3.5": 4_096,
    "gpt-4.1": 32_768,
    "gpt-4o": 16_384,
    "gpt-4": 8_192,
    "gpt": 128_000,
    "o1": 100_000,
    "o3": 100_000,
    "o4": 100_000,
}
"""The most output tokens of models by how their names begin, as their makers publish it; the
price lists do not tell it. New models answer rather more than those before them."""

USUAL_OUTPUT = 32_000
"""The same for a model that nobody knows."""


def most_output(model: str) -> int:
    """Return the most that a model answers, by the longest beginning of its name that is known."""
    name = model.rpartition("/")[2].lower()
    known = [begin for begin in MOST_OUTPUT if name.startswith(begin)]
    return MOST_OUTPUT[max(known, key=len)] if known else USUAL_OUTPUT
