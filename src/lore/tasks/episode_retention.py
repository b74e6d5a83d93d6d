"""Retention of episodes: whole for 7 days, summarized to 30 days, then archived."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from lore import clock
from lore.records import RetentionResult
from lore.store import distillations, fragments, reversible_changes, task_memories
from lore.store.consolidation import StepRecorder, ignore_step
from lore.store.database import Connection, Database
from lore.tasks import command_steps, lessons

WHOLE = timedelta(days=7)
SUMMARIZED = timedelta(days=30)
"""From the specification."""

DETAIL = "detail"
SUMMARY = "summary"
"""The payload of a summarized episode says so: its session has the rest."""

_MOST_ACTIONS, _MOST_READ = 40, 10
_ALL = 1_000_000


def apply_retention(
    database: Database, *, recorder: StepRecorder = ignore_step, dry_run: bool = False
) -> RetentionResult:
    """Summarize the episodes older than a week, and archive unreferenced ones after a month.

    Only an episode that can be derived from its session again is summarized. An archived one stays
    as it is and is shown on request.
    """
    now = database.now()
    with database.read() as db:
        summarized, archived, referenced = _plan(db, now)
    if not dry_run and (summarized or archived):

        def work(db: Connection) -> None:
            for n in summarized:
                _summarize(db, n, now, recorder)
            for n in archived:
                reversible_changes.archive(db, n, now=now, recorder=recorder)

        database.write(work)
    return RetentionResult(len(summarized), len(archived), referenced)


def _plan(db: Connection, now: datetime) -> tuple[list[int], list[int], int]:
    """Return the episodes to summarize, those to archive, and how many old ones are referred to."""
    rows = task_memories.episodes(db, limit=_ALL)
    old = [row for row in rows if row.ended_us < clock.to_us(now - WHOLE)]
    in_use = task_memories.referenced_episodes(db)
    month = clock.to_us(now - SUMMARIZED)
    archived = [row.n for row in old if row.ended_us < month and row.n not in in_use]
    referenced = sum(row.ended_us < month and row.n in in_use for row in old)
    rest = sorted({row.n for row in old} - set(archived))
    by_number = fragments.by_number(db, rest)
    summarized = [
        n
        for n, one in by_number.items()
        if one.metadata == distillations.SESSION_EPISODE
        and one.payload.get(DETAIL) != SUMMARY
        and summarize(one.payload) != one.payload | {DETAIL: SUMMARY}
    ]
    return summarized, archived, referenced


def _summarize(db: Connection, n: int, now: datetime, recorder: StepRecorder) -> None:
    fragment = fragments.get(db, n)
    reversible_changes.set_payload(
        db,
        n,
        summarize(fragment.payload),
        confidence=fragment.confidence,
        now=now,
        recorder=recorder,
    )


def summarize(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the payload of an episode without actions and files that teach nothing later.

    Failures, changes and commands that did something stay.
    """
    actions = payload.get("actions")
    telling = [one for one in actions if _is_telling(one)] if isinstance(actions, list) else []
    half = _MOST_ACTIONS // 2
    shown = telling if len(telling) <= _MOST_ACTIONS else [*telling[:half], *telling[-half:]]
    read = payload.get("files_read")
    return payload | {
        "actions": shown,
        "files_read": read[:_MOST_READ] if isinstance(read, list) else [],
        DETAIL: SUMMARY,
    }


def _is_telling(action: Any) -> bool:
    if not isinstance(action, dict):
        return False
    if action.get("result") == "failed":
        return True
    target = str(action.get("target", ""))
    if str(action.get("action", "")).lower() in lessons.RUN_TOOLS:
        return bool(command_steps.split_steps(target))
    return str(action.get("action", "")).lower() in _CHANGES


_CHANGES = ("edit", "write", "multiedit", "apply_patch", "notebookedit", "str_replace", "replace")
