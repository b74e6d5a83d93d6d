"""Output: text for people, JSON for programs, and the memory that a command uses."""

from __future__ import annotations

import gc
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer
from typer import Context

from lore.cli import invocation
from lore.cli.links import width
from lore.errors import InvalidInput

if TYPE_CHECKING:
    from lore.memory import Memory
    from lore.settings import Settings


Report = Callable[[int, int | None], None]
PartReport = Callable[[str, int, int | None], None]

INTERRUPTED = 130

_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
"""Characters that act on a terminal, change the reading direction, or hide text."""


_PLURAL = re.compile(r"(?<=\w)s\b")


@contextmanager
def open_memory(
    context: Context, *, create: bool = False, or_empty: bool = False, asks_once: bool = False
) -> Iterator[Memory]:
    """Open the memory of the command line; only commands that store something create one.

    With `or_empty`, a missing memory is replaced by an empty one that leaves nothing behind. A
    command that `asks_once` embeds one or two texts. In the daemon, commands share its memory.
    """
    from lore.settings import load

    loaded = load(invocation.environ(), home=context.obj, project_dir=invocation.working_folder())
    notice(loaded.warning)
    if shared := invocation.shared_memory():
        yield shared
        return
    config = loaded.settings
    with importing():
        from lore.memory import Memory

    if or_empty and _is_yet_to_come(config):
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as folder:
            nowhere = replace(config, home=Path(folder), db_path="", embed_provider="none")
            with Memory.open(config=nowhere) as memory:
                yield memory
        return
    is_new = create and not config.store_url and _is_yet_to_come(config)
    with Memory.open(config=config, create=create, short_lived=asks_once) as memory:
        yield memory
    if is_new and sys.stderr.isatty():  # a person may have moved or renamed the former one
        notice(f"A new memory was created in {config.home}.")


@contextmanager
def importing() -> Iterator[None]:
    """Import modules without garbage collection: they are none, and the search takes 15 ms."""
    from lore.settings import resting_threads

    gc.disable()
    try:
        with resting_threads():
            yield
    finally:
        gc.freeze()
        gc.enable()


def _is_yet_to_come(config: Settings) -> bool:
    """Return whether there is no memory, and nothing else in its place."""
    is_home = config.home.is_dir() or not os.path.lexists(config.home)
    return is_home and not os.path.lexists(config.database)


def load_settings(context: Context) -> Settings:
    """Return the settings of the home that the command line names."""
    from lore.settings import load

    return load(invocation.environ(), home=context.obj).settings


def called(program: str = "") -> str:
    """Return the command by which this user runs Lore; it works in the folder of this run.

    `program` is the file that was started; empty: that of this process.
    """
    from lore.settings import environment, runs_by_uv

    environ = environment(invocation.environ())
    if runs_by_uv(environ):
        return f"{_program('uv', environ.get('UV', ''), environ)} run lore"
    program = program or sys.argv[0]
    return _program("lore", program if Path(program).name == "lore" else "", environ)


def _program(name: str, path: str, environ: Mapping[str, str]) -> str:
    """Return the name of a program if the shell finds it by that, or else its path."""
    import shlex
    import shutil

    if not path or shutil.which(name, path=environ.get("PATH")):
        return name
    here, program = invocation.working_folder(), Path(path).absolute()
    is_below = program.is_relative_to(here)
    return shlex.quote(str(program.relative_to(here) if is_below else program))


def notice(text: str) -> None:
    """Print a notice on stderr, where it disturbs no pipe."""
    if text:
        print(f"lore: {clean(text)}", file=sys.stderr)


def clean(text: str) -> str:
    """Escape control characters of stored text."""
    return _ACTING.sub("\ufffd", text.replace("\r\n", "\n"))


