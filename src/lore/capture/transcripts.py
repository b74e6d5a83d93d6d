"""Transcripts: what every adapter gives, whatever the agent that wrote the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from lore.records import NewMessage


@dataclass(frozen=True, slots=True)
class Context:
    """What a transcript has told of its session so far; kept with the watermark as JSON.

    `session` and `parent` are the agent's own ids. `state` is for what an adapter needs to
    remember from line to line. With `lasting_keys` a message keeps its key when a fork copies it
    into another session, and no other message of the agent has it.
    """

    session: str = ""
    parent: str = ""
    title: str = ""
    folder: str = ""
    branch: str = ""
    version: str = ""
    files: tuple[str, ...] = ()
    state: dict[str, str] = field(default_factory=dict)
    lasting_keys: bool = False


class Told(NamedTuple):
    """What one line says: messages, each with a key that is its own in the session.

    The messages belong to the session of this context, which can change from line to line: old
    versions of agents write subagents into the file of their session, and a fork begins with
    lines of another session. A line that is no message is skipped, or of a sort that the adapter
    does not know; what is unknown is counted by its name.
    """

    context: Context
    messages: tuple[NewMessage, ...] = ()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Messages of one session out of a source that is read as a whole, and how far that is."""

    context: Context
    messages: tuple[NewMessage, ...]
    position: int
    unknown: dict[str, int] = field(default_factory=dict)


@runtime_checkable
class LineAdapter(Protocol):
    """An adapter for files that grow by lines of JSON."""

    agent: str

    def find(self, home: Path) -> Iterator[Path]:
        """Return the transcripts below a person's home folder."""
        ...

    def fits(self, path: Path, head: bytes) -> bool:
        """Tell whether a file is one of this agent's, by its name and its first lines."""
        ...

    def begin(self, path: Path) -> Context:
        """Return what the place of a file tells of its session."""
        ...

    def tell(self, line: Any, context: Context) -> Told:
        """Return what a parsed line says; never raises, whatever the line holds."""
        ...


@runtime_checkable
class WholeAdapter(Protocol):
    """An adapter for archives and databases, read from a position on."""

    agent: str

    def find(self, home: Path) -> Iterator[Path]:
        """Return the sources below a person's home folder."""
        ...

    def fits(self, path: Path, head: bytes) -> bool:
        """Tell whether a file is such a source, by its name and its first bytes."""
        ...

    def read(self, path: Path, position: int) -> Iterator[Stretch]:
        """Return what was said after a position, session by session; 0 is the beginning."""
        ...


Adapter = LineAdapter | WholeAdapter
