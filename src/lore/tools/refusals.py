"""Refusals: what a tool answers to a call that it cannot do, so that the next one can succeed."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from lore.errors import InvalidInput
from lore.tools.tool import Tool

_SHOWN_CHARS = 60
"""Of what does not fit: enough to know it again."""


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
