"""Annotating: an old tool output in a line, from which recall leads back to the whole."""

from __future__ import annotations

from lore.records.dialogues import Block
from lore.text import saying

MOST_CHARS = 480
"""An annotation is no longer: a few errors and paths, by which to ask for the rest."""

LEAST_CHARS = 2 * MOST_CHARS
"""A shorter output stays as it is: little would be won."""

_RECALL = "; left out to save room, use recall to read it"


def is_long(block: Block) -> bool:
    """Tell whether an output is so long that an annotation saves something."""
    return block.kind == "result" and bool(block.call_id) and block.chars > LEAST_CHARS


def annotate(block: Block, tool: str = "") -> str:
    """Return what stands in the place of an output, always the same for the same output."""
    named = tool or block.tool
    if not block.text:
        told = f"[result] {named or 'tool'}: nothing in words"
    else:
        told = saying.annotate(block.text, named)
    if block.failed:
        told = f"{told}; it failed"
    most = MOST_CHARS - len(_RECALL)
    return (told if len(told) <= most else told[: most - 1].rstrip() + "…") + _RECALL
