"""Where a command runs: in the process that the user started, or in the daemon on its behalf."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from lore.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from lore.memory import Memory


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command of a client that the daemon runs, with the client's surroundings."""

    memory: Memory
    environ: Mapping[str, str]
    folder: str
    stdin: str | None


_CURRENT: ContextVar[Invocation | None] = ContextVar("lore_invocation", default=None)


@contextmanager
def run_for(invocation: Invocation) -> Iterator[None]:
    """Let the commands of this thread use the surroundings of a client."""
    token = _CURRENT.set(invocation)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def shared_memory() -> Memory | None:
    """Return the memory that the daemon has open, or None in a process of the user."""
    invocation = _CURRENT.get()
    return invocation.memory if invocation else None


def environ() -> Mapping[str, str] | None:
    """Return the environment of a client, or None for that of this process."""
    invocation = _CURRENT.get()
    return invocation.environ if invocation else None


def working_folder() -> Path:
    """Return the folder in which the user runs the command."""
    invocation = _CURRENT.get()
    return Path(invocation.folder) if invocation else Path.cwd()


def find_stdin() -> str | None:
    """Return the text on standard input, or None if there is no standard input."""
    invocation = _CURRENT.get()
    if invocation:
        return invocation.stdin
    return None if sys.stdin is None else sys.stdin.buffer.read().decode("utf-8", "replace")
