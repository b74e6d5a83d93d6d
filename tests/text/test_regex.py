"""Regular expressions: lazy patterns, pattern files, and RE2 helpers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lore.recall
import lore.text
from lore.redaction import line_rules
from lore.redaction.assignment_rules import rule_set
from lore.text.regex import (
    HeadSearch,
    LazyPattern,
    PatternFile,
    SpanPattern,
    compile_lazy,
    compile_re2,
    group_numbers,
    loosen_counts,
)


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


def test_a_missing_attribute_raises_attribute_error():
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
    elif isinstance(value, PatternFile):
        yield from _patterns([getattr(value, name) for name in value.sections], seen)
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


def test_pattern_file_joins_lines_and_inserts_other_patterns(tmp_path: Path):
    (tmp_path / "x.txt").write_text(
        "A heading.\n\n== colour: One of two.\n(?i)red\n    |green\n\n"
        "== dress: With a colour.\n^(?:{colour}) dress{1,2} {no}$\n\n== few: Words.\na b\nc\n"
    )
    file = PatternFile("x", tmp_path)
    assert file.colour.fullmatch("GREEN")
    assert file.dress.pattern == "^(?:red|green) dress{1,2} {no}$"
    assert file.words("few") == {"a", "b", "c"}
    with pytest.raises(AttributeError, match="size"):
        _ = file.size


_SOURCES = Path(lore.text.__file__).parents[1]
_USED = re.compile(r"_re\.(?:words\(\"(\w+)\"\)|(\w+))")
_CHOSEN = ("about_", "cause_", "does_", "runs_")
"""Prefixes of patterns that are selected by name."""


@pytest.mark.parametrize("path", sorted((_SOURCES / "data" / "patterns").glob("*.txt")))
def test_every_section_of_a_pattern_file_is_used_and_every_used_one_exists(path: Path):
    readers = [
        text
        for text in (source.read_text() for source in _SOURCES.rglob("*.py"))
        if f'PatternFile("{path.stem}")' in text
    ]
    used = {match[1] or match[2] for text in readers for match in _USED.finditer(text)} - {"words"}
    file = PatternFile(path.stem)
    inserted = set(re.findall(r"\{([a-z]\w*)\}", path.read_text()))
    assert used <= set(file.sections)
    named = {name for name in file.sections if any(f'"{name}"' in text for text in readers)}
    unused = set(file.sections) - used - inserted - named
    assert all(name.startswith(_CHOSEN) for name in unused)


STRICT = r"k[a-c]{34,36}x|[ \t]{0,2}n{2}b{1,40}?y"
PATTERN = compile_re2(STRICT)
HEADS = [compile_re2(loosen_counts(each), groups=False) for each in STRICT.split("|")]
TEXTS = st.lists(
    st.sampled_from([b"k", b"a" * 33, b"b", b"c" * 2, b"x", b" ", b"n", b"y", b"\n"]), max_size=40
).map(b"".join)


@pytest.mark.parametrize(
    ("pattern", "loose"),
    [
        (r"a{3}b{2,5}", r"a{3}b{2,5}"),
        (r"a{40}", r"a{32,}?"),
        (r"a{4,90}b", r"a{4,}?b"),
        (r"a{0,90}?b", r"a{0,}?b"),
        (r"a{7,}b", r"a{7,}?b"),
        (r"a\{40}", r"a\{40}"),
    ],
)
def test_only_high_counts_are_loosened(pattern: str, loose: str):
    assert loosen_counts(pattern) == loose


@given(TEXTS)
def test_searching_with_heads_finds_the_same_matches(text: bytes):
    search, at = HeadSearch(HEADS, PATTERN, text), 0
    while (strict := PATTERN.search(text, at)) is not None:
        assert search.find(at).span() == strict.span()
        at = strict.start() + 1
    assert search.find(at) is None


def test_a_match_after_many_heads_is_found():
    text = (b"k" + b"a" * 40 + b"x ") * 100 + b"k" + b"a" * 35 + b"x"
    assert HeadSearch(HEADS, PATTERN, text).find(0).end() == len(text)


@pytest.mark.parametrize(
    "pattern",
    [
        rule_set(frozenset()).pattern,
        line_rules.LINES,
        r"(?P<a>x)(y)(?:z)(?P<b>[(]\(w(?i:v))|[^](]\\(?P<c>u)",
    ],
)
def test_group_numbers_equal_those_of_the_compiled_pattern(pattern: str):
    compiled = compile_re2(pattern).groupindex
    assert group_numbers(pattern) == {name.decode(): index for name, index in compiled.items()}


@given(TEXTS, st.integers(0, 40), st.none() | st.integers(0, 80))
def test_a_span_is_that_of_a_search(text: bytes, at: int, end: int | None):
    for head in HEADS:
        match = head.search(text, at, end)
        assert head.find_span(text, at, end) == (match.span() if match else None)


@given(TEXTS)
def test_a_span_needs_no_binding_of_re2(text: bytes):
    searched = re.compile(b"nn|k[a-c]")
    match = searched.search(text)
    assert SpanPattern(searched).find_span(text) == (match.span() if match else None)
