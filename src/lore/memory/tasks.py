"""Task memory: tasks of agents, and the patterns, skills and warnings that come from them."""

from __future__ import annotations

from lore.memory.context import MemoryPart
from lore.validation import validate_methods


@validate_methods
class Tasks(MemoryPart):
    """Start and end tasks, and consolidate what they taught."""
