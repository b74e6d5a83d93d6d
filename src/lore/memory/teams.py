"""Teams of a server: publish knowledge, approve what others published, withdraw it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lore.errors import InvalidInput
from lore.memory.context import MemoryPart
from lore.records import Hit, Reading
from lore.records.server_records import Publication, PublicationState, TeamMembership
from lore.validation import validate_methods

_NO_SERVER = "This memory is on no server, so it has no teams."
_SERVE = "'lore serve' runs a server for a team."


class TeamDesk(Protocol):
    """What a server does for one owner in teams; it answers for teams of this owner only."""

    def memberships(self) -> list[TeamMembership]:
        """Return the teams that the owner is a member of."""

    def publish(self, id_: str, team: str) -> Publication:
        """Give a fragment of the owner to a team, where it waits for approval."""

    def publications(self, team: str, states: Sequence[PublicationState]) -> list[Publication]:
        """Return what was published to a team."""

    def approve(self, team: str, id_: str, key: str) -> Publication:
        """Approve a publication of somebody else."""

    def reject(self, team: str, id_: str, key: str) -> Publication:
        """Reject a publication, with a key of the team that may decide."""

    def withdraw(self, team: str, id_: str) -> Publication:
        """Take back what the owner published."""

    def recall(self, query: str, *, limit: int) -> tuple[Hit, ...]:
        """Return approved knowledge of the owner's teams that answers a question."""

    def read(self, id_: str) -> Reading | None:
        """Return approved knowledge of the owner's teams by its id or the begin of it, or None."""


@validate_methods
class Teams(MemoryPart):
    """Publish knowledge to teams, approve what others published, and withdraw it."""

    def memberships(self) -> list[TeamMembership]:
        """Return the teams of the owner; none without a server."""
        desk = self._context.team_desk
        return [] if desk is None else desk.memberships()

    def publish(self, id: str, team: str) -> Publication:
        """Give a fragment to a team, where it waits for approval."""
        return self._desk.publish(id, team)

    def publications(
        self, team: str, *, states: Sequence[PublicationState] = ("pending", "approved")
    ) -> list[Publication]:
        """Return what was published to a team, newest first."""
        return self._desk.publications(team, states)

    def approve(self, team: str, id: str, *, key: str = "") -> Publication:
        """Approve a publication of somebody else; `key` is the prefix of the access key."""
        return self._desk.approve(team, id, key)

    def reject(self, team: str, id: str, *, key: str = "") -> Publication:
        """Reject a publication, with a key of the team that may decide."""
        return self._desk.reject(team, id, key)

    def withdraw(self, team: str, id: str) -> Publication:
        """Take back what the owner published: it is deleted from the team's memory."""
        return self._desk.withdraw(team, id)

    @property
    def _desk(self) -> TeamDesk:
        desk = self._context.team_desk
        if desk is None:
            raise InvalidInput(_NO_SERVER, hint=_SERVE)
        return desk
