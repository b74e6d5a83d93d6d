"""What the explorer shows: versions, sources, curves, turns, reviews, graphs, series, health."""

from __future__ import annotations

from dataclasses import field
from datetime import date, datetime
from typing import Literal

from lore.lazy_dataclass import dataclass
from lore.records.answers import Hit, RecallTrace, Title
from lore.records.gateway import DayBudget, SpendLine, TokenUse
from lore.records.kinds import (
    EdgeKind,
    FragmentKind,
    ItemType,
    Origin,
    Role,
    SessionState,
    Strength,
)
from lore.records.layer_records import EconomicsReport
from lore.records.maintenance import Check, Job, Queues, Stats
from lore.records.strategy_records import ProfileReport
from lore.records.task_records import TaskMemory, TaskRecord


@dataclass(frozen=True, slots=True)
class RetrieveResult:
    """The result of a recall, with its confidence in a word."""

    question: str
    hits: tuple[Hit, ...]
    standing: tuple[Hit, ...] = ()
    tokens: int = 0
    considered: int = 0
    notice: str = ""
    fates: tuple[RecallTrace, ...] = ()
    relevant: bool = True
    confidence: float = 1.0
    strength: Strength = "none"


@dataclass(frozen=True, slots=True)
class DiffPart:
    """A piece of text that two versions share, or that one of them has alone."""

    change: Literal["same", "added", "removed"]
    text: str


@dataclass(frozen=True, slots=True)
class VersionChange:
    """A version of a fragment: its text, since when and why it holds, and what it changed."""

    version: int
    content: str
    summary: str
    at: datetime
    reason: str
    is_current: bool
    diff: tuple[DiffPart, ...]
    """From the version before it; empty for the first."""


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """A message that a fragment was derived from, with the passage that says it.

    The text is `before`, `quote` and `after` joined; `is_cut` if the message is longer. The quote
    is empty if no passage of the message resembles the fragment.
    """

    id: str
    session_id: str
    session: str
    agent: str
    project_id: str | None
    ordinal: int
    role: Role
    speaker: str
    origin: Origin
    at: datetime
    before: str
    quote: str
    after: str
    is_cut: bool


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The relevance of a fragment at a time."""

    at: datetime
    relevance: float
    basis: Literal["estimated", "known", "forecast"]
    """Readings before the last one are not dated: until then the curve is estimated."""


@dataclass(frozen=True, slots=True)
class RelevanceCurve:
    """The forgetting curve of a fragment: from its creation to some months ahead.

    `hidden_at` is when it falls below `visible`, unless it is read until then; None if it never
    does in this time.
    """

    id: str
    now: datetime
    relevance: float
    visible: float
    hidden_at: datetime | None
    points: tuple[CurvePoint, ...]
    numbers: dict[str, float]
    times_recalled: int
    allowed: str


@dataclass(frozen=True, slots=True)
class LinkedFragment:
    """An edge of a fragment, with the fragment at its other end."""

    direction: Literal["out", "in"]
    kind: EdgeKind
    weight: float
    note: str
    created_at: datetime
    other: Title


MAX_ACTION_CHARS = 1_000_000
"""The id of an action names each row that it changed: a rule that was said a thousand times is
confirmed as often. What changed more rows than fit here has no id."""


@dataclass(frozen=True, slots=True)
class Correction:
    """What a person changed: `action` undoes it; `id` is the item, `new_id` what replaces it."""

    action: str
    verb: str
    id: str
    new_id: str = ""
    version: int | None = None


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session in a list: what it was about, and what it cost.

    `opening` is how the person began, if it has no title.
    """

    id: str
    external_id: str
    agent: str
    title: str
    branch: str
    project_id: str | None
    project: str
    parent_id: str | None
    started_at: datetime
    last_message_at: datetime
    state: SessionState
    messages: int
    tokens: int
    requests: int
    usd: float
    without_usd: float
    fragments: int
    opening: str = ""


@dataclass(frozen=True, slots=True)
class GivenItem:
    """An item that was put into a prompt or recalled, by title."""

    id: str
    type: ItemType
    title: str
    kind: str = ""
    origin: Origin = "user"
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class TurnInjection:
    """Items that were put into the prompt of a turn."""

    at: datetime
    items: tuple[GivenItem, ...]


