"""Transcripts for tests: a tiny agent whose lines have a session, a role and a content."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from lore.capture.adapter_protocol import Context, ParsedLine, SessionChunk
from lore.records import NewMessage, Part, Role
from tests.fakes import NOON


def text_message(role: Role, text: str, created_at: datetime = NOON) -> NewMessage:
    return NewMessage(role, (Part("text", text),), created_at)


class TinyAgent:
    """Reads lines of {session, role, content, id}; the id is the key."""

    agent = "tiny"

    def find(self, home: Path) -> Iterator[Path]:
        """Return the transcripts in the folder 'talks'."""
        return iter(sorted((home / "talks").glob("*.jsonl")))

    def fits(self, path: Path, head: bytes) -> bool:
        """Tell by the name alone."""
        return path.suffix == ".jsonl"

    def initial_context(self, path: Path) -> Context:
        """Return a session that is called like the file."""
        return Context(session=path.stem, state={"lines": "0"})

    def parse_line(self, line: Any, context: Context) -> ParsedLine:
        """Return the message of a line."""
        count = int(context.state["lines"]) + 1
        context = replace(context, state={"lines": str(count)})
        if isinstance(line, dict):
            names = ("session", "parent", "title", "folder", "branch")
            context = replace(context, **{name: line[name] for name in names if name in line})
        if not isinstance(line, dict) or "role" not in line:
            return ParsedLine(context, unknown="no message")
        at = NOON + timedelta(seconds=count)
        key = str(line.get("id", count))
        said = NewMessage(line["role"], (Part("text", str(line["content"])),), at, key)
        return ParsedLine(context, (said,))


class TinyArchive:
    """Reads a JSON list of sessions, each a list of texts; the position counts sessions."""

    agent = "archive"

    def __init__(self, *, breaks_at: int = -1, error: Exception | None = None) -> None:
        self.breaks_at = breaks_at
        self.error = error or ValueError("torn")

    def find(self, home: Path) -> Iterator[Path]:
        """Return nothing."""
        return iter(())

    def fits(self, path: Path, head: bytes) -> bool:
        """Tell by the name alone."""
        return path.suffix == ".archive"

    def read(self, path: Path, position: int) -> Iterator[SessionChunk]:
        """Return the sessions after a position."""
        for place, texts in enumerate(json.loads(path.read_text())):
            if place == self.breaks_at:
                raise self.error
            if place >= position:
                said = tuple(
                    NewMessage("user", (Part("text", text),), NOON, key=str(i))
                    for i, text in enumerate(texts)
                )
                yield SessionChunk(Context(session=f"s{place}"), said, place + 1, {"odd": 1})


def find_tiny(path: Path, head: bytes) -> TinyAgent | TinyArchive | None:
    """Return the agent of a file."""
    for adapter in (TinyAgent(), TinyArchive()):
        if adapter.fits(path, head):
            return adapter
    return None


def line(number: int, text: str = "", **fields: Any) -> bytes:
    """Return a line of a talk, with its end."""
    told = {"role": "user", "content": text or f"line {number}", "id": str(number), **fields}
    return json.dumps(told).encode() + b"\n"
