"""The command `lore capture`: store conversations from transcripts."""

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

from typer import Argument, Context, Option

from lore.cli.options import Json
from lore.cli.output import (
    INTERRUPTED,
    counted,
    dim,
    format_duration,
    notice,
    one_line,
    open_memory,
    plain,
    print_columns,
    print_json,
    progress,
)
from lore.errors import CaptureError, InvalidInput

if TYPE_CHECKING:
    from lore.records import (
        CapturedFile,
        CaptureEstimate,
        CaptureResult,
        FileProblem,
        NativeResult,
        Redaction,
    )

_MOST_PROBLEMS = 20
"""How many files with problems are listed; --json has all of them."""

_MOST_UNRECOGNIZED = 3
"""How many files that are no transcripts are named without -v."""

_MOST_FILES = 20
"""How many files are listed with their counts; --json has all of them."""

_PLACES = (
    "the folders of Claude Code, Codex, opencode, pi, Gemini CLI, Copilot CLI, Cursor and Cline"
)
"""Where agents store transcripts, as the adapters look for them."""


def capture(
    context: Context,
    paths: Annotated[
        list[Path] | None, Argument(help="Transcript files, or folders with transcripts.")
    ] = None,
    everything: Annotated[
        bool, Option("--all", help="All transcripts of agents on this machine.")
    ] = False,
    since: Annotated[str, Option(help="Only files written since: a date, or 'last week'.")] = "",
    dry_run: Annotated[
        bool, Option("--dry-run", help="Read and count, but store nothing.")
    ] = False,
    show_redactions: Annotated[
        bool, Option("--show-redactions", help="Show where secrets were redacted.")
    ] = False,
    mine: Annotated[
        bool, Option("--mine", help="The SpecStory histories at these paths are yours.")
    ] = False,
    verbose: Annotated[
        bool, Option("--verbose", "-v", help="List the files with their counts.")
    ] = False,
    json: Json = False,
) -> None:
    """Store conversations from the transcripts that agents write.

    Nothing is stored twice. You can interrupt the command and run it again: it goes on where it
    stopped.

    Anyone may have written a history of SpecStory, since it lies in a repository. With --mine what
    you and your agent say in it counts as your conversation; without, it is only found by asking.
    """
    _check_options(paths, everything=everything, mine=mine, dry_run=dry_run)
    with open_memory(context, create=True, or_empty=dry_run) as memory:
        expected = memory.sessions.estimate_capture(paths or (), since=since)
        if not json:
            notice(_describe_estimate(expected, since=since, has_paths=bool(paths)))
        with progress("capturing", quiet=json) as report, _interruptible() as stopping:
            result = memory.capture_files(
                paths or (), since=since, dry_run=dry_run, progress=report, stopping=stopping
            )
            native = (
                memory.native.capture(dry_run=dry_run, stopping=stopping) if everything else None
            )
        claimed = memory.sessions.claim_files(paths or ()) if mine and not stopping() else 0
        embeds = bool(memory.sources.embedder.dimension) and bool(result.added) and not dry_run
        waiting = memory.maintenance.stats().waiting if embeds else 0
    if stopping():
        notice(
            f"{result.files:,} of {counted(expected.files, 'file')},"
            f" {counted(result.added, 'message')} stored; run it again to go on."
        )
        raise SystemExit(INTERRUPTED)
    if json:
        shown = result if show_redactions else replace(result, redacted=())
        print_json({**plain(shown), "native": native} if native else shown)
    if paths and result.problems and not result.files:
        raise CaptureError(_describe_failure(result.problems))
    if not json:
        _print_summary(result, dry_run=dry_run, show_redactions=show_redactions)
        _print_native(native)
        if paths:
            _print_unrecognized(result, verbose=verbose)
        if verbose:
            _print_files(result.each)
        _print_histories(result.each, claimed, mine=mine)
        if waiting:
            print(dim(f"{counted(waiting, 'item')} wait for a vector: 'lore embed', or 'lore up'."))
        if paths and result.added and not dry_run:
            print(dim(_way_back(result.each)))


def _describe_failure(problems: tuple[FileProblem, ...]) -> str:
    """Return why nothing of what was named could be read; name the reasons of several before."""
    descriptions = [f"{one.path} {one.problem}." for one in problems]
    if len(descriptions) == 1:
        return descriptions[0]
    for description in descriptions[:_MOST_PROBLEMS]:
        notice(description)
    return f"None of {counted(len(descriptions), 'file')} could be read."


def _check_options(
    paths: list[Path] | None, *, everything: bool, mine: bool, dry_run: bool
) -> None:
    if mine and (everything or dry_run):
        msg = "--mine needs the paths of your histories, and stores what it changes."
        raise InvalidInput(msg, hint="Example: 'lore capture --mine .specstory/history'.")
    if bool(paths) == everything:
        msg = "Name files or folders, or add --all." if not paths else "--all takes no paths."
        raise InvalidInput(msg, hint="'lore capture --help' shows the usage.")


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C end the capture after the current batch; a second Ctrl-C ends it at once.

    Yield a function that returns whether Ctrl-C was pressed.
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


