"""Commands that agents start: mcp, hook."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from lore.cli import quick
from lore.cli.ending import leave_threads
from lore.cli.output import notice, one_line, open_memory
from lore.errors import LoreError
from lore.proxy import refusing
from lore.proxy.events import EVENTS

_ALONE = "No daemon could be started, as 'lore up' says: this process serves by itself."

_LONGEST = 400
"""What an agent shows of an error is a line or two."""


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(mcp)
    app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(hook)


def mcp(context: typer.Context) -> None:
    """Serve an agent by the Model Context Protocol on standard input and output.

    Agents start this for every session. It passes messages to the daemon, which it starts if
    none runs, and answers what agents ask first meanwhile; where a start is not allowed (setting
    mcp.start) or fails, it serves by itself. An agent whose memory cannot be opened is told why.
    """
    # Whoever comes here was not served by cli/quick.py: no daemon can be reached.
    with ExitStack() as stack:
        try:
            memory = stack.enter_context(open_memory(context, create=True))
        except (LoreError, OSError) as error:
            if not sys.stdin.isatty():
                told = f"{error} {error.hint if isinstance(error, LoreError) else ''}"
                refusing.answer_first(one_line(told, _LONGEST), 0, 1)
            raise
        notice(_ALONE if memory.settings.mcp_start else "")
        from lore.mcp.stdio import serve  # a second that who is refused need not wait

        serve(memory, str(Path.cwd()))
    leave_threads()


def hook(
    context: typer.Context,
    event: Annotated[
        str, typer.Argument(help=f"One of {', '.join(EVENTS)}.", show_default=False)
    ] = "",
) -> None:
    """Tell Lore of a moment in an agent's session, and print what the agent is given for it.

    Agents start this, with JSON on standard input. It gives up after a fifth of a second (setting
    inject.within_ms), or 1.5 s where a session begins, and always ends with exit code 0: nothing
    that goes wrong stops an agent.
    """
    # Whoever comes here was not served by cli/quick.py: the words are not those of an agent.
    if not event:
        notice("No event is named; 'lore hook --help' lists them.")
        return
    quick.serve_hook(str(context.obj or ""), event)
