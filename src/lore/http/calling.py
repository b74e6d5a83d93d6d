"""Tools by REST: each one an endpoint made of what the tool says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lore.http.endpoint import Endpoint
from lore.memory import Memory
from lore.tools.tool import Caller, Outcome, Tool


class Call(Protocol):
    """Does what a tool is asked to do, or raises one of Lore's errors."""

    def __call__(
        self, memory: Memory, name: str, arguments: Mapping[str, object], caller: Caller
    ) -> Outcome:
        """Call a tool by name."""


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The tools that are served, and how one is called."""

    tools: Sequence[Tool[Any]]
    call: Call


def endpoints(toolbox: Toolbox) -> tuple[Endpoint[Any], ...]:
    """Return an endpoint for each tool."""
    return tuple(_endpoint(tool, toolbox.call) for tool in toolbox.tools)


def _endpoint(tool: Tool[Any], call: Call) -> Endpoint[Any]:
    def run(memory: Memory, given: Mapping[str, object], caller: Caller) -> Outcome:
        return call(memory, tool.name, given, caller)

    return Endpoint(
        "POST",
        f"/tools/{tool.name}",
        tool.title,
        "read" if tool.reads_only else "write",
        tool.arguments,
        run,
        result=tool.result,
        tags=("tools",),
        checked=False,
    )
