"""Allowing: the budget of a day as the user's file says it by now, without a restart."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from lore.errors import LoreError
from lore.settings import USER_FILE, Settings, load


class Allowance:
    """Knows what a day may cost; looks again once the file of the settings has changed."""

    def __init__(self, settings: Settings) -> None:
        self._home, self._path = settings.home, Path(settings.home) / USER_FILE
        self._usd = settings.daily_budget
        self._seen = self._look()

    def __call__(self) -> float | None:
        """Return how many US dollars a day may cost; a file in error changes nothing."""
        seen = self._look()
        if seen != self._seen:
            with suppress(LoreError, OSError):
                self._usd = load(home=self._home).settings.daily_budget
            self._seen = seen  # at last: until then other threads have to look for themselves
        return self._usd

    def _look(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size
