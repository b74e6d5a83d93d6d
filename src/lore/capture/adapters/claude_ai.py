"""Claude.ai: the archive that a person can export, with every conversation as a list."""

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

agent = "claude-ai"

Record = dict[str, Any]


def find(home: Path) -> Iterator[Path]:
    """Return nothing: an archive is wherever its owner put it."""
    del home
    return iter(())


def fits(path: Path, head: bytes) -> bool:
    """Return whether a file is such an archive."""
    return archives.has_field(path, head, b'"chat_messages"')


def read(path: Path, position: int) -> Iterator[SessionChunk]:
    """Yield all conversations; the position counts them.

    A changed export can have new messages anywhere, so none is skipped.
    """
    del position
    written = json_fields.modified_at(path)
    for i, conversation in enumerate(archives.read_conversations(path)):
        at = as_datetime(conversation.get("created_at")) or written
        messages: list[NewMessage] = []
        unknown: dict[str, int] = {}
        state: dict[str, str] = {}
        for place, each in enumerate(as_list(conversation.get("chat_messages"))):
            record = as_dict(each)
            at = as_datetime(record.get("created_at")) or at
            key = as_text(record.get("uuid")) or str(place)
            sender = as_text(record.get("sender"))
            if sender == "human":
                messages += _user_messages(record, key, at)
            elif sender == "assistant":
                messages += _assistant_messages(record, key, at, state)
            else:
                name = f"sender {sender[:40]}"
                unknown[name] = unknown.get(name, 0) + 1
        context = Context(
            session=as_text(conversation.get("uuid")).strip() or f"{path.stem}/{i}",
            title=as_text(conversation.get("name")),
        )
        yield SessionChunk(context, tuple(messages), i + 1, unknown)


def _user_messages(record: Record, key: str, at: datetime) -> list[NewMessage]:
    content = record.get("content") or as_text(record.get("text"))
    parts = list(content_blocks.user_parts(content))
    for each in as_list(record.get("attachments")):
        attached = as_dict(each)
        name = as_text(attached.get("file_name"))
        text = injected_text.strip_base64(as_text(attached.get("extracted_content")))
        part = Part("document", text or f"[document] {name}", name)
        parts.append(replace(part, origin="tool") if text else part)
    files = (as_dict(each) for each in as_list(record.get("files")))
    parts += [injected_text.attachment_part({**file, "type": "document"}) for file in files]
    return (
        [injected_text.user_or_system_message(NewMessage("user", (), at, key), parts)]
        if parts
        else []
    )


def _assistant_messages(
    record: Record, key: str, at: datetime, state: dict[str, str]
) -> list[NewMessage]:
    content = as_list(record.get("content")) or [as_text(record.get("text"))]
    messages = []
    for i, block in enumerate(content):
        parts = content_blocks.assistant_parts(block, state)
        name = key if len(content) == 1 else f"{key}:{i}"
        if parts and parts[0].kind == "tool_result":
            messages.append(NewMessage("tool", parts, at, name, origin=parts[0].origin))
        elif parts:
            messages.append(NewMessage("assistant", parts, at, name))
    return messages
