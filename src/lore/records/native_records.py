"""The memories that agents keep in files of their own, as Lore reads and writes them."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from lore.lazy_dataclass import dataclass
from lore.records.knowledge import Fragment
from lore.records.maintenance import FileProblem


class NativeCount(NamedTuple):
    """How many memories an agent has, and of how many projects, where it keeps them apart."""

    agent: str
    memories: int
    projects: int


@dataclass(frozen=True, slots=True)
class NativeResult:
    """What reading the memories of agents changed; `notes` is how many their files have.

    Only files that changed are read.
    """

    files: int = 0
    notes: int = 0
    added: int = 0
    changed: int = 0
    retired: int = 0
    restored: int = 0
    problems: tuple[FileProblem, ...] = ()


class NewerStatement(NamedTuple):
    """What replaced a note: the item that says it, its words and its time."""

    id: str
    text: str
    at: datetime


class OutdatedNote(NamedTuple):
    """A note in an agent's file that no longer holds, and what replaced it."""

    note: Fragment
    agent: str
    file: str
    line: int
    newer: NewerStatement


@dataclass(frozen=True, slots=True)
class FileChange:
    """The text of a file before and after a change; None if there is no file."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class NativeShare:
    """Changes of an agent's memory folder.

    `entries` is how many fragments the agent is given, `left_out` how many did not fit.
    """

    agent: str
    changes: tuple[FileChange, ...]
    entries: int = 0
    left_out: int = 0
