"""Records: what stands between the fences of a prompt, item by item, each with its number."""

from __future__ import annotations

from collections.abc import Sequence

from lore.llm.prompts import indented
from lore.records import Fragment, Said, Segment
from lore.text.lines import one_line

_LONGEST_VOICE_CHARS = 60
_LONGEST_TITLE_CHARS = 200
_LONGEST_FRAGMENT_CHARS = 4_000
_SHORTEST_FRAGMENT_CHARS = 200
_ALL_FRAGMENTS_CHARS = 60_000
"""Some 15,000 tokens: what a segment has, too; a root may have hundreds of children."""


def messages(segment: Segment) -> str:
    """Return the messages of a segment with who said them and when."""
    told = [_message(one) for one in segment.said]
    if segment.title:
        told.insert(0, f"Title:\n{indented(one_line(segment.title, _LONGEST_TITLE_CHARS))}")
    return "\n".join(told)


def _message(one: Said) -> str:
    voice = _label(one.voice)
    head = f"[{one.ordinal}] {one.at:%Y-%m-%d %H:%M} {voice} (origin: {one.origin})"
    return f"{head}\n{indented(one.text)}"


def logs(told: Sequence[str], former: str) -> str:
    """Return logs in their order, the former one as number 0."""
    items = [f"[0] former log\n{indented(former)}"] if former.strip() else []
    items += [f"[{number}] log\n{indented(log)}" for number, log in enumerate(told, 1)]
    return "\n".join(items)


def fragments(given: Sequence[Fragment], *, first: int = 0) -> str:
    """Return fragments with their numbers."""
    share = _ALL_FRAGMENTS_CHARS // max(1, len(given))
    most = min(max(share, _SHORTEST_FRAGMENT_CHARS), _LONGEST_FRAGMENT_CHARS)
    items = [
        f"[{number}] {_headed(one)}\n{_said(one, most)}" for number, one in enumerate(given, first)
    ]
    return "\n".join(items)


def pairs(given: Sequence[tuple[Fragment, Fragment]]) -> str:
    """Return pairs of fragments, the older one first."""
    return "\n".join(
        f"[{number}] older: {_headed(older)}\n{_said(older)}\n"
        f"[{number}] newer: {_headed(newer)}\n{_said(newer)}"
        for number, (older, newer) in enumerate(given, 1)
    )


def _headed(one: Fragment) -> str:
    return f"{one.kind}, {one.created_at:%Y-%m-%d}, origin: {one.origin}"


def _said(one: Fragment, most: int = _LONGEST_FRAGMENT_CHARS) -> str:
    return indented(one.content[:most])


def _label(voice: str) -> str:
    """Return a voice on one line and without brackets: some are names that a person chose."""
    return one_line(voice.translate(str.maketrans("[]()<>", "      ")), _LONGEST_VOICE_CHARS)
