"""Follow the task lists of agents: start a task when one begins, and end it when it is done."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from lore.errors import LoreError
from lore.memory.context import MemoryContext, MemoryPart
from lore.memory.tasks import Tasks
from lore.store import dialogue_state
from lore.store.dialogue_state import StateName
from lore.tasks import agent_task_list
from lore.tasks.agent_task_list import ListedTask
from lore.text import call_text

_STATE: StateName = "task_list"
_MOST_STARTED = 2
"""Tasks of one call that are started; an agent works on one, rarely on two."""

_SUBAGENT = "subagent"
_MOST_DELEGATED, _MOST_TASK_CHARS = 20, 4_000
"""More than subagents that start at once, and than a goal that recall reads."""


class TaskFollower(MemoryPart):
    """Starts and ends tasks by what an agent does with its task list and its subagents."""

    def __init__(self, context: MemoryContext) -> None:
        super().__init__(context)
        self._tasks = Tasks(context)

    def follow_call(
        self, tool: str, arguments: str, result: str, *, session: str, project: str, agent: str
    ) -> str:
        """Follow a call of a task tool, and return what is known for a task that begins."""
        if not session or self._database.read_only:
            return ""
        state = self._load(session)
        before = {_key(task): task for task in _listed(state)}
        after = agent_task_list.apply_call(_listed(state), tool, arguments, result)
        begun = [
            task
            for task in after
            if task.status == "in_progress"
            and (before.get(_key(task)) or ListedTask("")).status != "in_progress"
        ][:_MOST_STARTED]
        texts = [
            self._start(
                state, _key(task), task.subject, session=session, project=project, agent=agent
            )
            for task in begun
        ]
        state["list"] = [[task.subject, task.status, task.id] for task in after]
        self._store(session, state)
        return "\n".join(filter(None, texts))

    def note_delegation(self, session: str, arguments: str) -> None:
        """Note the task that an agent is about to give to a subagent."""
        fields = call_text.input_fields(arguments)
        task = call_text.first_text_field(fields, ("prompt", "message", "description"))
        if task.strip() and not self._database.read_only:
            state = self._load(session)
            waiting = [*(state.get("delegated") or ()), task[:_MOST_TASK_CHARS]]
            self._store(session, {**state, "delegated": waiting[-_MOST_DELEGATED:]})

    def claim_delegation(self, session: str) -> str:
        """Return the task of the subagent that starts now: the first one that waits."""
        state = self._load(session)
        waiting = list(state.get("delegated") or ())
        if not waiting:
            return ""
        self._store(session, {**state, "delegated": waiting[1:]})
        return str(waiting[0])

    def start_subagent(self, goal: str, *, session: str, project: str, agent: str) -> str:
        """Start the task of a subagent, and return what is known for it."""
        if not goal.strip() or not session or self._database.read_only:
            return ""
        state = self._load(session)
        started = self._start(
            state, _SUBAGENT, goal, session=session, project=project,
            agent=agent,
        )  # fmt: skip
        self._store(session, state)
        return started

    def end_finished(self, session: str, *, all_open: bool = False) -> list[str]:
        """End the tasks that an agent called done, after its turn was captured.

        How a task ended is derived from what followed its start: that the agent calls it done
        proves nothing. `all_open` ends the rest too, because the session is over.
        """
        if self._database.read_only:
            return []
        state = self._load(session)
        finished = {_key(one) for one in _listed(state) if one.status == "completed"}
        running: dict[str, str] = state.get("open") or {}
        ended = [name for name in running if all_open or name in finished or name == _SUBAGENT]
        for name in ended:
            with suppress(LoreError):
                self._tasks.end(running[name], session=session)
        if ended:
            state["open"] = {name: id_ for name, id_ in running.items() if name not in ended}
            self._store(session, state)
        return [running[name] for name in ended]

    def _start(
        self, state: dict[str, Any], name: str, goal: str, *, session: str, project: str, agent: str
    ) -> str:
        # A session that is not stored yet has no tasks of its own to find a name among.
        unique = f"{name} of {session}"
        task, text = self._tasks.start_unasked(
            goal, session=session, project=project, agent=agent, name=unique
        )
        state["open"] = {**(state.get("open") or {}), name: task}
        return text

    def _load(self, session: str) -> dict[str, Any]:
        with self._database.read() as db:
            value = dialogue_state.find_state(db, self._redactor.redact(session), _STATE)
        return value if isinstance(value, dict) else {}

    def _store(self, session: str, state: dict[str, Any]) -> None:
        name, now = self._redactor.redact(session), self._database.now()
        redacted = {
            "list": [
                [self._redactor.redact(subject), status, id_]
                for subject, status, id_ in state.get("list") or ()
            ],
            "open": state.get("open") or {},
            "delegated": [self._redactor.redact(task) for task in state.get("delegated") or ()],
        }
        self._database.write(
            lambda db: dialogue_state.put_state(db, name, _STATE, redacted, now=now)
        )


def _listed(state: dict[str, Any]) -> tuple[ListedTask, ...]:
    return tuple(ListedTask(*one) for one in state.get("list") or () if len(one) == 3)


def _key(task: ListedTask) -> str:
    """Return the name of a listed task: its id, or its words where a list has no ids."""
    return f"list:{task.id or ' '.join(task.subject.lower().split())}"
