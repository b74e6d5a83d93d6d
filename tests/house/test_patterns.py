"""Regular expressions mean the same on every supported Python.

Python 3.11.0 to 3.11.4 gets atomic groups, and possessive quantifiers of groups, wrong.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.house.source import PACKAGE, modules

ATOMS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
"""Escapes and character classes: a possessive quantifier of one of them works everywhere."""

UNSAFE = re.compile(r"(?:\)|\{[a-z]\w*\})(?:[*+?]|\{\d*,?\d*\})\+|\(\?>")
DATA = (*PACKAGE.glob("data/patterns/*.txt"), *PACKAGE.glob("redaction/rules/*"))


def literals(tree: ast.AST) -> Iterator[str]:
    """Yield the strings of a module; what is inserted into one stands as a group."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(one.value) if isinstance(one, ast.Constant) else "(x)" for one in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            value = node.value
            yield value if isinstance(value, str) else value.decode("latin-1").replace("%b", "(x)")


def is_unsafe(pattern: str) -> bool:
    return UNSAFE.search(ATOMS.sub("x", pattern)) is not None


def test_no_pattern_of_the_code_is_possessive_about_a_group():
    unsafe = [
        f"{module.name}: {text[:80]}"
        for module in modules()
        for text in literals(module.tree)
        if is_unsafe(text)
    ]
    assert unsafe == []


def test_no_pattern_of_the_data_is_possessive_about_a_group():
    assert len(DATA) > 10
    unsafe = [
        f"{path.name}: {line[:80]}"
        for path in DATA
        for line in path.read_text("utf-8").splitlines()
        if is_unsafe(line)
    ]
    assert unsafe == []


@pytest.mark.parametrize("pattern", ["(?:a|b)*+", "(a+){2,3}+", "(?>a)", "{name}++", "(?:[)]b)?+"])
def test_the_unsafe_ones_are_found(pattern: str):
    assert is_unsafe(pattern)


@pytest.mark.parametrize("pattern", [r"[^\])]*+", r"\)++", r"\s*+(?:a|b)*", "a{2,3}+", "[*+?]+"])
def test_the_safe_ones_are_not(pattern: str):
    assert not is_unsafe(pattern)
