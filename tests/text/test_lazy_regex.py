"""Lazy patterns behave like compiled ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from pkgutil import iter_modules

import pytest

import lore.recall
import lore.text
from lore.text.regex import LazyPattern, compile_lazy


def test_a_pattern_is_compiled_once_and_not_before_it_is_used():
    made: list[int] = []

    def make() -> re.Pattern[str]:
        made.append(1)
        return re.compile("b+")

    later = LazyPattern(make)
    assert made == []
    assert later.sub("", "abba") == "aa"
    assert [found.group() for found in later.finditer("bab")] == ["b", "b"]
    assert made == [1]


def test_the_text_of_a_pattern_is_available_before_it_is_compiled():
    later = compile_lazy(r"(?P<word>a+)", re.IGNORECASE)
    assert later.pattern == r"(?P<word>a+)"
    assert "_made" not in vars(later)
    assert later.groupindex == {"word": 1}
    assert later.flags & re.IGNORECASE


def test_what_no_pattern_has_is_missed_as_ever():
    with pytest.raises(AttributeError, match="nothing"):
        _ = compile_lazy("a").nothing  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "module",
    [
        f"{room.__name__}.{found.name}"
        for room in (lore.text, lore.recall)
        for found in iter_modules(room.__path__)
    ],
)
def test_every_pattern_can_be_compiled(module: str):
    for pattern in _patterns(vars(import_module(module)), set()):
        assert pattern.search


def _patterns(value: object, seen: set[int]) -> Iterator[LazyPattern]:
    """Yield the patterns in a value, and in what it holds."""
    if isinstance(value, LazyPattern):
        yield value
    elif id(value) in seen:
        return
    elif isinstance(value, Mapping | list | tuple | set | frozenset):
        seen.add(id(value))
        for one in value:
            yield from _patterns(one, seen)
            if isinstance(value, Mapping):
                yield from _patterns(value[one], seen)
    elif is_dataclass(value) and not isinstance(value, type):
        seen.add(id(value))
        yield from _patterns([getattr(value, field.name) for field in fields(value)], seen)


def test_patterns_are_found_in_whatever_holds_them():
    one, two, three = map(compile_lazy, "abc")
    found = _patterns({"x": one, "y": ((two,), {three: 1})}, set())
    assert list(found) == [one, two, three]
