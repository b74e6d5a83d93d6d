"""The command that takes back what is no longer believed: revoke."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from lore.cli import completion
from lore.cli.output import Json, Project, counted, one_line, open_memory, print_json
from lore.errors import InvalidInput

if TYPE_CHECKING:
    from lore.memory import Memory
    from lore.records import Revocation

_SHOWN = 50


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(revoke)


def revoke(
    context: typer.Context,
    session: Annotated[str, typer.Option(help="What came from a session.")] = "",
    origin: Annotated[
        str,
        typer.Option(
            help="What came from an origin: web, tool, …", autocompletion=completion.origins
        ),
    ] = "",
    file: Annotated[
        str, typer.Option(help="What came from a file, read by a tool or as a transcript.")
    ] = "",
    project: Project = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    json: Json = False,
) -> None:
    """Take back everything that was derived from a session, an origin or a file.

    Fragments are hidden, distillations and standing instructions go; the messages stay. 'lore
    undo' brings fragments and instructions back.
    """
    with open_memory(context) as memory:
        take = partial(memory.revoke, session=session, origin=origin, file=file, project=project)
        gone = take(dry_run=True)
        if not dry_run:
            if not yes and _size(gone):
                _confirm(gone)
            gone = take()
        if json:
            print_json({**_plain(gone), "dry_run": dry_run})
            return
        _print(memory, gone, dry_run=dry_run)


def _plain(gone: Revocation) -> dict[str, object]:
    return {
        "messages": gone.messages,
        "fragments": gone.fragments,
        "distillations": gone.distillations,
        "standing": gone.standing,
    }


def _size(gone: Revocation) -> int:
    return len(gone.fragments) + len(gone.distillations) + len(gone.standing)


def _confirm(gone: Revocation) -> None:
    if not sys.stdin.isatty():
        msg = f"{_summed(gone)} would go."
        raise InvalidInput(msg, hint="Add --yes to do it, --dry-run to only see it.")
    if not typer.confirm(f"Take back {_summed(gone)}?"):
        raise typer.Exit(1)


def _summed(gone: Revocation) -> str:
    counts = (
        counted(len(gone.fragments), "fragment"),
        counted(len(gone.distillations), "distillation"),
        counted(len(gone.standing), "standing instruction"),
    )
    return f"{counts[0]}, {counts[1]} and {counts[2]}"


def _print(memory: Memory, gone: Revocation, *, dry_run: bool) -> None:
    if not _size(gone):
        print(f"Nothing was derived from {counted(gone.messages, 'message')} of that kind.")
        return
    short = {} if not gone.fragments else memory.short_ids([t.id for t in gone.fragments])
    for title in gone.fragments[:_SHOWN]:
        print(f"   {short[title.id]}  {one_line(title.title)}")
    for text in gone.standing[:_SHOWN]:
        print(f"   standing: {one_line(text)}")
    hidden = max(0, len(gone.fragments) - _SHOWN) + max(0, len(gone.standing) - _SHOWN)
    if hidden:
        print(f"   and {hidden:,} more")
    came = f"derived from {counted(gone.messages, 'message')}"
    if dry_run:
        print(f"{_summed(gone)}, {came}, would go.")
        return
    print(f"Revoked: {_summed(gone)}, {came}. The messages stay.")
    if gone.fragments:
        print("'lore undo' takes this back.")
