"""The records of the domain: frozen, typed, and the same in every room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args

Role = Literal["user", "assistant", "tool", "system"]
PartKind = Literal[
    "text", "reasoning", "tool_call", "tool_result", "image", "document", "aside", "opaque"
]  # fmt: skip
"""An aside is what a program put beside the talk: boot files, reminders, recalled memory; what
an agent wrote in a form that nobody knows is opaque."""

Origin = Literal["user", "assistant", "tool", "web", "repo", "peer"]
FragmentKind = Literal[
    "fact", "decision", "preference", "pattern", "anti_pattern", "architecture", "config",
    "workflow", "bug_fix", "skill", "episode", "insight",
]  # fmt: skip
EdgeKind = Literal[
    "hierarchical", "associative", "temporal", "supersedes", "derived_from", "related_to",
    "contradicts", "elaborates", "example_of", "supports",
]  # fmt: skip
ItemType = Literal["message", "distillation", "fragment"]
Channel = Literal["push", "file", "gateway", "hook"]
"""A way in: the same conversation may come in by several, and is stored once."""

Scope = Literal["all", "session", "project", "knowledge"]
SessionState = Literal["open", "idle", "closed"]
Outcome = Literal["success", "failure", "partial", "unknown"]

ROLES: tuple[Role, ...] = get_args(Role)
PART_KINDS: tuple[PartKind, ...] = get_args(PartKind)
ORIGINS: tuple[Origin, ...] = get_args(Origin)
FRAGMENT_KINDS: tuple[FragmentKind, ...] = get_args(FragmentKind)
EDGE_KINDS: tuple[EdgeKind, ...] = get_args(EdgeKind)
ITEM_TYPES: tuple[ItemType, ...] = get_args(ItemType)
CHANNELS: tuple[Channel, ...] = get_args(Channel)
SCOPES: tuple[Scope, ...] = get_args(Scope)

TRUST: dict[Origin, int] = {
    "user": 3,
    "assistant": 2,
    "repo": 1,
    "peer": 1,
    "tool": 1,
    "web": 0,
}
"""What an origin may do; a derived fragment has the lowest trust of what it came from."""

UNASKED_TRUST = 2
"""Only this trust and more may be put into a prompt that did not ask for it."""

NOTE_EDGES: tuple[EdgeKind, ...] = (
    "derived_from", "related_to", "contradicts", "elaborates", "example_of", "supports",
)  # fmt: skip
"""Edges that a person or an agent draws between two fragments."""


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
class Names:
    """The sessions and projects that have a text in their names."""

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
    """A message on its way into the store; `key` makes storing it twice harmless."""

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
    """One stored utterance, tool call or tool result."""

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
    """The condensed log of a segment."""

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
class Episode:
    """What a session set out to do, did and reached; `sources` are the messages it quotes."""

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
    duration_s: int = 0
    tokens: int = 0
    sources: tuple[str, ...] = ()


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
class Edge:
    """A typed link between two fragments."""

    source: str
    target: str
    kind: EdgeKind
    weight: float
    note: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Job:
    """A piece of background work, with what went wrong so far."""

    id: int
    kind: str
    subject: str
    state: Literal["pending", "parked", "done"]
    attempts: int
    last_error: str
    progress: int
    total: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the change log."""

    seq: int
    at: datetime
    action: Literal["add", "change", "delete", "forget"]
    table: str
    id: str


