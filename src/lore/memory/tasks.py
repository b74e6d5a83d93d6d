"""Task memory: tasks of agents, and the patterns, skills and warnings that come from them."""

from __future__ import annotations

from lore.memory.task_lessons import TaskLessons
from lore.validation import validate_methods


@validate_methods
class Tasks(TaskLessons):
    """Start and end tasks, and consolidate what they taught."""
