"""Reflecting: what several linked roots have in common, said in their own words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lore.records import Fragment
from lore.text import entities, lines, words

_MOST_SHARED = 6
_LINE_CHARS = 160
_SHORTEST = 4
"""Shorter words that are no names bind sentences together, not knowledge."""


def reflect(cluster: Sequence[Fragment]) -> str:
    """Return what most of a cluster share and what each adds; empty if they share nothing."""
    shared = _shared(cluster)
    if not shared:
        return ""
    told = dict.fromkeys(
        lines.one_line(one.summary or lines.summary(one.content), _LINE_CHARS)
        for one in sorted(cluster, key=lambda one: (-one.importance, one.created_at))
    )
    head = f"{len(cluster)} things known of {', '.join(shared)} belong together:"
    return "\n".join([head, *(f"- {line}" for line in told)])


def _shared(cluster: Sequence[Fragment]) -> list[str]:
    """Return the names and words that at least half of the cluster have, most common first."""
    counts: Counter[str] = Counter()
    for one in cluster:
        text = f"{one.summary}\n{one.content}"
        plain = (word for word in words.terms(text) if len(word) >= _SHORTEST)
        counts.update({*entities.names(text), *plain})
    least = max(2, (len(cluster) + 1) // 2)
    found = sorted((-count, word) for word, count in counts.items() if count >= least)
    chosen: list[str] = []
    for _, word in found:
        if not any(word in other or other in word for other in chosen):
            chosen.append(word)
    return chosen[:_MOST_SHARED]
