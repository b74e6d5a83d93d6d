"""Refusals: what a tool answers to a call that it cannot do, so that the next one can succeed."""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError

from lore.errors import InvalidInput
from lore.tools.tool import Tool

_COMMANDS = {"search": "search", "recall": "recall", "read": "read", "roots": "list_roots"}
"""Commands that hints name, and the tools that do the same; the others are for a person."""

_COMMAND = re.compile(rf"'lore ({'|'.join(_COMMANDS)})(?: [^']*)?'")

_SHOWN_CHARS = 60


def for_model(hint: str) -> str:
    """Return a hint with tools named where it names commands."""
    return _COMMAND.sub(lambda named: f"{_COMMANDS[named[1]]}()", hint)


def misfit(tool: Tool[Any], error: ValidationError) -> InvalidInput:
    """Return what is wrong with the arguments of a call, the first of it, in a sentence."""
    first = error.errors(include_url=False, include_context=False)[0]
    name = ".".join(str(step) for step in first["loc"]) or "arguments"
    takes = f"{tool.name}() takes {', '.join(tool.arguments.model_fields) or 'nothing'}."
    if first["type"] == "extra_forbidden":
        return InvalidInput(f"{tool.name}() has no argument '{name[:_SHOWN_CHARS]}'.", hint=takes)
    if first["type"] == "missing":
        return InvalidInput(f"{tool.name}() needs '{name}'.", hint=takes)
    shown = str(first["input"])[:_SHOWN_CHARS]
    wanted = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return InvalidInput(f"{tool.name}(): '{name}' {wanted}, not '{shown}'.")
