"""What rules find in an exchange before it becomes a draft."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lore.records import FragmentKind

HIGH, MEDIUM, LOW = 0.9, 0.5, 0.2
"""The three importances of the specification."""

SHORTEST_CHARS, LONGEST_CHARS = 24, 420
"""A shorter sentence says too little by itself, a longer one is an essay."""

FEWEST_WORDS = 5


@dataclass(frozen=True, slots=True)
class Found:
    """One statement worth keeping: `score` ranks it among those of its exchange."""

    text: str
    kind: FragmentKind
    importance: float
    score: float
    sources: tuple[str, ...]
    payload: dict[str, Any] = field(default_factory=dict)
    corrects: str = ""


def fits(text: str) -> bool:
    """Tell whether a sentence has the length of a statement."""
    return SHORTEST_CHARS <= len(text) <= LONGEST_CHARS and len(text.split()) >= FEWEST_WORDS
