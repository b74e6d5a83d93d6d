"""Records of a server for many people: owners, teams, their keys, and published knowledge."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from lore.lazy_dataclass import dataclass
from lore.records.kinds import AccessScope

PublicationState = Literal["pending", "approved", "rejected", "withdrawn"]


@dataclass(frozen=True, slots=True)
class Owner:
    """A person with a memory of their own; `id` is the name of its folder."""

    id: str
    name: str
    created_at: datetime
    removed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Team:
    """Owners who share what they publish.

    `quorum` is how many members must approve a publication if nobody with an admin key of the team
    does.
    """

    id: str
    name: str
    quorum: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ServerKey:
    """The record of an access key, without the key itself.

    A key without an owner is the operator's: it reads figures of the server, and no memory.
    """

    prefix: str
    name: str
    scopes: tuple[AccessScope, ...]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    owner: str = ""
    owner_name: str = ""
    team: str = ""
    team_name: str = ""

    def is_valid(self, now: datetime) -> bool:
        """Return whether the key is valid at a time."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class Publication:
    """Knowledge that an owner gave to a team; `fragment_id` is its id in the team's memory."""

    id: str
    team: str
    publisher: str
    source_id: str
    state: PublicationState
    kind: str
    summary: str
    content: str
    published_at: datetime
    approvals: int = 0
    decided_at: datetime | None = None
    fragment_id: str = ""


@dataclass(frozen=True, slots=True)
class TeamMembership:
    """A team of an owner: who is in it, what waits for approval, and today's money."""

    name: str
    members: tuple[str, ...]
    quorum: int
    pending: int
    approved: int
    spent_usd: float
    daily_budget: float | None
    budget_pressure: float
