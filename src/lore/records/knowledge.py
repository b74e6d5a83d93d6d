"""Fragments, edges and episodes; input and results of the digest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from datetime import datetime
from typing import Any, Literal, NamedTuple

from lore.lazy_dataclass import dataclass
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
    """A fragment to be stored."""

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
    """A former version of a fragment."""

    fragment_id: str
    version: int
    content: str
    summary: str
    changed_at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class SharedChange:
    """A difference between a memory and a project's page; `hidden` is invisible text in it."""

    verb: Literal["add", "change", "remove"]
    entry: str
    kind: FragmentKind
    before: str
    after: str
    hidden: tuple[str, ...] = ()
    fragment_id: str = ""


@dataclass(frozen=True, slots=True)
class SharedEntry:
    """A fragment on a project's page: its id there, its own id, and a digest of its text."""

    entry: str
    fragment_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class SharedPage:
    """A page to be written, the changes to it, and how many entries a whole page would have."""

    text: str
    changes: tuple[SharedChange, ...]
    entries: tuple[SharedEntry, ...]
    gone: tuple[str, ...]
    total: int = 0


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
    """A tool call of an episode: seconds from the start, target, result, and its error if told."""

    t: int
    action: str
    target: str
    result: Literal["ok", "failed", "refused", "none"] = "none"
    error: str = ""


@dataclass(frozen=True, slots=True)
class EpisodeError:
    """An error of an episode, and what was done until it was gone.

    `command` is the command that failed, `retry` the one that succeeded then.
    """

    type: str
    message: str
    resolution: str = ""
    command: str = ""
    retry: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """A request of a person in a session; `first` to `last` are message ordinals."""

    goal: str
    outcome: Outcome
    reason: str
    first: int
    last: int
    calls: int = 0
    errors: tuple[EpisodeError, ...] = ()
    files_read: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Episode:
    """Goal, actions and outcome of a session; `sources` are the messages it quotes.

    `tasks` are the person's requests in order, usually one. If it is `titled`, the goal is the
    session's title because nobody stated one.
    """

    goal: str
    outcome: Outcome
    reason: str
    agent: str = ""
    calls: int = 0
    actions: tuple[Action, ...] = ()
    errors: tuple[EpisodeError, ...] = ()
    files_read: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ()
    duration_s: int = 0
    tokens: int = 0
    sources: tuple[str, ...] = ()
    titled: bool = False
    task_id: str = ""
    phase: str = ""
    constraints: tuple[str, ...] = ()
    retries: int = 0


@dataclass(frozen=True, slots=True)
class StoredEpisode:
    """An episode, with its fragment and the end of its session."""

    fragment: Fragment
    episode: Episode
    at: datetime


Verdict = Literal["changes", "changes_part", "contradicts", "agrees"]
"""What a newer text does to an older one: it shows that something else holds now, in place of all
or part of it; it contradicts it without showing what holds; or neither."""

PhaseState = Literal["done", "skipped", "failed", "pending"]


@dataclass(frozen=True, slots=True)
class MessageText:
    """A message as the summarizer reads it: without asides, with long tool output shortened.

    `voice` is the role or the speaker's name; `origin` is the least trusted one in the text.
    """

    id: str
    ordinal: int
    at: datetime
    voice: str
    text: str
    origin: Origin
    tokens: int


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive messages of a session that are digested together.

    `later` is what followed, which may withdraw something. The other fields help a chat to
    understand an exchange: what came `earlier`, project and branch, the roots that are its
    `topics`, and the nearest fragments that are `known`.
    """

    session_id: str
    messages: tuple[MessageText, ...]
    title: str = ""
    later: tuple[MessageText, ...] = ()
    earlier: tuple[MessageText, ...] = ()
    project: str = ""
    branch: str = ""
    topics: tuple[Fragment, ...] = ()
    known: tuple[Fragment, ...] = ()

    @property
    def tokens(self) -> int:
        """Return the token count."""
        return sum(one.tokens for one in self.messages)


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log, and the ordinals of its messages."""

    text: str
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Log:
    """The summary of a segment, line by line."""

    lines: tuple[LogLine, ...]

    @property
    def text(self) -> str:
        """Return the log as text."""
        return "\n".join(line.text for line in self.lines)


