"""Memory tags: wrap recalled memory in tags, and find tags that Lore or an agent injected."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache

from lore.text.regex import compile_lazy

MEMORY_TAG = "lore-memory"
"""The name of the tag around recalled memory."""

RECORD_FENCE = "<<<record "
"""Begins every prompt that Lore itself sends to a chat model."""

_SEARCHED = "lore-recall-"
SEARCH_MARK = compile_lazy(rf"\n*\[memory searched: {_SEARCHED}([0-9A-Za-z]{{8,64}})\]\n*")
"""Stands in an agent's history where the gateway searched memory for its model."""

_LEAD = r"[\s/\\]{0,9}"
"""What may precede the name in a tag; with more blanks it is prose with a bracket."""

_ANY = r"[\w.:-]{1,60}"
"""What a star in a tag name matches; hook names are a few words."""

_SMUGGLED = compile_lazy(rf"<(?={_LEAD}(?:{MEMORY_TAG}|system-reminder))", re.IGNORECASE)
"""Our own tag, and the one that agents put around hook output."""

_NAMED = compile_lazy("-(?i:memory)")
"""The end of our tag's name: faster than lowercasing the whole text."""

_NOTICE_TAIL = compile_lazy(
    r"(?<=</task-notification>)\s{0,9}Read the output file to retrieve the result: [^\s<]+"
)
"""What Claude Code writes after the closing tag of a notice."""

Pieces = list[tuple[str, str]]
"""The pieces of a text, each with the name of the tag around it, or ''."""

Span = tuple[int, int]
"""Where something begins in a text, and where it ends."""


def wrap_memory(text: str) -> str:
    """Return recalled memory between tags, with tags inside it escaped."""
    return f"<{MEMORY_TAG}>\n{_SMUGGLED.sub('&lt;', text)}\n</{MEMORY_TAG}>"


def append_memory(block: str, more: str) -> str:
    """Return a block of recalled memory with another one at its end, between the same tags."""
    return block.removesuffix(f"</{MEMORY_TAG}>") + more.removeprefix(f"<{MEMORY_TAG}>\n")


def may_have_memory(text: str) -> bool:
    """Return whether a text names the memory tag; a cheap test."""
    return "<" in text and _NAMED.search(text) is not None and MEMORY_TAG in text.lower()


def search_mark(marker_id: str) -> str:
    """Return the text that replaces a memory search in an agent's history."""
    return f"[memory searched: {_SEARCHED}{marker_id}]"


def may_have_search_marks(text: str) -> bool:
    """Return whether a text names a search of the gateway; a cheap test."""
    return _SEARCHED in text


def split_memory(text: str) -> list[tuple[bool, str]]:
    """Return the pieces of a text in order, each with whether it is injected memory.

    Doubt counts against the text: an unclosed tag reaches to the end, and text before a closing tag
    without an opening one counts as injected.
    """
    if "<" not in text:
        return [(False, text)] if text else []
    return [(bool(name), piece) for name, piece in split_tags(text, (MEMORY_TAG,), strict=True)]


def split_fences(text: str, names: Collection[str]) -> list[tuple[bool, str]]:
    """Return the pieces of a text in order, each with whether it is inside a named fence."""
    pieces: list[tuple[bool, str]] = []
    at = 0
    for start, end in find_fences(text, names):
        pieces += [(False, text[at:start]), (True, text[start:end])]
        at = end
    pieces.append((False, text[at:]))
    return [(is_fence, piece) for is_fence, piece in pieces if piece]


def find_fences(text: str, names: Collection[str]) -> list[Span]:
    """Return where the named fences of a text are, in order and without overlap.

    Anyone may write inside a fence, also tags of its own name. So one fence per name reaches from
    its first tag to its last, and to the beginning or end of the text where the other half is
    missing. A star in a name matches anything. The line that follows a notice belongs to it.
    """
    tags_by_name: dict[str, list[re.Match[str]]] = {}
    for tag in _tags(tuple(names)).finditer(text):
        tags_by_name.setdefault(tag[2].lower(), []).append(tag)
    spans = [_span(tags, len(text)) for tags in tags_by_name.values()]
    if "task-notification" in tags_by_name:
        spans = [(start, _end_with_tail(text, end)) for start, end in spans]
    return merge_spans(spans)


