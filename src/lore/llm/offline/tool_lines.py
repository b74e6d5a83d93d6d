"""Tool calls as an exchange shows them: one line each, the tool's name in brackets."""

from __future__ import annotations

import re

_CALL = re.compile(r"^\[([A-Za-z][\w:.-]{0,60})\] (.*)$", re.MULTILINE)


def calls_in(text: str) -> list[tuple[str, str]]:
    """Return the calls in a message, each with the tool's name and what it was given."""
    return [(name, given) for name, given in _CALL.findall(text)]


def without_calls(text: str) -> str:
    """Return what was said in words."""
    return _CALL.sub("\n", text)
