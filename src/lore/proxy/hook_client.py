"""Hook client: post an agent's hook event to the daemon and print the response in time.

The agent waits for this process. It always exits in time, with code 0, and prints nothing but what
the agent should read. For events that expect no response, a child process posts the event, so that
the agent does not wait at all.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from lore.proxy.address import API_PREFIX, Address, find_address

TYPE_CHECKING = False  # Events whose response the agent waits for.

if TYPE_CHECKING:
    from collections.abc import Callable


BLOCKING_EVENTS = (
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure",
    "SubagentStart",
)  # fmt: skip
"""Events that expect no response."""

NOTIFICATION_EVENTS = ("PreCompact", "Stop", "SubagentStop", "SessionEnd")
"""type checkers know this name; importing `typing` would double the start-up time"""

HOOK_EVENTS = (*BLOCKING_EVENTS, *NOTIFICATION_EVENTS)

HOOK_PATH = f"{API_PREFIX}/hooks/"

HOOK_TIMEOUT_S = 0.18
"""Time limit of the process from its start, so that it exits within 200 ms.

The setting `inject.within_ms` overrides it.
"""

SESSION_START_TIMEOUT_S = 1.5
"""Time limit when a session starts and a daemon runs.

It applies once per session: on a busy machine half of the sessions would otherwise start without
memory, to save a tenth of a second.
"""

_SESSION_START = "SessionStart"
_DAEMON_START_EVENTS = (_SESSION_START, "UserPromptSubmit")
"""Events that start a daemon if none runs, so that the next prompt has memory."""

START_LOCK_FILE = "waking"

_START_RETRY_S = 30.0
"""After this many seconds an earlier attempt to start the daemon has ended.

Of sessions that start together, only one starts a daemon.
"""

NOTIFICATION_TIMEOUT_S = 60.0
"""Timeout of the child process: distilling a long session takes seconds."""

_MIN_TIMEOUT_S = 0.02
"""Minimum time limit of a process that started slowly; its input is available at once."""

PRINT_RESERVE_S = 0.02
"""Part of the time limit that is reserved for printing the response."""

_MIN_FREE_BYTES = 4_096
"""One disk block, the smallest size of a file."""

_MAX_INPUT_BYTES = 4_000_000
"""Tool outputs can be large; a larger one is not worth the agent's time."""

_DEFAULT_AGE_S = 0.04
"""Start-up time of the interpreter, where the system does not report it."""


def run_hook(
    event: str,
    home: str,
    start_daemon: Callable[[str], None],
    answer_locally: Callable[[str, str, bytes], bytes],
    disk_of: Callable[[str], os.statvfs_result] = os.statvfs,
    *,
    within_s: float = 0.0,
) -> None:
    """Post the agent's input to the daemon and print the response; always exit with code 0.

    `start_daemon` does not wait for the daemon. `answer_locally` answers in this process where
    no daemon can write its address because the disk is full. `within_s` overrides the time limit.
    """
    try:
        started = time.monotonic() - _process_age_s()
        whole_s = within_s or HOOK_TIMEOUT_S
        if event == _SESSION_START:
            whole_s = max(whole_s, SESSION_START_TIMEOUT_S)
        _exit_at(started + whole_s)
        address = find_address(home)
        if address is None:
            if event in _DAEMON_START_EVENTS and _claim_daemon_start(home, event):
                start_daemon(home)
            if event == _SESSION_START and _is_disk_full(disk_of(home)):
                _print(answer_locally(event, home, _read_input()))
        elif event in NOTIFICATION_EVENTS:
            _post_in_background(event, address)
        else:
            wanted_s = within_s or address.hook_s or HOOK_TIMEOUT_S
            until = started + (max(wanted_s, whole_s) if event == _SESSION_START else wanted_s)
            _exit_at(until)
            _print_response(event, address, until - PRINT_RESERVE_S)
    finally:
        os._exit(0)  # for errors too: agents treat another exit code as a refusal, or show it


def _claim_daemon_start(home: str, event: str) -> bool:
    """Return whether this process may start a daemon, and claim the start if so.

    A prompt alone starts no daemon for a home that does not exist yet. No process starts one if the
    home is not writable, or else every prompt would try.
    """
    path = os.path.join(home, START_LOCK_FILE)
    try:
        now_s = time.time()  # noqa: TID251 - the clock of files; lore.clock would load datetime
        if abs(now_s - os.stat(path).st_mtime) < _START_RETRY_S:
            return False
    except FileNotFoundError:
        pass
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        os.close(os.open(path, flags, 0o600))
        os.utime(path)
    except FileNotFoundError:
        return event == _SESSION_START
    except OSError:
        return False
    return True


def _print_response(event: str, address: Address, until: float) -> None:
    body = _read_input()
    left_s = until - time.monotonic()
    if not body or left_s <= 0 or not event.isalnum():
        return
    status, answer = _post(event, address, body, left_s)
    if status == 200:
        _print(answer)


def _print(answer: bytes) -> None:
    if answer.strip() not in (b"", b"{}"):
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()


def _is_disk_full(disk: os.statvfs_result) -> bool:
    """Return whether a disk has no room for the small file that holds the daemon's address.

    A disk can also run out of inodes; file systems without inode counts report zero.
    """
    has_no_place = disk.f_files > 0 and disk.f_favail == 0
    return has_no_place or disk.f_bavail * disk.f_frsize < _MIN_FREE_BYTES


def _post_in_background(event: str, address: Address) -> None:
    """Fork a child that posts the event, detached from the agent's pipes and signals."""
    body = _read_input()
    if not body or os.fork():
        return
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)  # the agent would wait until its pipes are closed
    _post(event, address, body, NOTIFICATION_TIMEOUT_S)


def _post(event: str, address: Address, body: bytes, within_s: float) -> tuple[int, bytes]:
    from lore.proxy.daemon_client import DaemonCall, percent_encode  # it imports `socket`

    headers = {
        "x-lore-within-ms": str(int(within_s * 1000)),
        "x-lore-project": percent_encode(os.getcwd()),
    }
    return DaemonCall().post(address, HOOK_PATH + percent_encode(event), body, headers, within_s)


def _read_input() -> bytes:
    """Return the agent's input, or b'' if it exceeds the limit."""
    body = sys.stdin.buffer.read(_MAX_INPUT_BYTES + 1)
    return b"" if len(body) > _MAX_INPUT_BYTES else body


def _exit_at(until: float) -> None:
    """Exit the process at a deadline, whatever it waits for: input, a response, a full pipe."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, max(until - time.monotonic(), _MIN_TIMEOUT_S))


def _process_age_s() -> float:
    try:
        with open("/proc/self/stat", "rb") as stat:
            ticks = int(stat.read().rpartition(b")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return _DEFAULT_AGE_S
