"""The command that runs an agent's tool by hand: tool."""

from __future__ import annotations

import json as codec
from pathlib import Path
from typing import Annotated, Any

import typer

from lore.cli.output import Json, clean, open_memory, print_columns, print_json
from lore.errors import InvalidInput


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(tool)


def tool(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A tool; none lists them.")] = "",
    given: Annotated[
        list[str] | None,
        typer.Argument(help="What it takes: query=deploys limit=3, JSON where it is no text."),
    ] = None,
    json: Json = False,
) -> None:
    """Run a tool as agents do by MCP and REST: lore tool recall query="how do we deploy?"."""
    from lore.tools import catalogue
    from lore.tools.tool import Caller

    if not name:
        _list(json=json)
        return
    found = catalogue.get_tool(name)
    arguments = dict(_argument(one) for one in given or ())
    caller = Caller(project=str(Path.cwd()), origin="user")
    with open_memory(context, create=not found.reads_only) as memory:
        outcome = catalogue.call(memory, name, arguments, caller)
    if json:
        print_json(outcome.data.model_dump(mode="json"))
    else:
        print(clean(outcome.text))


def _list(*, json: bool) -> None:
    from lore.tools import catalogue

    told = {one.name: one.description.partition(". ")[0] for one in catalogue.TOOLS}
    if json:
        print_json(told)
    else:
        print_columns(list(told.items()))


def _argument(given: str) -> tuple[str, Any]:
    """Return the name and the value of an argument; what is no JSON is a text."""
    name, equals, value = given.partition("=")
    if not equals or not name:
        msg = f"'{given[:60]}' is not of the form name=value."
        raise InvalidInput(msg, hint="As in: lore tool recall query='how do we deploy?' limit=3")
    try:
        return name, codec.loads(value)
    except ValueError:
        return name, value
