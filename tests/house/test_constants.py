"""Constants of the doors: each number says in a line where it comes from."""

import ast
from collections.abc import Iterator
from itertools import zip_longest

import pytest

from tests.house.source import PACKAGE, Module, modules

ROOMS = ("context", "mcp", "memory", "server", "setup", "tools")
DOORS = [one for one in modules() if one.path.relative_to(PACKAGE).parts[0] in ROOMS]


def untold(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the numbers of a module that are followed by no line on them."""
    for node, after in zip_longest(body, body[1:]):
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and value and is_number(value):
            told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if not told:
                yield f"{node.lineno} {ast.unparse(node)}"


def is_number(value: ast.expr) -> bool:
    """Tell whether a value is a number, a sum of some or a row of some."""
    if isinstance(value, ast.Tuple):
        return all(map(is_number, value.elts)) and bool(value.elts)
    if isinstance(value, ast.BinOp):
        return is_number(value.left) or is_number(value.right)
    if isinstance(value, ast.UnaryOp):
        return is_number(value.operand)
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


@pytest.mark.parametrize("module", DOORS, ids=lambda module: module.name)
def test_a_number_says_where_it_comes_from(module: Module):
    assert list(untold(module.tree.body)) == []


def test_a_number_without_a_line_is_seen():
    assert len(list(untold(ast.parse("A = 5\nB = 24 * 3600.0\n\nC, D = 1, -2").body))) == 3
    assert not list(untold(ast.parse('A = 5\n"""Fingers."""\nB = "x"\nC = len(B)').body))
