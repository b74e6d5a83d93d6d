"""Output: text for people, JSON for programs, and the memory that a command works on."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from lore.memory import Memory

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Project = Annotated[
    str, typer.Option("--project", help="Path or name of a project; default: all of them.")
]


@contextmanager
def open_memory(context: typer.Context, *, create: bool = True) -> Iterator[Memory]:
    """Open the memory that the command line names; tell once what is degraded."""
    from lore.memory import Memory

    home: Path | None = context.obj
    with Memory.open(home=home, create=create) as memory:
        yield memory


def notice(text: str) -> None:
    """Tell something on stderr, where it disturbs no pipe."""
    if text:
        print(f"lore: {text}", file=sys.stderr)


def console() -> Console:
    """Return a console that has colour only on a terminal."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print records as JSON."""
    print(json.dumps(plain(value), ensure_ascii=False, indent=2))


def plain(value: Any) -> Any:
    """Return a record as plain values; empty optional fields are kept, so keys are stable."""
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
    """Return a text given as argument, or from standard input where it is '-'."""
    if argument == "-":
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


@contextmanager
def progress(label: str, *, quiet: bool = False) -> Iterator[Any]:
    """Show a progress bar on a terminal; give a function of (done, total)."""
    if quiet or not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        transient=True,
    ) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
