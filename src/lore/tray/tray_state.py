"""What the tray icon shows and offers, derived from the status of the daemon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from lore.daemon.status_file import PASSING, Status, TaskStatus

State = Literal["stopped", "idle", "capturing", "consolidating", "syncing", "error"]

Action = Literal[
    "start", "stop", "capture", "consolidate", "sync", "explore", "logs", "quit"
]  # fmt: skip

STATES: Final[tuple[State, ...]] = (
    "stopped", "idle", "capturing", "consolidating", "syncing", "error",
)  # fmt: skip

COMMANDS: Final[Mapping[Action, Sequence[str]]] = {
    "start": ("up", "--detach"),
    "stop": ("down",),
    "capture": ("capture", "--all"),
    "consolidate": ("consolidate",),
    "sync": ("sync",),
    "explore": ("open",),
}
"""The command of `lore` behind each entry; the others need none."""

_WORK: Final[Sequence[tuple[State, frozenset[str]]]] = (
    ("syncing", frozenset({"syncing"})),
    ("consolidating", frozenset({"consolidating", "distilling", "judging"})),
    ("capturing", frozenset({"capturing", "embedding"})),
)
"""States of the daemon behind each state of the icon; the first that applies is shown."""

_IN_PROGRESS: Final[Mapping[Action, tuple[State, str]]] = {
    "start": ("stopped", "Lore is starting."),
    "stop": ("idle", "Lore is stopping."),
    "capture": ("capturing", "Lore captures the conversations of your agents."),
    "consolidate": ("consolidating", "Lore consolidates what it knows."),
    "sync": ("syncing", "Lore syncs with your other machine."),
}
"""What is shown while a command of the menu runs."""

NO_SYNC_TARGET: Final = "no target is set"

_LONGEST: Final = 200
"""Characters of an error in a tooltip or notification; panels cut longer ones."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An error for a notification: what happened, and what to do next."""

    message: str
    next_step: str


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the menu; a disabled one says why in its label, since panels show no tooltips."""

    label: str
    action: Action | None = None
    is_enabled: bool = True


SEPARATOR: Final = Entry("", None, is_enabled=False)


@dataclass(frozen=True, slots=True)
class View:
    """All that the icon shows: its state, one sentence, the menu, and an error if there is one."""

    state: State
    sentence: str
    menu: tuple[Entry, ...]
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command of the menu ended; `code` is its exit code."""

    code: int
    out: str = ""
    err: str = ""


def view_of(
    status: Status,
    in_progress: Action | None = None,
    failure: Problem | None = None,
    *,
    can_sync: bool = False,
) -> View:
    """Return what to show for a status, while a command runs or after one failed.

    `can_sync` says whether the settings name a machine to sync with.
    """
    problem = failure or _find_problem(status)
    state, sentence = _describe(status, problem)
    if in_progress is not None and in_progress in _IN_PROGRESS:
        state, sentence = _IN_PROGRESS[in_progress]
    menu = _menu(status, sentence, in_progress, can_sync=can_sync)
    return View(state, sentence, menu, problem)


def _find_problem(status: Status) -> Problem | None:
    if not status.running:
        return None
    if status.state == PASSING:
        reason = status.last_error or "The memory cannot be opened."
        return Problem(
            _shorten(f"Agents work without memory. {reason}"),
            "'lore doctor' says what is broken and how to repair it.",
        )
    for task in status.chores:
        if task.failures and task.last_error:
            return Problem(
                _shorten(f"{task.name}: {task.last_error}"),
                "Lore tries again by itself. 'lore logs' shows more.",
            )
    return None


def _describe(status: Status, problem: Problem | None) -> tuple[State, str]:
    """Return the state and a sentence of it."""
    if problem is not None:
        return "error", problem.message
    if not status.running:
        return "stopped", "Lore is stopped: agents work without memory."
    doing = set(status.state.split(", "))
    for state, names in _WORK:
        if doing & names:
            return state, _describe_work(state, status.chores)
    if status.jobs_parked:
        jobs = "A job has" if status.jobs_parked == 1 else f"{status.jobs_parked:,} jobs have"
        return "idle", f"{jobs} failed too often: 'lore jobs' lists what to do."
    stored = status.today.get("messages", 0)
    return "idle", f"Lore is idle; {stored:,} message{'' if stored == 1 else 's'} captured today."


def _describe_work(state: State, tasks: Sequence[TaskStatus]) -> str:
    names = {"capturing": "Lore captures", "consolidating": "Lore consolidates"}
    sentence = names.get(state, "Lore syncs")
    for task in tasks:
        if task.running and task.total:
            return f"{sentence}: {task.part}, {task.done:,} of {task.total:,}."
    return f"{sentence}."


def _menu(
    status: Status, sentence: str, in_progress: Action | None, *, can_sync: bool
) -> tuple[Entry, ...]:
    is_free = in_progress is None
    toggle = Entry("Stop Lore", "stop") if status.running else Entry("Start Lore", "start")
    sync = "Sync now" if can_sync else f"Sync ({NO_SYNC_TARGET})"
    explorer = "Open explorer" if status.running else "Open explorer (start Lore first)"
    return (
        Entry(sentence, None, is_enabled=False),
        SEPARATOR,
        Entry(toggle.label, toggle.action, is_enabled=is_free),
        Entry("Capture now", "capture", is_enabled=is_free),
        Entry("Consolidate now", "consolidate", is_enabled=is_free),
        Entry(sync, "sync", is_enabled=is_free and can_sync),
        SEPARATOR,
        Entry(explorer, "explore", is_enabled=is_free and bool(status.server)),
        Entry("Show log", "logs"),
        SEPARATOR,
        Entry("Quit", "quit"),
    )


def find_news(before: View | None, after: View, *, was_stopped: bool) -> Problem | None:
    """Return a problem that has to be notified: a new one, or a daemon that ended by itself."""
    if after.problem is not None:
        is_known = before is not None and before.problem == after.problem
        return None if is_known else after.problem
    if before is not None and before.state != "stopped" and after.state == "stopped":
        if was_stopped:
            return None
        return Problem("Lore ended unexpectedly.", "'Start Lore' starts it; the log says why.")
    return None


def failure_of(action: Action, result: CommandResult) -> Problem | None:
    """Return what went wrong in a command, in its own words, or None if nothing did."""
    if action == "explore" and result.code == 0 and "://" in result.out:
        return Problem(
            "No browser could be opened.", "'lore open' in a terminal prints the page's address."
        )
    if result.code == 0:
        return None
    lines = [line.strip() for line in result.err.splitlines() if line.strip()]
    message = lines[0].removeprefix("lore: ") if lines else f"It exited with code {result.code}."
    step = lines[1] if len(lines) > 1 else "'lore logs' shows more."
    return Problem(_shorten(message), _shorten(step))


def summary_of(action: Action, result: CommandResult) -> str:
    """Return what a command achieved, for a notification; most show it by the icon alone."""
    if result.code != 0 or action not in ("capture", "consolidate"):
        return ""
    if action == "consolidate":
        return "A consolidation cycle is done; the explorer's timeline shows what it changed."
    lines = [line.strip() for line in (result.out or result.err).splitlines() if line.strip()]
    return _shorten(lines[-1].removeprefix("lore: ")) if lines else "Nothing is new."


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
