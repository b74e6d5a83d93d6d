"""What digesting reads and makes: segments, logs, extracts, verdicts, reports."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal, NamedTuple

from lore.records.kinds import EdgeKind, FragmentKind, Origin
from lore.records.knowledge import Fragment

Verdict = Literal["changes", "contradicts", "agrees"]
"""What a newer fragment does to an older one: it says what is different now, it speaks against
it without saying so, or neither."""

PhaseState = Literal["done", "skipped", "failed", "pending"]


@dataclass(frozen=True, slots=True)
class Said:
    """One message as a digester reads it: without asides, long tool output as an annotation.

    `voice` is the role or the speaker's name; `origin` the lowest of what speaks in the text.
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
    """A run of messages of one session that are digested together.

    `later` is what was said after it, as far as that is known: it may take something back.
    """

    session_id: str
    said: tuple[Said, ...]
    title: str = ""
    later: tuple[Said, ...] = ()

    @property
    def tokens(self) -> int:
        """Return how many tokens were said."""
        return sum(one.tokens for one in self.said)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a log, and the ordinals of the messages that it tells."""

    text: str
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Log:
    """What an observer wrote of a segment, line by line."""

    lines: tuple[LogLine, ...]

    @property
    def text(self) -> str:
        """Return the log as text."""
        return "\n".join(line.text for line in self.lines)


@dataclass(frozen=True, slots=True)
class Extract:
    """A draft that extraction found, with what is more specific below it.

    `sources` are ids of messages. `corrects` says in words what it replaces, `edges` name
    other extracts of the same reply by their summaries.
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


@dataclass(frozen=True, slots=True)
class Curated:
    """What curating a session, or an exchange of it, brought.

    Drafts were `known` from a higher voice already, `refused` as deleted before, `downgraded` to
    facts for a wrong payload.
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

    def __add__(self, other: Curated) -> Curated:
        """Return what both brought to the session of the first."""
        summed = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return Curated(**(summed | {"session_id": self.session_id or other.session_id}))


@dataclass(frozen=True, slots=True)
class Digested:
    """What digesting sessions made: logs and fragments, and what it found confirmed."""

    sessions: int
    distillations: int
    fragments: int
    confirmed: int


Decision = Literal["keep", "both", "dismiss"]
"""How a conflict is settled: the first supersedes the second, both hold, or there was none."""


class Conflict(NamedTuple):
    """Two fragments that speak against each other; the newer one first."""

    newer: Fragment
    older: Fragment


@dataclass(frozen=True, slots=True)
class Offer:
    """A fragment of one project that was confirmed in others: how often, by project."""

    fragment: Fragment
    projects: dict[str, int]


class UndoneCycle(NamedTuple):
    """What was taken back of a cycle, and what was left because it was changed since."""

    id: str
    taken_back: int
    left: int


@dataclass(frozen=True, slots=True)
class SpentToday:
    """How the budget of background work stands; `unpriced` calls cost nobody knows how much.

    `whole_usd` is what all has cost today, that of agents with it.
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
    """What one phase of a cycle did: counted, and told line by line (ids with words)."""

    phase: str
    state: PhaseState
    counts: dict[str, int] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CycleReport:
    """What a consolidation cycle did; `undone` once it was taken back."""

    id: str
    started_at: datetime
    ended_at: datetime | None
    phases: tuple[PhaseReport, ...]
    dry_run: bool = False
    undone: bool = False
