"""Topics: statements of one exchange that belong together, the broadest on top."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from lore.text import words

Embed = Callable[[Sequence[str]], NDArray[np.float32]]

NEAR_COSINE, NEAR_WORDS = 0.55, 0.3
"""From here on two statements are about one thing. Chosen by hand, not measured."""


def trees(texts: Sequence[str], embed: Embed | None) -> list[tuple[int, list[int]]]:
    """Return roots with their children: the root is what most of its group is near to."""
    near = _nearness(texts, embed) >= (NEAR_COSINE if embed else NEAR_WORDS)
    left = list(range(len(texts)))
    grown: list[tuple[int, list[int]]] = []
    while left:
        root = max(left, key=lambda i: (int(near[i, left].sum()), -i))
        below = [i for i in left if i != root and near[root, i]]
        grown.append((root, below))
        left = [i for i in left if i != root and i not in below]
    return sorted(grown, key=lambda tree: min(tree[0], *tree[1], tree[0]))


def _nearness(texts: Sequence[str], embed: Embed | None) -> NDArray[np.float32]:
    if embed is not None and len(texts) > 1:
        rows = embed(texts)
        near: NDArray[np.float32] = rows @ rows.T
        return near
    told = [set(words.split(text)) - words.STOP_WORDS for text in texts]
    overlaps = [[overlap(one, other) for other in told] for one in told]
    return np.array(overlaps, np.float32).reshape(len(texts), len(texts))


def overlap(one: set[str], other: set[str]) -> float:
    """Return the share of words that two texts have in common."""
    both = one | other
    return len(one & other) / len(both) if both else 0.0
