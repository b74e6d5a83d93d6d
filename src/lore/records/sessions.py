"""Messages, sessions and projects."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime

from lore.lazy_dataclass import dataclass
from lore.records.kinds import Origin, PartKind, Role, SessionState


@dataclass(frozen=True, slots=True)
class Project:
    """One repository or folder that an agent works in."""

    id: str
    path: str
    remote: str
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation of one agent in one project."""

    id: str
    external_id: str
    project_id: str | None
    agent: str
    title: str
    branch: str
    parent_id: str | None
    started_at: datetime
    last_message_at: datetime
    state: SessionState


@dataclass(frozen=True, slots=True)
class NameMatches:
    """Sessions and projects whose names contain a text."""

    sessions: tuple[Session, ...] = ()
    projects: tuple[Project, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a message."""

    kind: PartKind
    text: str
    name: str = ""
    call_id: str = ""
    origin: Origin | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to be stored; `key` makes storing it idempotent."""

    role: Role
    parts: tuple[Part, ...]
    created_at: datetime
    key: str = ""
    speaker: str = ""
    origin: Origin | None = None
    model: str = ""
    usage: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Message:
    """A stored message, tool call or tool result."""

    id: str
    session_id: str
    ordinal: int
    role: Role
    parts: tuple[Part, ...]
    tokens: int
    created_at: datetime
    origin: Origin
    speaker: str = ""
    model: str = ""
    usage: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Distillation:
    """The summary of a segment; `sources` are the message ordinals of each line."""

    id: str
    session_id: str
    generation: int
    text: str
    from_message: str
    to_message: str
    tokens: int
    source_tokens: int
    archived: bool
    created_at: datetime
    sources: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class SessionLog:
    """The log of a session: its distillations in the order of the conversation."""

    session: Session
    logs: tuple[Distillation, ...]
    """Those that were not condensed into another one."""

    new_messages: int
    """How many messages are newer than the log."""
