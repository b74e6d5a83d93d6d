"""What the memory keeps of its own work: jobs, changes, watermarks, spend, figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal


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
    due_at: datetime


@dataclass(frozen=True, slots=True)
class Setback:
    """Why a job did not come to its end.

    `until` is when to go on where the job itself is not at fault, so that no attempt is counted;
    one that is `hopeless` is parked at once.
    """

    told: str
    until: datetime | None = None
    hopeless: bool = False


@dataclass(frozen=True, slots=True)
class Queues:
    """How much waits: items for their vector, and jobs; and what work has cost today.

    `agents_usd` is what agents have spent by the gateway, and `day_budget_usd` what all may.
    """

    waiting: int
    jobs_pending: int
    jobs_parked: int
    spent_usd: float = 0.0
    budget_usd: float = 0.0
    agents_usd: float = 0.0
    day_budget_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the change log."""

    seq: int
    at: datetime
    action: Literal["add", "change", "delete", "forget"]
    table: str
    id: str


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
    layer: int | None = None
    """Of the prompt, if the call was a request of an agent."""
    busts: bool = False
    delay_ms: int = 0
    without_usd: float = 0.0
    """What a request would have cost without Lore, by the same prices: an estimate."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import brought: records that came in, were here already, or were left out.

    If it was another home's (`foreign`), what came in is a peer's word.
    """

    added: int = 0
    skipped: int = 0
    left_out: int = 0
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class Forgettable:
    """What forgetting would take: items by id, and how many sessions and projects."""

    ids: tuple[str, ...] = ()
    sessions: int = 0
    projects: int = 0

    @property
    def count(self) -> int:
        """Return how many records that are."""
        return len(self.ids) + self.sessions + self.projects


@dataclass(frozen=True, slots=True)
class FileProblem:
    """What is wrong with a transcript file; `news` says that it was not told before."""

    path: str
    problem: str
    news: bool = True


@dataclass(frozen=True, slots=True)
class Redaction:
    """Secrets of one kind on one line of a transcript: the line has their marks, and how many."""

    path: str
    kind: str
    line: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class CaptureEstimate:
    """What a capture will read; `seconds` is None as long as no speed was seen."""

    files: int
    bytes: int
    seconds: float | None
    found: int = 0
    """How many files there are, with those that have not changed."""


@dataclass(frozen=True, slots=True)
class CapturedFile:
    """What one transcript file brought; `sessions` are the agent's own names for them."""

    path: str
    agent: str
    added: int
    known: int
    sessions: tuple[str, ...] = ()


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
    each: tuple[CapturedFile, ...] = ()
    passed_over: int = 0
    """Files found in a folder that are no transcripts."""