@dataclass(frozen=True, slots=True)
class TurnRecall:
    """A question to memory in a turn: who asked how, and what was found."""

    at: datetime
    verb: str
    query: str
    profile: str
    took_ms: float
    tokens: int
    items: tuple[GivenItem, ...]


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A request of a turn to a model: tokens, cost, and the layer of its prompt."""

    at: datetime
    model: str
    tokens: TokenUse
    usd: float
    without_usd: float
    layer: int | None
    busts: bool
    delay_ms: int
    basis: Literal["gateway", "transcript"]
    """Who counted the tokens; costs by a transcript are computed from the price list."""


@dataclass(frozen=True, slots=True)
class TurnLog:
    """A distillation that covers messages of a turn, with its lines about this turn."""

    id: str
    generation: int
    first: int
    last: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """What a person asked and what followed until they spoke again; ordinals `first` to `last`."""

    number: int
    first: int
    last: int
    message_id: str
    started_at: datetime
    ended_at: datetime
    prompt: str
    messages: int
    tool_calls: int
    tool_errors: int
    models: tuple[str, ...]
    tokens: TokenUse
    usd: float
    without_usd: float
    layer: int | None
    requests: tuple[TurnRequest, ...] = ()
    injected: tuple[TurnInjection, ...] = ()
    recalled: tuple[TurnRecall, ...] = ()
    logs: tuple[TurnLog, ...] = ()
    learned: tuple[GivenItem, ...] = ()
    """Fragments that were derived from messages of this turn."""


@dataclass(frozen=True, slots=True)
class PromptLayers:
    """What the gateway carries from one prompt of a session to the next."""

    layer: int
    floor: int
    prompt_tokens: int
    whole_tokens: int
    cached_tokens: int
    distilled: int
    annotated: int
    knowledge: str
    notes: int
    is_private: bool


@dataclass(frozen=True, slots=True)
class SessionPage:
    """A session with its totals, and the present state of its prompt if the gateway serves it."""

    session: SessionSummary
    turns: int
    prompt: PromptLayers | None = None


ReviewKind = Literal[
    "instruction", "replacement", "conflict", "merge", "prune", "untrusted", "shared", "promotion"
]
"""What a person reviews: a possible rule, two statements of which one may replace the other, two
that contradict each other, fragments that will be merged or pruned, knowledge of a source that is
not trusted, changes of a shared page, and knowledge that could hold for all projects."""

ReviewDecision = Literal[
    "approve", "reject", "keep_newer", "keep_older", "both", "dismiss", "keep", "delete"
]


@dataclass(frozen=True, slots=True)
class ReviewText:
    """One of the texts that an entry is about."""

    id: str
    text: str
    at: datetime | None
    origin: Origin
    type: ItemType | Literal["page"] = "fragment"
    kind: str = ""
    session_id: str = ""
    project_id: str | None = None


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """An entry of the review queue: what it is about, why it is there, and what can be decided."""

    id: str
    kind: ReviewKind
    title: str
    why: str
    at: datetime | None
    texts: tuple[ReviewText, ...]
    options: tuple[ReviewDecision, ...]
    certainty: float | None = None
    project_id: str | None = None


@dataclass(frozen=True, slots=True)
class ReviewCounts:
    """How many entries of each kind wait, counted up to `most`."""

    counts: dict[ReviewKind, int]
    most: int


LearnedVerb = Literal["learned", "replaced", "changed", "deleted"]


@dataclass(frozen=True, slots=True)
class LearnedEntry:
    """Something that was learned, changed, replaced or deleted."""

    at: datetime
    verb: LearnedVerb
    id: str
    title: str
    kind: FragmentKind
    origin: Origin
    relevance: float
    project_id: str | None
    session_id: str | None
    by_id: str = ""
    """What replaced it."""
    by: str = ""
    """The title of what replaced it."""


@dataclass(frozen=True, slots=True)
class LearnedDay:
    """How much was learned, changed, replaced, deleted and forgotten on a day (UTC)."""

    day: date
    learned: int = 0
    changed: int = 0
    replaced: int = 0
    deleted: int = 0
    forgotten: int = 0


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A fragment in the graph; `x` and `y` lie within -1 and 1."""

    id: str
    title: str
    kind: FragmentKind
    origin: Origin
    relevance: float
    importance: float
    depth: int
    degree: int
    x: float
    y: float
    created_at: datetime
    replaced_at: datetime | None
    project_id: str | None


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An edge of the graph, by the places of its ends among the nodes."""

    source: int
    target: int
    kind: EdgeKind
    weight: float
    created_at: datetime


@dataclass(frozen=True, slots=True)
class KnowledgeGraph:
    """A part of the graph of knowledge; `total` is the number of fragments that could be shown."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    total: int
    focus: str = ""


