"""Convert the content blocks that chat APIs share into parts of a message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from lore.capture.adapters import injected_text, json_fields
from lore.capture.adapters.json_fields import as_dict, as_list, as_text
from lore.records import NewMessage, Origin, Part
from lore.text import call_text

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_WEB = frozenset(
    """web webfetch websearch webpage website fetch fetcher browser browse browsing http https url
    urls crawl crawler scrape scraper scraping playwright puppeteer selenium chrome chromium
    firecrawl tavily exa brave perplexity duckduckgo ddg serp serpapi serper searxng bing google
    wikipedia arxiv jina internet online""".split()
)
"""Words in the names of tools that fetch pages or search the web, MCP servers included."""

_PATHS = ("file_path", "filePath", "notebook_path", "path", "filename", "file")
_PATH_CHARS = 1_000
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.{1,1000})$", re.MULTILINE)


@lru_cache(maxsize=2_000)
def tool_origin(name: str) -> Origin:
    """Return the origin of a tool's result, by the tool's name: web or tool."""
    head = name[:200]
    words = {word.lower() for word in _WORD.findall(head)} | set(re.split(r"\W|_", head.lower()))
    return "web" if words & _WEB else "tool"


def files_of_call(arguments: Any) -> Iterator[str]:
    """Yield the files that a call names in its path fields."""
    fields = as_dict(arguments)
    for name in _PATHS:
        path = fields.get(name)
        if isinstance(path, str) and 0 < len(path) <= _PATH_CHARS and "\n" not in path:
            yield path


def patched_files(patch: str) -> list[str]:
    """Return the files that a Codex patch adds, updates or deletes."""
    return _PATCHED.findall(patch) if "*** " in patch else []


_ENCRYPTED = ("signature", "encrypted_content", "encrypted_index", "thoughtSignature")
"""Fields that only the provider can read."""

REFERENCES = frozenset(
    "image image_url input_image image_file document file input_file input_audio".split()
)
TEXTS = frozenset("text input_text output_text refusal summary_text reasoning_text".split())

_MOST_CALLS = 50
"""Calls whose result is pending; agents have a handful open at a time."""


def user_parts(
    content: Any, *, aside: bool = False, origin: Origin | None = None
) -> tuple[Part, ...]:
    """Return the parts of a user message's content: a text, or a list of blocks."""
    if isinstance(content, str):
        return _text_parts(content, aside=aside, origin=origin)
    parts: list[Part] = []
    for block in as_list(content):
        if isinstance(block, str):
            parts += _text_parts(block, aside=aside, origin=origin)
        elif isinstance(block, dict):
            sort = block.get("type")
            if sort in TEXTS if isinstance(sort, str) else "text" in block:
                parts += _text_parts(block_text(block), aside=aside, origin=origin)
            elif isinstance(sort, str) and sort in REFERENCES:
                part = injected_text.attachment_part(block, origin)
                parts.append(injected_text.injected_part(part.text, part.name) if aside else part)
            else:
                parts.append(opaque_part(block))
    return tuple(parts)


