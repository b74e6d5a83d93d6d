"""Jobs, statistics, captures and checks of a memory; access keys and pages."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Generic, Literal, TypeVar

from lore.lazy_dataclass import dataclass
from lore.records.kinds import AccessScope


@dataclass(frozen=True, slots=True)
class Job:
    """A background job, with its last error."""

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
class JobFailure:
    """Why a job did not succeed.

    `until` is when to retry if the job is not at fault, so that the attempt does not count; a
    `hopeless` job is parked at once.
    """

    message: str
    until: datetime | None = None
    hopeless: bool = False


@dataclass(frozen=True, slots=True)
class Queues:
    """Lengths of the queues for vectors and jobs, and today's spend.

    Vectors of `embedder` are searched; those of `next_embedder` once none of its items waits.
    `agents_usd` is the agents' spend through the gateway; `day_budget_usd` is the budget for all.
    `digester` reads conversations: 'offline', or a chat provider; calls are those of its command.
    `unjudged` items wait to be judged for what they replace.
    """

    waiting: int
    jobs_pending: int
    jobs_parked: int
    spent_usd: float = 0.0
    budget_usd: float = 0.0
    agents_usd: float = 0.0
    day_budget_usd: float | None = None
    embedder: str = ""
    next_embedder: str = ""
    next_waiting: int = 0
    digester: str = ""
    calls_today: int = 0
    calls_per_day: int = 0
    unjudged: int = 0


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
    """Statistics of a memory."""

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
    """The result of one check of doctor."""

    name: str
    state: Literal["ok", "degraded", "broken", "fixed"]
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Watermark:
    """How far a source, such as a transcript file, has been read.

    `file` is its device and inode, `fingerprint` identifies its beginning and the last line read,
    `context` is JSON of the reader, `problem` is the last reported problem.
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
class Spend:
    """The cost of one model call; `key` makes recording it idempotent."""

    key: str
    at: datetime
    purpose: str
    model: str
    usage: dict[str, int]
    usd: float
    session_id: str | None = None
    project_id: str | None = None
    layer: int | None = None
    """The layer of the prompt, for requests of agents."""
    busts: bool = False
    delay_ms: int = 0
    without_usd: float = 0.0
    """The estimated cost without Lore at the same prices."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """Counts of imported, duplicate and omitted records.

    Records of another home (`foreign`) are stored as a peer's words.
    """

    added: int = 0
    skipped: int = 0
    left_out: int = 0
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class TaskRecordCount:
    """How many records of a kind in task memory are deleted, and how many lose entries."""

    record: str
    deleted: int = 0
    changed: int = 0


@dataclass(frozen=True, slots=True)
class ForgetPreview:
    """What `forget` would delete: items by id, and the numbers of sessions and projects.

    `pages` are the shared pages that would lose entries, `copies` Lore's files in the memories of
    agents that would. `notes` are the agents' own files that still have it afterwards.
    `task_records` counts handoffs, ledgers, tasks, states and files of layouts; `count` leaves
    them out.
    """

    ids: tuple[str, ...] = ()
    sessions: int = 0
    projects: int = 0
    pages: tuple[Path, ...] = ()
    copies: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    task_records: tuple[TaskRecordCount, ...] = ()

    @property
    def count(self) -> int:
        """Return the number of records."""
        return len(self.ids) + self.sessions + self.projects


@dataclass(frozen=True, slots=True)
class FileProblem:
    """A problem of a transcript file; `news` if it was not reported before."""

    path: str
    problem: str
    news: bool = True


@dataclass(frozen=True, slots=True)
class Redaction:
    """Secrets of one kind on one line of a transcript: the redacted line, and their number."""

    path: str
    kind: str
    line: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """How often a chat would be called in a day, for how many sessions and tokens."""

    calls: int
    sessions: float
    tokens: int


@dataclass(frozen=True, slots=True)
class CaptureEstimate:
    """What a capture will read; `seconds` is None until a speed was measured."""

    files: int
    bytes: int
    seconds: float | None
    total_files: int = 0
    """The number of files, including unchanged ones."""


@dataclass(frozen=True, slots=True)
class CapturedFile:
    """The result for one transcript file; `sessions` are the agent's own names."""

    path: str
    agent: str
    added: int
    known: int
    sessions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """The result of a capture of transcript files."""

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
    """Files in a folder that are no transcripts."""

    unrecognized: tuple[FileProblem, ...] = ()
    """The first of those files, each with the reason."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AccessKey:
    """The record of an access key, without the key itself."""

    prefix: str
    name: str
    scopes: tuple[AccessScope, ...]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Return whether the key is valid at a time."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class Grant:
    """Who makes a request, and the scopes they have; `browser` if it is a person with a cookie."""

    name: str
    scopes: frozenset[AccessScope]
    browser: bool = False

    def allows(self, *scopes: AccessScope) -> bool:
        """Return whether all these scopes are granted."""
        return "admin" in self.scopes or self.scopes.issuperset(scopes)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list, and the cursor of the next page; None at the end."""

    items: tuple[T, ...]
    next: str | None = None