def _end_with_tail(text: str, end: int) -> int:
    tail = _NOTICE_TAIL.match(text, end)
    return tail.end() if tail else end


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, overlapping ones as one, without empty ones."""
    merged: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def find_pairs(text: str, names: Collection[str]) -> list[Span]:
    """Return where pairs of named tags are, the outer ones."""
    pairs: list[Span] = []
    at = 0
    for name, piece in split_tags(text, names) if names else ():
        if name:
            pairs.append((at, at + len(piece)))
        at += len(piece)
    return pairs


def find_paired_tags(text: str, names: Collection[str]) -> list[Span]:
    """Return the named tags of a text that have their other half."""
    return [tag.span() for tag in _paired(list(_tags(tuple(names)).finditer(text)))]


def _span(tags: list[re.Match[str]], size: int) -> tuple[int, int]:
    """Return the largest range that the tags of one name can enclose."""
    closing = sum(_is_closing(tag) for tag in tags)
    is_closed = _is_closing(tags[-1]) and closing >= len(tags) - closing
    return 0 if _is_closing(tags[0]) else tags[0].start(), tags[-1].end() if is_closed else size


def _is_closing(tag: re.Match[str]) -> bool:
    return bool(tag[1].strip())


def split_tags(text: str, names: Collection[str], *, strict: bool = False) -> Pieces:
    """Return the pieces of a text; those between named tags include their tags.

    A nested tag belongs to the outer one. Unless `strict`, a tag without its other half is plain
    text.
    """
    pieces: Pieces = []
    tags = list(_tags(tuple(names)).finditer(text))
    if not strict:
        tags = _paired(tags)
    start, outer, depth = 0, "", 0
    for tag in tags:
        name = tag[2].lower()
        if _is_closing(tag):
            if name != outer if depth else not strict:
                continue
            depth = max(0, depth - 1)
            if depth == 0:
                pieces.append((name, text[start : tag.end()]))
                start, outer = tag.end(), ""
        elif depth == 0:
            pieces.append(("", text[start : tag.start()]))
            start, outer, depth = tag.start(), name, 1
        elif name == outer:
            depth += 1
    pieces.append((outer, text[start:]))
    return [(name, piece) for name, piece in pieces if piece]


def inner_text(piece: str) -> str:
    """Return the text between the tags of a tagged piece."""
    return piece[piece.find(">") + 1 : piece.rfind("<")]


@cache
def _tags(names: tuple[str, ...]) -> re.Pattern[str]:
    ordered = sorted(names, key=len, reverse=True)
    either = "|".join(re.escape(name).replace(r"\*", _ANY) for name in ordered)
    # An attribute may contain '>', so only the beginning of a tag counts.
    return re.compile(rf"<({_LEAD})({either})(?![\w-])(?:[^<>]*>)?", re.IGNORECASE)


def _paired(tags: list[re.Match[str]]) -> list[re.Match[str]]:
    """Return the tags that have their other half."""
    paired: set[int] = set()
    waiting: dict[str, list[int]] = {}
    for i, tag in enumerate(tags):
        opened = waiting.setdefault(tag[2].lower(), [])
        if not _is_closing(tag):
            opened.append(i)
        elif opened:
            paired |= {opened.pop(), i}
    return [tag for i, tag in enumerate(tags) if i in paired]


INJECTED_TAGS = (
    "system-reminder",
    "local-command-caveat",
    "local-command-stdout",
    "local-command-stderr",
    "command-name",
    "command-message",
    "command-contents",
    "bash-stdout",
    "bash-stderr",
    "task-notification",
    "*-hook",
    "*_hook",
    "agent-message",
    "teammate-message",
    "new-diagnostics",
    "tool_use_error",
    "ide_opened_file",
    "ide_selection",
    "ide_diagnostics",
    "environment_context",
    "session_context",
    "permissions instructions",
    "collaboration_mode",
    "turn_aborted",
    "subagent_notification",
    "user_shell_command",
    "user_action",
    "model_switch",
    "personality_spec",
    "*_instructions",
    "ci-monitor-event",
    "github-webhook-activity",
    "mcp-resource-update",
    "mcp-polling-update",
    "cross-session-message",
    "fork-boilerplate",
    "persisted-output",
)
"""Tags that agents put around text that nobody typed; a hook's tag has its own name."""

RECAP_OPENINGS = (
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem",
)
"""Openings of the messages in which Claude Code and Codex summarise earlier messages."""

TYPED_TAGS = ("command-args", "bash-input", "user-memory-input")
"""Tags that Claude Code puts around text typed after a command."""
