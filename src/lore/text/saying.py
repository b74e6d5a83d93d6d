"""Saying: messages as a digester reads them, without asides, long tool output in brief."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lore.records import Message, Part, PartKind, Said
from lore.text import calls, lines, parts, results, tokens, told_calls, words
from lore.text.later import compile_later

LONG_OUTPUT_CHARS = 4_000
"""Of a tool's output that is longer than this only a note is read, or only the ends."""

ERROR_LINES, PATHS = 5, 8
"""So many lines with errors, and paths, are told of a long output."""

_CALL_CHARS = 400
_LINE_CHARS = 200
_LOOKED_AT_LINES = 5_000

_ERROR = compile_later(
    r"\b(?:error|failed|failure|fatal|panic|exception|traceback|denied|not found|cannot|undefined)"
    r"\b|^E\s",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Manner:
    """What of a message is read as words, and how a tool's call and its output are told."""

    words: tuple[PartKind, ...]
    call: Callable[[Part], str]
    output: Callable[[str, str], str]


def said_of(
    messages: Sequence[Message], manner: Manner, *, most_tokens: int | None = None
) -> list[Said]:
    """Return messages as a digester reads them; one that says nothing has no text.

    No message is longer than `most_tokens`, so that each fits into a segment.
    """
    tools: dict[str, str] = {}
    return [_said(message, manner, tools, most_tokens) for message in messages]


def _said(message: Message, manner: Manner, tools: dict[str, str], most_tokens: int | None) -> Said:
    told = []
    for part in message.parts:
        if part.kind == "tool_call":
            tools[part.call_id] = part.name
            told.append(manner.call(part))
        elif part.kind == "tool_result":
            told.append(manner.output(part.text, part.name or tools.get(part.call_id, "")))
        elif part.kind in manner.words:
            told.append(part.text.strip())
    text = "\n".join(line for line in told if line.strip())
    if most_tokens is not None:
        text = tokens.clip(text, most_tokens)
    return Said(
        id=message.id,
        ordinal=message.ordinal,
        at=message.created_at,
        voice=message.speaker or message.role,
        text=text,
        origin=parts.lowest_origin(message.parts, message.origin),
        tokens=tokens.count(text),
    )


def _named_call(part: Part) -> str:
    call = calls.read_call(part.name, part.text)
    return f"[{call.tool}] {lines.one_line(call.command or call.target, _CALL_CHARS)}".rstrip()


def _told_call(part: Part) -> str:
    return lines.one_line(told_calls.tell(part.name, part.text, brief=True), _CALL_CHARS)


def _noted(text: str, tool: str) -> str:
    text = text.strip()
    if len(text) > LONG_OUTPUT_CHARS:
        return annotate(text, tool)
    return f"[result] {text}" if text else ""


def _ends(text: str, _tool: str) -> str:
    """Return the beginning and the end of a long output: errors stand there."""
    if len(text) <= LONG_OUTPUT_CHARS:
        return text
    half = LONG_OUTPUT_CHARS // 2
    return f"{text[:half]}\n… {len(text) - LONG_OUTPUT_CHARS} characters …\n{text[-half:]}"


FOR_LOG = Manner(parts.SAID, _named_call, _noted)
"""A log tells that a tool was called and how it went."""

FOR_KNOWLEDGE = Manner(("text",), _told_call, _ends)
"""What is learned of a session rests on what was typed, and on what the tools really gave back."""


def annotate(text: str, tool: str) -> str:
    """Return a long output in brief: its tool, how many lines it has, its errors, its paths."""
    found = text.splitlines()
    telling = (line.strip() for line in found[:_LOOKED_AT_LINES] if _ERROR.search(line))
    wrong = _first(telling, ERROR_LINES)
    if not wrong and (told := results.message_of(text)) and _ERROR.search(told):
        wrong = [told]
    paths = _first((name for name in words.identifiers(text[:60_000]) if "/" in name), PATHS)
    notes = [f"[result] {tool or 'tool'}: {len(found)} lines"]
    if wrong:
        notes.append("errors: " + " | ".join(lines.one_line(line, _LINE_CHARS) for line in wrong))
    if paths:
        notes.append(f"paths: {', '.join(paths)}")
    return "; ".join(notes)


def _first(found: Iterable[str], most: int) -> list[str]:
    kept: dict[str, None] = {}
    for text in found:
        kept[text] = None
        if len(kept) == most:
            break
    return list(kept)
