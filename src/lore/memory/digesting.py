"""The desk for the digest: logs of sessions, knowledge out of them, and the cycle of upkeep.

What digests is imported when it is used: most commands never do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from lore.checking import Count, Seconds, checked_class
from lore.memory.desk import Desk
from lore.memory.working import CURATE, DISTILL
from lore.records import (
    Conflict,
    Curated,
    CycleReport,
    Decision,
    Digested,
    Offer,
    SpentToday,
    UndoneCycle,
)
from lore.store import cycles, sessions

if TYPE_CHECKING:
    from lore.budget.ledger import SpendLedger
    from lore.curate.means import CurationMeans
    from lore.llm import Digester
    from lore.store.steps import Watch

Progress = Callable[[int, int], None]
_ALL = 1_000_000
"""More sessions than anyone will have: at 100 a day, those of 27 years."""

PhaseProgress = Callable[[str, int, int], None]
"""Told the phase, how much of it is done, and how much there is."""


@checked_class
class Digesting(Desk):
    """For the digest."""

    __slots__ = ()

    def distill(self, session: str, *, progress: Progress | None = None) -> list[str]:
        """Condense what is new in a session into logs; return the ids of the new ones."""
        from lore.distill import condensing, distilling

        session, digester = self.redactor.redact(session), self._digester()
        made = distilling.distil_session(
            self.database,
            digester,
            session,
            limits=distilling.limits_for(
                digester, segment_tokens=self.settings.distill_segment_tokens
            ),
            dimension=self.sources.embedder.dimension,
            redact=self.redactor.redact,
            progress=progress,
        )
        condensed = condensing.condense_session(
            self.database,
            digester,
            session,
            threshold=self.settings.distill_meta_threshold,
            redact=self.redactor.redact,
        )
        return [*made, condensed] if condensed else made

    def curate(
        self, session: str, *, idle_s: Seconds = 0.0, progress: Progress | None = None
    ) -> Curated:
        """Make knowledge of what is new in a session and return what that brought.

        The last exchange of one that was not silent for `idle_s` is left for later.
        """
        from lore.curate import curating

        session = self.redactor.redact(session)
        brought = curating.curate(
            self.database, session, self._curation(), idle_s=idle_s, progress=progress
        )
        if brought.superseded:
            self.sources.drop_hidden()
        return brought

    def digest(
        self,
        names: Sequence[str] = (),
        *,
        knowledge: bool = True,
        progress: Progress | None = None,
    ) -> Digested:
        """Distil and curate sessions, all of them by default, the oldest first.

        Whatever order they came in, what was said later then changes what was said before.
        """
        with self.database.read() as db:
            numbers = [sessions.get_number(db, self.redactor.redact(name)) for name in names]
            found = [sessions.get(db, n) for n in numbers]
            found = found or sessions.recent(db, project_n=None, limit=_ALL)
        logs = stored = confirmed = 0
        ordered = sorted(found, key=lambda session: session.last_message_at)
        for place, session in enumerate(ordered):
            logs += len(self.distill(session.id))
            if knowledge:
                brought = self.curate(session.id)
                stored += len(brought.stored)
                confirmed += brought.merged
            if progress:
                progress(place + 1, len(ordered))
        self.embed_waiting()
        return Digested(len(ordered), logs, stored, confirmed)

    def consolidate(
        self,
        *,
        phases: Sequence[str] = (),
        dry_run: bool = False,
        progress: PhaseProgress | None = None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> CycleReport:
        """Run the cycle of upkeep, or some phases of it, and report what each did.

        One that was stopped goes on where it was. `undo_cycle` takes it back, for a day.
        """
        from lore.digest.consolidation.cycle import run_cycle
        from lore.digest.consolidation.phase import Means

        means = Means(
            digester=self._digester(),
            digest={DISTILL: self._distilled, CURATE: self._curated},
            idle_s=self.settings.curate_idle_s,
            redactor=self.redactor,
            embed_waiting=self.embed_waiting,
            forget_vectors=self.sources.forget_vectors,
        )
        if dry_run:
            self.embed_waiting()
        with self.cycle_lock:
            report = run_cycle(
                self.database,
                means,
                only=tuple(phases),
                dry_run=dry_run,
                progress=progress,
                stopping=stopping,
            )
        if not dry_run:
            self.sources.drop_hidden()
        return report

    def is_cycle_due(self) -> bool:
        """Tell whether the last cycle is long enough ago, or was stopped before its end."""
        with self.database.read() as db:
            last = cycles.find_last(db)
        if last is None or last.report.ended_at is None:
            return True
        since = self.database.now() - last.report.started_at
        return since >= timedelta(seconds=self.settings.consolidate_interval_s)

    def _distilled(self, session: str, _watch: Watch) -> Mapping[str, int]:
        return {"distillations": len(self.distill(session))}

    def _curated(self, session: str, watch: Watch) -> Mapping[str, int]:
        from lore.curate import curating

        brought = curating.curate(
            self.database,
            session,
            self._curation(),
            idle_s=self.settings.curate_idle_s,
            watch=watch,
        )
        return {"fragments": len(brought.stored), "confirmed": brought.merged}

    def undo_cycle(self, id: str = "") -> UndoneCycle:
        """Take back all that a cycle did, the last one or that of an id."""
        from lore.digest.consolidation.undoing import undo_cycle

        undone = undo_cycle(self.database, id)
        self.sources.drop_hidden()
        return undone

    def cycles(self, *, limit: Count = 10) -> list[CycleReport]:
        """Return the reports of the last cycles, newest first."""
        with self.database.read() as db:
            return cycles.newest(db, limit=limit)

    def conflicts(self, *, project: str = "") -> list[Conflict]:
        """Return the fragments that speak against each other and wait for a person."""
        from lore.digest.consolidation import conflicts

        with self.database.read() as db:
            named = self.redactor.redact(project)
            project_n = sessions.get_project(db, named) if named else None
            return conflicts.open_conflicts(db, project_n=project_n)

    def resolve(self, one: str, other: str, decision: Decision) -> None:
        """Settle a conflict: keep the first, keep both, or dismiss it as none."""
        from lore.digest.consolidation import conflicts

        conflicts.resolve(self.database, one, other, decision)
        self.sources.drop_hidden()

    def offers(self) -> list[Offer]:
        """Return the fragments that so many projects confirmed that they may hold in all."""
        from lore.curate import promoting

        with self.database.read() as db:
            return promoting.offers(db)

    def promote(self, id: str, *, key: str = "") -> str:
        """Let a fragment of one project hold in all, and return the id of the one that does."""
        from lore.curate import promoting

        promoted = promoting.promote(self.database, id, key=key)
        self.sources.drop_hidden()
        return promoted

    def spent_today(self) -> SpentToday:
        """Return what background work has cost today, and what it may still cost."""
        return self._open_ledger().today()

    def interrupt(self) -> None:
        """End what a chat has under way; whoever waits for it is told that it was cut off."""
        self.end_requests()

    def _curation(self) -> CurationMeans:
        from lore.curate.means import CurationMeans

        embedder, nearest = self.sources.embedder, self.sources.nearest
        return CurationMeans(self._digester(), embedder, nearest, self.redactor)

    def _digester(self) -> Digester:
        """Return who digests, opened at the first call."""
        with self.digester_lock:
            return self.digester or self._open_digester()

    def _open_ledger(self) -> SpendLedger:
        from lore.budget.catalogue import Catalogue
        from lore.budget.ledger import SpendLedger

        config = self.settings
        return SpendLedger(
            self.database,
            config.background_daily_budget,
            whole_usd=config.daily_budget,
            price=Catalogue(config.prices, now=self.database.now).cost,
        )

    def _open_digester(self) -> Digester:
        from lore.llm.offline.digester import OfflineDigester
        from lore.llm.opening import open_digester

        embedder = self.sources.embedder
        opened = open_digester(
            self.settings,
            offline=OfflineDigester(embedder.embed if embedder.dimension else None),
            ledger=self._open_ledger(),
        )
        self.digester, self.end_requests = opened.digester, opened.close
        self.notice = " ".join(filter(None, (self.notice, opened.notice)))
        return opened.digester
