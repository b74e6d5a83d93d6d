"""Later: patterns that are compiled when they are first used.

Rooms keep hundreds of them and a command needs a few; to compile them all took a quarter of its
processor time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, AnyStr, cast

__all__ = ["Later", "compile_later"]


class Later:
    """Stands for a pattern that `make` compiles as soon as anything is asked of it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        """Return what the pattern has by a name; from then on it is found here at once."""
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "_made":
            self._made = self._make()
            return self._made
        found = getattr(self._made, name)
        setattr(self, name, found)
        return found


def compile_later(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled at its first use; its text is known without that."""
    later = Later(lambda: re.compile(pattern, flags))
    later.pattern = pattern  # type: ignore[attr-defined]  # others are made of it
    return cast("re.Pattern[AnyStr]", later)
