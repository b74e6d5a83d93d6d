"""Long talks: recorded sessions as the requests that a client would have made."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from lore.errors import EvaluationError
from lore.evals.trials import rows
from lore.records import Message, NewMessage, Part, Role
from lore.records.dialogues import Block, Entry, Voice
from lore.text.tokens import TOKENS_PER_CHAR

_TOOL = re.compile(r"^\[tool:([\w.-]+)\] ?", re.MULTILINE)
"""How the recordings mark what a tool gave back; what it was called with is not recorded."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a session, its answer, and the message that holds it."""

    text: str
    answer: str
    message: int


@dataclass(frozen=True, slots=True)
class Request:
    """One call of the model: how many entries its prompt has, and when it was made."""

    entries: int
    at_s: float


@dataclass(frozen=True, slots=True)
class Talk:
    """A recorded session as a client would have sent it."""

    name: str
    entries: tuple[Entry, ...]
    requests: tuple[Request, ...]
    ends: tuple[int, ...]
    """For each message, how many entries there are with it."""
    said: tuple[NewMessage, ...]
    questions: tuple[Question, ...] = ()
    project: str = ""
    tokens_per_char: float = TOKENS_PER_CHAR

    def entries_of(self, message: int) -> range:
        """Return the numbers of the entries that a message makes."""
        return range(self.ends[message - 1] if message else 0, self.ends[message])


def read_talks(path: Path) -> list[Talk]:
    """Return the sessions of a file."""
    try:
        return [_talk(raw) for raw in rows(path)]
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        msg = f"{path.name} cannot be read: {error!r}"
        raise EvaluationError(msg) from error


def talk_of(name: str, messages: Sequence[Message]) -> Talk:
    """Return a captured session as a client would have sent it; nobody asks about it."""
    told = [(one.parts, one.created_at, one.role) for one in messages]
    return _made(name, told, whole=False)


def _talk(raw: dict[str, Any]) -> Talk:
    said: list[dict[str, Any]] = raw["messages"]
    told = [(_parts(m["role"], m["content"]), _moment(m["timestamp"]), m["role"]) for m in said]
    place = {m["index"]: number for number, m in enumerate(said)}
    questions = tuple(
        Question(q["question"], q.get("answer", ""), place[q["message_index"]])
        for q in raw["questions"]
        if q.get("message_index") in place
    )
    chars = sum(len(m["content"]) for m in said)
    tokens = sum(m.get("tokens", 0) for m in said)
    project = str(raw.get("project_path") or "")
    ratio = tokens / chars if tokens and chars else TOKENS_PER_CHAR
    return _made(str(raw["session_id"]), told, questions, project, ratio)


def _made(
    name: str,
    told: Sequence[tuple[Sequence[Part], datetime, Role]],
    questions: tuple[Question, ...] = (),
    project: str = "",
    tokens_per_char: float = TOKENS_PER_CHAR,
    *,
    whole: bool = True,
) -> Talk:
    """Return a talk; `whole`: each message of an assistant is all that it answered."""
    entries: list[Entry] = []
    requests: list[Request] = []
    ends: list[int] = []
    for parts, at, role in told:
        own = [part for part in parts if part.kind != "tool_result"]
        results = [part for part in parts if part.kind == "tool_result"]
        if role == "assistant" and entries and (whole or entries[-1].voice != "assistant"):
            requests.append(Request(len(entries), at.timestamp()))
        if own:
            entries.append(_entry("user" if role == "user" else "assistant", own))
        if results:
            entries.append(_entry("user", results))
        ends.append(len(entries))
    said = tuple(NewMessage(role, tuple(parts), at) for parts, at, role in told)
    return Talk(
        name,
        tuple(entries),
        tuple(requests),
        tuple(ends),
        said,
        questions,
        project,
        tokens_per_char,
    )


def _parts(role: str, content: str) -> list[Part]:
    """Return what an assistant said, called and got back."""
    if role != "assistant":
        return [Part("text", content)]
    found: list[Part] = []
    results: list[Part] = []
    marks = list(_TOOL.finditer(content))
    spoken = content[: marks[0].start()] if marks else content
    if spoken.strip():
        found.append(Part("text", spoken))
    ends = [*(mark.start() for mark in marks[1:]), len(content)]
    for number, (mark, end) in enumerate(zip(marks, ends, strict=False)):
        text = content[mark.end() : end]
        id_ = blake2b(f"{content}{number}".encode(), digest_size=8).hexdigest()
        found.append(Part("tool_call", "", name=mark[1], call_id=id_))
        results.append(Part("tool_result", text, name=mark[1], call_id=id_))
    return [*found, *results]


_KINDS = {"tool_call": "call", "tool_result": "result", "reasoning": "reasoning", "text": "text"}


def _entry(voice: Voice, parts: Sequence[Part]) -> Entry:
    blocks = tuple(
        Block(
            _KINDS.get(part.kind, "other"),  # type: ignore[arg-type]
            max(1, len(part.text)),
            part.text,
            part.call_id,
            part.name,
            part.failed,
        )
        for part in parts
    )
    told = "\0".join(f"{b.kind} {b.call_id} {b.text}" for b in blocks)
    return Entry(
        voice, blocks, blake2b(told.encode("utf-8", "replace"), digest_size=12).hexdigest()
    )


def _moment(ms: float) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
