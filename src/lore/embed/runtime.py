"""Process-wide settings of the ONNX runtime: the number of cores, and no telemetry."""

from __future__ import annotations

import os
from pathlib import Path

_CONTROL_GROUP = Path("/sys/fs/cgroup")


def count_cores(control_group: Path = _CONTROL_GROUP) -> int:
    """Return the cores that CPU affinity and the container's limit allow, at least 1."""
    allowed = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    quota = _read_quota(control_group)
    return max(1, min(allowed, int(quota)) if quota else allowed)


def _read_quota(control_group: Path) -> float | None:
    try:
        quota, _, period = (control_group / "cpu.max").read_text().strip().partition(" ")
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


SWITCH = "ORT_DISABLE_TELEMETRY"
"""Since 1.29, builds for Linux and macOS give a machine an id, record the models it runs and send
that. The variable is read once, at load time; the runtime's own function comes too late."""


def disable_telemetry() -> None:
    """Disable the runtime's telemetry in this process and its children."""
    os.environ[SWITCH] = "1"  # noqa: TID251 - it is written, not read