@dataclass(frozen=True, slots=True)
class Extract:
    """An extracted draft, with more specific ones below it.

    `sources` are message ids. `corrects` says in words what it replaces; `edges` name other
    extracts of the same response by summary. `same_as` and `corrects_id` are ids of known fragments
    that say the same, or no longer hold.
    """

    content: str
    summary: str
    kind: FragmentKind
    importance: float
    sources: tuple[str, ...]
    payload: dict[str, Any] = field(default_factory=dict)
    corrects: str = ""
    edges: tuple[tuple[EdgeKind, str], ...] = ()
    children: tuple[Extract, ...] = ()
    same_as: str = ""
    corrects_id: str = ""


@dataclass(frozen=True, slots=True)
class CurationResult:
    """The result of curating a session or a turn.

    Drafts were `known` from a more trusted origin, `refused` because they had been deleted, or
    `downgraded` to facts because of an invalid payload.
    """

    session_id: str = ""
    exchanges: int = 0
    stored: tuple[str, ...] = ()
    merged: int = 0
    known: int = 0
    attached: int = 0
    superseded: int = 0
    contradicted: int = 0
    refused: int = 0
    dropped: int = 0
    downgraded: int = 0

    def __add__(self, other: CurationResult) -> CurationResult:
        """Return the sum of both results, for the session of the first."""
        summed = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return CurationResult(**(summed | {"session_id": self.session_id or other.session_id}))


@dataclass(frozen=True, slots=True)
class DigestResult:
    """What a digest created: distillations, fragments and confirmations."""

    sessions: int
    distillations: int
    fragments: int
    confirmed: int


Decision = Literal["keep", "both", "dismiss"]
"""The resolution of a conflict: the first supersedes the second, both hold, or there was none."""


class Conflict(NamedTuple):
    """Two contradicting fragments, the newer one first."""

    newer: Fragment
    older: Fragment


class StatedText(NamedTuple):
    """A sentence of an item, and when it was said."""

    id: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class DatedStatement:
    """A sentence of an item, as a chat reads it that judges it against another one."""

    content: str
    created_at: datetime
    origin: Origin
    trust: int
    kind: str = "statement"
    payload: Mapping[str, Any] = field(default_factory=dict)


FactVerdict = Literal["keep", "overturned", "trivial"]
"""What a chat says of a fact at the end of the session that it was extracted from."""

JudgedPair = tuple[Fragment | DatedStatement, Fragment | DatedStatement]
"""An older and a newer text of which a summarizer says what the newer one does to the older."""


class DoubtfulPair(NamedTuple):
    """Two statements of which the newer may replace the older, and how certain that is."""

    newer: StatedText
    older: StatedText
    certainty: float


@dataclass(frozen=True, slots=True)
class PromotionOffer:
    """A fragment of one project that others confirmed: how often, by project."""

    fragment: Fragment
    projects: dict[str, int]


class CycleUndo(NamedTuple):
    """What the rollback of a cycle restored, and what it left because it had changed since."""

    id: str
    taken_back: int
    left: int


@dataclass(frozen=True, slots=True)
class SpentToday:
    """The state of the budget for background work; the cost of `unpriced` calls is unknown.

    `whole_usd` is all spend of today, including agents' requests.
    """

    budget_usd: float
    spent_usd: float
    reserved_usd: float
    unpriced: int
    until: datetime
    whole_usd: float = 0.0

    @property
    def left_usd(self) -> float:
        """Return what may still be spent."""
        return max(0.0, self.budget_usd - self.spent_usd - self.reserved_usd)


@dataclass(frozen=True, slots=True)
class PhaseReport:
    """What one phase of a cycle did: counts, and lines with ids and words."""

    phase: str
    state: PhaseState
    counts: dict[str, int] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CycleReport:
    """The result of a consolidation cycle; `undone` after a rollback."""

    id: str
    started_at: datetime
    ended_at: datetime | None
    phases: tuple[PhaseReport, ...]
    dry_run: bool = False
    undone: bool = False
