"""The desk for work in the background: jobs, sessions that wait to be digested, upkeep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from lore.checking import Count, Seconds, Whole, checked_class
from lore.errors import StoreFull, StoreReadOnly
from lore.memory.desk import Desk
from lore.records import Job, Queues, Setback
from lore.store import episodes, spend, upkeep, vectors
from lore.store import jobs as job_store
from lore.store.db import Connection

EPISODE, DISTILL, CURATE = "episode", "distill", "curate"
"""The kinds of the jobs that tell, condense and learn from a session."""

_UNENDED = "It was begun and did not end."


def _settle(db: Connection, job_n: int, setback: Setback | None, now: datetime) -> None:
    """Write down how a job ended."""
    if setback is None:
        job_store.finish(db, job_n, now=now)
    elif setback.until is not None:
        job_store.postpone(db, job_n, setback.told, until=setback.until, now=now)
    elif setback.hopeless:
        job_store.park(db, job_n, setback.told, now=now)
    else:
        job_store.explain(db, job_n, setback.told)


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
        midnight = self.database.now().replace(hour=0, minute=0, second=0, microsecond=0)
        with self.database.read() as db:
            found = job_store.open_jobs(db)
            waiting = vectors.count_waiting(db) if self.sources.embedder.dimension else 0
            until = midnight + timedelta(days=1)
            spent = spend.total(db, spend.BACKGROUND, since=midnight, until=until)
            asked = spend.total(db, spend.REQUEST, since=midnight, until=until)
        parked = sum(job.state == "parked" for job in found)
        pending = len(found) - parked
        return Queues(
            waiting,
            pending,
            parked,
            round(spent, 6),
            self.settings.background_daily_budget,
            round(asked, 6),
            # Whoever asks models for agents has looked whether it was changed since the start.
            self.requests.budget_usd if self.requests else self.settings.daily_budget,
        )

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

    def run_job(self, id: Whole, work: Callable[[], Setback | None]) -> bool:
        """Do a job and tell whether that went well: `work` returns what went wrong, or nothing.

        It counts as failed until it ends, so that one that kills its process is parked too.
        """
        begun = partial(job_store.fail, job_n=id, error=_UNENDED, now=self.database.now())
        self.database.write(begun)
        setback = work()
        self.database.write(partial(_settle, job_n=id, setback=setback, now=self.database.now()))
        return setback is None

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

    def queue_digest(self, *, limit: Count) -> int:
        """Queue sessions that have gone quiet to be distilled and curated; return how many."""
        from lore.curate import curating
        from lore.distill import distilling

        now, settings = self.database.now(), self.settings
        quiet = distilling.due(self.database, idle_s=settings.distill_idle_s, limit=limit)
        with self.database.read() as db:
            fresh = curating.due(db, now=now, idle_s=settings.curate_idle_s)[:limit]

        def queue(db: Connection) -> None:
            for session_id in quiet:
                job_store.ensure(db, DISTILL, session_id, total=1, now=now)
            for session_id in fresh:
                job_store.ensure(db, CURATE, session_id, total=1, now=now)

        if quiet or fresh:
            self.database.write(queue)
        return len(quiet) + len(fresh)

    def do_upkeep(self) -> bool:
        """Do what is due once a day, and tell whether it was due."""
        begun = upkeep.begin_upkeep(self.database)
        if begun is None:
            return False
        begun.result()
        self.database.checkpoint()
        return True
