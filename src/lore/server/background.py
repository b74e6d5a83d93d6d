"""Background work of a server: embedding, digest and consolidation, owner by owner in turn."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from lore.daemon.periodic_tasks import (
    Failure,
    PeriodicTask,
    Schedule,
    TaskResult,
    attempt,
    periodic_tasks,
)
from lore.errors import LoreError
from lore.server.memory_store import TEAM_MARK, MemoryStore
from lore.server.owner_pool import OwnerPool
from lore.server.owner_service import OwnerService
from lore.server.registry import Registry
from lore.server.team_desk import forget_publication
from lore.settings import Settings
from lore.store import registry_rows

log = logging.getLogger("lore.server")

_LOCAL_TASKS = ("capture", "notes", "sync")
"""They read files of a person's machine, of which a server has none, or go to another one of it."""

ACTIVE_S = 7_200.0
"""An owner stays in the round this long after a request: sessions are digested when they are
quiet, and consolidated once in two hours."""

VISIT_EVERY = timedelta(hours=6)
"""Owners without requests are visited this often, for upkeep and what a crash left undone."""

_VISITS = 20
"""Owners that are added to the round at a time."""

_WORKERS = 3
"""Threads: while one waits for a model that answers slowly, the others go on."""

_PAUSE_S = 1.0
_HOUSEKEEPING_S = 5.0


@dataclass(slots=True)
class _Round:
    """An owner in the round: when a request last came, and when each task is due."""

    schedule: Schedule
    active_s: float
    is_visit: bool = False
    ran: set[str] = field(default_factory=set)


