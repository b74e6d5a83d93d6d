"""The tally: what became of the hooks that agents called since the server started."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Tally:
    """How many hooks were given memory, had nothing to be given, were late, or only told.

    An answer is late if its agent had gone on without it. A hook that gave up before it reached
    the server is known to nobody.
    """

    answered: int = 0
    nothing: int = 0
    late: int = 0
    told: int = 0

    def count(self, *, waits: bool, is_empty: bool, is_late: bool) -> None:
        """Count a hook; `waits` says that an agent is to be given something for it."""
        if not waits:
            self.told += 1
        elif is_late:
            self.late += 1
        elif is_empty:
            self.nothing += 1
        else:
            self.answered += 1
