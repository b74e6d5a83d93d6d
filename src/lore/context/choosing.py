"""Choosing: whether a hit concerns a prompt so clearly, and newly, that it is worth a place in it.

What counts was found, and the threshold set, on recorded sessions by `lore eval injection`.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from lore.records import Fit, Hit
from lore.text import digests, words

RECENT, RECENT_HALVES_DAYS = 0.4, 3.0
"""So much of its strength a hit loses with age: work on one thing goes on for days."""

KNOWLEDGE, REQUEST = 3.0, 0.7
"""A fragment says in a sentence what messages say in many, and so shares fewer words; what a
person asked for tells less than what was found. Weighed so, all are right about as often."""

REPEATED = 0.85
"""A hit whose words stand in the prompt to this share tells it nothing."""


def strength(fit: Fit) -> float:
    """Return how clearly a hit concerns a prompt: near in meaning, with rare words in common."""
    recent: float = 2.0 ** (-max(fit.age_days, 0.0) / RECENT_HALVES_DAYS)
    return _weight(fit.hit) * max(fit.cosine, 0.0) * fit.rarity * (1 - RECENT + RECENT * recent)


def _weight(hit: Hit) -> float:
    if hit.type == "fragment":
        return KNOWLEDGE
    return REQUEST if hit.type == "message" and hit.origin == "user" else 1.0


def passing(prompt: str, fits: Sequence[Fit], threshold: float) -> list[Fit]:
    """Return the hits that pass, the strongest first, without what the prompt itself says."""
    said = frozenset(words.split(prompt))
    found = [fit for fit in fits if strength(fit) >= threshold and _is_news(fit, said)]
    return sorted(found, key=strength, reverse=True)


def _is_news(fit: Fit, said: frozenset[str]) -> bool:
    own = frozenset(words.split(fit.hit.text))
    return len(own & said) < REPEATED * len(own)


def fresh(texts: Mapping[str, str], had: Container[str], had_words: Container[int]) -> list[str]:
    """Return the ids of what a session was not given yet: no item twice, and no words twice.

    `had` are the ids of what it was given, `had_words` the digests of their words.
    """
    return [
        id_
        for id_, text in texts.items()
        if id_ not in had and digests.of_words(text) not in had_words
    ]