def _print_files(each: tuple[CapturedFile, ...]) -> None:
    print_columns(
        (f"{file.added:>8,} new", f"{file.known:>8,} known", file.agent, one_line(file.path, 300))
        for file in each[:_MOST_FILES]
    )
    if len(each) > _MOST_FILES:
        print(dim(f"   and {len(each) - _MOST_FILES:,} more: --json lists them."))


def _print_unrecognized(result: CaptureResult, *, verbose: bool) -> None:
    """Print which files in folders are no transcripts, and why."""
    if not result.passed_over:
        return
    print(f"   passed over {result.passed_over:>8,} that are not known transcripts")
    shown = result.unrecognized[: None if verbose else _MOST_UNRECOGNIZED]
    for file in shown:
        print(dim(f"      {one_line(file.path, 300)}: {file.problem}"))
    if result.passed_over > len(shown):
        hint = "" if verbose else ": -v names more of them"
        print(dim(f"      and {result.passed_over - len(shown):,} more{hint}."))


def _print_histories(each: tuple[CapturedFile, ...], claimed: int, *, mine: bool) -> None:
    """Print what becomes of SpecStory histories."""
    if mine:
        print(
            f"   yours       {counted(claimed, 'message')} of SpecStory: they can become knowledge"
            " and rules"
        )
        return
    histories = sum(file.agent == "specstory" for file in each)
    if histories:
        print(
            f"   SpecStory   {counted(histories, 'file')}: found by asking only. Nothing in them"
            " becomes knowledge or a rule,\n               because anyone may have written them."
            " If they are yours: 'lore capture --mine PATH'"
        )


def _print_native(native: NativeResult | None) -> None:
    """Print what was read of the memories of agents, if anything changed."""
    if native is None or not native.files:
        return
    counts = {
        "new": native.added,
        "changed": native.changed,
        "gone": native.retired,
        "back": native.restored,
    }
    listed = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
    read = f"{counted(native.notes, 'note')} in {counted(native.files, 'file')} of agents"
    print(f"   memories    {read}{': ' + listed if listed else ''}")
    for problem in native.problems[:_MOST_PROBLEMS]:
        notice(f"{one_line(problem.path, 300)} {problem.problem}.")


def _way_back(each: tuple[CapturedFile, ...]) -> str:
    """Return the hint how to delete what was just stored."""
    sessions = sorted({name for file in each if file.added for name in file.sessions})
    which = shlex.quote(one_line(sessions[0], 200)) if len(sessions) == 1 else "ID"
    lists = "" if len(sessions) == 1 else "; 'lore sessions' lists them"
    return f"'lore forget --session {which}' takes it out again{lists}."


def _describe_estimate(expected: CaptureEstimate, *, since: str, has_paths: bool) -> str:
    size = f"{expected.bytes / 1e6:,.1f} MB"
    if not expected.total_files:
        if since:
            return "No file is that new."
        return "There are no files in it." if has_paths else f"No transcripts found in {_PLACES}."
    if not expected.files:
        return "Nothing has changed since it was last captured."
    summary = f"{counted(expected.files, 'file')} to read, {size}"
    if expected.seconds is None:
        return f"{summary}."
    return f"{summary}, about {format_duration(max(1, expected.seconds))}."


def _print_summary(result: CaptureResult, *, dry_run: bool, show_redactions: bool) -> None:
    verb = "would be stored" if dry_run else "stored"
    print(
        f"{counted(result.added, 'message')} {verb}, {result.known:,} known, in"
        f" {counted(result.sessions, 'session')} of {counted(result.files, 'file')}."
    )
    _print_counts("skipped", result.skipped)
    _print_counts("redacted", result.redactions)
    if show_redactions:
        _print_redactions(result.redacted)
    for problem in result.problems[:_MOST_PROBLEMS]:
        print(f"   {one_line(problem.path, 300)} {problem.problem}.")
    if len(result.problems) > _MOST_PROBLEMS:
        print(dim(f"   and {len(result.problems) - _MOST_PROBLEMS:,} more: --json lists them."))


def _print_redactions(places: tuple[Redaction, ...]) -> None:
    """Print the lines that contained secrets, with their marks, by file."""
    for path, redactions in groupby(places, key=lambda place: place.path):
        print(f"   {one_line(path, 300)}")
        for place in redactions:
            print(f"{place.count:>8,} {place.kind:<14} {one_line(place.line, 200)}")


def _print_counts(label: str, counts: dict[str, int]) -> None:
    print_columns((f"   {label}", f"{count:>8,}", one_line(name)) for name, count in counts.items())
