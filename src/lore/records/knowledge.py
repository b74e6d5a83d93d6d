"""Fragments and what belongs to them: units of knowledge, edges, episodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from lore.records.kinds import EdgeKind, FragmentKind, Origin, Outcome


@dataclass(frozen=True, slots=True)
class Fragment:
    """One unit of long-term knowledge."""

    id: str
    content: str
    summary: str
    depth: int
    kind: FragmentKind
    payload: dict[str, Any]
    importance: float
    confidence: float
    decay_rate: float
    access_count: int
    last_accessed: datetime | None
    last_reinforced: datetime
    relevance: float
    origin: Origin
    trust: int
    project_id: str | None
    session_id: str | None
    source_messages: tuple[str, ...]
    superseded_by: str | None
    valid_from: datetime | None
    valid_to: datetime | None
    created_at: datetime
    updated_at: datetime
    version: int
    parent_id: str | None
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Draft:
    """A fragment as someone asks for it to be stored."""

    content: str
    summary: str = ""
    kind: FragmentKind = "fact"
    parent_id: str = ""
    depth: int | None = None
    importance: float = 0.5
    confidence: float = 0.7
    origin: Origin = "user"
    project: str = ""
    session: str = ""
    source_messages: tuple[str, ...] = ()
    payload: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FragmentVersion:
    """What a fragment said before it was changed."""

    fragment_id: str
    version: int
    content: str
    summary: str
    changed_at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class SharedChange:
    """What differs between a memory and a project's page; `hidden` is what no reader would see."""

    verb: Literal["add", "change", "remove"]
    entry: str
    kind: FragmentKind
    before: str
    after: str
    hidden: tuple[str, ...] = ()
    fragment_id: str = ""


@dataclass(frozen=True, slots=True)
class SharedEntry:
    """A fragment on a project's page: its id there, its own, and a digest of its words."""

    entry: str
    fragment_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class SharedPage:
    """A page as it would be written, and what that changes on it."""

    text: str
    changes: tuple[SharedChange, ...]
    entries: tuple[SharedEntry, ...]
    gone: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """A typed link between two fragments."""

    source: str
    target: str
    kind: EdgeKind
    weight: float
    note: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Action:
    """One tool call of an episode: when in seconds from the start, to what, and how it went."""

    t: int
    action: str
    target: str
    result: Literal["ok", "failed", "refused", "none"] = "none"


@dataclass(frozen=True, slots=True)
class Mishap:
    """One error of an episode, and what was done before the same thing went well."""

    type: str
    message: str
    resolution: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """One thing that a person asked for in a session; `first` to `last` are message ordinals."""

    goal: str
    outcome: Outcome
    reason: str
    first: int
    last: int
    calls: int = 0
    errors: tuple[Mishap, ...] = ()
    files_read: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Episode:
    """What a session set out to do, did and reached; `sources` are the messages it quotes.

    `tasks` are the things that were asked for, in order: one, as a rule. Where it is `titled`, the
    goal is the session's title, for nobody said one.
    """

    goal: str
    outcome: Outcome
    reason: str
    agent: str = ""
    calls: int = 0
    actions: tuple[Action, ...] = ()
    errors: tuple[Mishap, ...] = ()
    files_read: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ()
    duration_s: int = 0
    tokens: int = 0
    sources: tuple[str, ...] = ()
    titled: bool = False


@dataclass(frozen=True, slots=True)
class KeptEpisode:
    """An episode, with the fragment that holds it and when its session ended."""

    fragment: Fragment
    episode: Episode
    at: datetime
