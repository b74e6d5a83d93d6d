"""What a server does for an owner in teams: publication, approval, and recall of the approved."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Protocol

from lore import clock
from lore.errors import InvalidInput, LoreError, NotFound
from lore.memory import Memory
from lore.records import Hit, Reading
from lore.records.answers import PUBLISHED
from lore.records.server_records import Publication, PublicationState, Team, TeamMembership
from lore.server.registry import Registry
from lore.store import registry_rows

log = logging.getLogger("lore.server")

_MAX_LISTED = 500
_MAX_HITS = 3
"""Hits of one team in an answer: the owner's own memory comes first."""

_MAX_TEAMS = 5
"""Teams that a recall asks."""


class TeamMemories(Protocol):
    """Opens the memory of a team for a moment."""

    def __call__(self, team_id: str, *, wait_s: float = ...) -> AbstractContextManager[Memory]:
        """Lease the memory of a team."""


class OwnerTeamDesk:
    """The teams of one owner; a team of others answers like one that does not exist.

    What waits for approval is in the registry and in no memory, so nothing can recall or inject it.
    Approved knowledge is stored in the team's memory with the origin `peer`, which is never put
    into a prompt unasked.
    """

    def __init__(self, registry: Registry, teams: TeamMemories, owner: str, memory: Memory) -> None:
        self._registry = registry
        self._teams = teams
        self._owner = owner
        self._memory = memory

    def memberships(self) -> list[TeamMembership]:
        """Return the teams that the owner is a member of."""
        return [self._membership(team) for team in self._registry.list_teams(owner=self._owner)]

    def publish(self, id_: str, team: str) -> Publication:
        """Give a fragment of the owner to a team, where it waits for approval."""
        to = self._get_team(team)
        fragment = self._memory.knowledge.fragment(id_).fragment
        assert fragment is not None
        with self._registry.database.read() as db:
            former = registry_rows.find_open_publication(db, to.id, self._owner, fragment.id)
        if former is not None:
            return former
        now = self._registry.database.now()
        publication = Publication(
            clock.new_id(now), to.name, "", fragment.id, "pending", fragment.kind,
            fragment.summary, fragment.content, now,
        )  # fmt: skip
        self._registry.database.write(
            lambda db: registry_rows.add_publication(db, publication, team=to.id, owner=self._owner)
        )
        return self._get(to, publication.id)

    def publications(self, team: str, states: Sequence[PublicationState]) -> list[Publication]:
        """Return what was published to a team."""
        to = self._get_team(team)
        with self._registry.database.read() as db:
            return registry_rows.list_publications(db, to.id, states, limit=_MAX_LISTED)

    def approve(self, team: str, id_: str, key: str) -> Publication:
        """Approve a publication of somebody else; enough approvals store it for the team."""
        to = self._get_team(team)
        publication = self._get_pending(to, id_)
        with self._registry.database.read() as db:
            publisher = registry_rows.owner_of_publication(db, id_)
        if publisher == self._owner:
            msg = "You published this yourself: somebody else has to approve it."
            raise InvalidInput(msg)
        decides, now = self._may_decide(to, key), self._registry.database.now()
        self._registry.database.write(
            lambda db: registry_rows.approve(db, id_, self._owner, now=now)
        )
        publication = self._get(to, id_)
        if not decides and publication.approvals < to.quorum:
            return publication
        with self._teams(to.id) as memory:
            fragment = memory.store(
                publication.content,
                summary=publication.summary,
                kind=publication.kind,  # type: ignore[arg-type]  # as it was read from a memory
                origin="peer",
                key=f"publication {id_}",
            )
            if not self._decide(id_, "approved", fragment):  # it was withdrawn meanwhile
                with suppress(NotFound):
                    memory.forget(id=fragment)
        return self._get(to, id_)

    def reject(self, team: str, id_: str, key: str) -> Publication:
        """Reject a publication, with a key of the team that may decide."""
        to = self._get_team(team)
        self._get_pending(to, id_)
        if not self._may_decide(to, key):
            msg = "Only a key of the team with the scope admin can reject a publication."
            raise InvalidInput(msg, hint="'lore key create NAME --owner O --team T --scope admin'.")
        self._decide(id_, "rejected")
        return self._get(to, id_)

    def withdraw(self, team: str, id_: str) -> Publication:
        """Take back what the owner published; it is deleted from the team's memory."""
        to = self._get_team(team)
        publication = self._get(to, id_)
        with self._registry.database.read() as db:
            publisher = registry_rows.owner_of_publication(db, id_)
        if publisher != self._owner:
            msg = "Only who published something can withdraw it."
            raise InvalidInput(msg)
        fragment = publication.fragment_id
        # First the state, so that nothing shows it even if the deletion is interrupted.
        self._decide(id_, "withdrawn", fragment)
        if fragment:
            with self._teams(to.id) as memory:
                forget_publication(self._registry, memory, id_, fragment)
        return self._get(to, id_)

    def recall(self, query: str, *, limit: int) -> tuple[Hit, ...]:
        """Return approved knowledge of the owner's teams that answers a question."""
        hits: list[Hit] = []
        for team in self._registry.list_teams(owner=self._owner)[:_MAX_TEAMS]:
            try:
                hits += self._recall_from(team, query, min(limit, _MAX_HITS))
            except LoreError as error:  # the owner's own memory answers without the team's
                log.warning("team not recalled", extra={"error": type(error).__name__})
        return tuple(sorted(hits, key=lambda hit: -hit.score)[:limit])

    def _recall_from(self, team: Team, query: str, limit: int) -> list[Hit]:
        with self._registry.database.read() as db:
            if not registry_rows.list_publications(db, team.id, ["approved"], limit=1):
                return []
        with self._teams(team.id, wait_s=1.0) as memory:
            answer = memory.recall(
                query, limit=limit, types=["fragment"], log=False, with_teams=False
            )
        if not answer.relevant:
            return []
        with self._registry.database.read() as db:
            by = registry_rows.approved_fragments(db, team.id)
        return [
            replace(
                hit, origin="peer", why=_publisher(by[hit.id], team),
                session_id="", project_id="", breadcrumb=f"team {team.name}", sources=(), same=(),
            )
            for hit in answer.hits if hit.id in by
        ]  # fmt: skip

    def read(self, id_: str) -> Reading | None:
        """Return approved knowledge of the owner's teams by its id or the begin of it, or None."""
        prefix = id_.strip().lower()
        for team in self._registry.list_teams(owner=self._owner):
            with self._registry.database.read() as db:
                by = registry_rows.approved_fragments(db, team.id)
            matches = [one for one in by if one.startswith(prefix)]
            if len(matches) == 1:
                return self._read_from(team, matches[0], by[matches[0]])
        return None

    def _read_from(self, team: Team, id_: str, publisher: str) -> Reading | None:
        try:
            with self._teams(team.id, wait_s=1.0) as memory:
                (reading,) = memory.read([id_], reinforce=False)
        except LoreError as error:  # it was withdrawn, or the team's memory is not at hand
            log.warning("team not read", extra={"error": type(error).__name__})
            return None
        return replace(
            reading, origin="peer", title=f"{_publisher(publisher, team)}: {reading.title}",
            session=None, parent=None, children=(), edges=(), replaced=None,
        )  # fmt: skip

    def _membership(self, team: Team) -> TeamMembership:
        with self._registry.database.read() as db:
            listed = registry_rows.list_publications(
                db, team.id, ["pending", "approved"], limit=_MAX_LISTED
            )
        with self._teams(team.id) as memory:
            day = memory.budget.day_budget()
            pressure = memory.budget.budget_pressure()
        states = [one.state for one in listed]
        return TeamMembership(
            team.name, tuple(self._registry.list_members(team.name)), team.quorum,
            states.count("pending"), states.count("approved"), day.spent_usd, day.budget_usd,
            pressure,
        )  # fmt: skip

    def _get_team(self, name: str) -> Team:
        """Return a team of the owner, or raise as for a team that does not exist."""
        id_ = self._registry.team_id(name)
        for team in self._registry.list_teams(owner=self._owner):
            if team.id == id_:
                return team
        msg = "You are in no team of this name."
        raise NotFound(msg, hint="GET /api/v1/teams lists yours.")

    def _get(self, team: Team, id_: str) -> Publication:
        with self._registry.database.read() as db:
            publication = registry_rows.find_publication(db, team.id, id_)
        if publication is None:
            msg = "This team has no such publication."
            raise NotFound(msg)
        return publication

    def _get_pending(self, team: Team, id_: str) -> Publication:
        publication = self._get(team, id_)
        if publication.state != "pending":
            raise InvalidInput(f"It is {publication.state} already.")
        return publication

    def _may_decide(self, team: Team, key: str) -> bool:
        """Return whether a request has a key of this team with the scope admin."""
        if not key:
            return False
        with self._registry.database.read() as db:
            row = registry_rows.find_key(db, key)
        return (
            row is not None
            and (row[0].owner, row[0].team) == (self._owner, team.id)
            and "admin" in row[0].scopes
        )

    def _decide(self, id_: str, state: PublicationState, fragment: str = "") -> bool:
        now = self._registry.database.now()
        return self._registry.database.write(
            lambda db: registry_rows.decide(db, id_, state, now=now, fragment=fragment)
        )


def _publisher(name: str, team: Team) -> str:
    """Return who published something to which team, as a reader is told."""
    return f"{PUBLISHED}{name} to team {team.name}"


def forget_publication(registry: Registry, memory: Memory, id_: str, fragment: str) -> None:
    """Delete a withdrawn publication from a team's memory, and note that it is gone."""
    with suppress(NotFound):  # it was deleted before, and only the note is missing
        memory.forget(id=fragment)
    now = registry.database.now()
    registry.database.write(lambda db: registry_rows.decide(db, id_, "withdrawn", now=now))