SeriesStep = Literal["day", "hour"]
SeriesGroup = Literal["", "project", "model"]


@dataclass(frozen=True, slots=True)
class SpendPoint:
    """The spend of one group in one step of time."""

    at: datetime
    group: str
    requests: int
    background: int
    usd: float
    without_usd: float
    saved_usd: float
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cache_hit_rate: float | None
    """The share of the prompts that was read from the provider's cache; None without prompts."""
    busts: int
    delayed: int


@dataclass(frozen=True, slots=True)
class SpendSeries:
    """Spend over time, with the totals of each group, and the state of today's budget.

    `pressure` is the share of today's budget that is spent or reserved, from 0 to 1; None without
    a budget. `throttle_s` is how long the next request waits.
    """

    since: datetime
    until: datetime
    step: SeriesStep
    group: SeriesGroup
    points: tuple[SpendPoint, ...]
    groups: tuple[SpendLine, ...]
    total: SpendLine
    budget: DayBudget
    pressure: float | None
    throttle_s: float
    exceeds: bool
    economics: EconomicsReport


@dataclass(frozen=True, slots=True)
class TaskDetails:
    """A task, and the memories that it was given, by title."""

    task: TaskRecord
    memories: tuple[TaskMemory, ...]
    titles: dict[str, str]


@dataclass(frozen=True, slots=True)
class ContinuityText:
    """The page of a project that has the state of its work; empty if nothing is known yet."""

    folder: str
    text: str
    is_written: bool
    """Whether the file is there; else this is what it would say."""


@dataclass(frozen=True, slots=True)
class StrategyDay:
    """The share of a profile on a day, and how its sessions went."""

    day: str
    profile: str
    share: float
    successes: float
    failures: float


@dataclass(frozen=True, slots=True)
class StrategyOverview:
    """How profiles are chosen, how their sessions went, and their shares day by day."""

    mode: Literal["fixed", "random", "learn"]
    profile: str
    rollbacks: int
    shares: dict[str, float]
    descriptions: dict[str, str]
    reports: tuple[ProfileReport, ...]
    days: tuple[StrategyDay, ...]


@dataclass(frozen=True, slots=True)
class IndexState:
    """An index over what is stored: how many entries it has, and how many wait for it."""

    name: str
    entries: int
    waiting: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class HealthReport:
    """The state of the memory: jobs, errors, indexes, and the checks of doctor."""

    version: str
    home: str
    read_only: bool
    notice: str
    stats: Stats
    queues: Queues
    jobs: tuple[Job, ...]
    errors: tuple[Job, ...]
    indexes: tuple[IndexState, ...]
    checks: tuple[Check, ...]
    checked_at: datetime


@dataclass(frozen=True, slots=True)
class ForgottenTitle:
    """An item that would be deleted, by title."""

    id: str
    type: ItemType
    title: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What would be deleted for good: how much of each type, and the first items by title.

    `digest` names exactly this selection: only with it, it is deleted.
    """

    digest: str
    counts: dict[str, int]
    items: tuple[ForgottenTitle, ...]
    pages: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForgetResult:
    """How many records were deleted for good."""

    deleted: int
    ids: tuple[str, ...] = field(default=())
    """The first of them."""


ChangedTable = Literal[
    "messages", "sessions", "projects", "distillations", "fragments", "actions", "cycles", "jobs",
    "spend", "review", "tasks", "handoffs",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChangeEvent:
    """An event of the event stream: which tables changed until when."""

    changed: tuple[ChangedTable, ...]
    at: datetime
