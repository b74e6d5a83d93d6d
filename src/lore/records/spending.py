"""Spending: money that is set aside for a request to a model, and what requests came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from lore.records.dialogues import TokenUse

SpendGroup = Literal["model", "project", "session", "day"]
"""What spend is added up by."""


@dataclass(frozen=True, slots=True)
class Reserved:
    """Money that is set aside for one request; `usd` is None where nobody knows the price.

    `session` and `project` are names as the store has them. `kept` says that the store holds
    it; what it could not hold is counted by this process.
    """

    key: str
    at: datetime
    model: str
    provider: str
    purpose: str
    session: str
    project: str
    usd: float | None
    kept: bool
    prompt_usd: float = 0.0
    """What of it is for the prompt: so much is spent, even if nobody hears the answer."""


@dataclass(frozen=True, slots=True)
class Course:
    """The course that a request took: what the ledger says of it beside its tokens.

    `without` is what it would have taken without Lore; the same, if that is not said. What is
    `estimated` the provider did not report: its answer broke off, or never tells. Where it took
    several `rounds`, each has the price of its own length. `service` is the service that it was
    answered with. What is written in the background is `fetched_by` an id, and tells then what it
    took.
    """

    layer: int = 0
    busts: bool = False
    delay_s: float = 0.0
    without: TokenUse | None = None
    estimated: bool = False
    rounds: tuple[TokenUse, ...] = ()
    service: str = ""
    fetched_by: str = ""


@dataclass(frozen=True, slots=True)
class PastTurns:
    """Of sessions that have ended: how many turns each had, and the seconds between turns."""

    lengths: tuple[int, ...] = ()
    gaps_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class DayBudget:
    """How the budget of a day stands, for all that is spent; without one anything may be."""

    budget_usd: float | None
    spent_usd: float
    reserved_usd: float
    until: datetime


@dataclass(frozen=True, slots=True)
class SpendPressure:
    """What the budget of the day asks of a request: to wait, and to send less."""

    delay_s: float = 0.0
    exceeds: bool = False
    """At the rate of the last hour the budget would be exceeded."""


@dataclass(frozen=True, slots=True)
class SpendLine:
    """What calls to models came to, of one model, project, session or day.

    `without_usd` is an estimate of what the requests would have cost without Lore, by the same
    prices; `saved_usd` is that less all that was spent, for background work would not have been.
    """

    name: str
    requests: int = 0
    background: int = 0
    tokens: TokenUse = field(default_factory=TokenUse)
    usd: float = 0.0
    without_usd: float = 0.0
    saved_usd: float = 0.0
    busts: int = 0
    delayed: int = 0
    delay_ms: int = 0
    unpriced: int = 0
    """Calls that cost nobody knows how much: they are counted with nothing."""
    estimated: int = 0
    """Requests whose provider did not report what they took; they are counted with an estimate."""
    label: str = ""
    """What a person calls it: the path of a project, the title of a session."""


@dataclass(frozen=True, slots=True)
class SpendReport:
    """What was spent since a moment, added up by something, dearest first."""

    since: datetime
    by: SpendGroup
    lines: tuple[SpendLine, ...]
    total: SpendLine
    budget: DayBudget
    throttle: dict[str, int]
    """Counters `events` (requests that were delayed) and `totalDelayMs`."""


@dataclass(frozen=True, slots=True)
class SpendCounter:
    """What one process has counted of one model since it began."""

    model: str
    requests: int
    tokens: TokenUse
    usd: float
    without_usd: float
    delayed: int
    delay_ms: int
    refused: int
