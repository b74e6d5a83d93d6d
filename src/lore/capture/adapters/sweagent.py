"""SWE-agent: a trajectory, one JSON document with the history of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from lore.capture.adapter_protocol import Context, SessionChunk
from lore.capture.adapters import content_blocks, injected_text, json_fields
from lore.capture.adapters.json_fields import Record, as_dict, as_list, as_text
from lore.records import NewMessage

agent = "swe-agent"


find = json_fields.find_nothing


def fits(path: Path, head: bytes) -> bool:
    """Return whether a file is a trajectory."""
    return path.suffix == ".traj" and head.lstrip()[:1] == b"{"


def read(path: Path, position: int) -> Iterator[SessionChunk]:
    """Yield the whole history; the position counts its messages.

    The document is rewritten with each step, and by the next run: none is skipped.
    """
    del position
    document = as_dict(json_fields.load_document(path))
    at = json_fields.modified_at(path)
    messages: list[NewMessage] = []
    unknown: Counter[str] = Counter()
    history = as_list(document.get("history"))
    called = False
    for i, each in enumerate(history):
        record = as_dict(each)
        role = as_text(record.get("role"))
        key = f"{i}-{json_fields.digest(record)}"
        messages += _convert(record, NewMessage("user", (), at, key), called=called)
        called = called or bool(_action(record))
        if role not in ("system", "user", "assistant", "tool"):
            unknown[f"role {role[:40]}"] += 1
    if history:
        context = Context(session=path.stem, title=path.stem)
        yield SessionChunk(context, tuple(messages), len(history), unknown)


def _action(record: Record) -> str:
    return as_text(record.get("action")) if record.get("role") == "assistant" else ""


def _convert(record: Record, message: NewMessage, *, called: bool) -> list[NewMessage]:
    """Return one entry of the history; after the first action, user entries are results."""
    role = record.get("role")
    content = record.get("content")
    at, key = message.created_at, message.key
    if role == "system" or record.get("is_demo") is True:
        parts = content_blocks.user_parts(content, aside=True)
        return injected_text.user_messages(message, parts)
    if role == "assistant":
        action = _action(record)
        thought = as_text(record.get("thought"))
        spoken = injected_text.split_spoken(
            thought if action and thought.strip() else as_text(content)
        )
        converted = [NewMessage("assistant", spoken, at, key)] if spoken else []
        if action:
            call = content_blocks.call_part("shell", action, "")
            converted.append(NewMessage("assistant", (call,), at, f"{key}:action"))
        return converted
    if role == "tool" or (role == "user" and called):
        parts = content_blocks.result_parts(content, "shell", "")
        return [NewMessage("tool", parts, at, key, origin="tool")]
    if role == "user":
        # a template of the run's: nobody typed it, and its rules are no one's wishes
        parts = content_blocks.user_parts(content)
        return [
            replace(one, speaker="task", origin="repo")
            for one in injected_text.user_messages(message, parts)
        ]
    return []
