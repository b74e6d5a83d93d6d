"""Regular expressions that are compiled at their first use, and linear-time ones through RE2."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, AnyStr, cast

Span = tuple[int, int]


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


_PATTERN_FOLDER = Path(__file__).parents[1] / "data" / "patterns"
_REFERENCE = compile_lazy(r"\{([a-z]\w*)\}")
_INLINE_FLAGS = compile_lazy(r"^\(\?[a-z]+\)")


class PatternFile:
    """The patterns and word lists of one file in `lore/data/patterns`.

    `== name: purpose` starts a section. The lines of a pattern are joined without their
    indentation, and `{name}` inserts another pattern. An attribute is the pattern of that name; the
    file is read at the first access, and a pattern compiled at its first use.
    """

    def __init__(self, name: str, folder: Path = _PATTERN_FOLDER) -> None:
        self._path = folder / f"{name}.txt"

    def __getattr__(self, name: str) -> re.Pattern[str]:
        """Return a pattern, and store it here for the next access."""
        if name not in self.sections:
            raise AttributeError(name)
        pattern = compile_lazy(self.text(name))
        setattr(self, name, pattern)
        return pattern

    @cached_property
    def sections(self) -> dict[str, list[str]]:
        """Return the lines of each section by its name."""
        sections: dict[str, list[str]] = {}
        lines: list[str] = []
        for line in self._path.read_text("utf-8").splitlines():
            if line.startswith("== "):
                lines = sections[line[3:].partition(":")[0]] = []
            elif line:
                lines.append(line.strip())
        return sections

    def text(self, name: str) -> str:
        """Return the text of a pattern with all references replaced."""
        return _REFERENCE.sub(self._referenced, "".join(self.sections[name]))

    def _referenced(self, reference: re.Match[str]) -> str:
        is_literal = reference[1] not in self.sections
        return reference[0] if is_literal else _INLINE_FLAGS.sub("", self.text(reference[1]))

    def words(self, name: str) -> frozenset[str]:
        """Return a word list."""
        return frozenset(" ".join(self.sections[name]).split())


_MEMORY = 64 << 20
"""Bytes for an automaton; with re2's default of 8 MB a large one is rebuilt again and again."""

_COUNTED = 32
"""The highest count in a loosened pattern; tool ids are shorter, most keys longer."""

_COUNT = compile_lazy(r"(?<!\\)\{(\d+)(,?)(\d*)\}\??")

_GROUP = compile_lazy(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(\((?!\?)|\(\?P<(\w+)>)", re.DOTALL)
"""The start of a group, but no escaped bracket and none in a character class."""

_TRIES = 32
"""Heads without a match in a row, after which the full pattern searches directly."""


def compile_re2(pattern: str, *, groups: bool = True) -> Any:
    """Compile a pattern for bytes, at its first use.

    Without groups a pattern with many of them matches faster, and it has `find_span`.
    """

    def compiled() -> Any:
        import re2  # loading it takes 4 ms, which most commands need not spend

        options = re2.Options()
        options.never_capture = not groups
        options.encoding = re2.Options.Encoding.LATIN1
        options.max_mem = _MEMORY
        made = re2.compile(pattern.encode("latin-1"), options)
        return made if groups else SpanPattern(made)

    return LazyPattern(compiled)


class SpanPattern:
    """A compiled pattern that also returns plain spans, without an object for each match.

    re2 wraps its binding in Python code that takes longer than the search in a line of text.
    """

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        binding = getattr(compiled, "_regexp", None)
        self._match = binding and binding.Match
        self._anchor = binding and binding.Anchor.UNANCHORED

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the compiled pattern."""
        return getattr(self._compiled, name)

    def find_span(self, data: bytes, at: int = 0, end: int | None = None) -> Span | None:
        """Return where the first match at or after an offset starts and ends."""
        end = len(data) if end is None else min(end, len(data))
        if at > end:
            return None
        if self._match is None:  # another version of re2
            match = self._compiled.search(data, at, end)
            return match.span() if match else None
        span: Span = self._match(self._anchor, data, at, end)[0]
        return span if span[0] >= 0 else None


def compile_re2_text(pattern: str) -> Any:
    """Compile a pattern for decoded text, at its first use."""

    def compiled() -> Any:
        import re2

        options = re2.Options()
        options.max_mem = _MEMORY
        return re2.compile(pattern, options)

    return LazyPattern(compiled)


def group_numbers(pattern: str) -> dict[str, int]:
    """Return the group numbers of a pattern by group name, without compiling it."""
    begun = [match for match in _GROUP.finditer(pattern) if match.group(1)]
    return {match.group(2): at for at, match in enumerate(begun, 1) if match.group(2)}


def loosen_counts(pattern: str) -> str:
    """Return a pattern without high counts, which matches wherever the original does."""
    return _COUNT.sub(_loosened_count, pattern)


def _loosened_count(count: re.Match[str]) -> str:
    least = int(count.group(1))
    most = int(count.group(3) or 0) if count.group(2) else least
    return count.group() if 0 < most <= _COUNTED else f"{{{min(least, _COUNTED)},}}?"


class HeadSearch:
    """Searches a text for a pattern whose every match starts where one of `heads` matches.

    The small automata of the heads scan the text, and the large one of the pattern runs only at
    the candidates.
    """

    def __init__(self, heads: Sequence[Any], pattern: Any, data: bytes) -> None:
        self._heads = heads
        self._pattern = pattern
        self._data = data
        self._starts = [-1] * len(heads)
        """Where each of the heads matches next."""

    def find(self, at: int) -> Any:
        """Return the first match at or after an offset, which must not decrease."""
        for _ in range(_TRIES):
            start = self._next_start(at)
            if start > len(self._data):
                return None
            match = self._pattern.match(self._data, start)
            if match is not None:
                return match
            at = start + 1
        return self._pattern.search(self._data, at)

    def _next_start(self, at: int) -> int:
        for place, start in enumerate(self._starts):
            if start < at:
                span = self._heads[place].find_span(self._data, at)
                self._starts[place] = span[0] if span else len(self._data) + 1
        return min(self._starts)
