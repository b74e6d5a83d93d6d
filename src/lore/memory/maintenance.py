"""Maintenance: forget, back up, embed waiting items, count what is stored."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from lore import __version__
from lore.capture import embedding_queue
from lore.errors import InvalidInput, StoreError, StoreFull, StoreReadOnly
from lore.memory.context import MemoryPart
from lore.recall import turns
from lore.records import (
    ChangedTable,
    Check,
    ForgetPreview,
    ForgetReport,
    ForgetResult,
    ForgottenTitle,
    HealthReport,
    IndexState,
    NameMatches,
    Queues,
    Stats,
)
from lore.redaction.redactor import home_key
from lore.store import (
    change_counters,
    hard_delete,
    items,
    maintenance,
    native_rows,
    replacements,
    spend,
    sync_rows,
    vectors,
)
from lore.store import jobs as job_store
from lore.store.change_counters import ChangeCounters
from lore.validation import Seconds, validate_methods


@validate_methods
class Maintenance(MemoryPart):
    """Forget, back up, embed waiting items, and count what is stored."""

    def backup(self, target: Path | str | None = None) -> Path:
        """Write a consistent copy of the database and return its path."""
        if target is None:
            self._settings.backups.mkdir(mode=0o700, parents=True, exist_ok=True)
            target = self._settings.backups
        return maintenance.backup(self._database, Path(target), key=self._backup_key)

    @property
    def _backup_key(self) -> bytes:
        return home_key(self._settings, "backup")

    def preview_forget(
        self, *, id: str = "", session: str = "", project: str = "", match: str = ""
    ) -> ForgetPreview:
        """Return what `forget` would delete, items by id in the order of storage."""
        from lore.digest import native_share, project_page

        session, project = self._redactor.redact(session), self._redactor.redact(project)
        with self._database.read() as db:
            direct = hard_delete.select(db, id, session, project, match)
            selection = hard_delete.with_derived(db, direct)
            ids = items.ids_of(db, selection.item_ns)
            entries = project_page.ForgottenEntries(db, selection.item_ns, match)
            copies = native_share.SharedCopies(db, Path.home(), selection.item_ns, match)
            note_files = native_rows.files_of(db, selection.item_ns)
            task_records = hard_delete.count_task_records(db, selection, match)
        chosen = tuple(ids[n] for n in selection.item_ns if n in ids)
        return ForgetPreview(
            chosen,
            len(selection.session_ns),
            len(selection.project_ns),
            tuple(entries.find_pages()),
            tuple(copies.find_files()),
            tuple(note_files),
            task_records,
        )

    def find_names(self, text: str) -> NameMatches:
        """Return the sessions and projects whose names contain a text.

        `forget(match=…)` removes the text from session names; a project keeps its path until the
        project itself is forgotten.
        """
        with self._database.read() as db:
            return hard_delete.find_names(db, text)

    def forget(
        self, *, id: str = "", session: str = "", project: str = "", match: str = ""
    ) -> list[str]:
        """Delete data permanently at a person's request; return the deleted ids.

        Shared pages and copies in agents' memories go first: only the store knows which of their
        entries are meant. The rest is noted with the deletion, and finished by the daemon's upkeep
        or the next sync if this process is killed.
        """
        from lore.digest import native_share, project_page
        from lore.memory.continuity import Continuity

        session, project = self._redactor.redact(session), self._redactor.redact(project)
        continuity = Continuity(self._context)
        folders = continuity.folders()  # those of a forgotten project are unknown afterwards
        with_page = continuity.with_page(folders)
        with self._database.read() as db:
            selection = hard_delete.select(db, id, session, project, match)
            selection = hard_delete.with_derived(db, selection)
            entries = project_page.ForgottenEntries(db, selection.item_ns, match)
            copies = native_share.SharedCopies(db, Path.home(), selection.item_ns, match)
        entries.remove()
        copies.remove()
        deleted_ids = maintenance.forget_everywhere(
            self._database, selection, match, self._settings.backups,
            key=self._backup_key, folders=with_page,
        )  # fmt: skip
        self._sources.forget_vectors(selection.item_ns)
        self.clear_caches()
        continuity.refresh(folders)
        self._database.write(sync_rows.clear_unfinished_forgets)
        if with_page:  # their paths were noted, and one may be forgotten
            self._database.erase_traces()
        return deleted_ids

    def clear_caches(self) -> None:
        """Clear cached texts, which may have been forgotten here or by another process."""
        self._sources.clear_caches()

    def release_memory(self) -> None:
        """Release what an idle memory can get back within milliseconds."""
        self._context.serving.release_memory()
        self._database.close_idle_readers()

    def stats(self) -> Stats:
        """Return statistics of the memory; on a server, without its path."""
        with self._database.read() as db:
            stats = maintenance.collect_stats(
                db, embedder=self._sources.embedder.identity, notice=self._context.notice_now
            )
        return replace(stats, path="") if self._context.is_served else stats

    def check_money(self) -> list[Check]:
        """Check the budgets and what is spent of them."""
        from lore.budget import limits
        from lore.memory.budget import Budget

        budget = Budget(self._context)
        try:
            return limits.check_budgets(
                budget.spend_report(), budget.spend_pressure(), budget.spent_today()
            )
        except StoreError:
            return []  # the check of the database has reported it

    def health_report(self, *, full: bool = False) -> HealthReport:
        """Return jobs, errors, indexes and the checks of doctor; nothing is repaired.

        Only with `full` each page of the database and each entry of its indexes is checked: that
        takes seconds.
        """
        from lore.recall import health

        sources, notice = self._sources, self._context.notice_now
        of_embedder = " ".join(filter(None, (self._context.notice, sources.missing)))
        checks = health.check_home(self._settings)
        if full:
            checks += health.check_memory(sources, of_embedder, fix=False)
        else:
            checks += health.check_quickly(sources, of_embedder)
        checks += self.check_money()
        if self._context.is_served:
            checks = [self._without_home(check) for check in checks]
        stats, queues = self.stats(), self.queues()
        indexes = (
            IndexState("keywords", stats.messages + stats.distillations + stats.fragments, 0),
            IndexState("vectors", stats.vectors, queues.waiting, queues.embedder),
            IndexState("replacements", 0, queues.unjudged),
        )
        return HealthReport(
            version=__version__,
            home=self._context.shown_home,
            read_only=self._database.read_only,
            notice=notice,
            stats=stats,
            queues=queues,
            jobs=stats.jobs,
            errors=tuple(job for job in stats.jobs if job.last_error),
            indexes=indexes,
            checks=tuple(checks),
            checked_at=self._database.now(),
        )

    def _without_home(self, check: Check) -> Check:
        home = str(self._settings.home)
        return replace(
            check,
            detail=check.detail.replace(home, "the memory"),
            remedy=check.remedy.replace(home, "the memory"),
        )

    def report_forget(
        self, *, id: str = "", session: str = "", project: str = "", match: str = ""
    ) -> ForgetReport:
        """Return what `forget` would delete: how much, the first of it by title, and a digest."""
        if not (id or session or project or match):
            msg = "Say what is to be forgotten: an id, a session, a project or a text."
            raise InvalidInput(msg)
        preview = self.preview_forget(id=id, session=session, project=project, match=match)
        with self._database.read() as db:
            ns = items.numbers_of(db, preview.ids[:_MOST_FORGOTTEN])
            titled = turns.describe_items(db, list(ns.values()))
            times = items.times_of(db, list(ns.values()))
            types = items.count_types(db, list(items.numbers_of(db, preview.ids).values()))
        others = {"session": preview.sessions, "project": preview.projects}
        records = {one.record: one.deleted + one.changed for one in preview.task_records}
        counts = {**types, **others, **records}
        return ForgetReport(
            digest=_forget_digest(preview, (id, session, project, match)),
            counts={name: count for name, count in counts.items() if count},
            items=tuple(
                ForgottenTitle(titled[n].id, titled[n].type, titled[n].title, times[n])
                for n in ns.values()
                if n in titled
            ),
            pages=tuple(map(str, preview.pages)),
            copies=tuple(map(str, preview.copies)),
            notes=preview.notes,
        )

    def forget_reported(
        self, digest: str, *, id: str = "", session: str = "", project: str = "", match: str = ""
    ) -> ForgetResult:
        """Delete what `report_forget` listed; refuse if that would be something else by now."""
        preview = self.preview_forget(id=id, session=session, project=project, match=match)
        if digest != _forget_digest(preview, (id, session, project, match)):
            msg = "What would be deleted has changed since it was shown."
            raise InvalidInput(msg, hint="Look at the preview again.")
        deleted = self.forget(id=id, session=session, project=project, match=match)
        return ForgetResult(len(deleted), tuple(deleted[:_MOST_FORGOTTEN]))

    def find_changes(
        self, before: ChangeCounters | None
    ) -> tuple[ChangeCounters, tuple[ChangedTable, ...]]:
        """Return the present change counters, and what changed since earlier ones."""
        with self._database.read() as db:
            now = change_counters.read_counters(db)
            return now, change_counters.find_changed(db, before, now) if before else ()

    def queues(self) -> Queues:
        """Return the lengths of the queues; without an embedder no item waits for a vector."""
        midnight = self._database.now().replace(hour=0, minute=0, second=0, microsecond=0)
        with self._database.read() as db:
            open_jobs = job_store.open_jobs(db)
            waiting = vectors.count_pending(db) if self._sources.embedder.dimension else 0
            embedder = vectors.find_active_identity(db) or ""
            unjudged = replacements.count_waiting(db) if self._sources.embedder.dimension else 0
            next_embedder = vectors.find_next_identity(db) or ""
            next_waiting = vectors.count_pending(db, following=True) if next_embedder else 0
            until = midnight + timedelta(days=1)
            background_usd = spend.spent_on(db, spend.BACKGROUND, since=midnight, until=until)
            agents_usd = spend.spent_on(db, spend.REQUEST, since=midnight, until=until)
            calls_today = spend.count_command_calls(db, since=midnight)
        parked = sum(job.state == "parked" for job in open_jobs)
        pending = len(open_jobs) - parked
        return Queues(
            waiting,
            pending,
            parked,
            round(background_usd, 6),
            self._settings.background_daily_budget,
            round(agents_usd, 6),
            # The ledger has seen changes of the budget since the start.
            self._context.ledger.budget_usd
            if self._context.ledger
            else self._settings.daily_budget,
            embedder,
            next_embedder,
            next_waiting,
            self._digester(),
            calls_today,
            self._settings.chat_calls_per_day,
            unjudged,
        )

    def _digester(self) -> str:
        """Return who digests: the open summarizer, or what the settings choose."""
        opened = self._context.summarizer
        return opened.identity if opened is not None else self._settings.chat_provider

    def require_writable(self) -> None:
        """Raise an error if the database cannot be written."""
        if self._database.full:
            msg = f"There is no space left for {self._database.path}."
            raise StoreFull(msg, hint="Free some space; reading goes on meanwhile.")
        if self._database.read_only:
            msg = f"{self._database.path} cannot be written, and a daemon only writes."
            raise StoreReadOnly(msg, hint="'lore doctor' says why.")

    def run_upkeep(self) -> bool:
        """Run the daily maintenance if it is due; return whether it was."""
        begun = maintenance.schedule_maintenance(self._database)
        if begun is None:
            return False
        begun.result()
        self._database.checkpoint()
        return True

    def embed_waiting(
        self,
        *,
        judge: bool = True,
        within_s: Seconds | None = None,
        progress: embedding_queue.Progress | None = None,
    ) -> int:
        """Embed the items that wait for a vector; return how many were embedded.

        Then embed items again for a new embedder; the former vectors serve until all are done.
        With `judge`, judge at last what the items replace.
        """
        return self._context.embed_waiting(
            again=True, judge=judge, within_s=within_s, progress=progress
        )

    def judge_waiting(self, *, within_s: Seconds | None = None) -> int:
        """Judge what new items replace; return how many were judged."""
        return self._context.judge_waiting(within_s=within_s)


_MOST_FORGOTTEN = 100
"""Items that a preview lists by title."""


def _forget_digest(preview: ForgetPreview, chosen: tuple[str, ...]) -> str:
    """Return what names a selection: the same records, chosen in the same way."""
    parts = (*chosen, *preview.ids, str(preview.sessions), str(preview.projects))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
