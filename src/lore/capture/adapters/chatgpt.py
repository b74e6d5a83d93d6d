"""ChatGPT: the archive that a person can export, with every conversation as a tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from lore.capture.adapter_protocol import Context
from lore.capture.adapters import archives, content_blocks, injected_text
from lore.capture.adapters.json_fields import Record, as_datetime, as_dict, as_list, as_text
from lore.records import NewMessage, Part

_ASIDES = frozenset("user_editable_context model_editable_context system_error".split())
_WEB = ("tether_browsing_display", "tether_quote", "sonic_webpage")
"""Content types that are web pages, whatever the tool is called."""


def _convert_conversation(
    conversation: Record, written: datetime
) -> tuple[Context, list[NewMessage], Counter[str]]:
    ids = (as_text(conversation.get(each)).strip() for each in ("conversation_id", "id"))
    context = Context(next(filter(None, ids), ""), title=as_text(conversation.get("title")))
    at = as_datetime(conversation.get("create_time")) or written
    messages: list[NewMessage] = []
    unknown: Counter[str] = Counter()
    for place, record in enumerate(_in_order(as_dict(conversation.get("mapping")))):
        at = as_datetime(record.get("create_time")) or at
        converted = _convert(record, at, as_text(record.get("id")) or str(place))
        if isinstance(converted, str):
            unknown[converted] += 1
        else:
            messages += converted
    return context, messages, unknown


adapter = archives.ArchiveAdapter("chatgpt", b'"mapping"', _convert_conversation)


def _in_order(mapping: dict[str, Any]) -> Iterator[Record]:
    """Yield the messages of a tree, each before its replies; no branch is left out."""
    nodes = {name: as_dict(node) for name, node in mapping.items()}
    roots = [name for name, node in nodes.items() if _as_name(node.get("parent")) not in nodes]
    seen: set[str] = set()
    for start in [*roots, *nodes]:
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name in seen or name not in nodes:
                continue
            seen.add(name)
            yield as_dict(nodes[name].get("message"))
            children = as_list(nodes[name].get("children"))
            waiting += [_as_name(child) for child in reversed(children)]


def _as_name(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _convert(record: Record, at: datetime, key: str) -> list[NewMessage] | str:
    """Return the messages of a node, or the name of an unknown role."""
    author = as_dict(record.get("author"))
    role = author.get("role")
    content = as_dict(record.get("content"))
    metadata = as_dict(record.get("metadata"))
    kind = as_text(content.get("content_type"))
    parts = _parts(content)
    if not parts:
        return []
    message = NewMessage("user", (), at, key, model=as_text(metadata.get("model_slug")))
    hidden = metadata.get("is_visually_hidden_from_conversation") is True or kind in _ASIDES
    if role == "system" or hidden:
        beside = [
            injected_text.injected_part(part.text, kind) for part in parts if part.text.strip()
        ]
        return injected_text.user_messages(message, beside)
    if role == "user":
        typed: list[Part] = []
        for part in parts:
            typed += injected_text.split_typed(part.text) if part.kind == "text" else (part,)
        return injected_text.user_messages(replace(message, model=""), typed)
    if role == "assistant":
        spoken = _answer(as_text(record.get("recipient")), parts)
        return [replace(message, role="assistant", parts=spoken)]
    if role == "tool":
        name = as_text(author.get("name"))
        text = "\n".join(part.text for part in parts if part.kind != "image")
        result = content_blocks.result_parts(text, "web" if kind in _WEB else name, "")
        images = tuple(part for part in parts if part.kind == "image")
        origin = result[0].origin
        return [replace(message, role="tool", parts=(*result, *images), origin=origin)]
    return f"role {as_text(role)[:40]}"


def _answer(recipient: str, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    if recipient not in ("", "all"):
        text = "\n".join(part.text for part in parts)
        return (content_blocks.call_part(recipient, text, ""),)
    spoken: list[Part] = []
    for part in parts:
        if part.kind == "text":
            spoken += injected_text.split_spoken(part.text)
        else:  # a tool made or found the images of a response
            spoken.append(replace(part, origin="tool") if part.kind == "image" else part)
    return tuple(spoken)


def _parts(content: Record) -> tuple[Part, ...]:
    kind = content.get("content_type")
    if kind == "thoughts":
        thoughts = (as_dict(each) for each in as_list(content.get("thoughts")))
        texts = (as_text(each.get("content")) for each in thoughts)
        return content_blocks.reasoning_parts("\n\n".join(filter(None, texts)))
    if kind == "reasoning_recap":
        return content_blocks.reasoning_parts(as_text(content.get("content")))
    parts: list[Part] = []
    for piece in as_list(content.get("parts")):
        if isinstance(piece, dict):
            parts.append(_asset(piece))
        elif text := as_text(piece):
            parts.append(Part("text", text))
    if not parts:
        names = ("text", "result", "user_profile", "user_instructions", "model_set_context")
        text = "\n".join(filter(None, (as_text(content.get(name)) for name in names)))
        parts = [Part("text", text)] if text.strip() else []
    return tuple(part for part in parts if part.text.strip())


def _asset(piece: Record) -> Part:
    kind = as_text(piece.get("content_type"))
    if text := as_text(piece.get("text")):
        return Part("text", text)
    if "image" in kind:
        place = as_text(piece.get("asset_pointer"))
        return injected_text.attachment_part({"type": "image", "source": {"url": place}})
    return replace(content_blocks.opaque_part(piece), name=kind)
