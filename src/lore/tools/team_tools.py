"""Tools for teams: publish knowledge to the people one works with."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from lore.memory import Memory
from lore.tools.tool import Arguments, Caller, Outcome, Result, Seen, Tool


class PublishArguments(Arguments):
    """What publish takes."""

    id: str = Field(min_length=1, max_length=60, description="The id of a fragment.")
    team: str = Field(min_length=1, max_length=100, description="The name of a team.")


class PublishResult(Result):
    """A publication, and whether it waits for approval."""

    id: str
    team: Seen
    state: str


def publish(memory: Memory, arguments: PublishArguments, _caller: Caller) -> Outcome:
    """Give a fragment to a team."""
    published = memory.teams.publish(arguments.id, arguments.team)
    result = PublishResult(id=published.id, team=published.team, state=published.state)
    waits = " It waits for the approval of somebody else." if published.state == "pending" else ""
    return Outcome(f"Published as {published.id}: {published.state}.{waits}", result)


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="publish",
        title="Publish to a team",
        description=(
            "Call this if the person wants to share a fragment with a team of this server. Others"
            " see it once a member has approved it; who published it can withdraw it."
        ),
        arguments=PublishArguments,
        result=PublishResult,
        run=publish,
        reads_only=False,
        profile="full",
    ),
)
"""In the full profile only: most memories are on no server."""
