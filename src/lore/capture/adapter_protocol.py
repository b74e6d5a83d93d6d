"""The protocols that transcript adapters follow, and the records they return."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from lore.lazy_dataclass import dataclass
from lore.records import NewMessage

TYPED_STATE = "typed:"
"""The beginning of the names in `Context.state` whose values a person typed."""


@dataclass(frozen=True, slots=True)
class Context:
    """The session data that a transcript has given so far; stored with the watermark as JSON.

    `session` and `parent` are the agent's own ids. `state` holds what an adapter needs from line to
    line. With `lasting_keys` a message keeps its key when a fork copies it into another session,
    and no other message of the agent has it: copies are then deduplicated.
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


class ParsedLine(NamedTuple):
    """The messages of one line, each with a key that is unique in its session.

    The messages belong to the session of this context, which can change from line to line: old
    versions of agents write subagents into the file of their session, and a fork begins with lines
    of another session. A line of an unknown kind is counted by the name in `unknown`.
    """

    context: Context
    messages: tuple[NewMessage, ...] = ()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class SessionChunk:
    """Messages of one session from a source that is read as a whole, and the position after
    them."""

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
        """Return whether a file is one of this agent's, by its name and its first lines."""
        ...

    def initial_context(self, path: Path) -> Context:
        """Return what the path of a file says about its session."""
        ...

    def parse_line(self, line: Any, context: Context) -> ParsedLine:
        """Return the messages of a parsed JSON line; never raises, whatever the line holds."""
        ...


@runtime_checkable
class WholeAdapter(Protocol):
    """An adapter for archives and databases, read from a position on."""

    agent: str

    def find(self, home: Path) -> Iterator[Path]:
        """Return the sources below a person's home folder."""
        ...

    def fits(self, path: Path, head: bytes) -> bool:
        """Return whether a file is such a source, by its name and its first bytes."""
        ...

    def read(self, path: Path, position: int) -> Iterator[SessionChunk]:
        """Yield the messages after a position, session by session; 0 is the beginning."""
        ...


Adapter = LineAdapter | WholeAdapter
