"""Parts of a message as text: what was said, and what can be searched."""

from __future__ import annotations

from collections.abc import Iterable

from lore.records import TRUST, Origin, Part, PartKind
from lore.text import own_tools, told_calls

SAID: tuple[PartKind, ...] = ("text", "image", "document")
"""Parts that hold what was said in words."""

_UNSEARCHED = ("reasoning", "aside", "opaque")
_BESIDE = ("aside", "opaque")
_SEARCHED_CHARS = 60_000
"""Of one part, so much is searchable; the whole is stored."""


def is_said(part: Part) -> bool:
    """Tell whether a part is something that was said in words."""
    return part.kind in SAID


def is_spoken(part: Part) -> bool:
    """Tell whether a part belongs to the talk: words, reasoning, calls and results."""
    return part.kind not in _BESIDE


def origin_of(part: Part, of_message: Origin) -> Origin:
    """Return who said a part: its own origin, and never more than its message's.

    What a tool gave back is a tool's, in whoever's message it stands.
    """
    own = part.origin or ("tool" if part.kind == "tool_result" else of_message)
    return min(own, of_message, key=TRUST.__getitem__)


def lowest_origin(parts: Iterable[Part], of_message: Origin) -> Origin:
    """Return the least trusted of those who speak in a message; asides are not said."""
    told = (origin_of(part, of_message) for part in parts if is_spoken(part))
    return min(told, key=TRUST.__getitem__, default=of_message)


def said(parts: Iterable[Part]) -> str:
    """Return what was said in words, without tool traffic and reasoning."""
    return "\n".join(part.text for part in parts if part.kind in SAID and part.text)


def says_something(parts: Iterable[Part]) -> bool:
    """Tell whether anything was said in words."""
    return any(part.kind in SAID and part.text and not part.text.isspace() for part in parts)


def searchable(parts: Iterable[Part]) -> str:
    """Return what a keyword search should find: words, calls and results, no asides.

    What Lore's own tools were asked, and told, would only echo what is found anyway.
    """
    lines = [
        f"{part.name} {part.text[:_SEARCHED_CHARS]}" if part.name else part.text[:_SEARCHED_CHARS]
        for part in parts
        if part.text and part.kind not in _UNSEARCHED and not own_tools.is_own(part.name)
    ]
    return "\n".join(lines)


def whole(parts: Iterable[Part]) -> str:
    """Return a message as it stands, with what nobody said: what its size is counted of."""
    return "\n".join([_marked(part, part.text) for part in parts if part.text])


def readable(parts: Iterable[Part], *, brief: bool = False) -> str:
    """Return a message for a person or an agent to read, tool traffic marked as such.

    In brief, edits and files that are written are shown by their first lines.
    """
    lines = []
    for part in parts:
        if part.kind == "tool_call":
            lines.append(told_calls.tell(part.name, part.text, brief=brief))
        elif part.text:
            lines.append(_marked(part, part.text))
    return "\n".join(lines)


def _marked(part: Part, text: str) -> str:
    if part.kind == "tool_call":
        return f"[{part.name or 'tool'}] {text}"
    return f"[{part.kind}] {text}" if part.kind in _UNSEARCHED else text
