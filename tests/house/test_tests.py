"""The tests themselves: what they need is passed in, and nothing is patched."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PATCHES = {"monkeypatch.setattr", "monkeypatch.setitem", "mock.patch", "mocker.patch"}


def patches(tree: ast.AST) -> list[str]:
    """Return the calls and imports by which code replaces parts of the code under test."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in PATCHES:
            found.append(f"{node.lineno} {ast.unparse(node)}")
        elif isinstance(node, ast.ImportFrom) and node.module == "unittest.mock":
            found.append(f"{node.lineno} {node.module}")
    return found


@pytest.mark.parametrize(
    "path", sorted(TESTS.rglob("*.py")), ids=lambda path: str(path.relative_to(TESTS))
)
def test_nothing_is_patched(path: Path):
    assert not patches(ast.parse(path.read_text("utf-8")))


def test_the_list_of_patches_knows_what_it_looks_for():
    assert patches(ast.parse("monkeypatch.setattr(texts, 'LIMIT', 5)"))
    assert patches(ast.parse("from unittest.mock import patch"))
    assert not patches(ast.parse("monkeypatch.setenv('HOME', '/code')"))
