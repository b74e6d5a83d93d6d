"""The status: what the daemon says of itself, in a file that others read."""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from lore.daemon import lock
from lore.records import Check

STATUS_FILE = "status.json"

PASSING = "passing"
"""The state of a daemon that has no memory and passes on what agents ask their models."""

_MUTE = "Nothing can be written in the home: what agents ask their models passes on as it is."

LATE = "late"
"""The reason of a request for which memory took too long; the gateway's own word."""

MOST_LATE = 1 / 20
"""Of more requests than that, each of which may cost a cache, a person should know."""


@dataclass(frozen=True, slots=True)
class ChoreStatus:
    """How a chore fares."""

    name: str
    every_s: float
    last_run: datetime | None = None
    next_run: datetime | None = None
    took_s: float = 0.0
    failures: int = 0
    last_error: str = ""


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
    degraded: Mapping[str, int] = field(default_factory=dict)
    """Requests that the gateway let pass without memory since the start, by reason."""
    chores: tuple[ChoreStatus, ...] = ()


def write(home: Path, status: Status) -> bool:
    """Put a status in the place of the former one; False if there is no room for it."""
    path = home / STATUS_FILE
    part = path.with_name(f"{STATUS_FILE}.part-{os.getpid()}")
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123
            file.write(json.dumps(asdict(status), default=datetime.isoformat, indent=1).encode())
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        return False
    return True


def remove(home: Path) -> None:
    """Remove what was said last."""
    with suppress(OSError):
        (home / STATUS_FILE).unlink()


def read(home: Path) -> Status:
    """Return the status of a home; what a dead daemon wrote is not taken for the present."""
    said = _read(home)
    holder = lock.find_holder(home)
    if holder is None:
        return replace(said, running=False, state="stopped", pid=None, memory_mb=0.0, server="")
    if said.pid != holder.pid:
        said = replace(said, state="starting", chores=(), memory_mb=0.0, server="", hooks={})
        said = replace(said, requests=0, degraded={})
    if holder.is_mute and said.state == "starting":
        said = replace(said, state=PASSING, notice=_MUTE)
    return replace(said, running=True, pid=holder.pid, since=holder.since, version=holder.version)


def _read(home: Path) -> Status:
    try:
        tree = json.loads((home / STATUS_FILE).read_bytes())
        chores = tuple(
            ChoreStatus(**_known(ChoreStatus, chore)) for chore in tree.get("chores", ())
        )
        return Status(**{**_known(Status, tree), "chores": chores})
    except (OSError, ValueError, TypeError, AttributeError):
        return Status()


def _known(kind: type, tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a record has fields for; another version may know others."""
    names = {spec.name for spec in fields(kind)}
    return {name: _value(name, value) for name, value in tree.items() if name in names}


def _value(name: str, value: Any) -> Any:
    is_moment = name in ("since", "last_run", "next_run", "last_error_at")
    return datetime.fromisoformat(value) if is_moment and value is not None else value


def told_hooks(status: Status) -> str:
    """Return what became of the hooks that agents called, in words; nothing if none was."""
    words = {
        "answered": "answered",
        "nothing": "with nothing to say",
        "late": "too late",
        "told": "told something",
    }
    counts = [f"{status.hooks.get(name, 0):,} {told}" for name, told in words.items()]
    return ", ".join(counts) if any(status.hooks.values()) else ""


def told_gateway(status: Status) -> str:
    """Return what the gateway let pass, in words; nothing if that was nothing."""
    if not status.requests:
        return ""
    told = f"{status.requests:,} requests, {sum(status.degraded.values()):,} without memory"
    reasons = ", ".join(f"{why} {n:,}" for why, n in sorted(status.degraded.items()))
    return f"{told} ({reasons})" if reasons else told


def check_gateway(status: Status, within_ms: int) -> list[Check]:
    """Look whether memory keeps up with the requests of agents, if any came since the start."""
    if not status.running or not status.requests:
        return []
    late = status.degraded.get(LATE, 0)
    if late <= MOST_LATE * status.requests:
        return [Check("gateway", "ok", told_gateway(status))]
    told = f"{told_gateway(status)}: memory takes longer than {within_ms} ms."
    remedy = "gateway.within_ms allows for more; 'lore logs' shows what else is slow."
    return [Check("gateway", "degraded", told, remedy)]


def resident_mb() -> float:
    """Return how much memory this process has; where the system does not say, its peak."""
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
        return pages * resource.getpagesize() / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3
