"""Commands that agents start: mcp."""

from __future__ import annotations

from pathlib import Path

import typer

from lore.cli.output import open_memory


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(mcp)


def mcp(context: typer.Context) -> None:
    """Serve an agent by the Model Context Protocol on standard input and output.

    Agents start this for every session. It passes messages to the daemon, which it starts if
    none runs; where that is not allowed (setting mcp.start) or fails, it serves by itself.
    """
    # Whoever comes here was not served by cli/quick.py: no daemon can be reached.
    from lore.mcp.stdio import serve

    with open_memory(context, create=True) as memory:
        serve(memory, str(Path.cwd()))