@dataclass(frozen=True, slots=True)
class Signal:
    """One number behind a score: what it is, its value, and what it added."""

    name: str
    value: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Hit:
    """One result: the text, where it comes from, its score and why it is here."""

    id: str
    type: ItemType
    text: str
    title: str
    score: float
    why: str
    created_at: datetime
    tokens: int
    breadcrumb: str = ""
    kind: str = ""
    role: str = ""
    depth: int = 0
    session_id: str = ""
    project_id: str = ""
    origin: Origin = "user"
    same: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    signals: tuple[Signal, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionHit:
    """One session that answers a question, with the messages that say so."""

    session_id: str
    title: str
    started_at: datetime
    score: float
    best: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one item in one recall: where it ranked, and what removed it."""

    id: str
    rank: int | None
    keyword_rank: int | None
    vector_rank: int | None
    score: float | None
    verdict: str
    signals: tuple[Signal, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one recall."""

    question: str
    hits: tuple[Hit, ...]
    standing: tuple[Hit, ...] = ()
    tokens: int = 0
    considered: int = 0
    notice: str = ""
    fates: tuple[Fate, ...] = ()

    def __iter__(self) -> Iterator[Hit]:
        """Iterate over the hits, best first."""
        return iter(self.hits)

    def __len__(self) -> int:
        """Count the hits."""
        return len(self.hits)


@dataclass(frozen=True, slots=True)
class Title:
    """A fragment by name only: what a reader sees before deciding to read it."""

    id: str
    title: str
    kind: str
    depth: int
    tokens: int
    children: int = 0
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """One item as it is read: whole, with its surroundings by title."""

    id: str
    type: ItemType
    text: str
    title: str
    created_at: datetime
    tokens: int
    origin: Origin
    fragment: Fragment | None = None
    message: Message | None = None
    distillation: Distillation | None = None
    session: Session | None = None
    parent: Title | None = None
    children: tuple[Title, ...] = ()
    edges: tuple[Edge, ...] = ()
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Outline:
    """A subtree of fragments by title."""

    title: Title
    below: tuple[Outline, ...] = ()


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where an item comes from, and the numbers behind its strength."""

    reading: Reading
    sources: tuple[Message, ...]
    origins: dict[str, Origin]
    versions: int
    numbers: dict[str, float]
    superseded_by: str | None
    supersedes: tuple[str, ...]
    times_recalled: int
    allowed: str


@dataclass(frozen=True, slots=True)
class Revocation:
    """What went with something that is no longer believed."""

    messages: int
    fragments: tuple[Title, ...] = ()
    distillations: tuple[str, ...] = ()
    standing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stats:
    """What a memory holds."""

    path: str
    bytes: int
    messages: int
    distillations: int
    fragments: int
    edges: int
    sessions: int
    entities: int
    standing: int
    vectors: int
    waiting: int
    tokens: int
    embedder: str
    journal: str
    projects: tuple[tuple[str, int], ...]
    jobs: tuple[Job, ...]
    notice: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that doctor looked at."""

    name: str
    state: Literal["ok", "degraded", "broken", "fixed"]
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Watermark:
    """How far a source, such as a transcript file, has been read.

    `file` is its device and inode, `fingerprint` knows its beginning and the last line read,
    `context` is the JSON of whoever reads it, `problem` what was told of it.
    """

    source: str
    session_id: str | None
    position: int
    fingerprint: str
    updated_at: datetime
    file: str = ""
    size: int = 0
    modified_ns: int = 0
    context: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class StagedTurn:
    """A turn that has begun and is not stored yet; `body` is the JSON of whoever staged it."""

    session_id: str
    key: str
    body: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Spend:
    """What one call to a model cost; `key` makes entering it twice harmless."""

    key: str
    at: datetime
    purpose: str
    model: str
    usage: dict[str, int]
    usd: float
    session_id: str | None = None
    project_id: str | None = None


@dataclass(frozen=True, slots=True)
class Redaction:
    """Secrets of one kind on one line of a transcript: the line has their marks, and how many."""

    path: str
    kind: str
    line: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class FileProblem:
    """What is wrong with a transcript file; `news` says that it was not told before."""

    path: str
    problem: str
    news: bool = True


@dataclass(frozen=True, slots=True)
class CaptureEstimate:
    """What a capture will read; `seconds` is None as long as no speed was seen."""

    files: int
    bytes: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Captured:
    """What a capture of transcript files brought: messages by news, the rest by its sort."""

    files: int = 0
    bytes: int = 0
    sessions: int = 0
    added: int = 0
    known: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    redactions: dict[str, int] = field(default_factory=dict)
    problems: tuple[FileProblem, ...] = ()
    redacted: tuple[Redaction, ...] = ()
    seconds: float = 0.0
