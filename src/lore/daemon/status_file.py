"""The status file: what the daemon does, for other processes to read."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from lore.config_files import read_small_file, replace_file
from lore.daemon import daemon_lock
from lore.records import Check
from lore.records.gateway import LATE

STATUS_FILE = "status.json"

PASSING = "passing"
"""The state of a daemon without a memory, which only forwards requests to models."""

_MUTE = "The home cannot be written: the gateway forwards requests unchanged."

MAX_LATE_SHARE = 1 / 20
"""A larger share of late requests is worth a warning, since each may miss the provider's cache."""


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """The status of one periodic task."""

    name: str
    every_s: float
    last_run: datetime | None = None
    next_run: datetime | None = None
    took_s: float = 0.0
    failures: int = 0
    last_error: str = ""
    running: bool = False
    part: str = ""
    """What part of its work the task does now; `done` of `total`, for another `eta_s` seconds."""
    done: int = 0
    total: int = 0
    eta_s: float | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """What the daemon of a home does, or did when it ended."""

    running: bool = False
    state: str = "stopped"
    pid: int | None = None
    since: datetime | None = None
    version: str = ""
    waiting: int = 0
    jobs_pending: int = 0
    jobs_parked: int = 0
    spent_usd: float = 0.0
    budget_usd: float = 0.0
    agents_usd: float = 0.0
    day_budget_usd: float | None = None
    embedder: str = ""
    next_embedder: str = ""
    next_waiting: int = 0
    """Vectors of `embedder` are searched until none of the next one's items waits."""
    digester: str = ""
    calls_today: int = 0
    calls_per_day: int = 0
    """Calls of an agent's command; only a digester ending in '-cli' makes any."""
    unjudged: int = 0
    """Items that wait to be judged for what they replace."""
    last_error: str = ""
    last_error_at: datetime | None = None
    today: Mapping[str, int] = field(default_factory=dict)
    date: str = ""
    memory_mb: float = 0.0
    notice: str = ""
    server: str = ""
    server_notice: str = ""
    hooks: Mapping[str, int] = field(default_factory=dict)
    requests: int = 0
    last_direct_at: datetime | None = None
    """When an agent last used the gateway without the relay of 'lore run'."""
    degraded: Mapping[str, int] = field(default_factory=dict)
    """Requests that the gateway forwarded without memory since the start, by reason."""
    chores: tuple[TaskStatus, ...] = ()


def write(home: Path, status: Status) -> bool:
    """Replace the status file; return False if the disk is full."""
    content = json.dumps(asdict(status), default=datetime.isoformat, indent=1)
    try:
        replace_file(home / STATUS_FILE, content.encode())
    except OSError:
        return False
    return True


def remove(home: Path) -> None:
    """Remove the status file."""
    with suppress(OSError):
        (home / STATUS_FILE).unlink()


def describe_vectors(status: Status) -> str:
    """Return whose vectors are searched, and how many items are to be embedded again."""
    if not status.next_embedder:
        return status.embedder
    left = f"{status.next_waiting:,} item{'' if status.next_waiting == 1 else 's'} left to embed"
    return f"{status.embedder} serves; {left} with {status.next_embedder}"


def describe_digester(status: Status) -> str:
    """Return who digests conversations, and how often an agent's command was called today."""
    if "-cli" not in status.digester:
        return status.digester
    return f"{status.digester}, {status.calls_today:,} of {status.calls_per_day:,} calls today"


def has_stopped(home: Path) -> bool:
    """Return whether the last daemon of a home was stopped; one that was killed wrote no end."""
    return _read(home).state == "stopped"


def read(home: Path) -> Status:
    """Return the status of a home; a status of a dead daemon is marked as stopped."""
    status = _read(home)
    holder = daemon_lock.find_holder(home)
    if holder is None:
        return replace(status, running=False, state="stopped", pid=None, memory_mb=0.0, server="")
    if status.pid != holder.pid:
        status = replace(status, state="starting", chores=(), memory_mb=0.0, server="", hooks={})
        status = replace(status, requests=0, degraded={}, last_direct_at=None)
    if holder.holds_folder_lock and status.state == "starting":
        status = replace(status, state=PASSING, notice=_MUTE)
    return replace(status, running=True, pid=holder.pid, since=holder.since, version=holder.version)


def _read(home: Path) -> Status:
    try:
        tree = json.loads(read_small_file(home / STATUS_FILE))
        tasks = tuple(
            TaskStatus(**_known_fields(TaskStatus, task)) for task in tree.get("chores", ())
        )
        return Status(**{**_known_fields(Status, tree), "chores": tasks})
    except (OSError, ValueError, TypeError, AttributeError):
        return Status()


def _known_fields(kind: type, tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a record has fields for; another version may have others."""
    names = {spec.name for spec in fields(kind)}
    return {name: _value(name, value) for name, value in tree.items() if name in names}


def _value(name: str, value: Any) -> Any:
    is_moment = name in ("since", "last_run", "next_run", "last_error_at", "last_direct_at")
    return datetime.fromisoformat(value) if is_moment and value is not None else value


def describe_hooks(status: Status) -> str:
    """Return the outcomes of hook calls as text; empty if there were none."""
    words = {
        "answered": "given memory",
        "nothing": "without fitting memory",
        "late": "too late",
        "told": "that only reported",
    }
    counts = [f"{status.hooks.get(name, 0):,} {label}" for name, label in words.items()]
    return ", ".join(counts) if any(status.hooks.values()) else ""


def describe_gateway(status: Status) -> str:
    """Return the requests of the gateway as text; empty if there were none."""
    if not status.requests:
        return ""
    counts = f"{status.requests:,} requests, {sum(status.degraded.values()):,} without memory"
    reasons = ", ".join(f"{why} {n:,}" for why, n in sorted(status.degraded.items()))
    return f"{counts} ({reasons})" if reasons else counts


def check_gateway(status: Status, within_ms: int) -> list[Check]:
    """Check whether memory is fast enough for the requests since the start."""
    if not status.running or not status.requests:
        return []
    late = status.degraded.get(LATE, 0)
    if late <= MAX_LATE_SHARE * status.requests:
        return [Check("gateway", "ok", describe_gateway(status))]
    finding = f"{describe_gateway(status)}: memory takes longer than {within_ms} ms."
    remedy = "gateway.within_ms allows for more; 'lore logs' shows what else is slow."
    return [Check("gateway", "degraded", finding, remedy)]


def resident_mb() -> float:
    """Return the resident memory of this process, or its peak if the system reports no more."""
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
        return pages * resource.getpagesize() / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3
