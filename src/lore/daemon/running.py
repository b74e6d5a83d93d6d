"""Running: chores in one thread, and beside it the one that listens and tells."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from lore import __version__, clock
from lore.daemon import address, heap, lock, logfile, status
from lore.daemon.attempts import Failure, attempt, log
from lore.daemon.chores import Chore, Done, chores_of
from lore.daemon.doors import Doors, Place
from lore.daemon.lock import Lock
from lore.daemon.passing import Passing, find_trouble, open_writable
from lore.daemon.schedule import Schedule, Turn
from lore.daemon.status import ChoreStatus, Status
from lore.errors import LoreError
from lore.http.tally import Tally
from lore.memory import Memory
from lore.settings import Settings

BEAT_S = 2.0
"""How often the daemon looks at itself and tells what changed."""

UNCHANGED_S = 30.0
"""How often it tells the times of its chores where nothing else has changed."""

GRACE_S = 3.0
"""What is at hand may take so long to end; then it is cut off, which loses nothing stored."""

_JUMP_S = 60.0
"""A clock that moves by more than this between beats was set, or the machine slept."""

_BEATS_TO_TRIM = 5
"""Freed memory goes back every 10 s: a walk over the heap, a millisecond or two."""

_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

Wait = Callable[[float], bool]


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clock that can be set, and the one that cannot."""

    now: clock.Clock = clock.now
    monotonic: Callable[[], float] = time.monotonic