def one_line(text: str, most: int = 120) -> str:
    """Return a text on one line of at most `limit` characters, safe for a terminal."""
    line = " ".join(clean(text).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def indented(text: str, by: int = 3) -> str:
    """Return a text with every line indented, safe for a terminal."""
    return "\n".join(f"{' ' * by}{line}".rstrip() for line in clean(text.strip()).split("\n"))


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: '1 record', '1,204 records'."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def tallied(counts: Mapping[str, int]) -> str:
    """Return counts as text: '1 cycle, 3 episodes queued'."""
    return ", ".join(
        f"{count:,} {_PLURAL.sub('', name, count=1) if count == 1 else name}"
        for name, count in counts.items()
    )


def format_duration(seconds: float) -> str:
    """Return a duration as text: '40 s', '12 min', '1 h 9 min', '3 d 4 h'."""
    whole = max(0, round(seconds))
    if whole < 120:
        return f"{whole} s"
    minutes = whole // 60
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, remainder = divmod(hours, 24)
    return f"{days:,} d {remainder} h" if remainder else f"{days:,} d"


def project_names(memory: Memory) -> dict[str, str]:
    """Return the names of projects by id, safe for a terminal."""
    return {project.id: one_line(project.name, 30) for project in memory.sessions.projects()}


def require_project(memory: Memory, project: str) -> str:
    """Return a project as it was named; raise `NotFound` if there is none of that name."""
    if project and memory.sessions.find_project(project) is None:
        memory.sessions.project(project)
    return project


def bold(text: str) -> str:
    """Return a text in bold, on a terminal."""
    return _styled(text, bold=True)


def dim(text: str) -> str:
    """Return a dimmed text, on a terminal."""
    return _styled(text, dim=True)


def coloured(text: str, colour: str) -> str:
    """Return a text in a colour, on a terminal."""
    return _styled(text, fg=colour)


def diff_line(line: str) -> str:
    """Return a line of a unified diff in its colour, safe for a terminal."""
    colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return coloured(clean(line), colour) if colour else clean(line)


def _styled(text: str, **style: Any) -> str:
    from lore.cli.terminal import wants_colour
    from lore.settings import environment

    has_colour = sys.stdout.isatty() and wants_colour(environment(invocation.environ()))
    return typer.style(text, **style) if has_colour else text


def print_columns(rows: Iterable[tuple[str, ...]]) -> None:
    """Print rows in aligned columns; the last cell of a row is free. Rows may differ in size."""
    table = list(rows)
    widths: dict[int, int] = {}
    for row in table:
        for place, cell in enumerate(row[:-1]):
            widths[place] = max(widths.get(place, 0), width(cell))
    for row in table:
        cells = [cell + " " * (widths[place] - width(cell)) for place, cell in enumerate(row[:-1])]
        print("  ".join([*cells, row[-1]]).rstrip())


def print_result(value: object, text: str, *, json: bool) -> None:
    """Print the result of a command: as JSON if that is wanted, else as text."""
    if json:
        print_json(value)
    else:
        print(clean(text))


def print_json(value: object) -> None:
    """Print records as JSON."""
    print(escaped(json.dumps(plain(value), ensure_ascii=False, indent=2)))


def escaped(text: str) -> str:
    """Return JSON in which every character that acts on a terminal is escaped."""

    def spell(match: re.Match[str]) -> str:
        return match[0] if match[0] == "\n" else json.dumps(match[0])[1:-1]

    return _ACTING.sub(spell, text)


def plain(value: Any) -> Any:
    """Return a record as plain values; empty optional fields stay, so that keys are stable."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(inner) for inner in value]
    return value


def read_text(argument: str) -> str:
    """Return the text of an argument, or standard input if it is '-'."""
    if argument == "-":
        text = invocation.find_stdin()
        if text is None:
            msg = "Standard input is missing."
            raise InvalidInput(msg)
        return text
    return argument


@contextmanager
def progress(label: str, *, quiet: bool = False) -> Iterator[Report]:
    """Show a progress bar on a terminal; yield a function of (done, total)."""
    with progress_of_parts(quiet=quiet) as report:
        report(label, 0, None)
        yield lambda done, total: report(label, done, total)


@contextmanager
def progress_of_parts(*, quiet: bool = False, to: TextIO | None = None) -> Iterator[PartReport]:
    """Show a progress bar per part on a terminal; yield a function of (part, done, total).

    A part is finished when the next one begins.
    """
    terminal = to or sys.stderr
    if quiet or not terminal.isatty():
        yield lambda _part, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(file=terminal),
        transient=True,
    ) as bars:
        tasks: dict[str, TaskID] = {}

        def report(part: str, done: int, total: int | None) -> None:
            if part not in tasks:
                for task in bars.tasks:
                    bars.update(task.id, completed=task.total or task.completed)
                tasks[part] = bars.add_task(part, total=total)
            bars.update(tasks[part], completed=done, total=total)

        yield report
