"""The command `lore`: its options, its errors and exit codes, and where the verbs are."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from lore.cli import evaluation, finding, knowledge, keeping, looking
from lore.errors import LoreError

INTERRUPTED = 130

app = typer.Typer(
    name="lore",
    help="Long-term memory for AI agents: remember, recall, search, forget.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for room in (knowledge, finding, looking, keeping, evaluation):
    room.add_to(app)


def _show_version(*, value: bool) -> None:
    if value:
        from lore import __version__

        print(f"lore {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    home: Annotated[
        Path | None, typer.Option(help="Folder of the memory (LORE_HOME, ~/.lore).")
    ] = None,
    version: Annotated[  # noqa: ARG001 - handled by its callback
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Long-term memory for AI agents: remember, recall, search, forget."""
    context.obj = home


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    try:
        app(arguments, standalone_mode=True)
    except LoreError as error:
        _complain(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("Interrupted; what was acknowledged is stored.", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _complain(error: LoreError) -> None:
    print(f"lore: {_printable(str(error))}", file=sys.stderr)
    if error.hint:
        print(f"      {_printable(error.hint)}", file=sys.stderr)


def _printable(text: str) -> str:
    """Keep control characters of foreign text off the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)
