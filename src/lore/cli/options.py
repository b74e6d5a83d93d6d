"""Options and arguments that several commands share, and groups of commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Context, Option

from lore.cli.invocation import working_folder
from lore.errors import InvalidInput


def absolute(project: str) -> str:
    """Return a relative path of a project as an absolute one; a name stays a name."""
    if project.startswith((".", "~")) or "/" in project:
        return str((working_folder() / Path(project).expanduser()).resolve())
    return project


def current_repository() -> str:
    """Return the current folder if it is in a repository, else ''."""
    from lore.cli.output import importing

    with importing():
        from lore.projects import ProjectFinder
    try:
        here = str(working_folder())
    except FileNotFoundError:
        return ""
    return ProjectFinder().find_repository(here)


def current_folder() -> str:
    """Return the current folder, whose project the memory finds as it does for hooks."""
    try:
        return str(working_folder())
    except FileNotFoundError:
        return ""


def given_path(path: str) -> Path:
    """Return the path of a file; raise if it is empty."""
    if not path.strip():
        msg = "The name of the file is empty."
        raise InvalidInput(msg)
    return Path(path)


def names_of(constant: str) -> Callable[[], list[str]]:
    """Return a function that completes the names in a constant of `lore.records`."""

    def complete() -> list[str]:
        from lore import records

        return list(getattr(records, constant))

    return complete


Id = Annotated[str, Argument(help="Id, or at least 8 characters of it.")]
Text = Annotated[str, Argument(help="The text, or '-' to read it from standard input.")]
Summary = Annotated[str, Option(help="One line; derived from the text if not given.")]
Project = Annotated[
    str, Option("--project", help="Path or name of a project (default: any).", callback=absolute)
]
Recipe = Annotated[
    str,
    Option(help="learned, weighted or rrf.", autocompletion=lambda: ["learned", "weighted", "rrf"]),
]
Cache = Annotated[Path | None, Option(help="Folder for cached vectors.")]
DryRun = Annotated[bool, Option("--dry-run", help="Only show the changes.")]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")]
Json = Annotated[bool, Option("--json", help="Print JSON.")]


def command_group(name: str, doc: str) -> typer.Typer:
    """Return a group of commands that prints its help if no command is named."""
    group = typer.Typer(name=name, invoke_without_command=True, rich_markup_mode=None)

    @group.callback(help=doc)
    def show_help(context: Context) -> None:
        if context.invoked_subcommand is None:
            print(context.get_help())

    return group
