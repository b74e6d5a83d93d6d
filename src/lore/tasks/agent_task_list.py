"""Task lists that agents keep with a tool: tasks of Claude Code, plans of Codex, todos."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from lore.text import call_text, sentences
from lore.text.regex import compile_lazy

Status = Literal["pending", "in_progress", "completed"]

_LISTS = frozenset(("todowrite", "todo_write", "write_todos", "update_plan"))
"""Tools that send the whole list: Claude Code and opencode, Cursor, Gemini CLI, Codex."""

_CREATE, _UPDATE = "taskcreate", "taskupdate"
"""Tools that change one task of Claude Code's list."""

_GOAL_CREATE, _GOAL_UPDATE, _GOAL_ID = "create_goal", "update_goal", "goal"
"""Tools of Codex that set the one goal of a session, and say how it went."""

_ONE_TASK = frozenset((_CREATE, _UPDATE, _GOAL_CREATE, _GOAL_UPDATE))

_SUBAGENTS = frozenset(("task", "agent", "spawn_agent"))
"""Tools that give a task to a subagent: Claude Code and opencode, Claude Code, Codex."""

_SUBJECT_FIELDS = ("subject", "content", "step", "objective", "description", "title", "text")
_STATUSES: Mapping[str, Status | None] = {
    "pending": "pending", "todo": "pending", "open": "pending", "blocked": "pending",
    "in_progress": "in_progress", "in-progress": "in_progress", "doing": "in_progress",
    "completed": "completed", "complete": "completed", "done": "completed", "paused": "pending",
    "deleted": None, "cancelled": None, "canceled": None,
}  # fmt: skip
"""What agents call a status; None takes the task off the list."""

MOST_ITEMS, SUBJECT_CHARS = 60, 200
"""More tasks, or a longer one, than any list in the sessions that were looked at."""

_CREATED = compile_lazy(r"\s*Task #(\d{1,9}) created|\"task\":\s*\{\"id\":\s*\"(\d{1,9})\"")


@dataclass(frozen=True, slots=True)
class ListedTask:
    """One task of an agent's list."""

    subject: str
    status: Status = "pending"
    id: str = ""


def is_task_tool(name: str) -> bool:
    """Return whether a tool changes an agent's task list."""
    return _bare(name) in _LISTS or _bare(name) in _ONE_TASK


def is_subagent_tool(name: str) -> bool:
    """Return whether a tool gives a task to a subagent."""
    return _bare(name) in _SUBAGENTS


def apply_call(
    tasks: Sequence[ListedTask], name: str, arguments: str, result: str = ""
) -> tuple[ListedTask, ...]:
    """Return a task list after a call of a task tool; input that does not fit changes nothing.

    `result` is what the tool printed: only the number of a new task is read from it.
    """
    tool, fields = _bare(name), call_text.input_fields(arguments)
    if tool in _LISTS:
        listed = tuple(_read_list(fields))[:MOST_ITEMS]
        return _merge(tasks, listed) if fields.get("merge") is True else listed or tuple(tasks)
    if tool == _CREATE:
        return _with_created(tasks, fields, result)
    if tool == _UPDATE:
        return tuple(_updated(tasks, fields))
    if tool == _GOAL_CREATE:
        goal = ListedTask(_subject(fields), "in_progress", _GOAL_ID)
        return (
            (*(task for task in tasks if task.id != _GOAL_ID), goal) if goal.subject else (*tasks,)
        )
    if tool == _GOAL_UPDATE:
        return tuple(_updated(tasks, {**fields, "id": _GOAL_ID}))
    return tuple(tasks)


def _bare(name: str) -> str:
    return name.lower().rsplit("__", 1)[-1].rsplit(".", 1)[-1]


def _read_list(fields: Mapping[str, Any]) -> Iterator[ListedTask]:
    for key in ("todos", "plan", "tasks", "items"):
        entries = fields.get(key)
        if isinstance(entries, str):  # some models send the list as text
            entries = call_text.input_fields(f'{{"x":{entries}}}').get("x")
        for entry in entries if isinstance(entries, list) else ():
            task = _read_task(entry)
            if task is not None:
                yield task


def _read_task(entry: Any) -> ListedTask | None:
    if not isinstance(entry, dict):
        return None
    subject = _subject(entry)
    status = _STATUSES.get(str(entry.get("status", "pending")).lower(), "pending")
    if not subject or status is None:
        return None
    return ListedTask(subject, status, str(entry.get("id", ""))[:40])


def _subject(fields: Mapping[str, Any]) -> str:
    return sentences.one_line(call_text.first_text_field(fields, _SUBJECT_FIELDS), SUBJECT_CHARS)


def _merge(tasks: Sequence[ListedTask], changed: Sequence[ListedTask]) -> tuple[ListedTask, ...]:
    by_id = {task.id or task.subject: task for task in tasks}
    by_id |= {task.id or task.subject: task for task in changed}
    return tuple(by_id.values())[:MOST_ITEMS]


def _with_created(
    tasks: Sequence[ListedTask], fields: Mapping[str, Any], result: str
) -> tuple[ListedTask, ...]:
    subject = _subject(fields)
    if not subject:
        return tuple(tasks)
    numbered = _CREATED.search(result[:400])
    numbers = [int(task.id) for task in tasks if task.id.isdecimal()]
    id_ = (numbered[1] or numbered[2]) if numbered else str(max(numbers, default=0) + 1)
    others = [task for task in tasks if task.id != id_]
    return (*others, ListedTask(subject, id=id_))[-MOST_ITEMS:]


def _updated(tasks: Sequence[ListedTask], fields: Mapping[str, Any]) -> Iterator[ListedTask]:
    id_ = str(fields.get("taskId", fields.get("task_id", fields.get("id", ""))))
    named = str(fields.get("status", "")).lower()
    for task in tasks:
        if task.id != id_ or not id_:
            yield task
        elif named not in _STATUSES:
            yield replace(task, subject=_subject(fields) or task.subject)
        elif (status := _STATUSES[named]) is not None:
            yield replace(task, subject=_subject(fields) or task.subject, status=status)
