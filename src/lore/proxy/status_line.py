"""Status line: what the daemon of a home does, on one line for an agent's screen.

Agents run this after every message, so that it only reads the file that the daemon writes.
"""

from __future__ import annotations

import json
import os

from lore.proxy.address import find_address, read_file

TYPE_CHECKING = False  # as type checkers read it; importing `typing` would double the start-up

if TYPE_CHECKING:
    from typing import Any

STATUS_FILE = "status.json"
_MAX_FILE_BYTES = 1_000_000
_PASSING = "passing"


def describe(home: str) -> str:
    """Return the line: whether memory is on, what was spent today, and what is digested."""
    status = _read_status(home) if home else {}
    if not home or find_address(home) is None:
        return "lore: memory off ('lore up -d' starts it)"
    if status.get("state") == _PASSING:
        return "lore: memory unavailable ('lore status' says why)"
    return "lore: " + ", ".join(["memory on", _spend(status), *_work(status)])


def _spend(status: dict[str, Any]) -> str:
    spent_usd = _number(status.get("agents_usd")) + _number(status.get("spent_usd"))
    budget_usd = _number(status.get("day_budget_usd"))
    limit = f" of ${budget_usd:.2f}" if budget_usd else ""
    return f"${spent_usd:.2f}{limit} today"


def _work(status: dict[str, Any]) -> list[str]:
    """Return what the daemon works on, and what waits."""
    tasks = status.get("chores")
    running = [
        task
        for task in (tasks if isinstance(tasks, list) else ())
        if isinstance(task, dict) and task.get("running") and _number(task.get("total"))
    ]
    parts = [
        f"{str(task.get('name', ''))[:20]} {_number(task.get('done')) / _number(task['total']):.0%}"
        for task in running[:1]
    ]
    waiting = int(_number(status.get("jobs_pending")))
    if waiting:
        parts.append(f"{waiting:,} job{'' if waiting == 1 else 's'} waiting")
    return [part for part in parts if part.isprintable()]


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _read_status(home: str) -> dict[str, Any]:
    """Return the status that the daemon wrote."""
    try:
        status = json.loads(read_file(os.path.join(home, STATUS_FILE), _MAX_FILE_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return status if isinstance(status, dict) else {}
