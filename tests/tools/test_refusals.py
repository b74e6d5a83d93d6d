"""What a model is told of a call that cannot be done leads to one that can."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from pydantic import ValidationError

from lore.errors import InvalidInput
from lore.tools import refusals
from lore.tools.catalogue import find_tool, get_tool
from tests.house.source import modules


def refused(name: str, given: dict[str, object]) -> InvalidInput:
    tool = get_tool(name)
    with pytest.raises(ValidationError) as error:
        tool.arguments.model_validate(given)
    return refusals.misfit(tool, error.value)


def test_an_argument_that_is_not_known_is_told_with_those_that_are():
    error = refused("supersede", {"old": "x", "new": "y", "reason": "z"})
    assert str(error) == "supersede() has no argument 'reason'."
    assert error.hint == "supersede() takes old, new."


def test_an_argument_that_is_missing_is_named():
    assert str(refused("delete", {})) == "delete() needs 'id'."


def test_what_does_not_fit_is_quoted_in_part_and_without_jargon():
    error = refused("search", {"query": "x", "limit": "9" * 400})
    assert str(error).startswith("search(): 'limit' should be ")
    assert str(error).count("9") == 60
    assert "Input" not in str(error)


def test_what_a_hint_says_to_call_is_a_tool():
    named = [name for module in modules() for name in called_by_hints(module.tree)]
    assert named
    assert [name for name in named if find_tool(name) is None] == []


def called_by_hints(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        given = {word.arg: word.value for word in getattr(node, "keywords", ())}
        if {"hint", "calls"} <= set(given):
            yield from ast.literal_eval(given["calls"])
