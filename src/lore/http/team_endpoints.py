"""REST endpoints of teams: what is published, approved and withdrawn."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from lore.http.endpoint import Endpoint, Id, NoArguments, Short, get_endpoint
from lore.memory import Memory
from lore.records import Publication, PublicationState, TeamMembership
from lore.tools.tool import Arguments, Caller

TeamName = Annotated[Short, Field(min_length=1, description="Name of a team of yours.")]


class OfPublications(Arguments):
    """What was published to a team."""

    team: TeamName
    state: Annotated[PublicationState | None, Field(description="In one state.")] = None


class Publish(Arguments):
    """Knowledge to give to a team."""

    team: TeamName
    id: Annotated[Id, Field(description="The id of a fragment.")]


class OnePublication(Arguments):
    """A publication of a team."""

    team: TeamName
    id: Id


def _teams(memory: Memory, _a: NoArguments, _caller: Caller) -> list[TeamMembership]:
    return memory.teams.memberships()


def _publications(memory: Memory, a: OfPublications, _caller: Caller) -> list[Publication]:
    states: tuple[PublicationState, ...] = (a.state,) if a.state else ("pending", "approved")
    return memory.teams.publications(a.team, states=states)


def _publish(memory: Memory, a: Publish, _caller: Caller) -> Publication:
    return memory.teams.publish(a.id, a.team)


def _key_name(caller: Caller) -> str:
    """Return the prefix of the access key of a caller; '' for a browser."""
    grant = caller.grant
    return "" if grant is None or grant.browser else grant.name


def _approve(memory: Memory, a: OnePublication, caller: Caller) -> Publication:
    return memory.teams.approve(a.team, a.id, key=_key_name(caller))


def _reject(memory: Memory, a: OnePublication, caller: Caller) -> Publication:
    return memory.teams.reject(a.team, a.id, key=_key_name(caller))


def _withdraw(memory: Memory, a: OnePublication, _caller: Caller) -> Publication:
    return memory.teams.withdraw(a.team, a.id)


def _change(path: str, summary: str, arguments: Any, run: Any) -> Endpoint[Any]:
    return Endpoint(
        "POST", path, summary, "write", arguments, run, Publication, tags=("teams",)
    )  # fmt: skip


_ONE = "/teams/{team}/publications/{id}"

TEAM_ENDPOINTS: tuple[Endpoint[Any], ...] = (
    get_endpoint(
        "/teams", "Your teams on this server.", NoArguments, _teams, result=list[TeamMembership]
    ),
    get_endpoint(
        "/teams/{team}/publications", "What was published to a team.", OfPublications,
        _publications, result=list[Publication],
    ),
    _change("/teams/{team}/publications", "Publish a fragment to a team.", Publish, _publish),
    _change(f"{_ONE}/approve", "Approve what somebody published.", OnePublication, _approve),
    _change(f"{_ONE}/reject", "Reject what somebody published.", OnePublication, _reject),
    _change(f"{_ONE}/withdraw", "Withdraw what you published.", OnePublication, _withdraw),
)  # fmt: skip
"""In the order of the documentation."""
