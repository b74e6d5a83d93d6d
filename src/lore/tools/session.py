"""The session of a caller: the one that it names, else the one that goes on where it works."""

from __future__ import annotations

from lore.memory import Memory
from lore.tools.tool import Caller


def find_session(memory: Memory, caller: Caller) -> str:
    """Return the session of a caller, or nothing if none is known.

    Agents do not tell an MCP server which session calls; where a caller names one, no other is
    taken for it.
    """
    if caller.session:
        return caller.session if memory.has_session(caller.session) else ""
    live = memory.find_live_session(caller.project)
    return live.id if live else ""
