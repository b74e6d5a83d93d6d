"""The command that brings conversations in: capture."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from lore.cli.output import (
    Json,
    counted,
    dim,
    notice,
    one_line,
    open_memory,
    print_columns,
    print_json,
    progress,
)
from lore.errors import CaptureError, InvalidInput

if TYPE_CHECKING:
    from lore.memory import Memory
    from lore.records import Captured, CaptureEstimate, Redaction

_MOST_PROBLEMS = 20
"""So many files with problems are listed; --json has all of them."""


def add_to(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(capture)


def capture(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Transcripts, or folders that hold some.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Everything that agents keep on this machine.")
    ] = False,
    since: Annotated[
        str, typer.Option(help="Only files written since: a date, or 'last week'.")
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read and count, but store nothing.")
    ] = False,
    show_redactions: Annotated[
        bool, typer.Option("--show-redactions", help="Show where secrets were taken out.")
    ] = False,
    json: Json = False,
) -> None:
    """Bring in conversations from the transcripts that agents write.

    What is here already is not stored twice. It can be interrupted, and goes on where it
    stopped.
    """
    if bool(paths) == everything:
        msg = "Name files or folders, or add --all." if not paths else "--all takes no paths."
        raise InvalidInput(msg, hint="'lore capture --help' shows how it is used.")
    with _open(context, dry_run=dry_run) as memory:
        expected = memory.estimate_capture(paths or (), since=since)
        if not json:
            notice(_told_before(expected))
        with progress("capturing", quiet=json) as report:
            try:
                done = memory.capture_files(
                    paths or (), since=since, dry_run=dry_run, progress=report
                )
            except KeyboardInterrupt:
                notice("Stopped; 'lore capture' goes on where it stopped.")
                raise
    if json:
        print_json(done if show_redactions else replace(done, redacted=()))
    else:
        _print_summary(done, dry_run=dry_run, show_redactions=show_redactions)
    _refuse_failure(paths or [], done)


@contextmanager
def _open(context: typer.Context, *, dry_run: bool) -> Iterator[Memory]:
    """Open the memory; a dry run leaves nothing behind where there is none yet."""
    from lore.memory import Memory
    from lore.settings import load

    if dry_run:
        config = load(home=context.obj, project_dir=Path.cwd()).settings
        if not config.database.exists():
            with TemporaryDirectory() as folder:
                nowhere = replace(config, home=Path(folder), db_path="", embed_provider="none")
                with Memory.open(config=nowhere) as memory:
                    yield memory
            return
    with open_memory(context, create=True) as memory:
        yield memory


def _told_before(expected: CaptureEstimate) -> str:
    size = f"{expected.bytes / 1e6:,.1f} MB"
    if not expected.files:
        return "Nothing has changed since it was last captured."
    told = f"{counted(expected.files, 'file')} to read, {size}"
    if expected.seconds is None:
        return f"{told}."
    return f"{told}, about {_span(expected.seconds)}."


def _span(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} min"


def _print_summary(done: Captured, *, dry_run: bool, show_redactions: bool) -> None:
    verb = "would be stored" if dry_run else "stored"
    print(
        f"{counted(done.added, 'message')} {verb}, {done.known:,} known, in"
        f" {counted(done.sessions, 'session')} of {counted(done.files, 'file')}."
    )
    _print_counts("skipped", done.skipped)
    _print_counts("redacted", done.redactions)
    if show_redactions:
        _print_redactions(done.redacted)
    for found in done.problems[:_MOST_PROBLEMS]:
        print(f"   {one_line(found.path, 300)} {found.problem}.")
    if len(done.problems) > _MOST_PROBLEMS:
        print(dim(f"   and {len(done.problems) - _MOST_PROBLEMS:,} more: --json lists them."))


def _print_redactions(places: tuple[Redaction, ...]) -> None:
    """Print the lines that held secrets, each with its marks, below their file."""
    for path, found in groupby(places, key=lambda place: place.path):
        print(f"   {one_line(path, 300)}")
        for place in found:
            print(f"{place.count:>8,} {place.kind:<14} {one_line(place.line, 200)}")


def _print_counts(label: str, counts: dict[str, int]) -> None:
    print_columns((f"   {label}", f"{count:>8,}", one_line(name)) for name, count in counts.items())


def _refuse_failure(paths: list[Path], done: Captured) -> None:
    """Fail if what was named cannot be read at all."""
    if paths and done.problems and not done.files:
        first = done.problems[0]
        msg = f"{first.path} {first.problem}."
        raise CaptureError(msg)
