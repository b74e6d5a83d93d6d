"""The registry: every tool in fixed order, its aliases, and the one function that calls tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import Field, JsonValue, ValidationError, create_model

from lore.errors import InvalidInput, LoreError, NotFound, describe_error
from lore.memory import Memory
from lore.settings import Settings
from lore.tools import (
    browse_tools,
    handoff_tools,
    lesson_tools,
    search_tools,
    strategy_tools,
    task_tools,
    team_tools,
    write_tools,
)
from lore.tools.tool import Arguments, Caller, Outcome, Tool


@dataclass(frozen=True, slots=True)
class Alias:
    """An alternative name of a tool; `takes` maps its argument names to those of the tool.

    An argument that maps to '' is accepted and ignored.
    """

    name: str
    tool: str
    takes: Mapping[str, str] = field(default_factory=dict)


_ALIAS_SPECS: tuple[Alias, ...] = (
    Alias("query_memory", "search", {"topic": "query", "depth": "depth", "limit": "limit"}),
    Alias("explore_memory", "explore", {"topic": "query", "max_depth": "max_depth"}),
    Alias("traverse_memory", "traverse", {"fragment_id": "id", "direction": "direction"}),
    Alias(
        "store_memory",
        "store",
        # Other servers require a depth; here the parent decides it.
        {"content": "content", "summary": "summary", "parent_id": "parent_id", "depth": ""},
    ),
    Alias("list_topics", "list_roots"),
    Alias("memory_save", "store", {"content": "content", "summary": "summary", "kind": "kind"}),
    Alias("memory_search", "search", {"query": "query", "limit": "limit", "kind": "kind"}),
    Alias("memory_delete", "delete", {"id": "id"}),
)


def as_tool(alias: Alias, tool: Tool[Any]) -> Tool[Any]:
    """Return the tool under another name, with the argument names of the alias."""

    def run(memory: Memory, parsed: Arguments, caller: Caller) -> Outcome:
        arguments = parsed.model_dump(exclude_unset=True)
        translated = {
            alias.takes[name]: value for name, value in arguments.items() if alias.takes[name]
        }
        return tool.run(memory, tool.arguments.model_validate(translated), caller)

    return replace(
        tool,
        name=alias.name,
        title=f"{tool.title} ({alias.name})",
        description=f"The same as {tool.name}(). {tool.description}",
        arguments=_arguments(alias, tool),
        run=run,
    )


def _arguments(alias: Alias, tool: Tool[Any]) -> type[Arguments]:
    fields: dict[str, Any] = {}
    for name, target in alias.takes.items():
        if target:
            spec = tool.arguments.model_fields[target]
            fields[name] = (spec.annotation, spec)
        else:
            fields[name] = (JsonValue, Field(None, description="Not used."))
    return create_model(f"{tool.arguments.__name__}Alias", __base__=Arguments, **fields)


_SHOWN_CHARS = 60
"""How much of an invalid value a message shows."""


def describe_misfit(tool: Tool[Any], error: ValidationError) -> InvalidInput:
    """Return an error that describes the first invalid argument of a call."""
    first = error.errors(include_url=False, include_context=False)[0]
    name = ".".join(str(step) for step in first["loc"]) or "arguments"
    takes = f"{tool.name}() takes {', '.join(tool.arguments.model_fields) or 'nothing'}."
    if first["type"] == "extra_forbidden":
        return InvalidInput(f"{tool.name}() has no argument '{name[:_SHOWN_CHARS]}'.", hint=takes)
    if first["type"] == "missing":
        return InvalidInput(f"{tool.name}() needs '{name}'.", hint=takes)
    shown = str(first["input"])[:_SHOWN_CHARS]
    expected = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return InvalidInput(f"{tool.name}(): '{name}' {expected}, not '{shown}'.")


TOOLS: tuple[Tool[Any], ...] = (
    *search_tools.TOOLS,
    *search_tools.READ_TOOLS,
    *browse_tools.TOOLS,
    *write_tools.TOOLS,
    *write_tools.MANUAL_TOOLS,
    *task_tools.TOOLS,
    *task_tools.LAYER_TOOLS,
    *handoff_tools.TOOLS,
    *lesson_tools.TOOLS,
    *strategy_tools.TOOLS,
    *team_tools.TOOLS,
)

_BY_NAME = {tool.name: tool for tool in TOOLS}

ALIASES: tuple[Tool[Any], ...] = tuple(
    as_tool(alias, _BY_NAME[alias.tool]) for alias in _ALIAS_SPECS
)
_BY_ALIAS = {tool.name: tool for tool in ALIASES}


def list_tools(settings: Settings) -> tuple[Tool[Any], ...]:
    """Return the tools that MCP lists: those of the profile, and aliases if enabled."""
    full = settings.mcp_profile == "full"
    listed = tuple(tool for tool in TOOLS if full or tool.profile == "core")
    return (*listed, *ALIASES) if settings.mcp_aliases else listed


def find_tool(name: str, *, aliases: bool = False) -> Tool[Any] | None:
    """Return the tool of this name, or of this alias if aliases are enabled, or None."""
    return _BY_NAME.get(name) or (_BY_ALIAS.get(name) if aliases else None)


def get_tool(name: str, *, aliases: bool = False) -> Tool[Any]:
    """Return the tool of this name, or of this alias if aliases are enabled, or raise."""
    tool = find_tool(name, aliases=aliases)
    if tool is None:
        msg = f"There is no tool '{name[:60]}'."
        raise NotFound(msg, hint=f"Tools: {', '.join(_BY_NAME)}.")
    return tool


def call_tool(
    memory: Memory, name: str, arguments: Mapping[str, object], caller: Caller
) -> Outcome:
    """Validate the arguments of a tool and run it; every error is a `LoreError`.

    A null argument counts as missing: many models send all arguments.
    """
    tool = get_tool(name, aliases=memory.settings.mcp_aliases)
    present = {key: value for key, value in arguments.items() if value is not None}
    try:
        checked = tool.arguments.model_validate(present)
    except ValidationError as error:
        raise describe_misfit(tool, error) from None
    try:
        return tool.run(memory, checked, caller)
    except LoreError as error:
        error.hint = error.hint_by("{}()".format)
        raise
    except Exception as error:
        msg = f"{name}() failed: {describe_error(error)}."
        raise LoreError(msg, hint="'lore doctor' checks the memory.") from error
