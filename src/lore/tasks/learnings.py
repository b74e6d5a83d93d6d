"""Learnings: the errors of each day with what resolved them."""

from __future__ import annotations

from datetime import datetime

from lore.digest.episodes import parse_episode
from lore.records import EpisodeError, Learning
from lore.store import fragments, task_memories
from lore.store.database import Connection
from lore.tasks import command_steps
from lore.tasks.lessons import RUN_TOOLS
from lore.text import call_text
from lore.text.regex import compile_lazy

_MOST_EPISODES = 10_000

_OWN_MISTAKE = compile_lazy(
    r"(?i)has not been read|string to replace|modified since"
    r"|(?:Path|File) does not exist"
)
"""Mistakes of an agent in the use of its tools teach nobody anything."""

_AGAIN = "tried again"


def find_learnings(
    db: Connection,
    *,
    since: datetime | None = None,
    project_n: int | None = None,
    everything: bool = False,
) -> list[Learning]:
    """Return the resolved errors of episodes, newest first; `everything` includes trivial ones."""
    rows = task_memories.episodes(db, since=since, scope=project_n, limit=_MOST_EPISODES)
    by_number = fragments.by_number(db, [row.n for row in rows])
    learnings: dict[tuple[str, str, str], Learning] = {}
    for row in rows:
        fragment = by_number[row.n]
        for error in parse_episode(fragment.payload).errors:
            resolution = describe_resolution(error)
            if not resolution or (not everything and is_trivial(error)):
                continue
            at = task_memories.ended_at(row)
            key = (f"{at:%Y-%m-%d}", error.message, resolution)
            learnings[key] = Learning(
                at, error.type, error.message, resolution, fragment.id, fragment.project_id or ""
            )
    return sorted(learnings.values(), key=lambda one: one.at, reverse=True)


def describe_resolution(error: EpisodeError) -> str:
    """Return what resolved an error; a command that was worded differently is the resolution."""
    if error.resolution == _AGAIN and error.retry and error.retry != error.command:
        return error.retry
    return "; ".join(_without_tool(step) for step in error.resolution.split("; "))


def _without_tool(step: str) -> str:
    """Return a step without the name of the tool that ran it; an edit keeps its verb."""
    tool, _, target = step.partition(" ")
    return target if target and tool.lower() in RUN_TOOLS else step


def is_trivial(error: EpisodeError) -> bool:
    """Return whether an error teaches nothing: a slip of the agent, or the same try once more."""
    if _OWN_MISTAKE.search(error.message) or describe_resolution(error) == _AGAIN:
        return True
    if not call_text.is_error_message(error.message, failed=True):
        return True
    steps = (step.partition(" ") for step in error.resolution.split("; "))
    done = [target for tool, _, target in steps if tool.lower() in RUN_TOOLS]
    if not done and error.resolution != _AGAIN:
        return False  # something was changed
    again = error.retry if error.retry != error.command else ""
    return not any(command_steps.split_steps(target) for target in (*done, again))
