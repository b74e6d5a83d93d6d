"""The hook: what an agent tells Lore at a moment of its session, and what it is given for it.

The agent waits for it. Whatever happens, the process ends in time, with exit code 0, and says
nothing but what the agent is to read.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from lore.bridges.address import find_address
from lore.bridges.wire import Call, encoded

TYPE_CHECKING = False  # as type checkers read it; `typing` would double the start of a hook

if TYPE_CHECKING:
    from collections.abc import Callable

PATH = "/api/v1/hooks/"

WHOLE_S = 0.18
"""How long the process may take from its start, so that it has ended after 200 ms."""

ENDING_S = 0.02
"""What is left of that for printing the answer."""

_LARGEST_INPUT = 4_000_000
"""Tools give back large texts; one that is larger is not worth the agent's time."""

_ASSUMED_AGE_S = 0.04
"""What the interpreter takes to come this far, where the system does not tell."""


def run(event: str, home: str, wake: Callable[[str], None]) -> None:
    """Pass on what the agent says and print what it is given; `wake` starts a Lore, unwaited."""
    try:
        until = time.monotonic() + WHOLE_S - _age_s()
        _end_at(until)
        _answer(event, home, until - ENDING_S, wake)
    finally:
        os._exit(0)


def _answer(event: str, home: str, until: float, wake: Callable[[str], None]) -> None:
    address = find_address(home)
    if address is None:
        if event == "SessionStart":
            wake(home)
        return
    body = sys.stdin.buffer.read(_LARGEST_INPUT + 1)
    left = until - time.monotonic()
    if not body or len(body) > _LARGEST_INPUT or left <= 0 or not event.isalnum():
        return
    headers = {"x-lore-within-ms": str(int(left * 1000)), "x-lore-project": encoded(os.getcwd())}
    status, answer = Call().post(address, PATH + encoded(event), body, headers, left)
    if status == 200 and answer.strip() not in (b"", b"{}"):
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()


def _end_at(until: float) -> None:
    """End the process at a moment, whatever it waits for then: input, an answer, a full pipe."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, max(until - time.monotonic(), 1e-3))


def _age_s() -> float:
    """Return how long ago this process began."""
    try:
        with open("/proc/self/stat", "rb") as stat:
            ticks = int(stat.read().rpartition(b")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return _ASSUMED_AGE_S
