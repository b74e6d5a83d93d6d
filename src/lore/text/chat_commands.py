"""Chat commands: commands that a person types to Lore itself, in the form each agent passes on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lore.text.regex import compile_lazy

_TYPED = compile_lazy(
    r"/?lore:(status|amnesia|private|remember)(?:\s+(.*))?|/lore:(\S*).*", re.DOTALL | re.IGNORECASE
)
"""Also without the slash:

Claude Code refuses unknown slash commands. With the slash nothing else can be meant, even if it is
mistyped.
"""

_OFFERED = compile_lazy(
    r"<command-message>[^<]*</command-message>\s*<command-name>/(lore:(?:status|amnesia))"
    r"</command-name>(?:\s*<command-args>([^<]*)</command-args>)?"
)
"""How Claude Code sends a command of the plugin, followed by the text of its page."""

_MOST_CHARS = 20_000
"""No typed command is longer."""

_SWITCHES = {"lore:amnesia on": True, "lore:amnesia off": False}
_ALIASES = {"private": "amnesia"}


def find_private_switch(texts: Sequence[str]) -> bool | None:
    """Return whether the texts switch private mode on or off, or None."""
    return private_switch(find_command(texts))


def private_switch(command: str) -> bool | None:
    """Return whether a command switches private mode on or off, or None."""
    return _SWITCHES.get(" ".join(command.lower().split()))


def find_command(texts: Sequence[str]) -> str:
    """Return the command typed in the texts of a message, without its slash, or ''."""
    if not texts:
        return ""
    if offered := _OFFERED.match(texts[0]):
        return f"{offered[1]} {offered[2] or ''}".strip().lower()
    typed = _TYPED.fullmatch(_unquoted(texts[-1].strip()[:_MOST_CHARS]))
    if typed is None:
        return ""
    name = (typed[1] or typed[3] or "").lower()
    return f"lore:{_ALIASES.get(name, name)} {typed[2] or ''}".strip()


def _unquoted(text: str) -> str:
    """Return a text without quotes: opencode quotes what is typed after `run`."""
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == '"' else text
