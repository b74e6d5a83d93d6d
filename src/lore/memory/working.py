"""The desk for work in the background: jobs, episodes that wait to be told, upkeep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from lore.checking import Count, Seconds, Whole, checked_class
from lore.errors import StoreFull, StoreReadOnly
from lore.memory.desk import Desk
from lore.records import Job, Queues
from lore.store import episodes, upkeep, vectors
from lore.store import jobs as job_store
from lore.store.db import Connection

EPISODE = "episode"
"""The kind of the jobs that tell a session as an episode."""

_UNENDED = "It was begun and did not end."


@checked_class
class Working(Desk):
    """For work in the background."""

    __slots__ = ()

    def require_writable(self) -> None:
        """Refuse if nothing can be written, as whoever works in the background does."""
        if self.database.full:
            msg = f"There is no space left for {self.database.path}."
            raise StoreFull(msg, hint="Free some space; reading goes on meanwhile.")
        if self.database.read_only:
            msg = f"{self.database.path} cannot be written, and a daemon only writes."
            raise StoreReadOnly(msg, hint="'lore doctor' says why.")

    def queues(self) -> Queues:
        """Count what waits; without an embedder nothing waits for a vector."""
        with self.database.read() as db:
            found = job_store.open_jobs(db)
            waiting = vectors.count_waiting(db) if self.sources.embedder.dimension else 0
        parked = sum(job.state == "parked" for job in found)
        return Queues(waiting, len(found) - parked, parked)

    def jobs(self) -> list[Job]:
        """Return the jobs that are not done."""
        with self.database.read() as db:
            return job_store.open_jobs(db)

    def retry_jobs(self, id: Whole | None = None) -> int:
        """Let one job, or all that failed, be tried again at once; return how many that are."""
        return self.database.write(partial(job_store.retry, job_n=id, now=self.database.now()))

    def find_due_job(self, kinds: Sequence[str]) -> Job | None:
        """Return the job of these kinds that has waited longest, if one is due."""
        with self.database.read() as db:
            return job_store.find_due(db, kinds, now=self.database.now())

    def run_job(self, id: Whole, work: Callable[[], str]) -> bool:
        """Do a job and tell whether that went well: `work` returns what went wrong, or nothing.

        It counts as failed until it ends, so that one that kills its process is parked too.
        """
        begun = partial(job_store.fail, job_n=id, error=_UNENDED, now=self.database.now())
        self.database.write(begun)
        wrong = work()
        if wrong:
            self.database.write(partial(job_store.explain, job_n=id, error=wrong))
        else:
            self.database.write(partial(job_store.finish, job_n=id, now=self.database.now()))
        return not wrong

    def queue_episodes(self, *, quiet_s: Seconds, limit: Count) -> int:
        """Queue sessions that have gone quiet to be told as episodes; return how many."""
        now = self.database.now()
        with self.database.read() as db:
            quiet = episodes.untold(db, EPISODE, now=now, idle_s=quiet_s, limit=limit)

        def queue(db: Connection) -> None:
            for session in quiet:
                job_store.ensure(db, EPISODE, session.id, total=session.messages, now=now)

        if quiet:
            self.database.write(queue)
        return len(quiet)

    def do_upkeep(self) -> bool:
        """Do what is due once a day, and tell whether it was due."""
        begun = upkeep.begin_upkeep(self.database)
        if begun is None:
            return False
        begun.result()
        self.database.checkpoint()
        return True
