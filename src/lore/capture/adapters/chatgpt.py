"""ChatGPT: the archive that a person can export, with every conversation as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from lore.capture.adapter_protocol import Context, SessionChunk
from lore.capture.adapters import archives, content_blocks, injected_text, json_fields
from lore.capture.adapters.json_fields import as_datetime, as_dict, as_list, as_text
from lore.records import NewMessage, Part

agent = "chatgpt"

_ASIDES = frozenset("user_editable_context model_editable_context system_error".split())
_WEB = ("tether_browsing_display", "tether_quote", "sonic_webpage")
"""Content types that are web pages, whatever the tool is called."""

Record = dict[str, Any]


def find(home: Path) -> Iterator[Path]:
    """Return nothing: an archive is wherever its owner put it."""
    del home
    return iter(())


def fits(path: Path, head: bytes) -> bool:
    """Return whether a file is such an archive."""
    return archives.has_field(path, head, b'"mapping"')


def read(path: Path, position: int) -> Iterator[SessionChunk]:
    """Yield all conversations; the position counts them.

    A changed export can have new messages anywhere, so none is skipped.
    """
    del position
    written = json_fields.modified_at(path)
    for i, conversation in enumerate(archives.read_conversations(path)):
        ids = (as_text(conversation.get(each)).strip() for each in ("conversation_id", "id"))
        session = next(filter(None, ids), f"{path.stem}/{i}")
        context = Context(session, title=as_text(conversation.get("title")))
        at = as_datetime(conversation.get("create_time")) or written
        messages: list[NewMessage] = []
        unknown: dict[str, int] = {}
        for place, record in enumerate(_in_order(as_dict(conversation.get("mapping")))):
            at = as_datetime(record.get("create_time")) or at
            converted = _convert(record, at, as_text(record.get("id")) or str(place))
            if isinstance(converted, str):
                unknown[converted] = unknown.get(converted, 0) + 1
            elif converted is not None:
                messages.append(converted)
        yield SessionChunk(context, tuple(messages), i + 1, unknown)


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


def _convert(record: Record, at: datetime, key: str) -> NewMessage | str | None:
    """Return the message of a node, None if it is empty, or the name of an unknown role."""
    author = as_dict(record.get("author"))
    role = author.get("role")
    content = as_dict(record.get("content"))
    metadata = as_dict(record.get("metadata"))
    kind = as_text(content.get("content_type"))
    parts = _parts(content)
    if not parts:
        return None
    message = NewMessage("user", (), at, key, model=as_text(metadata.get("model_slug")))
    hidden = metadata.get("is_visually_hidden_from_conversation") is True or kind in _ASIDES
    if role == "system" or hidden:
        beside = tuple(
            injected_text.injected_part(part.text, kind) for part in parts if part.text.strip()
        )
        return injected_text.user_or_system_message(message, beside) if beside else None
    if role == "user":
        typed = tuple(each for part in parts for each in _typed(part))
        return (
            injected_text.user_or_system_message(replace(message, model=""), typed)
            if typed
            else None
        )
    if role == "assistant":
        return _answer(record, parts, replace(message, role="assistant"))
    if role == "tool":
        name = as_text(author.get("name"))
        text = "\n".join(part.text for part in parts if part.kind != "image")
        result = content_blocks.result_parts(text, "web" if kind in _WEB else name, "")
        images = tuple(part for part in parts if part.kind == "image")
        return replace(message, role="tool", parts=(*result, *images), origin=result[0].origin)
    return f"role {as_text(role)[:40]}"


def _typed(part: Part) -> tuple[Part, ...]:
    return injected_text.split_typed(part.text) if part.kind == "text" else (part,)


def _answer(record: Record, parts: tuple[Part, ...], message: NewMessage) -> NewMessage:
    recipient = as_text(record.get("recipient"))
    if recipient not in ("", "all"):
        text = "\n".join(part.text for part in parts)
        return replace(message, parts=(content_blocks.call_part(recipient, text, ""),))
    spoken = tuple(
        each
        for part in parts
        for each in (
            injected_text.split_spoken(part.text)
            if part.kind == "text"
            else (_with_image_origin(part),)
        )
    )
    return replace(message, parts=spoken)


def _with_image_origin(part: Part) -> Part:
    """Return an image in a response with its origin: a tool made or found it."""
    return replace(part, origin="tool") if part.kind == "image" else part


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