class BackgroundWork:
    """Runs the periodic tasks of owners in turn, one slice each, in a few threads.

    A task gives up after its slice, so an owner with much to do delays another by one slice only.
    Each thread goes round on its own, and passes by owners that another one works for.
    """

    def __init__(
        self,
        registry: Registry,
        pool: OwnerPool[OwnerService],
        store: MemoryStore,
        settings: Settings,
        *,
        tasks: Sequence[PeriodicTask] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry, self._pool, self._store = registry, pool, store
        chosen = periodic_tasks(settings) if tasks is None else tasks
        self.tasks = [task for task in chosen if task.name not in _LOCAL_TASKS]
        self._monotonic = monotonic
        self._owners: OrderedDict[str, _Round] = OrderedDict()
        self._in_work: set[str] = set()
        self._lock = threading.Lock()
        self._tidying = threading.Lock()
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, name=f"lore-background-{place}", daemon=True)
            for place in range(_WORKERS)
        ]
        self._tidied_s = 0.0

    def __len__(self) -> int:
        """Return how many owners are in the round."""
        return len(self._owners)

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self, within_s: float) -> bool:
        """Stop after the running slices; return whether they ended in time."""
        self._stopping.set()
        until = time.monotonic() + within_s
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def note_request(self, owner: str) -> None:
        """Note that an owner is active."""
        with self._lock:
            self._enter(owner, is_visit=False)

    def _enter(self, owner: str, *, is_visit: bool) -> None:
        now_s = self._monotonic()
        entry = self._owners.get(owner)
        if entry is None:
            self._owners[owner] = _Round(Schedule.of(self.tasks, now_s), now_s, is_visit)
        elif not is_visit:
            entry.active_s, entry.is_visit = now_s, False

    def _run(self) -> None:
        while not self._stopping.is_set():
            did_work = self.work_once()
            if self._tidying.acquire(blocking=False):  # one thread at a time
                try:
                    if self._monotonic() - self._tidied_s >= _HOUSEKEEPING_S:
                        self.tidy()
                finally:
                    self._tidying.release()
            if not did_work:
                self._stopping.wait(_PAUSE_S)

    def work_once(self) -> bool:
        """Give every owner in the round one slice; return whether anything was done."""
        with self._lock:
            owners = list(self._owners)
        did_work = [self._work_for(owner) for owner in owners if not self._stopping.is_set()]
        return any(did_work)

    def _work_for(self, owner: str) -> bool:
        """Give an owner a slice, unless another thread does; return whether anything was done."""
        with self._lock:
            entry = self._owners.get(owner)
            if entry is None or owner in self._in_work:
                return False
            self._in_work.add(owner)
        try:
            return self._run_due(owner, entry)
        finally:
            with self._lock:
                self._in_work.discard(owner)

    def _run_due(self, owner: str, entry: _Round) -> bool:
        """Run the task of an owner that is due for longest, if there is one."""
        due = entry.schedule.due(self._monotonic())
        if not due:
            self._leave_if_quiet(owner, entry)
            return False
        turn = due[0]
        outcome = attempt(partial(self._run_task, owner, turn.task))
        failed = isinstance(outcome, Failure)
        more = isinstance(outcome, TaskResult) and outcome.more
        entry.schedule.ran(turn, self._monotonic(), failed=failed, more=more)
        if not more:
            entry.ran.add(turn.task.name)
        if isinstance(outcome, Failure):
            fields = {"error": outcome.kind, "place": outcome.place}
            log.warning("task failed", extra={"task": turn.task.name, **fields})
            return False
        return bool(outcome is not None and any(outcome.counts.values()))

    def _run_task(self, owner: str, task: PeriodicTask) -> TaskResult | None:
        if not self._registry.has_memory(owner):
            return None
        with self._pool.lease(owner, is_use=False) as service:
            return task.run(service.memory, self._stopping.is_set)

    def _leave_if_quiet(self, owner: str, entry: _Round) -> None:
        """Take an owner out of the round, once nothing is left to do and no request comes."""
        is_through = len(entry.ran) == len(self.tasks)
        is_quiet = entry.is_visit or self._monotonic() - entry.active_s >= ACTIVE_S
        if not (is_through and is_quiet):
            return
        with self._lock:
            self._owners.pop(owner, None)
        now = self._registry.database.now()
        outcome = attempt(
            lambda: self._registry.database.write(
                lambda db: registry_rows.set_worked(db, owner, now=now)
            )
        )
        if isinstance(outcome, Failure):
            log.warning("visit not noted", extra={"error": outcome.kind})

    def tidy(self) -> None:
        """Close idle memories, delete removed ones, and visit owners without requests.

        A failure is logged and tried again: it concerns one of them.
        """
        self._tidied_s = self._monotonic()
        steps = (self._pool.close_idle, self._forget_withdrawn, self._erase_removed,
                 self._add_visits)  # fmt: skip
        for step in steps:
            outcome = attempt(step)
            if isinstance(outcome, Failure):
                fields = {"error": outcome.kind, "place": outcome.place}
                log.warning("housekeeping failed", extra=fields)

    def _forget_withdrawn(self) -> None:
        """Delete from teams' memories what was withdrawn, if that was interrupted."""
        with self._registry.database.read() as db:
            left = registry_rows.list_withdrawn(db)
        for id_, team, fragment in left:
            with self._pool.lease(f"{TEAM_MARK}{team}", is_use=False) as service:
                forget_publication(self._registry, service.memory, id_, fragment)

    def _erase_removed(self) -> None:
        """Delete the memories of removed owners and teams, also if a crash interrupted that."""
        for owner in self._registry.removed_owners():
            with self._lock:
                self._owners.pop(owner.id, None)
            self._erase(owner.id, partial(self._store.erase, owner))
        for team in self._registry.removed_teams():
            self._erase(f"{TEAM_MARK}{team.id}", partial(self._store.erase, team))
        if self._store.erase_left_vectors():
            log.warning("vectors of removed memories are left", extra={"setting": "vectors.url"})

    def _erase(self, name: str, erase: Callable[[], None]) -> None:
        try:
            if self._pool.close_owner(name, wait_s=0.0):
                erase()
                log.info("removed memory erased")
        except LoreError as error:
            log.warning("removed memory not erased", extra={"error": type(error).__name__})

    def _add_visits(self) -> None:
        before = self._registry.database.now() - VISIT_EVERY
        with self._lock:
            room = _VISITS - sum(entry.is_visit for entry in self._owners.values())
        if room <= 0:
            return
        with self._registry.database.read() as db:
            owners = registry_rows.least_worked(db, before=before, limit=room)
        with self._lock:
            for owner in owners:
                self._enter(owner, is_visit=True)
