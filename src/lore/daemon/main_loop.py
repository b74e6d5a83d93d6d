"""The main loop: periodic tasks in a few threads, and one that watches and reports."""

from __future__ import annotations

import ctypes
import gc
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path

from lore import __version__, clock, telemetry
from lore.daemon import daemon_lock, log_file, server_address, status_file
from lore.daemon.daemon_lock import DaemonLock
from lore.daemon.degraded_mode import DegradedServer, open_error, open_writable
from lore.daemon.http_server import BoundSocket, CommandRunner, HttpServer
from lore.daemon.periodic_tasks import (
    Failure,
    PeriodicTask,
    ProgressBoard,
    Schedule,
    TaskResult,
    Turn,
    attempt,
    log,
    periodic_tasks,
)
from lore.daemon.status_file import Status, TaskStatus
from lore.errors import LoreError
from lore.http.hooks import HookCounters
from lore.memory import Memory
from lore.settings import Settings, telemetry_variables

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Numbers of these parameters in glibc's malloc.h."""

ARENAS = 2
"""Heaps for all threads. With 8 clients and busy tasks the daemon used 80 MB less with two."""

LARGE_BYTES = 4 << 20
"""Larger blocks get pages of their own, which are returned at once.

At 256 KB embedding took a quarter longer, because its buffers were allocated for every layer; at 4
MB it does not.
"""


def limit_heap() -> bool:
    """Limit the heap of this process; return False if the C library has no such parameters."""
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        return all(
            mallopt(name, value) == 1
            for name, value in (
                (_ARENA_MAX, ARENAS),
                (_MMAP_THRESHOLD, LARGE_BYTES),
                (_TRIM_THRESHOLD, LARGE_BYTES),
            )
        )
    return False


