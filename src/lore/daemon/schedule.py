"""The schedule: which chores are due, by a clock that nobody sets.

The time is that of `time.monotonic`: it knows no summer time, cannot be set, and stands still
while the machine sleeps. A chore runs again so long after it ended, so that nothing is made up
for in a burst.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lore.daemon.chores import Chore

LONGEST_DELAY_S = 900.0
"""A chore that fails runs less and less often, but at least so often."""


@dataclass(slots=True)
class Turn:
    """When a chore runs next, and how often it failed in a row."""

    chore: Chore
    due_s: float
    failures: int = 0


@dataclass(slots=True)
class Schedule:
    """The turns of all chores, in the order in which they run."""

    turns: list[Turn] = field(default_factory=list)

    @classmethod
    def of(cls, chores: Sequence[Chore], now_s: float) -> Schedule:
        """Return the schedule of a daemon that starts now: every chore is due."""
        return cls([Turn(chore, now_s) for chore in chores])

    def due(self, now_s: float) -> list[Turn]:
        """Return the turns that have come."""
        return [turn for turn in self.turns if self.wait_s(turn, now_s) <= 0]

    def pause_s(self, now_s: float) -> float:
        """Return how long there is nothing to do."""
        return max(0.0, min(self.wait_s(turn, now_s) for turn in self.turns))

    def wait_s(self, turn: Turn, now_s: float) -> float:
        """Return how long a chore still waits, never longer than any delay is."""
        longest = max(turn.chore.every_s, LONGEST_DELAY_S)
        return min(turn.due_s - now_s, longest)

    def ran(self, turn: Turn, now_s: float, *, failed: bool = False, more: bool = False) -> None:
        """Set the next turn of a chore that has run; one that has more to do waits for no time."""
        turn.failures = turn.failures + 1 if failed else 0
        delay_s = 0.0 if more else turn.chore.every_s
        if failed:
            grown_s = turn.chore.every_s * 2.0 ** min(turn.failures, 20)
            delay_s = max(turn.chore.every_s, min(grown_s, LONGEST_DELAY_S))
        turn.due_s = now_s + delay_s
