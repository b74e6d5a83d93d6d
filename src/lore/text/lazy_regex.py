"""Lazy regular expressions: patterns that are compiled at their first use.

Modules define hundreds of patterns and a command needs a few; compiling all of them took a quarter
of its CPU time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, AnyStr, cast

__all__ = ["LazyPattern", "compile_lazy"]


class LazyPattern:
    """Stands for a pattern that `make` compiles at the first attribute access."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the pattern, and store it here for the next access."""
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "_made":
            self._made = self._make()
            return self._made
        attribute = getattr(self._made, name)
        setattr(self, name, attribute)
        return attribute


def compile_lazy(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled at its first use; its text is available before."""
    later = LazyPattern(lambda: re.compile(pattern, flags))
    later.pattern = pattern  # type: ignore[attr-defined]  # others are made of it
    return cast("re.Pattern[AnyStr]", later)
