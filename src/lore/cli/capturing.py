"""The command that brings conversations in: capture."""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lore.cli.output import (
    INTERRUPTED,
    Json,
    counted,
    dim,
    lasting,
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
    from lore.records import Captured, CapturedFile, CaptureEstimate, Redaction

_MOST_PROBLEMS = 20
"""So many files with problems are listed; --json has all of them."""

_MOST_FILES = 20
"""So many files are named with their counts; --json has all of them."""

_PLACES = "~/.claude/projects, ~/.codex/sessions and ~/.local/share/opencode"
"""Where agents keep what they say, as the adapters look for it."""


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
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Name the files with what each brought.")
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
    with open_memory(context, create=True, or_empty=dry_run) as memory:
        expected = memory.estimate_capture(paths or (), since=since)
        if not json:
            notice(_told_before(expected, since=since, named=bool(paths)))
        with progress("capturing", quiet=json) as report, _interruptible() as stopping:
            done = memory.capture_files(
                paths or (), since=since, dry_run=dry_run, progress=report, stopping=stopping
            )
        waiting = 0 if dry_run or not done.added else _waiting(memory)
    if stopping():
        notice(
            f"{done.files:,} of {counted(expected.files, 'file')},"
            f" {counted(done.added, 'message')} stored; run it again to go on."
        )
        raise SystemExit(INTERRUPTED)
    if json:
        print_json(done if show_redactions else replace(done, redacted=()))
    else:
        _print_summary(done, dry_run=dry_run, show_redactions=show_redactions)
        if paths and done.passed_over:
            print(f"   passed over {done.passed_over:>8,} that are no transcripts Lore knows")
        if verbose:
            _print_files(done.each)
        if waiting:
            print(dim(f"{counted(waiting, 'item')} wait for a vector: 'lore embed', or 'lore up'."))
        if paths and done.added and not dry_run:
            print(dim(_way_back(done.each)))
    _refuse_failure(paths or [], done)


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C end the reading after the batch that is under way; a second one ends it at once.

    The function that is given tells whether it was pressed.
    """
    pressed = threading.Event()
    before = signal.getsignal(signal.SIGINT)

    def stop(*_: object) -> None:
        pressed.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, stop)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)


def _waiting(memory: Memory) -> int:
    """Return how many items wait for a vector that they can get."""
    return memory.stats().waiting if memory.sources.embedder.dimension else 0


def _print_files(each: tuple[CapturedFile, ...]) -> None:
    print_columns(
        (f"{file.added:>8,} new", f"{file.known:>8,} known", file.agent, one_line(file.path, 300))
        for file in each[:_MOST_FILES]
    )
    if len(each) > _MOST_FILES:
        print(dim(f"   and {len(each) - _MOST_FILES:,} more: --json lists them."))


def _way_back(each: tuple[CapturedFile, ...]) -> str:
    """Say how what was just stored is taken out again."""
    sessions = sorted({name for file in each if file.added for name in file.sessions})
    which = shlex.quote(one_line(sessions[0], 200)) if len(sessions) == 1 else "ID"
    lists = "" if len(sessions) == 1 else "; 'lore sessions' lists them"
    return f"'lore forget --session {which}' takes it out again{lists}."


def _told_before(expected: CaptureEstimate, *, since: str, named: bool) -> str:
    size = f"{expected.bytes / 1e6:,.1f} MB"
    if not expected.found:
        if since:
            return "No file is that new."
        return "There are no files in it." if named else f"No transcripts found in {_PLACES}."
    if not expected.files:
        return "Nothing has changed since it was last captured."
    told = f"{counted(expected.files, 'file')} to read, {size}"
    if expected.seconds is None:
        return f"{told}."
    return f"{told}, about {lasting(max(1, expected.seconds))}."


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
