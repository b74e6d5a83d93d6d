"""SWE-agent: a trajectory, one JSON document with the history of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from lore.capture.adapters import asides, blocks, fields, places
from lore.capture.transcripts import Context, Stretch
from lore.errors import InvalidInput, NotFound
from lore.records import NewMessage

agent = "swe-agent"

Record = dict[str, Any]


def find(home: Path) -> Iterator[Path]:
    """Return nothing: trajectories lie where the run was started."""
    del home
    return iter(())


def fits(path: Path, head: bytes) -> bool:
    """Tell whether a file is a trajectory."""
    return path.suffix == ".traj" and head.lstrip()[:1] == b"{"


def read(path: Path, position: int) -> Iterator[Stretch]:
    """Return the whole history; the position counts its messages.

    The document is written anew with each step, and by the next run: none is skipped.
    """
    del position
    try:
        told = fields.table(orjson.loads(path.read_bytes()))
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}."
        raise NotFound(msg) from error
    except orjson.JSONDecodeError as error:
        msg = f"{path} is no JSON: {error}."
        raise InvalidInput(msg) from error
    at = places.modified(path)
    messages: list[NewMessage] = []
    unknown: dict[str, int] = {}
    history = fields.items(told.get("history"))
    called = False
    for i, each in enumerate(history):
        record = fields.table(each)
        role = fields.text(record.get("role"))
        key = f"{i}-{fields.digest(record)}"
        told_here = _said(record, NewMessage("user", (), at, key), called=called)
        called = called or bool(_action(record))
        messages += told_here
        if role not in ("system", "user", "assistant", "tool"):
            name = f"role {role[:40]}"
            unknown[name] = unknown.get(name, 0) + 1
    if history:
        context = Context(session=path.stem, title=path.stem)
        yield Stretch(context, tuple(messages), len(history), unknown)


def _action(record: Record) -> str:
    return fields.text(record.get("action")) if record.get("role") == "assistant" else ""


def _said(record: Record, message: NewMessage, *, called: bool) -> list[NewMessage]:
    """Return one entry of the history: after the first action, the user's place has results."""
    role = record.get("role")
    content = record.get("content")
    at, key = message.created_at, message.key
    if role == "system" or record.get("is_demo") is True:
        parts = blocks.typed(content, aside=True)
        return [asides.from_person(message, parts)] if parts else []
    if role == "assistant":
        action = _action(record)
        thought = fields.text(record.get("thought"))
        said = asides.said(thought if action and thought.strip() else fields.text(content))
        told = [NewMessage("assistant", said, at, key)] if said else []
        if action:
            call = blocks.call("shell", action, "")
            told.append(NewMessage("assistant", (call,), at, f"{key}:action"))
        return told
    if role == "tool" or (role == "user" and called):
        return [NewMessage("tool", blocks.result(content, "shell", ""), at, key, origin="tool")]
    if role == "user":
        # a template of the run's: nobody typed it, and its rules are no one's wishes
        parts = blocks.typed(content)
        return [replace(asides.from_person(message, parts), speaker="task")] if parts else []
    return []
