"""Patterns that are compiled at their first use are like any other from then on."""

from __future__ import annotations

import re
from importlib import import_module
from pkgutil import iter_modules

import pytest

import lore.recall
import lore.text
from lore.text.later import Later, compile_later


def test_a_pattern_is_compiled_once_and_not_before_it_is_used():
    made: list[int] = []

    def make() -> re.Pattern[str]:
        made.append(1)
        return re.compile("b+")

    later = Later(make)
    assert made == []
    assert later.sub("", "abba") == "aa"
    assert [found.group() for found in later.finditer("bab")] == ["b", "b"]
    assert made == [1]


def test_the_text_of_a_pattern_is_known_before_it_is_compiled():
    later = compile_later(r"(?P<word>a+)", re.IGNORECASE)
    assert later.pattern == r"(?P<word>a+)"
    assert "_made" not in vars(later)
    assert later.groupindex == {"word": 1}
    assert later.flags & re.IGNORECASE


def test_what_no_pattern_has_is_missed_as_ever():
    with pytest.raises(AttributeError, match="nothing"):
        _ = compile_later("a").nothing  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "module",
    [
        f"{room.__name__}.{found.name}"
        for room in (lore.text, lore.recall)
        for found in iter_modules(room.__path__)
    ],
)
def test_every_pattern_can_be_compiled(module: str):
    for value in vars(import_module(module)).values():
        if isinstance(value, Later):
            assert value.search
