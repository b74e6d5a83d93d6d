"""Chat commands: what a person types to Lore itself, in whatever form an agent passes it on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lore.text.later import compile_later

_TYPED = compile_later(
    r"/?lore:(status|amnesia|remember)(?:\s+(.*))?|/lore:(\S*).*", re.DOTALL | re.IGNORECASE
)
"""Also without the slash: Claude Code refuses a command that it does not know itself. With the
slash nothing else can be meant, even if it is mistyped."""

_OFFERED = compile_later(
    r"<command-message>[^<]*</command-message>\s*<command-name>/(lore:(?:status|amnesia))"
    r"</command-name>(?:\s*<command-args>([^<]*)</command-args>)?"
)
"""How Claude Code sends a command of the plugin, with the text of its page behind it."""

_MOST_CHARS = 20_000
"""Longer than that nobody types."""

_SWITCHES = {"lore:amnesia on": True, "lore:amnesia off": False}


def find_switch(texts: Sequence[str]) -> bool | None:
    """Return whether amnesia is to begin or to end by what is typed, None if by neither."""
    return switch_of(find(texts))


def switch_of(command: str) -> bool | None:
    """Return whether a command begins or ends amnesia, None if neither."""
    return _SWITCHES.get(" ".join(command.lower().split()))


def find(texts: Sequence[str]) -> str:
    """Return the command that is typed in the texts of a message, without its slash, or ''."""
    if not texts:
        return ""
    if offered := _OFFERED.match(texts[0]):
        return f"{offered[1]} {offered[2] or ''}".strip().lower()
    typed = _TYPED.fullmatch(_unquoted(texts[-1].strip()[:_MOST_CHARS]))
    if typed is None:
        return ""
    return f"lore:{(typed[1] or typed[3] or '').lower()} {typed[2] or ''}".strip()


def _unquoted(text: str) -> str:
    """Return a text without its quotes: opencode puts them around what is typed behind `run`."""
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == '"' else text
