"""Claude.ai: the archive that a person can export, with every conversation as a list."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime

from lore.capture.adapter_protocol import Context
from lore.capture.adapters import archives, content_blocks, injected_text
from lore.capture.adapters.json_fields import Record, as_datetime, as_dict, as_list, as_text
from lore.records import NewMessage, Part


def _convert_conversation(
    conversation: Record, written: datetime
) -> tuple[Context, list[NewMessage], Counter[str]]:
    at = as_datetime(conversation.get("created_at")) or written
    messages: list[NewMessage] = []
    unknown: Counter[str] = Counter()
    state: dict[str, str] = {}
    for place, each in enumerate(as_list(conversation.get("chat_messages"))):
        record = as_dict(each)
        at = as_datetime(record.get("created_at")) or at
        key = as_text(record.get("uuid")) or str(place)
        sender = as_text(record.get("sender"))
        if sender == "human":
            messages += _user_messages(record, key, at)
        elif sender == "assistant":
            content = as_list(record.get("content")) or [as_text(record.get("text"))]
            messages += content_blocks.assistant_messages(content, state, key, at)
        else:
            unknown[f"sender {sender[:40]}"] += 1
    session = as_text(conversation.get("uuid")).strip()
    return Context(session, title=as_text(conversation.get("name"))), messages, unknown


adapter = archives.ArchiveAdapter("claude-ai", b'"chat_messages"', _convert_conversation)


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
    return injected_text.user_messages(NewMessage("user", (), at, key), parts)
