"""Claude.ai: the archive that a person can export, with every conversation as a list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from lore.capture.adapters import archives, asides, blocks, fields, payloads, places
from lore.capture.transcripts import Context, Stretch
from lore.records import NewMessage, Part

agent = "claude-ai"

Record = dict[str, Any]


def find(home: Path) -> Iterator[Path]:
    """Return nothing: an archive is where its owner put it."""
    del home
    return iter(())


def fits(path: Path, head: bytes) -> bool:
    """Tell whether a file is such an archive."""
    return archives.holds(path, head, b'"chat_messages"')


def read(path: Path, position: int) -> Iterator[Stretch]:
    """Return all conversations; the position counts them.

    An export that changed is another export, with what is new anywhere in it: none is skipped.
    """
    del position
    written = places.modified(path)
    for i, conversation in enumerate(archives.conversations(path)):
        at = fields.moment(conversation.get("created_at")) or written
        messages: list[NewMessage] = []
        unknown: dict[str, int] = {}
        state: dict[str, str] = {}
        for place, each in enumerate(fields.items(conversation.get("chat_messages"))):
            record = fields.table(each)
            at = fields.moment(record.get("created_at")) or at
            key = fields.text(record.get("uuid")) or str(place)
            sender = fields.text(record.get("sender"))
            if sender == "human":
                messages += _asked(record, key, at)
            elif sender == "assistant":
                messages += _answered(record, key, at, state)
            else:
                name = f"sender {sender[:40]}"
                unknown[name] = unknown.get(name, 0) + 1
        context = Context(
            session=fields.text(conversation.get("uuid")).strip() or f"{path.stem}/{i}",
            title=fields.text(conversation.get("name")),
        )
        yield Stretch(context, tuple(messages), i + 1, unknown)


def _asked(record: Record, key: str, at: datetime) -> list[NewMessage]:
    content = record.get("content") or fields.text(record.get("text"))
    parts = list(blocks.typed(content))
    for each in fields.items(record.get("attachments")):
        attached = fields.table(each)
        name = fields.text(attached.get("file_name"))
        text = payloads.without(fields.text(attached.get("extracted_content")))
        part = Part("document", text or f"[document] {name}", name)
        parts.append(replace(part, origin="tool") if text else part)
    files = (fields.table(each) for each in fields.items(record.get("files")))
    parts += [payloads.reference({**file, "type": "document"}) for file in files]
    return [asides.from_person(NewMessage("user", (), at, key), parts)] if parts else []


def _answered(record: Record, key: str, at: datetime, state: dict[str, str]) -> list[NewMessage]:
    content = fields.items(record.get("content")) or [fields.text(record.get("text"))]
    messages = []
    for i, block in enumerate(content):
        parts = blocks.spoken(block, state)
        name = key if len(content) == 1 else f"{key}:{i}"
        if parts and parts[0].kind == "tool_result":
            messages.append(NewMessage("tool", parts, at, name, origin=parts[0].origin))
        elif parts:
            messages.append(NewMessage("assistant", parts, at, name))
    return messages
