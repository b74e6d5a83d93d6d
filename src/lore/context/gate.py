"""The gate: whether a hit concerns a prompt so clearly that it is worth a place in it.

What it looks at was chosen, and its threshold set, on recorded sessions by `lore eval injection`.
"""

from __future__ import annotations

from collections.abc import Sequence

from lore.records import Fit
from lore.text import words

RECENT, RECENT_HALVES_DAYS = 0.4, 3.0
"""So much of its strength a hit loses with age: work on one thing goes on for days."""

KNOWLEDGE = 4.0
"""A fragment says in a sentence what messages say in many, and so shares fewer words: weighed so,
fragments are right as often as messages of the same strength."""

REPEATED = 0.85
"""A hit whose words stand in the prompt to this share tells it nothing."""


def strength(fit: Fit) -> float:
    """Return how clearly a hit concerns a prompt: near in meaning, with rare words in common."""
    recent: float = 2.0 ** (-max(fit.age_days, 0.0) / RECENT_HALVES_DAYS)
    known = KNOWLEDGE if fit.hit.type == "fragment" else 1.0
    return known * max(fit.cosine, 0.0) * fit.rarity * (1 - RECENT + RECENT * recent)


def passing(prompt: str, fits: Sequence[Fit], threshold: float) -> list[Fit]:
    """Return the hits that pass, the strongest first, without what the prompt itself says."""
    said = frozenset(words.split(prompt))
    found = [fit for fit in fits if strength(fit) >= threshold and _is_news(fit, said)]
    return sorted(found, key=strength, reverse=True)


def _is_news(fit: Fit, said: frozenset[str]) -> bool:
    own = frozenset(words.split(fit.hit.text))
    return len(own & said) < REPEATED * len(own)