class Daemon:
    """The chores of one memory, and what is to be told of them."""

    def __init__(
        self, memory: Memory, chores: Sequence[Chore], home: Path, clocks: Clocks | None = None
    ) -> None:
        self.stopping = threading.Event()
        self._over = threading.Event()
        self._may_close = threading.Event()
        self._memory = memory
        self._home = home
        self._clocks = clocks or Clocks()
        self._schedule = Schedule.of(chores, self._clocks.monotonic())
        self._lock = threading.Lock()
        self._hooks = Tally()
        self._written = Status()
        self._written_s = 0.0
        former = status.read(home)
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
            chores=tuple(ChoreStatus(chore.name, chore.every_s) for chore in chores),
        )

    def run(
        self,
        wait: Wait,
        is_in_place: Callable[[], bool] = lambda: True,
        close_doors: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Work until `wait` says that it is time to stop; False if that had to be cut off."""
        worker = threading.Thread(target=self._work_and_close, name="lore-chores", daemon=True)
        worker.start()
        apart_s, beats = self._apart_s(), 0
        while not wait(BEAT_S) and not self._over.is_set():
            if not is_in_place():
                log.warning("lock file gone, stopping")
                break
            apart_s = self._notice_jump(apart_s)
            self.tell()
            beats += 1
            if beats % _BEATS_TO_TRIM == 0:
                heap.give_back()
        self.stopping.set()
        until = time.monotonic() + GRACE_S
        self._memory.interrupt()
        closed = close_doors()
        self._may_close.set()
        worker.join(max(0.0, until - time.monotonic()))
        ended = closed and not worker.is_alive()
        log.info("stopped", extra={"cut_off": not ended})
        self._change(state="stopped", running=False, server="")
        self.tell()
        return ended

    def _work_and_close(self) -> None:
        try:
            self.work()
        finally:
            self._over.set()
            self._may_close.wait()  # requests at hand still read and write
            self._memory.close()

    def work(self) -> None:
        """Do the chores as they come due, until it is time to stop."""
        self._count_queues()
        while not self.stopping.is_set():
            for turn in self._schedule.due(self._clocks.monotonic()):
                if not self.stopping.is_set():
                    self.take_turn(turn)
            self._count_queues()
            self._change(state="idle")
            self.stopping.wait(self._schedule.pause_s(self._clocks.monotonic()))

    def take_turn(self, turn: Turn) -> None:
        """Do one chore; whatever goes wrong is written down, and the others go on."""
        chore, clocks = turn.chore, self._clocks
        self._change(state=chore.state)
        started_s = clocks.monotonic()
        outcome = attempt(lambda: chore.run(self._memory, self.stopping.is_set))
        ended_s = clocks.monotonic()
        failed = isinstance(outcome, Failure)
        more = isinstance(outcome, Done) and outcome.more
        self._schedule.ran(turn, ended_s, failed=failed, more=more)
        ran = ChoreStatus(
            chore.name,
            chore.every_s,
            last_run=clocks.now(),
            next_run=_later(clocks.now(), turn.due_s - ended_s),
            took_s=round(ended_s - started_s, 3),
            failures=turn.failures,
            last_error=outcome.told if isinstance(outcome, Failure) else "",
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

    def _write_down(self, ran: ChoreStatus, failure: Failure) -> None:
        self._change(last_error=f"{ran.name}: {failure.told}", last_error_at=ran.last_run)
        fields = {"error": failure.kind, "place": failure.place, "failures": ran.failures}
        log.warning("chore failed", extra={"chore": ran.name, **fields})

    def _count(self, ran: ChoreStatus, counts: Mapping[str, int]) -> None:
        """Add to what was done today; a chore that found nothing to do is not worth a line."""
        done = {name: count for name, count in counts.items() if count}
        if not done:
            return
        fields = {name.replace(" ", "_"): count for name, count in done.items()}
        log.info("chore done", extra={"chore": ran.name, "took_s": ran.took_s, **fields})
        date = self._clocks.now().astimezone().date().isoformat()
        with self._lock:
            today = dict(self._status.today) if self._status.date == date else {}
            for name, count in done.items():
                today[name] = today.get(name, 0) + count
            self._status = replace(self._status, today=today, date=date)

    def _count_queues(self) -> None:
        counted = attempt(self._memory.queues)
        if not isinstance(counted, Failure):
            self._change(**asdict(counted))

    def _change(self, **fields: object) -> None:
        with self._lock:
            self._status = replace(self._status, **fields)  # type: ignore[arg-type]  # its own fields

    def tell_server(self, url: str, notice: str) -> None:
        """Tell where the server listens, and what is less than usual with it."""
        self._change(server=url, server_notice=notice)

    def follow_hooks(self, tally: Tally) -> None:
        """Tell from now on what is counted here."""
        self._hooks = tally

    def tell(self) -> None:
        """Write the status if it has changed, or if the times in it have grown old."""
        with self._lock:
            present = replace(
                self._status,
                memory_mb=round(status.resident_mb(), 1),
                hooks=asdict(self._hooks),
                requests=self._memory.passing.requests,
                degraded=self._memory.passing.degraded(),
            )
        passed_s = self._clocks.monotonic() - self._written_s
        if _essence(present) != _essence(self._written) or passed_s >= UNCHANGED_S:
            status.write(self._home, present)
            self._written, self._written_s = present, self._clocks.monotonic()

    def _apart_s(self) -> float:
        return self._clocks.now().timestamp() - self._clocks.monotonic()

    def _notice_jump(self, before_s: float) -> float:
        """Log that the clock was set or the machine slept; chores do not go by that clock."""
        apart_s = self._apart_s()
        if abs(apart_s - before_s) > _JUMP_S:
            log.info("clock moved", extra={"by_s": round(apart_s - before_s)})
        return apart_s


def _later(now: datetime, delay_s: float) -> datetime:
    return now + timedelta(seconds=max(0.0, delay_s))


def _essence(told: Status) -> Status:
    """Return a status without what changes all the time."""
    chores = tuple(replace(c, last_run=None, next_run=None, took_s=0.0) for c in told.chores)
    return replace(told, chores=chores, memory_mb=round(told.memory_mb, -1))


def serve(
    settings: Settings,
    *,
    echo: bool = False,
    chores: Sequence[Chore] | None = None,
    on_ready: Callable[[str], None] = lambda _notice: None,
) -> bool:
    """Be the daemon of a home until a signal comes; False if what was at hand was cut off."""
    home = settings.home
    holder = lock.find_holder(home)
    if holder is not None:
        raise lock.already_running(home, holder)
    heap.bound()
    opened = _open(settings)
    place: Place | None = None
    try:
        with _signals() as wait, _locked(home, opened) as held:
            if isinstance(opened, LoreError):
                with _logged(home, echo=echo, may_fail=True):
                    recovered = Passing(settings, opened).run(wait, held.is_in_place, on_ready)
                if recovered is None:
                    return True
                opened, place, on_ready = recovered.memory, recovered.place, lambda _notice: None
            with _named(held, home) as named, _logged(home, echo=echo):
                daemon = Daemon(opened, chores_of(settings) if chores is None else chores, home)
                doors = Doors(opened, daemon.tell_server, place=place)
                daemon.follow_hooks(doors.hooks)
                daemon.tell()
                doors.open()
                daemon.tell()
                on_ready(opened.notice)
                return daemon.run(wait, named.is_in_place, doors.close)
    except BaseException:
        if isinstance(opened, Memory):
            opened.close()
        raise


def _open(settings: Settings) -> Memory | LoreError:
    """Open the memory; where there is a gateway, what is wrong with it stops nobody."""
    try:
        return open_writable(settings)
    except (LoreError, OSError) as error:
        if not settings.gateway_on or not settings.home.is_dir():
            raise
        return find_trouble(error, settings.database)


@contextmanager
def _locked(home: Path, opened: Memory | LoreError) -> Iterator[Lock]:
    """Hold the lock of a home; without a memory also of one in which nothing can be written."""
    try:
        held = lock.take(home, now=clock.now(), version=__version__)
    except OSError as error:
        if not isinstance(opened, LoreError):
            raise
        try:
            held = lock.take_mutely(home)
        except OSError:
            raise opened from error
    address.clear(home)
    try:
        yield held
    finally:
        held.release()


@contextmanager
def _named(held: Lock, home: Path) -> Iterator[Lock]:
    """Give a lock that says whose it is, now that something can be written."""
    if not held.is_mute:
        yield held
        return
    named = lock.take(home, now=clock.now(), version=__version__)
    try:
        yield named
    finally:
        named.release()


@contextmanager
def _logged(home: Path, *, echo: bool, may_fail: bool = False) -> Iterator[None]:
    """Write the log of a home."""
    try:
        close_log = logfile.open_log(home, echo=echo)
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
def _signals() -> Iterator[Wait]:
    """Give a wait that ends, and is true, when this process is asked to stop."""
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