def with_tool_origin(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return parts after a tool result: their images and documents came from the tool."""
    return tuple(
        replace(part, origin=part.origin or "tool") if part.kind in ("image", "document") else part
        for part in parts
    )


def _text_parts(text: str, *, aside: bool, origin: Origin | None) -> tuple[Part, ...]:
    if aside:
        return (injected_text.injected_part(text),) if text.strip() else ()
    return injected_text.split_typed(text, origin)


def assistant_parts(block: Any, state: dict[str, str]) -> tuple[Part, ...]:
    """Return the parts of one assistant block; encrypted reasoning yields none.

    `state` stores the names of calls for their results.
    """
    fields = {"type": "text", "text": block} if isinstance(block, str) else as_dict(block)
    sort = as_text(fields.get("type"))
    if sort in TEXTS:
        return injected_text.split_spoken(block_text(fields))
    if sort in ("thinking", "reasoning"):
        return reasoning_parts(as_text(fields.get("thinking")) or block_text(fields))
    if sort.endswith("tool_use"):
        return (
            remember_call(
                call_part(fields.get("name"), fields.get("input"), fields.get("id")), state
            ),
        )
    if sort.endswith("tool_result"):
        return answer_parts(fields, state, fields.get("tool_use_id"), name=sort)
    if sort == "redacted_thinking" or not fields:
        return ()
    # a model writes text: images and documents in its response come from a program
    return user_parts([fields], origin="tool" if sort in REFERENCES else "assistant")


def assistant_messages(
    content: Sequence[Any], state: dict[str, str], key: str, at: datetime
) -> list[NewMessage]:
    """Return a message for each block of a response that has parts."""
    messages = []
    for i, block in enumerate(content):
        parts = assistant_parts(block, state)
        own = key if len(content) == 1 else f"{key}:{i}"
        if parts and parts[0].kind == "tool_result":
            messages.append(NewMessage("tool", parts, at, own, origin=parts[0].origin))
        elif parts:
            messages.append(NewMessage("assistant", parts, at, own))
    return messages


def reasoning_parts(text: str) -> tuple[Part, ...]:
    """Return reasoning as a part, or nothing if it is empty."""
    return (Part("reasoning", text),) if text.strip() else ()


def remember_call(part: Part, state: dict[str, str]) -> Part:
    """Store the name of a call for its result, and return the call."""
    put_bounded(state, f"call:{part.call_id}", part.name, _MOST_CALLS)
    return part


def put_bounded(state: dict[str, str], name: str, value: str, most: int) -> None:
    """Store a value in `state`; the oldest of its kind is evicted when there are too many."""
    kind = name.partition(":")[0] + ":"
    state.pop(name, None)
    stored = [each for each in state if each.startswith(kind)]
    for each in stored[: max(0, len(stored) + 1 - most)]:
        del state[each]
    state[name] = value


def answer_parts(
    block: dict[str, Any], state: dict[str, str], call_id: Any, *, name: str = ""
) -> tuple[Part, ...]:
    """Return the parts of a result block, with the name of the called tool."""
    id_ = as_text(call_id)
    called = state.pop(f"call:{id_}", "") or name
    failed = block.get("is_error") is True
    return result_parts(block.get("content"), called, id_, failed=failed)


def block_text(block: dict[str, Any]) -> str:
    """Return the text of a text block."""
    return as_text(block.get("text")) or as_text(block.get("refusal"))


def call_part(name: Any, arguments: Any, call_id: Any) -> Part:
    """Return a tool call, its input as JSON on one line or as plain text."""
    text = arguments if isinstance(arguments, str) else json_fields.to_json(arguments)
    return Part("tool_call", injected_text.strip_base64(text), as_text(name), as_text(call_id))


def result_parts(
    content: Any, name: str, call_id: str, *, failed: bool = False
) -> tuple[Part, ...]:
    """Return a tool's result: its text, then its images, documents and injected text."""
    origin = tool_origin(name)
    text, references = "", []
    if isinstance(content, str):
        text = content
    elif isinstance(content, list):
        texts = []
        for block in content:
            sort = block.get("type") if isinstance(block, dict) else None
            if isinstance(sort, str) and sort in REFERENCES:
                references.append(injected_text.attachment_part(block, origin))
            else:
                texts.append(_plain(block))
        text = "\n".join(texts)
    elif content is not None:
        text = _plain(content)
    if call_text.is_lore_tool(name):
        # Forgotten items must not survive in old results.
        text, references = injected_text.MEMORY_PLACEHOLDER, []
    part = Part("tool_result", text, name, call_id, origin, failed)
    return (*injected_text.split_result(part), *references)


def _plain(block: Any) -> str:
    if isinstance(block, dict):
        if isinstance(block.get("text"), str):
            return str(block["text"])
        return json_fields.to_json({
            name: value for name, value in block.items() if name not in _ENCRYPTED
        })
    return as_text(block) or json_fields.to_json(block)


def opaque_part(block: dict[str, Any]) -> Part:
    """Return an unknown block as JSON without bytes and signatures."""
    readable = {name: value for name, value in block.items() if name not in _ENCRYPTED}
    return Part(
        "opaque",
        injected_text.strip_base64(json_fields.to_json(readable)),
        as_text(block.get("type")),
    )
