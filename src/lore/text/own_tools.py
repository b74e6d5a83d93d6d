"""Own tools: how agents name the tools of Lore; what passes through them is memory already."""

from __future__ import annotations

from lore.text.later import compile_later

_OWN = compile_later(r"(?:mcp__(?:plugin_lore_)?lore__|lore(?:__|[._/]))[a-z][a-z_]{1,40}")
"""Claude Code with and without the plugin, and agents that put the server's name before a tool."""


def is_own(name: str) -> bool:
    """Tell whether a tool is one of Lore's, by the name that an agent gives it."""
    return "lore" in name and _OWN.fullmatch(name) is not None
