"""The catalogue: every tool in fixed order, and the one place that calls them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from lore.errors import LoreError, NotFound, told
from lore.memory import Memory
from lore.settings import Settings
from lore.tools import aliases as alias_names
from lore.tools import finding, items, knowing, refusals, timeline, trees
from lore.tools.tool import Caller, Outcome, Tool

TOOLS: tuple[Tool[Any], ...] = (
    *finding.TOOLS,
    *items.TOOLS,
    *trees.TOOLS,
    *timeline.TOOLS,
    *knowing.TOOLS,
    *knowing.BY_HAND,
)

_BY_NAME = {tool.name: tool for tool in TOOLS}

ALIASES: tuple[Tool[Any], ...] = tuple(
    alias_names.as_tool(alias, _BY_NAME[alias.tool]) for alias in alias_names.ALIASES
)
_BY_ALIAS = {tool.name: tool for tool in ALIASES}


def served(settings: Settings) -> tuple[Tool[Any], ...]:
    """Return the tools that MCP lists: of the chosen profile, and aliases if they are wanted."""
    full = settings.mcp_profile == "full"
    listed = tuple(tool for tool in TOOLS if full or tool.profile == "core")
    return (*listed, *ALIASES) if settings.mcp_aliases else listed


def find_tool(name: str, *, aliases: bool = False) -> Tool[Any] | None:
    """Return the tool of this name, or of this alias if those are served, or None."""
    return _BY_NAME.get(name) or (_BY_ALIAS.get(name) if aliases else None)


def get_tool(name: str, *, aliases: bool = False) -> Tool[Any]:
    """Return the tool of this name, or of this alias if those are served, or raise."""
    tool = find_tool(name, aliases=aliases)
    if tool is None:
        msg = f"There is no tool '{name[:60]}'."
        raise NotFound(msg, hint=f"Tools: {', '.join(_BY_NAME)}.")
    return tool


def call(memory: Memory, name: str, arguments: Mapping[str, object], caller: Caller) -> Outcome:
    """Check what a tool is given and run it; whatever goes wrong is a `LoreError`.

    An argument that is null counts as left out: many models send all that they know of.
    """
    tool = get_tool(name, aliases=memory.settings.mcp_aliases)
    given = {key: value for key, value in arguments.items() if value is not None}
    try:
        checked = tool.arguments.model_validate(given)
    except ValidationError as error:
        raise refusals.misfit(tool, error) from None
    try:
        return tool.run(memory, checked, caller)
    except LoreError as error:
        error.hint = error.hint_by("{}()".format)
        raise
    except Exception as error:
        msg = f"{name}() failed: {told(error)}."
        raise LoreError(msg, hint="'lore doctor' checks the memory.") from error
