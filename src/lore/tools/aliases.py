"""Aliases: names under which other memory servers offer the same, for agents that know those."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import Field, JsonValue, create_model

from lore.memory import Memory
from lore.tools.tool import Arguments, Caller, Outcome, Tool


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name of a tool; `takes` says what each of its arguments is called there.

    An argument that leads to '' is taken and left out.
    """

    name: str
    tool: str
    takes: Mapping[str, str] = field(default_factory=dict)


ALIASES: tuple[Alias, ...] = (
    Alias("query_memory", "search", {"topic": "query", "depth": "depth", "limit": "limit"}),
    Alias("explore_memory", "explore", {"topic": "query", "max_depth": "max_depth"}),
    Alias("traverse_memory", "traverse", {"fragment_id": "id", "direction": "direction"}),
    Alias(
        "store_memory",
        "store",
        # There a depth comes with every call; here a fragment's place decides it.
        {"content": "content", "summary": "summary", "parent_id": "parent_id", "depth": ""},
    ),
    Alias("list_topics", "list_roots"),
    Alias("memory_save", "store", {"content": "content", "summary": "summary", "kind": "kind"}),
    Alias("memory_search", "search", {"query": "query", "limit": "limit", "kind": "kind"}),
    Alias("memory_delete", "delete", {"id": "id"}),
)


def as_tool(alias: Alias, tool: Tool[Any]) -> Tool[Any]:
    """Return the tool under another name, with the arguments that are known there."""

    def run(memory: Memory, given: Arguments, caller: Caller) -> Outcome:
        named = given.model_dump(exclude_unset=True)
        meant = {alias.takes[name]: value for name, value in named.items() if alias.takes[name]}
        return tool.run(memory, tool.arguments.model_validate(meant), caller)

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
    for name, meant in alias.takes.items():
        if meant:
            spec = tool.arguments.model_fields[meant]
            fields[name] = (spec.annotation, spec)
        else:
            fields[name] = (JsonValue, Field(None, description="Not used."))
    return create_model(f"{tool.arguments.__name__}Alias", __base__=Arguments, **fields)
