"""ChatGPT: the archive that a person can export, with every conversation as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from lore.capture.adapters import archives, asides, blocks, fields, payloads, places
from lore.capture.transcripts import Context, Stretch
from lore.records import NewMessage, Part

agent = "chatgpt"

_ASIDES = frozenset("user_editable_context model_editable_context system_error".split())
_WEB = ("tether_browsing_display", "tether_quote", "sonic_webpage")
"""Contents that are pages, whatever the tool that brought them is called."""

Record = dict[str, Any]


def find(home: Path) -> Iterator[Path]:
    """Return nothing: an archive is where its owner put it."""
    del home
    return iter(())


def fits(path: Path, head: bytes) -> bool:
    """Tell whether a file is such an archive."""
    return archives.holds(path, head, b'"mapping"')


def read(path: Path, position: int) -> Iterator[Stretch]:
    """Return all conversations; the position counts them.

    An export that changed is another export, with what is new anywhere in it: none is skipped.
    """
    del position
    written = places.modified(path)
    for i, conversation in enumerate(archives.conversations(path)):
        ids = (fields.text(conversation.get(each)).strip() for each in ("conversation_id", "id"))
        session = next(filter(None, ids), f"{path.stem}/{i}")
        context = Context(session, title=fields.text(conversation.get("title")))
        at = fields.moment(conversation.get("create_time")) or written
        messages: list[NewMessage] = []
        unknown: dict[str, int] = {}
        for place, record in enumerate(_in_order(fields.table(conversation.get("mapping")))):
            at = fields.moment(record.get("create_time")) or at
            said = _said(record, at, fields.text(record.get("id")) or str(place))
            if isinstance(said, str):
                unknown[said] = unknown.get(said, 0) + 1
            elif said is not None:
                messages.append(said)
        yield Stretch(context, tuple(messages), i + 1, unknown)


def _in_order(mapping: dict[str, Any]) -> Iterator[Record]:
    """Return the messages of a tree, each before its answers; no branch is left out."""
    nodes = {name: fields.table(node) for name, node in mapping.items()}
    roots = [name for name, node in nodes.items() if _named(node.get("parent")) not in nodes]
    seen: set[str] = set()
    for start in [*roots, *nodes]:
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name in seen or name not in nodes:
                continue
            seen.add(name)
            yield fields.table(nodes[name].get("message"))
            children = fields.items(nodes[name].get("children"))
            waiting += [_named(child) for child in reversed(children)]


def _named(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _said(record: Record, at: datetime, key: str) -> NewMessage | str | None:
    """Return the message of a node, nothing if it is empty, or the name of an unknown role."""
    author = fields.table(record.get("author"))
    role = author.get("role")
    content = fields.table(record.get("content"))
    told = fields.table(record.get("metadata"))
    kind = fields.text(content.get("content_type"))
    parts = _parts(content)
    if not parts:
        return None
    message = NewMessage("user", (), at, key, model=fields.text(told.get("model_slug")))
    hidden = told.get("is_visually_hidden_from_conversation") is True or kind in _ASIDES
    if role == "system" or hidden:
        beside = tuple(asides.aside(part.text, kind) for part in parts if part.text.strip())
        return asides.from_person(message, beside) if beside else None
    if role == "user":
        typed = tuple(each for part in parts for each in _typed(part))
        return asides.from_person(replace(message, model=""), typed) if typed else None
    if role == "assistant":
        return _answer(record, parts, replace(message, role="assistant"))
    if role == "tool":
        name = fields.text(author.get("name"))
        text = "\n".join(part.text for part in parts if part.kind != "image")
        found = blocks.result(text, "web" if kind in _WEB else name, "")
        images = tuple(part for part in parts if part.kind == "image")
        return replace(message, role="tool", parts=(*found, *images), origin=found[0].origin)
    return f"role {fields.text(role)[:40]}"


def _typed(part: Part) -> tuple[Part, ...]:
    return asides.typed(part.text) if part.kind == "text" else (part,)


def _answer(record: Record, parts: tuple[Part, ...], message: NewMessage) -> NewMessage:
    recipient = fields.text(record.get("recipient"))
    if recipient not in ("", "all"):
        text = "\n".join(part.text for part in parts)
        return replace(message, parts=(blocks.call(recipient, text, ""),))
    said = tuple(
        each
        for part in parts
        for each in (asides.said(part.text) if part.kind == "text" else (_given(part),))
    )
    return replace(message, parts=said)


def _given(part: Part) -> Part:
    """Return a picture in an answer: a tool made or found it, and named it."""
    return replace(part, origin="tool") if part.kind == "image" else part


def _parts(content: Record) -> tuple[Part, ...]:
    kind = content.get("content_type")
    if kind == "thoughts":
        thoughts = (fields.table(each) for each in fields.items(content.get("thoughts")))
        texts = (fields.text(each.get("content")) for each in thoughts)
        return blocks.thought("\n\n".join(filter(None, texts)))
    if kind == "reasoning_recap":
        return blocks.thought(fields.text(content.get("content")))
    parts: list[Part] = []
    for piece in fields.items(content.get("parts")):
        if isinstance(piece, dict):
            parts.append(_asset(piece))
        elif text := fields.text(piece):
            parts.append(Part("text", text))
    if not parts:
        names = ("text", "result", "user_profile", "user_instructions", "model_set_context")
        text = "\n".join(filter(None, (fields.text(content.get(name)) for name in names)))
        parts = [Part("text", text)] if text.strip() else []
    return tuple(part for part in parts if part.text.strip())


def _asset(piece: Record) -> Part:
    kind = fields.text(piece.get("content_type"))
    if text := fields.text(piece.get("text")):
        return Part("text", text)
    if "image" in kind:
        place = fields.text(piece.get("asset_pointer"))
        return payloads.reference({"type": "image", "source": {"url": place}})
    return replace(blocks.opaque(piece), name=kind)
