"""Events: where a long session turns to something else."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from lore.text import words

WINDOW = 3
"""Turns on each side of a boundary that are compared."""

FEWEST_TURNS = 6
"""On each side of a boundary."""

NEVER_SPLIT = 12
"""A session of so many turns is one event."""

LEAST_OVERLAP = 0.15
"""Without an embedder, windows that share fewer of their words are two events."""

DEEP, DEEPER = 0.08, 1.0
"""A drop of similarity counts from this depth on, and from so many standard deviations below
the session's mean: the talk of one project is never far from itself. Chosen by hand."""

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


def split(turns: Sequence[str], embed: Embed | None = None) -> list[range]:
    """Return the events of a session as runs of its turns, in order and without gaps."""
    if len(turns) <= NEVER_SPLIT:
        return [range(len(turns))] if turns else []
    near = _by_vectors(embed(turns)) if embed else _by_words(turns)
    cuts = sorted(_cuts(near, 0, len(turns), _line(near) if embed else LEAST_OVERLAP))
    return [range(a, b) for a, b in zip([0, *cuts], [*cuts, len(turns)], strict=True)]


def _by_vectors(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return for each boundary how near the windows before and after it are."""
    near = np.ones(len(rows) + 1)
    for place in range(1, len(rows)):
        before = rows[max(0, place - WINDOW) : place].mean(axis=0)
        after = rows[place : place + WINDOW].mean(axis=0)
        size = float(np.linalg.norm(before) * np.linalg.norm(after))
        near[place] = float(before @ after) / size if size else 1.0
    return near


def _by_words(turns: Sequence[str]) -> NDArray[np.float64]:
    told = [set(words.split(turn)) - words.STOP_WORDS for turn in turns]
    near = np.ones(len(turns) + 1)
    for place in range(1, len(turns)):
        before = set().union(*told[max(0, place - WINDOW) : place])
        after = set().union(*told[place : place + WINDOW])
        both = before | after
        near[place] = len(before & after) / len(both) if both else 1.0
    return near


def _line(near: NDArray[np.float64]) -> float:
    """Return the similarity below which a boundary is one."""
    inner = near[1:-1]
    return float(min(inner.mean() - DEEPER * inner.std(), inner.mean() - DEEP))


def _cuts(near: NDArray[np.float64], start: int, end: int, line: float) -> list[int]:
    """Cut at the deepest boundary, then cut both sides."""
    first, last = start + FEWEST_TURNS, end - FEWEST_TURNS
    if end - start <= NEVER_SPLIT or first > last:
        return []
    place = first + int(np.argmin(near[first : last + 1]))
    if near[place] >= line:
        return []
    return [*_cuts(near, start, place, line), place, *_cuts(near, place, end, line)]
