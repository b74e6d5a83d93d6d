"""Task lists of agents: which of their tasks a tool call begins or finishes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from lore.text.call_text import input_fields

_NUMBER = re.compile(r"(?i)\btask #?(\w+)")
_BEGUN, _DONE = ("in_progress", "inprogress", "active"), ("completed", "done")


class TaskChange(NamedTuple):
    """A task of an agent's list that began or was ticked off; a later change has no goal."""

    name: str
    state: Literal["begun", "done"]
    goal: str = ""


def parse_task_list(tool: str, arguments: object, response: object) -> list[TaskChange]:
    """Return the tasks that a call of a tool begins or finishes."""
    fields = arguments if isinstance(arguments, Mapping) else input_fields(str(arguments or ""))
    if tool == "TaskCreate":
        return list(_created(fields, response))
    if tool == "TaskUpdate":
        name = str(fields.get("taskId") or fields.get("task_id") or "")
        state = _state(fields)
        return [TaskChange(f"task {name}", state, _goal(fields))] if name and state else []
    listed = fields.get("todos") or fields.get("plan") or ()
    changes = (_listed(item) for item in listed if isinstance(item, Mapping))
    return [change for change in changes if change is not None]


def _created(fields: Mapping[str, Any], response: object) -> Iterator[TaskChange]:
    """Yield a task that was created: its number stands in the response."""
    goal = _goal(fields)
    known = response if isinstance(response, Mapping) else {}
    inner = known.get("task")
    number = inner.get("id") if isinstance(inner, Mapping) else known.get("id")
    if number is None and (match := _NUMBER.search(str(response or ""))):
        number = match[1]
    if goal and number is not None:
        yield TaskChange(f"task {number}", "begun", goal)


def _listed(item: Mapping[str, Any]) -> TaskChange | None:
    goal, state = _goal(item), _state(item)
    if not goal or state is None:
        return None
    digest = hashlib.blake2b(goal.encode(), digest_size=6).hexdigest()
    return TaskChange(f"todo {item.get('id') or digest}", state, goal)


def _state(fields: Mapping[str, Any]) -> Literal["begun", "done"] | None:
    status = str(fields.get("status") or "").lower()
    if status in _DONE:
        return "done"
    return "begun" if status in _BEGUN else None


def _goal(fields: Mapping[str, Any]) -> str:
    """Return what a task is about: its subject, with its description if it has one."""
    names = ("subject", "content", "step", "title")
    subject = next((str(fields[name]).strip() for name in names if fields.get(name)), "")
    description = str(fields.get("description") or "").strip()
    return f"{subject}. {description}" if subject and description else subject or description
