"""Placing: where a draft belongs among the roots that are known, and how much it surprises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lore.records import FragmentKind

ATTACHED, ASSOCIATED = 0.75, 0.35
"""A root nearer than the first takes the draft below itself; from the second on the two are
linked. Both from the specification."""

SURPRISE = 0.5
"""So much more a thing counts that nothing known is like: the prediction error."""

NO_ROOTS: tuple[FragmentKind, ...] = ("episode", "insight")
"""Told of sessions and derived from roots: what is learned does not hang below them."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A known root, and the cosine between it and a draft."""

    n: int
    cosine: float


@dataclass(frozen=True, slots=True)
class Placement:
    """Below which root a draft goes, or to which it is linked with what weight."""

    parent: int | None = None
    linked: int | None = None
    weight: float = 0.0
    nearest: float = 0.0


def place(roots: Sequence[Neighbour]) -> Placement:
    """Return where a draft goes, given the roots that it may be near to."""
    best = max(roots, key=lambda root: (root.cosine, -root.n), default=None)
    if best is None:
        return Placement()
    near = min(1.0, max(0.0, best.cosine))
    if near > ATTACHED:
        return Placement(parent=best.n, nearest=near)
    if near >= ASSOCIATED:
        return Placement(linked=best.n, weight=near, nearest=near)
    return Placement(nearest=near)


def surprising(importance: float, nearest: float) -> float:
    """Return an importance raised by how little is known that is like it, at most 1."""
    near = min(1.0, max(0.0, nearest))
    return min(1.0, importance * (1 + SURPRISE * (1 - near)))
