"""The command for a project's page of shared knowledge: share."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lore.cli.output import (
    Json,
    bold,
    clean,
    coloured,
    counted,
    given_path,
    notice,
    open_memory,
    print_json,
)
from lore.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lore.memory import Memory
    from lore.records import SharedChange

_COLOURS = {"+": "green", "-": "red"}


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(share)


def share(
    context: typer.Context,
    read: Annotated[
        bool, typer.Option("--read", help="Take in what people changed on the page.")
    ] = False,
    project: Annotated[str, typer.Option(help="Folder of the project.", metavar="PATH")] = ".",
    leave_out: Annotated[
        list[str] | None, typer.Option(help="Id of a fragment to keep off the page for good.")
    ] = None,
    hidden: Annotated[
        bool, typer.Option("--hidden", help="Also take entries in which something is hidden.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the changes.")] = False,
    json: Json = False,
) -> None:
    """Write what is known about a project to .lore.md, for colleagues and pull requests.

    Only what you or the assistant said is shared, never episodes or what holds a secret. What
    people change on the page comes back with --read, once you have seen and approved it.
    """
    from lore.text.shared_page import FILE

    folder = given_path(project).expanduser().absolute().resolve()
    if not folder.is_dir():
        msg = f"{folder} is no folder."
        raise InvalidInput(msg, hint="--project names the folder that holds the page.")
    with open_memory(context, create=read) as memory:
        if leave_out:
            memory.leave_out(leave_out)
        if read:
            _read(memory, folder, folder / FILE, hidden=hidden, yes=yes, dry_run=dry_run, json=json)
        else:
            _write(memory, folder, folder / FILE, yes=yes, dry_run=dry_run, json=json)


def _write(
    memory: Memory, folder: Path, file: Path, *, yes: bool, dry_run: bool, json: bool
) -> None:
    page = memory.plan_share(str(folder), file)
    acting = bool(page.changes) and not dry_run
    if acting:
        _require_answer(page.changes, yes=yes)
    if not json:
        _print(page.changes)
    if acting:
        _confirm(f"Write {counted(len(page.changes), 'change')} to {file}?", yes=yes)
        memory.share(page, file)
    if json:
        print_json({"file": file, "changes": page.changes, "dry_run": dry_run})
    elif not page.changes:
        print(f"{clean(str(file))} is up to date.")
    elif not dry_run:
        entries = len(page.entries)
        print(f"{clean(str(file))} has {entries:,} of your fragments.")


def _read(
    memory: Memory,
    folder: Path,
    file: Path,
    *,
    hidden: bool,
    yes: bool,
    dry_run: bool,
    json: bool,
) -> None:
    changes = memory.read_shared(str(folder), file)
    refused = [change for change in changes if change.hidden and not hidden]
    wanted = [change for change in changes if hidden or not change.hidden]
    acting = bool(wanted) and not dry_run
    if acting:
        _require_answer(wanted, yes=yes)
    if not json:
        _print(changes)
    if refused:
        notice(f"{counted(len(refused), 'change')} left out: something is hidden in the text.")
    if acting:
        _confirm(f"Take in {counted(len(wanted), 'change')}?", yes=yes)
        memory.take_shared(str(folder), wanted)
    if json:
        print_json({"file": file, "changes": wanted, "left_out": refused, "dry_run": dry_run})
    elif not changes:
        print(f"Nothing on {clean(str(file))} is new.")
    elif acting:
        print(f"Took in {counted(len(wanted), 'change')}. 'lore undo' takes the last one back.")


def _require_answer(changes: Sequence[SharedChange], *, yes: bool) -> None:
    """Refuse where there is nobody to ask."""
    if not yes and not sys.stdin.isatty():
        msg = f"{counted(len(changes), 'change')} would be made."
        raise InvalidInput(msg, hint="Add --yes to do it, --dry-run to only see it.")


def _confirm(question: str, *, yes: bool) -> None:
    if not yes and not typer.confirm(clean(question)):
        raise typer.Exit(1)


def _print(changes: Sequence[SharedChange]) -> None:
    for change in changes:
        print(bold(f"{change.verb} {change.kind}"))
        before, after = change.before.splitlines(), change.after.splitlines()
        for line in difflib.unified_diff(before, after, lineterm="", n=1):
            if line.startswith(("---", "+++", "@@")):
                continue
            colour = _COLOURS.get(line[0])
            print("   " + (coloured(clean(line), colour) if colour else clean(line)))
        for told in change.hidden:
            print(coloured(f"   hidden: {clean(told)}", "yellow"))
