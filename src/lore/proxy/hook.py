"""The hook: what an agent tells Lore at a moment of its session, and what it is given for it.

The agent waits for it. Whatever happens, the process ends in time, with exit code 0, and says
nothing but what the agent is to read. Where the agent is given nothing it does not wait either:
what it tells is passed on by a child that outlives the hook.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from lore.proxy.address import PREFIX, Address, find_address
from lore.proxy.events import TOLD
from lore.proxy.wire import Call, encoded

TYPE_CHECKING = False  # as type checkers read it; `typing` would double the start of a hook

if TYPE_CHECKING:
    from collections.abc import Callable

PATH = f"{PREFIX}/hooks/"

WHOLE_S = 0.18
"""How long the process may take from its start, so that it has ended after 200 ms, unless the
setting `inject.within_ms` gives it more or less."""

BEGINNING_S = 1.5
"""How long it may take where a session begins, once, with a daemon there: on a machine at work
half of the sessions would begin without memory for a tenth of a second."""

_BEGINNING = "SessionStart"
_WAKING = (_BEGINNING, "UserPromptSubmit")
"""The events that start a daemon where there is none, so that the next prompt has memory."""

WAKING_FILE = "waking"

_AGAIN_S = 30.0
"""A start that was begun so long ago has come to its end. Of sessions that begin together, one
starts a daemon."""

TOLD_S = 60.0
"""How long passing on may take: to condense a long session takes seconds."""

_LEAST_S = 0.02
"""What a process that was slow to start has all the same: its input is there at once."""

ENDING_S = 0.02
"""What is left of that for printing the answer."""

_LEAST_ROOM = 4_096
"""Bytes: a page, which is what a file of any length takes."""

_LARGEST_INPUT = 4_000_000
"""Tools give back large texts; one that is larger is not worth the agent's time."""

_ASSUMED_AGE_S = 0.04
"""What the interpreter takes to come this far, where the system does not tell."""


def run(
    event: str,
    home: str,
    wake: Callable[[str], None],
    alone: Callable[[str, str, bytes], bytes],
    disk_of: Callable[[str], os.statvfs_result] = os.statvfs,
) -> None:
    """Pass on what the agent says and print what it is given; `wake` starts a Lore, unwaited.

    `alone` answers where none can be found: on a full disk it cannot write where it listens.
    """
    try:
        started = time.monotonic() - _age_s()
        whole_s = BEGINNING_S if event == _BEGINNING else WHOLE_S
        _end_at(started + whole_s)
        address = find_address(home)
        if address is None:
            if event in _WAKING and _may_wake(home, event):
                wake(home)
            if event == _BEGINNING and _is_full(disk_of(home)):
                _print(alone(event, home, _input()))
        elif event in TOLD:
            _pass_on(event, address)
        else:
            wanted_s = address.hook_s or WHOLE_S
            until = started + (max(wanted_s, whole_s) if event == _BEGINNING else wanted_s)
            _end_at(until)
            _answer(event, address, until - ENDING_S)
    finally:
        os._exit(0)  # errors too: an agent takes another exit code for a refusal, or shows it


def _may_wake(home: str, event: str) -> bool:
    """Tell whether nobody has begun to start a daemon just now; from then on this process has.

    A prompt alone starts none for a home that nobody has made yet, and nobody starts one where
    nothing can be written: each prompt would.
    """
    path = os.path.join(home, WAKING_FILE)
    try:
        now_s = time.time()  # noqa: TID251 - the clock of files; lore.clock would load datetime
        if abs(now_s - os.stat(path).st_mtime) < _AGAIN_S:
            return False
    except FileNotFoundError:
        pass
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        os.close(os.open(path, flags, 0o600))
        os.utime(path)
    except FileNotFoundError:
        return event == _BEGINNING
    except OSError:
        return False
    return True


def _answer(event: str, address: Address, until: float) -> None:
    body = _input()
    left = until - time.monotonic()
    if not body or left <= 0 or not event.isalnum():
        return
    status, answer = _post(event, address, body, left)
    if status == 200:
        _print(answer)


def _print(answer: bytes) -> None:
    if answer.strip() not in (b"", b"{}"):
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()


def _is_full(disk: os.statvfs_result) -> bool:
    """Tell whether a disk has no room for the few bytes that say where Lore listens.

    One may have room and yet no place for a file more; one that counts no files has.
    """
    has_no_place = disk.f_files > 0 and disk.f_favail == 0
    return has_no_place or disk.f_bavail * disk.f_frsize < _LEAST_ROOM


def _pass_on(event: str, address: Address) -> None:
    """Let a child pass on what the agent tells, out of its sight and of its signals."""
    body = _input()
    if not body or os.fork():
        return
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)  # an agent would wait for the end of what has its pipes
    _post(event, address, body, TOLD_S)


def _post(event: str, address: Address, body: bytes, within_s: float) -> tuple[int, bytes]:
    headers = {
        "x-lore-within-ms": str(int(within_s * 1000)),
        "x-lore-project": encoded(os.getcwd()),
    }
    return Call().post(address, PATH + encoded(event), body, headers, within_s)


def _input() -> bytes:
    """Return what the agent says; nothing if that is too much."""
    body = sys.stdin.buffer.read(_LARGEST_INPUT + 1)
    return b"" if len(body) > _LARGEST_INPUT else body


def _end_at(until: float) -> None:
    """End the process at a moment, whatever it waits for then: input, an answer, a full pipe."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, max(until - time.monotonic(), _LEAST_S))


def _age_s() -> float:
    """Return how long ago this process began."""
    try:
        with open("/proc/self/stat", "rb") as stat:
            ticks = int(stat.read().rpartition(b")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return _ASSUMED_AGE_S
