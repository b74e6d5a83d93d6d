"""Chat commands: what a person types to Lore itself, in whatever form an agent passes it on."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TYPED = re.compile(r"/?(lore:[a-z].*)", re.DOTALL)
"""Also without the slash: Claude Code refuses a command that it does not know itself."""

_OFFERED = re.compile(
    r"<command-message>[^<]*</command-message>\s*<command-name>/(lore:(?:status|amnesia))"
    r"</command-name>(?:\s*<command-args>([^<]*)</command-args>)?"
)
"""How Claude Code sends a command of the plugin, with the text of its page behind it."""

_MOST_CHARS = 20_000
"""Longer than that nobody types."""


LATE = "Lore could not do this in time: please say it once more."
"""For a model it is not meant, and amnesia that did not begin must not look as if it had."""

_SWITCHES = {"lore:amnesia on": True, "lore:amnesia off": False}


def find_switch(texts: Sequence[str]) -> bool | None:
    """Return whether amnesia is to begin or to end by what is typed, None if by neither."""
    if not any("lore:amnesia" in text for text in texts):
        return None
    return _SWITCHES.get(" ".join(find(texts).split()))


def find(texts: Sequence[str]) -> str:
    """Return the command that is typed in the texts of a message, without its slash, or ''."""
    for text in texts:
        offered = _OFFERED.match(text)
        if offered:
            return f"{offered[1]} {offered[2] or ''}"
    typed = _TYPED.fullmatch(texts[-1].strip()[:_MOST_CHARS]) if texts else None
    return typed[1] if typed else ""
