"""Commands that agents start: mcp, hook; and tool, which runs an agent's tool by hand."""

from __future__ import annotations

import json as codec
import os
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Context

from lore.cli import fast_path
from lore.cli.options import Json
from lore.cli.output import notice, one_line, open_memory, print_columns, print_json, print_result
from lore.errors import InvalidInput, LoreError
from lore.proxy.hook_client import HOOK_EVENTS


def exit_with_threads() -> None:
    """End the process at once if other threads still run; nothing stored is lost.

    A normal exit of the interpreter stops daemon threads anywhere. Inside native code of the model
    that aborts the process: 'terminate called without an active exception'.
    """
    if threading.active_count() > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


_ALONE = "No daemon could be started, as 'lore up' says: this process serves by itself."

_LONGEST = 400
"""Agents show a line or two of an error."""


def mcp(context: Context) -> None:
    """Serve an agent over the Model Context Protocol on standard input and output.

    Agents start this for every session. It forwards messages to the daemon, starts one if none
    runs, and answers the handshake meanwhile. If a start is not allowed (setting mcp.start) or
    fails, it serves the agent itself. If the memory cannot be opened, the agent gets the error.
    """
    # The fast path (cli/fast_path.py) did not serve this: no daemon can be reached.
    with ExitStack() as stack:
        try:
            memory = stack.enter_context(open_memory(context, create=True))
        except (LoreError, OSError) as error:
            if not sys.stdin.isatty():
                reason = f"{error} {error.hint if isinstance(error, LoreError) else ''}"
                from lore.proxy import stdio_proxy

                stdio_proxy.answer_first_request(one_line(reason, _LONGEST), 0, 1)
            raise
        notice(_ALONE if memory.settings.mcp_start else "")
        from lore.mcp.transports import (
            serve_stdio,
        )  # imports take a second, which a refused agent need not wait

        serve_stdio(memory, str(Path.cwd()))
    exit_with_threads()


def hook(
    context: Context,
    event: Annotated[
        str, Argument(help=f"One of {', '.join(HOOK_EVENTS)}.", show_default=False)
    ] = "",
) -> None:
    """Report an event of an agent's session, and print the memory for it.

    Agents start this, with JSON on standard input. It gives up after a fifth of a second (setting
    inject.within_ms), or 1.5 s at the start of a session, and always ends with exit code 0: a
    failure never stops an agent.
    """
    # The fast path (cli/fast_path.py) did not serve this: the arguments are not an agent's.
    if not event:
        notice("The event is missing; 'lore hook --help' lists all events.")
        return
    fast_path.serve_hook(str(context.obj or ""), event)


def statusline(context: Context) -> None:
    """Print one line for the status line of Claude Code: memory, spend today, digest progress."""
    fast_path.print_statusline(str(context.obj or ""))


def tool(
    context: Context,
    name: Annotated[str, Argument(help="Name of a tool; without it, list all tools.")] = "",
    words: Annotated[
        list[str] | None,
        Argument(help="Arguments: query=deploys limit=3; values are JSON or text."),
    ] = None,
    json: Json = False,
) -> None:
    """Run a tool as agents do over MCP and REST: lore tool recall query="how do we deploy?"."""
    from lore.tools import tool_registry
    from lore.tools.tool import Caller

    if not name:
        _list(json=json)
        return
    entry = tool_registry.get_tool(name)
    arguments = dict(_argument(one) for one in words or ())
    caller = Caller(project=str(Path.cwd()), origin="user")
    with open_memory(context, create=not entry.reads_only, asks_once=True) as memory:
        outcome = tool_registry.call_tool(memory, name, arguments, caller)
    print_result(outcome.data.model_dump(mode="json"), outcome.text, json=json)


def _list(*, json: bool) -> None:
    from lore.tools import tool_registry

    descriptions = {one.name: one.description.partition(". ")[0] for one in tool_registry.TOOLS}
    if json:
        print_json(descriptions)
    else:
        print_columns(list(descriptions.items()))


def _argument(word: str) -> tuple[str, Any]:
    """Return name and value of an argument; a value that is not JSON is text."""
    name, equals, value = word.partition("=")
    if not equals or not name:
        msg = f"'{word[:60]}' is not of the form name=value."
        raise InvalidInput(msg, hint="Example: lore tool recall query='how do we deploy?' limit=3")
    try:
        return name, codec.loads(value)
    except ValueError:
        return name, value