def trim() -> None:
    """Return freed memory to the system."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def freeze() -> None:
    """Exempt what is loaded from garbage collection: visiting it took 5 % of a recall."""
    gc.collect()
    gc.freeze()


BEAT_S = 2.0
"""How often the daemon checks itself and writes changes to the status."""

UNCHANGED_S = 30.0
"""How often the times of tasks are written when nothing else changed."""

GRACE_S = 3.0
"""How long running work may take to end; then it is aborted, which loses nothing stored."""

_JUMP_S = 60.0
"""If the clock moves by more than this between two checks, it was set or the machine slept."""

_BEATS_TO_TRIM = 5
"""Freed memory is returned every 10 s: a walk over the heap, a millisecond or two."""

_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

Wait = Callable[[float], bool]


@dataclass(frozen=True, slots=True)
class Clocks:
    """The wall clock and the monotonic clock."""

    now: clock.Clock = clock.now
    monotonic: Callable[[], float] = time.monotonic


class Daemon:
    """The periodic tasks of one memory, and their status."""

    def __init__(
        self,
        memory: Memory,
        tasks: Sequence[PeriodicTask],
        home: Path,
        clocks: Clocks | None = None,
        board: ProgressBoard | None = None,
    ) -> None:
        self.stopping = threading.Event()
        self._over = threading.Event()
        self._may_close = threading.Event()
        self._memory = memory
        self._home = home
        self._clocks = clocks or Clocks()
        self._schedule = Schedule.of(tasks, self._clocks.monotonic())
        self._board = board or ProgressBoard()
        self._states: dict[str, str] = {}
        """The states of the tasks that run."""
        self._lock = threading.Lock()
        self._hooks = HookCounters()
        self._written = Status()
        self._written_s = 0.0
        former = status_file.read(home)
        self._status = Status(
            running=True,
            state="starting",
            pid=os.getpid(),
            since=self._clocks.now(),
            version=__version__,
            last_error=former.last_error,
            last_error_at=former.last_error_at,
            today=former.today,
            date=former.date,
            notice=memory.notice,
            chores=tuple(TaskStatus(task.name, task.every_s) for task in tasks),
        )

    def run(
        self,
        wait: Wait,
        is_in_place: Callable[[], bool] = lambda: True,
        close_server: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Work until `wait` returns; return False if running work had to be aborted."""
        closer = threading.Thread(target=self._work_and_close, name="lore-tasks", daemon=True)
        closer.start()
        apart_s, beats = self._apart_s(), 0
        while not wait(BEAT_S) and not self._over.is_set():
            if not is_in_place():
                log.warning("lock file gone, stopping")
                break
            apart_s = self._notice_jump(apart_s)
            self.tell()
            beats += 1
            if beats % _BEATS_TO_TRIM == 0:
                self._memory.maintenance.release_memory()
                trim()
            if beats == _BEATS_TO_TRIM:
                freeze()
        self.stopping.set()
        until = time.monotonic() + GRACE_S
        self._memory.digest.interrupt()
        closed = close_server()
        self._may_close.set()
        closer.join(max(0.0, until - time.monotonic()))
        ended = closed and not closer.is_alive()
        log.info("stopped", extra={"cut_off": not ended})
        self._change(state="stopped", running=False, server="")
        self.tell()
        return ended

    def _work_and_close(self) -> None:
        """Work in the threads that the tasks name; close the memory when all have ended."""
        turns = self._schedule.turns
        names = dict.fromkeys(turn.task.thread for turn in turns)
        schedules = [Schedule([one for one in turns if one.task.thread == name]) for name in names]
        workers = [
            threading.Thread(target=self._work, args=(schedule,), name=f"lore-{name}", daemon=True)
            for name, schedule in zip(names, schedules, strict=True)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self._over.set()
        self._may_close.wait()  # open requests still read and write
        self._memory.close()

    def _work(self, schedule: Schedule) -> None:
        try:
            self.work(schedule)
        finally:
            self.stopping.set()  # one thread never ends alone

    def work(self, schedule: Schedule | None = None) -> None:
        """Run the tasks of a schedule as they come due, until it is time to stop."""
        schedule = schedule or self._schedule
        self._count_queues()
        while not self.stopping.is_set():
            for turn in schedule.due(self._clocks.monotonic()):
                if not self.stopping.is_set():
                    self.take_turn(turn)
            self._count_queues()
            self._show_state()
            self.stopping.wait(schedule.pause_s(self._clocks.monotonic()))

    def take_turn(self, turn: Turn) -> None:
        """Run one task; a failure is recorded, and the other tasks go on."""
        task, clocks = turn.task, self._clocks
        self._show_state({task.name: task.state})
        started_s = clocks.monotonic()
        outcome = attempt(lambda: task.run(self._memory, self.stopping.is_set))
        ended_s = clocks.monotonic()
        with self._lock:
            self._states.pop(task.name, None)
        self._board.clear(task.name)
        failed = isinstance(outcome, Failure)
        more = isinstance(outcome, TaskResult) and outcome.more
        self._schedule.ran(turn, ended_s, failed=failed, more=more)
        ran = TaskStatus(
            task.name,
            task.every_s,
            last_run=clocks.now(),
            next_run=clocks.now() + timedelta(seconds=max(0.0, turn.due_s - ended_s)),
            took_s=round(ended_s - started_s, 3),
            failures=turn.failures,
            last_error=outcome.message if isinstance(outcome, Failure) else "",
        )
        with self._lock:
            self._status = replace(
                self._status,
                chores=tuple(ran if c.name == ran.name else c for c in self._status.chores),
            )
        if isinstance(outcome, Failure):
            self._write_down(ran, outcome)
        else:
            self._count(ran, outcome.counts)

    def _write_down(self, ran: TaskStatus, failure: Failure) -> None:
        self._change(last_error=f"{ran.name}: {failure.message}", last_error_at=ran.last_run)
        fields = {"error": failure.kind, "place": failure.place, "failures": ran.failures}
        log.warning("task failed", extra={"task": ran.name, **fields})

    def _count(self, ran: TaskStatus, counts: Mapping[str, int]) -> None:
        """Add to the counts of today; a task that had nothing to do is not logged."""
        nonzero = {name: count for name, count in counts.items() if count}
        if not nonzero:
            return
        fields = {name.replace(" ", "_"): count for name, count in nonzero.items()}
        log.info("task done", extra={"task": ran.name, "took_s": ran.took_s, **fields})
        date = self._clocks.now().astimezone().date().isoformat()
        with self._lock:
            today = dict(self._status.today) if self._status.date == date else {}
            for name, count in nonzero.items():
                today[name] = today.get(name, 0) + count
            self._status = replace(self._status, today=today, date=date)

    def _count_queues(self) -> None:
        counted = attempt(self._memory.maintenance.queues)
        if not isinstance(counted, Failure):
            self._change(**asdict(counted))

    def _show_state(self, begun: Mapping[str, str] | None = None) -> None:
        """Show what runs, and what begins now."""
        with self._lock:
            self._states |= begun or {}
            state = ", ".join(dict.fromkeys(self._states.values())) or "idle"
            self._status = replace(self._status, state=state)

    def _change(self, **fields: object) -> None:
        with self._lock:
            self._status = replace(self._status, **fields)  # type: ignore[arg-type]  # its own fields

    def tell_server(self, url: str, notice: str) -> None:
        """Record where the server listens, and its notice."""
        self._change(server=url, server_notice=notice)

    def follow_hooks(self, tally: HookCounters) -> None:
        """Report these counters of hooks from now on."""
        self._hooks = tally

    def tell(self) -> None:
        """Write the status if it changed, or if its times are old."""
        gateway = self._memory.context.gateway_stats
        with self._lock:
            present = replace(
                self._status,
                memory_mb=round(status_file.resident_mb(), 1),
                hooks=asdict(self._hooks),
                requests=gateway.requests,
                last_direct_at=gateway.last_direct_at,
                degraded=gateway.degraded(),
                chores=tuple(map(self._with_progress, self._status.chores)),
            )
        passed_s = self._clocks.monotonic() - self._written_s
        if _without_timings(present) != _without_timings(self._written) or passed_s >= UNCHANGED_S:
            status_file.write(self._home, present)
            self._written, self._written_s = present, self._clocks.monotonic()

    def _with_progress(self, task: TaskStatus) -> TaskStatus:
        if task.name not in self._states:
            return task
        progress = self._board.find(task.name)
        fields = {} if progress is None else asdict(progress)
        return replace(task, running=True, **fields)

    def _apart_s(self) -> float:
        return self._clocks.now().timestamp() - self._clocks.monotonic()

    def _notice_jump(self, before_s: float) -> float:
        """Log that the clock was set or the machine slept; tasks use the monotonic clock."""
        apart_s = self._apart_s()
        if abs(apart_s - before_s) > _JUMP_S:
            log.info("clock moved", extra={"by_s": round(apart_s - before_s)})
        return apart_s


def _without_timings(status: Status) -> Status:
    """Return a status without the fields that change all the time."""
    tasks = tuple(replace(c, last_run=None, next_run=None, took_s=0.0) for c in status.chores)
    return replace(status, chores=tasks, memory_mb=round(status.memory_mb, -1))


def serve(
    settings: Settings,
    *,
    echo: bool = False,
    tasks: Sequence[PeriodicTask] | None = None,
    on_ready: Callable[[str], None] = lambda _notice: None,
    run_command: CommandRunner | None = None,
) -> bool:
    """Run the daemon of a home until a signal arrives; return False if work was aborted."""
    home = settings.home
    holder = daemon_lock.find_holder(home)
    if holder is not None:
        raise daemon_lock.already_running_error(home, holder)
    limit_heap()
    opened = _open(settings)
    place: BoundSocket | None = None
    try:
        with stop_signals() as wait, _take_lock(home, opened) as lock:
            if isinstance(opened, LoreError):
                with _open_log(home, echo=echo, may_fail=True):
                    recovered = DegradedServer(settings, opened).run(
                        wait, lock.is_in_place, on_ready
                    )
                if recovered is None:
                    return True
                (opened, place), on_ready = recovered, lambda _notice: None
            with (
                _named_lock(lock, home) as file_lock,
                _open_log(home, echo=echo),
                telemetry.recording(
                    settings.telemetry_endpoint, telemetry_variables(), version=__version__, log=log
                ),
            ):
                board = ProgressBoard()
                chosen = periodic_tasks(settings, board=board) if tasks is None else tasks
                daemon = Daemon(opened, chosen, home, board=board)
                server = HttpServer(
                    opened, daemon.tell_server, place=place, run_command=run_command
                )
                daemon.follow_hooks(server.hooks)
                daemon.tell()
                server.open()
                daemon.tell()
                on_ready(opened.notice)
                return daemon.run(wait, file_lock.is_in_place, server.close)
    except BaseException:
        if isinstance(opened, Memory):
            opened.close()
        raise


def _open(settings: Settings) -> Memory | LoreError:
    """Open the memory; with a gateway, an error is returned instead of raised."""
    try:
        return open_writable(settings)
    except (LoreError, OSError) as error:
        if not settings.gateway_on or not settings.home.is_dir():
            raise
        return open_error(error, settings.database)


@contextmanager
def _take_lock(home: Path, opened: Memory | LoreError) -> Iterator[DaemonLock]:
    """Hold the lock of a home; without a memory, the folder may be locked instead."""
    try:
        lock = daemon_lock.take_lock(home, now=clock.now(), version=__version__)
    except OSError as error:
        if not isinstance(opened, LoreError):
            raise
        try:
            lock = daemon_lock.lock_folder(home)
        except OSError:
            raise opened from error
    server_address.clear(home)
    try:
        yield lock
    finally:
        lock.release()


@contextmanager
def _named_lock(lock: DaemonLock, home: Path) -> Iterator[DaemonLock]:
    """Yield a lock that names its owner, now that files can be written."""
    if not lock.holds_folder_lock:
        yield lock
        return
    file_lock = daemon_lock.take_lock(home, now=clock.now(), version=__version__)
    try:
        yield file_lock
    finally:
        file_lock.release()


@contextmanager
def _open_log(home: Path, *, echo: bool, may_fail: bool = False) -> Iterator[None]:
    try:
        close_log = log_file.open_log(home, echo=echo)
    except OSError:
        if not may_fail:
            raise
        yield
        return
    log.info("started", extra={"pid": os.getpid(), "version": __version__})
    try:
        yield
    finally:
        close_log()


@contextmanager
def stop_signals() -> Iterator[Wait]:
    """Yield a function that waits for a stop signal and returns whether one arrived."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    former = {number: signal.signal(number, lambda *_: None) for number in _STOPPING}
    try:
        yield lambda timeout_s: bool(select.select([reading], [], [], timeout_s)[0])
    finally:
        for number, action in former.items():
            signal.signal(number, action)
        signal.set_wakeup_fd(before)
        os.close(reading)
        os.close(writing)
