"""The catalogue: every tool in fixed order, and the one place that calls them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from lore.errors import LoreError, NotFound, told
from lore.memory import Memory
from lore.tools import finding, looking, refusals
from lore.tools.tool import Caller, Outcome, Tool

TOOLS: tuple[Tool[Any], ...] = (*finding.TOOLS, *looking.TOOLS)

_BY_NAME = {tool.name: tool for tool in TOOLS}


def find_tool(name: str) -> Tool[Any] | None:
    """Return the tool of this name, or None."""
    return _BY_NAME.get(name)


def get_tool(name: str) -> Tool[Any]:
    """Return the tool of this name, or raise."""
    tool = find_tool(name)
    if tool is None:
        msg = f"There is no tool '{name[:60]}'."
        raise NotFound(msg, hint=f"Tools: {', '.join(_BY_NAME)}.")
    return tool


def call(memory: Memory, name: str, arguments: Mapping[str, object], caller: Caller) -> Outcome:
    """Check what a tool is given and run it; whatever goes wrong is a `LoreError`.

    An argument that is null counts as left out: many models send all that they know of.
    """
    tool = get_tool(name)
    given = {key: value for key, value in arguments.items() if value is not None}
    try:
        checked = tool.arguments.model_validate(given)
    except ValidationError as error:
        raise refusals.misfit(tool, error) from None
    try:
        return tool.run(memory, checked, caller)
    except LoreError as error:
        error.hint = refusals.for_model(error.hint)
        raise
    except Exception as error:
        msg = f"{name}() failed: {told(error)}."
        raise LoreError(msg, hint="'lore doctor' checks the memory.") from error
