"""Parts of a message as text: what was said, and what can be searched."""

from __future__ import annotations

from collections.abc import Iterable

from lore.records import Part

_SAID = ("text", "image", "document")
_UNSEARCHED = ("reasoning", "aside", "opaque")
_SEARCHED_CHARS = 60_000
"""Of one part, so much is searchable; the whole is stored."""


def said(parts: Iterable[Part]) -> str:
    """Return what was said in words, without tool traffic and reasoning."""
    return "\n".join(part.text for part in parts if part.kind in _SAID and part.text)


def searchable(parts: Iterable[Part]) -> str:
    """Return what a keyword search should find: words, calls and results, no asides."""
    lines = []
    for part in parts:
        if part.kind in _UNSEARCHED or not part.text:
            continue
        text = part.text[:_SEARCHED_CHARS]
        lines.append(f"{part.name} {text}" if part.name else text)
    return "\n".join(lines)


def readable(parts: Iterable[Part]) -> str:
    """Return a message for a person or an agent to read, tool traffic marked as such."""
    lines = []
    for part in parts:
        if part.kind == "tool_call":
            lines.append(f"[{part.name or 'tool'}] {part.text}")
        elif part.kind in _UNSEARCHED:
            lines.append(f"[{part.kind}] {part.text}")
        else:
            lines.append(part.text)
    return "\n".join(line for line in lines if line)
