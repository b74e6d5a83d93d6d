"""The digest: distill and curate sessions, run consolidation cycles, work through jobs.

The modules that digest are imported on first use: most commands never need them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from lore import telemetry
from lore.memory import context
from lore.memory.context import MemoryPart, PageSize
from lore.records import (
    CallEstimate,
    CurationResult,
    CycleReport,
    CycleUndo,
    DigestResult,
    Job,
    JobFailure,
    Page,
)
from lore.store import consolidation, pages, sessions
from lore.store import distillations as episode_store
from lore.store import jobs as job_store
from lore.store.database import Connection
from lore.validation import Count, Seconds, Whole, validate_methods

if TYPE_CHECKING:
    from lore.digest.drafts import CurationContext
    from lore.store.consolidation import StepRecorder

Progress = Callable[[int, int], None]

_ALL = 1_000_000
"""More sessions than anyone will have: 100 a day for 27 years."""

PhaseProgress = Callable[[str, int, int], None]
"""Called with the phase, the amount done and the total."""

EPISODE, DISTILL, CURATE = "episode", "distill", "curate"
"""The kinds of jobs that turn a session into an episode, logs and knowledge."""

QUIET_S = 900.0
"""A session that was quiet for a quarter of an hour is finished, or gets a new episode later."""

_UNENDED = "It was begun and did not end."


def _settle(db: Connection, job_n: int, setback: JobFailure | None, now: datetime) -> None:
    if setback is None:
        job_store.finish(db, job_n, now=now)
    elif setback.until is not None:
        job_store.postpone(db, job_n, setback.message, until=setback.until, now=now)
    elif setback.hopeless:
        job_store.park(db, job_n, setback.message, now=now)
    else:
        job_store.set_error(db, job_n, setback.message)


@validate_methods
class Digest(MemoryPart):
    """Distill and curate sessions, run consolidation cycles, work through jobs."""

    def digest(
        self,
        names: Sequence[str] = (),
        *,
        knowledge: bool = True,
        progress: Progress | None = None,
    ) -> DigestResult:
        """Distill and curate sessions, by default all, oldest first.

        The order lets later statements supersede earlier ones, in whatever order sessions were
        captured.
        """
        with self._database.read() as db:
            numbers = [
                sessions.get_session_number(db, self._redactor.redact(name)) for name in names
            ]
            chosen = [sessions.get_session(db, n) for n in numbers]
            chosen = chosen or sessions.recent_sessions(db, project_n=None, limit=_ALL)
        logs = stored = confirmed = 0
        ordered = sorted(chosen, key=lambda session: session.last_message_at)
        for place, session in enumerate(ordered):
            logs += len(self.distill(session.id))
            if knowledge:
                result = self.curate(session.id)
                stored += len(result.stored)
                confirmed += result.merged
            if progress:
                progress(place + 1, len(ordered))
        self._context.embed_waiting()
        return DigestResult(len(ordered), logs, stored, confirmed)

    __call__ = digest

    def distill(self, session: str, *, progress: Progress | None = None) -> list[str]:
        """Summarize new messages of a session into distillations; return their ids."""
        from lore.digest import distillation

        session, summarizer = self._redactor.redact(session), self._context.open_summarizer()
        with telemetry.span("distill") as span:
            new_ids = distillation.distill_session(
                self._database,
                summarizer,
                session,
                limits=distillation.limits_for(
                    summarizer, segment_tokens=self._settings.distill_segment_tokens
                ),
                redact=self._redactor.redact,
                progress=progress,
            )
            meta_id = distillation.condense_session(
                self._database,
                summarizer,
                session,
                threshold=self._settings.distill_meta_threshold,
                redact=self._redactor.redact,
            )
            ids = [*new_ids, meta_id] if meta_id else new_ids
            span.set("lore.distillations", len(ids))
        return ids

    def curate(
        self, session: str, *, idle_s: Seconds = 0.0, progress: Progress | None = None
    ) -> CurationResult:
        """Extract knowledge from new messages of a session and return the result.

        The last turn is left for later unless the session has been idle for `idle_s`.
        """
        from lore.digest import extraction

        session = self._redactor.redact(session)
        with telemetry.span("curate") as span:
            result = extraction.curate_session(
                self._database, session, self._curation(), idle_s=idle_s, progress=progress
            )
            span.set("lore.fragments", len(result.stored))
        if result.superseded:
            self._sources.drop_hidden()
        return result

    def consolidate(
        self,
        *,
        phases: Sequence[str] = (),
        dry_run: bool = False,
        progress: PhaseProgress | None = None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> CycleReport:
        """Run a consolidation cycle, or some of its phases, and report what each did.

        A stopped cycle resumes where it was. `undo_cycle` rolls a cycle back within a day.
        """
        from lore.digest.consolidation.cycle import run_cycle
        from lore.digest.consolidation.phase import CycleContext

        means = CycleContext(
            summarizer=self._context.open_summarizer(),
            digest_steps={DISTILL: self._distilled, CURATE: self._curated},
            learn_from_tasks=self._learned,
            idle_s=self._settings.curate_idle_s,
            redactor=self._redactor,
            embed_pending=self._context.embed_waiting,
            forget_vectors=self._sources.forget_vectors,
        )
        if dry_run:
            self._context.embed_waiting()
        with self._context.cycle_lock, telemetry.span("consolidate"):
            report = run_cycle(
                self._database,
                means,
                only=tuple(phases),
                dry_run=dry_run,
                progress=progress,
                should_stop=stopping,
            )
        if not dry_run:
            self._sources.drop_hidden()
        return report

    def _distilled(self, session: str, _watch: StepRecorder) -> Mapping[str, int]:
        return {"distillations": len(self.distill(session))}

    def _curated(self, session: str, recorder: StepRecorder) -> Mapping[str, int]:
        from lore.digest import extraction

        with telemetry.span("curate") as span:
            brought = extraction.curate_session(
                self._database,
                session,
                self._curation(),
                idle_s=self._settings.curate_idle_s,
                recorder=recorder,
            )
            span.set("lore.fragments", len(brought.stored))
        return {"fragments": len(brought.stored), "confirmed": brought.merged}

    def _learned(self, recorder: StepRecorder) -> Mapping[str, int]:
        from lore.memory.task_lessons import TaskLessons

        tasks = TaskLessons(self._context)
        learned, retained = (
            tasks.consolidate_new(recorder),
            tasks.apply_retention(recorder=recorder),
        )
        return {
            "episodes": learned.episodes,
            "patterns": len(learned.patterns),
            "anti-patterns": len(learned.anti_patterns),
            "skills": len(learned.skills),
            "confirmed": len(learned.confirmed),
            "merged": len(learned.merged),
            "summarized": retained.summarized,
            "archived": retained.archived,
        }

    def is_cycle_due(self) -> bool:
        """Return whether the last cycle is old enough or was stopped before its end."""
        with self._database.read() as db:
            last = consolidation.find_last_cycle(db)
        if last is None or last.report.ended_at is None:
            return True
        since = self._database.now() - last.report.started_at
        return since >= timedelta(seconds=self._settings.consolidate_interval_s)

    def undo_cycle(self, id: str = "") -> CycleUndo:
        """Roll back a cycle, by default the last one."""
        from lore.digest.consolidation.cycle import undo_cycle

        undone = undo_cycle(self._database, id)
        self._sources.drop_hidden()
        return undone

    def cycles(self, *, limit: Count = 10) -> list[CycleReport]:
        """Return the reports of the last cycles, newest first."""
        with self._database.read() as db:
            return consolidation.recent_reports(db, limit=limit)

    def page_of_cycles(self, *, limit: PageSize = 50, cursor: str = "") -> Page[CycleReport]:
        """Return a page of the reports of cycles, newest first."""
        (before,) = context.decode_cursor(cursor, int) or (pages.BEFORE_NEWEST,)
        with self._database.read() as db:
            rows = consolidation.page_of_reports(db, before=before, limit=limit)
        return context.page_of(rows, limit)

    def interrupt(self) -> None:
        """Cancel the requests that the summarizer has open; their callers get an error."""
        self._context.close_summarizer()

    def _curation(self) -> CurationContext:
        from lore.digest.drafts import CurationContext

        sources, summarizer = self._sources, self._context.open_summarizer()
        return CurationContext(summarizer, sources.embedder, sources.nearest, self._redactor)

    def estimate_calls(self) -> CallEstimate:
        """Return how often a chat would be called in a day, by the last two weeks."""
        from lore.digest import call_estimate

        return call_estimate.estimate_calls(self._database)

    def jobs(self) -> list[Job]:
        """Return the jobs that are not done."""
        with self._database.read() as db:
            return job_store.open_jobs(db)

    def retry_jobs(self, id: Whole | None = None) -> int:
        """Retry one job, or all failed jobs, at once; return how many."""
        return self._database.write(partial(job_store.retry, job_n=id, now=self._database.now()))

    def find_due_job(self, kinds: Sequence[str]) -> Job | None:
        """Return the job of these kinds that has waited longest, if one is due."""
        with self._database.read() as db:
            return job_store.find_due(db, kinds, now=self._database.now())

    def run_job(self, id: Whole, work: Callable[[], JobFailure | None]) -> bool:
        """Run a job; return whether it succeeded. `work` returns a failure, or None.

        The job counts as failed until it ends, so that a job that kills its process is parked too.
        """
        begun = partial(job_store.fail, job_n=id, error=_UNENDED, now=self._database.now())
        self._database.write(begun)
        setback = work()
        self._database.write(partial(_settle, job_n=id, setback=setback, now=self._database.now()))
        return setback is None

    def queue_episodes(self, *, quiet_s: Seconds, limit: Count) -> int:
        """Queue idle sessions to be summarized as episodes; return how many."""
        now = self._database.now()
        with self._database.read() as db:
            quiet = episode_store.quiet_sessions(db, EPISODE, now=now, idle_s=quiet_s, limit=limit)

        def queue(db: Connection) -> None:
            for session in quiet:
                job_store.ensure(db, EPISODE, session.id, total=session.messages, now=now)

        if quiet:
            self._database.write(queue)
        return len(quiet)

    def count_without_episode(self, project: str) -> int:
        """Return how many finished sessions of a project are still to be summarized."""
        with self._database.read() as db:
            project_n = self._find_project_n(db, project)
            assert project_n is not None
            return episode_store.count_awaiting(
                db, EPISODE, project_n, now=self._database.now(), idle_s=QUIET_S
            )

    def queue_digest(self, *, limit: Count) -> int:
        """Queue idle sessions to be distilled and curated; return how many."""
        from lore.digest import distillation, extraction

        now, settings = self._database.now(), self._settings
        quiet = distillation.due_sessions(
            self._database, idle_s=settings.distill_idle_s, limit=limit
        )
        with self._database.read() as db:
            fresh = extraction.due_sessions(db, now=now, idle_s=settings.curate_idle_s)[:limit]

        def queue(db: Connection) -> None:
            for session_id in quiet:
                job_store.ensure(db, DISTILL, session_id, total=1, now=now)
            for session_id in fresh:
                job_store.ensure(db, CURATE, session_id, total=1, now=now)

        if quiet or fresh:
            self._database.write(queue)
        return len(quiet) + len(fresh)
