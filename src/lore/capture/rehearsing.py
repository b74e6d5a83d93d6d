"""Rehearsing: what a trial run would store, counted without storing anything."""

from __future__ import annotations

from dataclasses import dataclass, field

from lore import projects
from lore.capture.staging import Batch, Run
from lore.projects import Projects
from lore.store import claims, copies, messages, sessions
from lore.store.db import Connection
from lore.store.messages import PreparedMessage
from lore.text import words


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A trial run: what was told in it once is known when a fork tells it again."""

    told: set[int] = field(default_factory=set)

    def count_new(self, db: Connection | None, batch: Batch, agent: str, seen: Projects) -> int:
        """Return how many messages of a batch would be stored."""
        return sum(self._count(db, run, agent, seen) for run in batch.runs)

    def _count(self, db: Connection | None, run: Run, agent: str, seen: Projects) -> int:
        folder = words.clean(run.context.folder)
        place = seen.find(folder)
        fresh = run.prepared
        if db is not None:
            fresh = _not_stored(db, run, agent, projects.find(db, folder, place))
        if run.context.lasting_keys:
            marks = {hash((agent, place, m.key, m.digest, m.new.created_at)) for m in fresh}
        else:
            marks = {hash((agent, run.context.session, m.key)) for m in fresh}
        new = marks - self.told
        self.told.update(new)
        return len(new)


def _not_stored(
    db: Connection, run: Run, agent: str, project_n: int | None
) -> list[PreparedMessage]:
    """Return the messages of a run that neither its session nor one that it copies has."""
    session = words.clean(run.context.session)
    own = messages.not_forgotten(db, (agent, session), "file", run.prepared)
    session_n = sessions.find_number(db, session, agent=agent)
    if session_n is not None:
        known = claims.known(db, session_n, "file", [message.key for message in own])
        own = [message for message in own if message.key not in known]
    if not own or not run.context.lasting_keys:
        return own
    copied = copies.copied_unstored(db, agent, project_n, own)
    if session_n is not None:
        copied |= {*copies.find(db, session_n, own), *copies.forgotten(db, session_n, own)}
    return [message for message in own if message.key not in copied]
