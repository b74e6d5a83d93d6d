"""Doing by REST: questions, messages pushed in, the cycle of upkeep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from anyio import CapacityLimiter
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from lore import clock
from lore.errors import InvalidInput
from lore.http.endpoint import Endpoint
from lore.http.fields import Id, Name, Short, Text
from lore.memory import Memory
from lore.records import (
    ITEM_TYPES,
    Answer,
    CycleReport,
    ItemType,
    NewMessage,
    Origin,
    Part,
    PartKind,
    Role,
)
from lore.tools.question import Question
from lore.tools.tool import Arguments, Caller

_MOST_HITS = 1_000
"""As many as recall gives at all."""

_MOST_MESSAGES = 1_000
"""Of one request; a longer conversation comes in several."""


class Recall(Question):
    """A question to the memory, of a program: it names where to look, and may read on for long."""

    limit: int | None = Field(None, ge=1, le=_MOST_HITS, description="Most hits.")
    session: Annotated[Name, Field(description="With scope 'session': which one.")] = ""
    project: Annotated[
        Name, Field(description="Path, name or id; for scope 'project' also x-lore-project.")
    ] = ""
    budget_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    types: Annotated[
        tuple[ItemType, ...],
        Field(min_length=1, max_length=3, description="What may be found."),
    ] = ITEM_TYPES
    trusted_only: Annotated[
        bool, Field(description="Only what the person or the assistant said.")
    ] = False
    explain: Annotated[bool, Field(description="With the numbers behind each score.")] = False


class PushedPart(BaseModel):
    """One piece of a message."""

    model_config = ConfigDict(extra="forbid")

    kind: PartKind = "text"
    text: Text
    name: Short = ""
    call_id: Short = ""
    origin: Origin | None = None
    failed: bool = False


class PushedMessage(BaseModel):
    """One message; `text` stands for one part of plain text."""

    model_config = ConfigDict(extra="forbid")

    role: Role
    text: Text = ""
    parts: Annotated[tuple[PushedPart, ...], Field(max_length=1_000)] = ()
    created_at: Annotated[AwareDatetime | None, Field(description="By default now.")] = None
    key: Annotated[Short, Field(description="The same key again stores nothing twice.")] = ""
    speaker: Short = ""
    origin: Origin | None = None
    model: Short = ""
    usage: Annotated[dict[Short, Annotated[int, Field(ge=0, le=2**53)]], Field(max_length=50)] = {}


class Push(Arguments):
    """Messages of one session."""

    session: Id
    messages: Annotated[list[PushedMessage], Field(min_length=1, max_length=_MOST_MESSAGES)]
    agent: Annotated[str, Field(min_length=1, max_length=100)] = "http"
    project: Annotated[Name, Field(description="By default that of x-lore-project.")] = ""
    title: Annotated[str, Field(max_length=2_000)] = ""
    branch: Short = ""
    parent: Annotated[Short, Field(description="The session that this one comes from.")] = ""
    files: Annotated[tuple[Name, ...], Field(max_length=1_000)] = ()


class Cycle(Arguments):
    """A cycle of upkeep."""

    phases: Annotated[tuple[Short, ...], Field(max_length=20, description="None for all.")] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Pushed:
    """The ids of messages that were pushed, in their order."""

    ids: tuple[str, ...]


def _recall(memory: Memory, a: Recall, caller: Caller) -> Answer:
    return memory.recall(
        a.query,
        scope=a.scope,
        session=a.session or caller.session,
        project=a.project or (caller.project if a.scope == "project" else ""),
        limit=a.limit,
        budget_tokens=a.budget_tokens,
        explain=a.explain,
        trusted_only=a.trusted_only,
        types=a.types,
    )


def _capture(memory: Memory, a: Push, caller: Caller) -> Pushed:
    ids = memory.capture(
        a.session,
        [_message(one, clock.now()) for one in a.messages],
        agent=a.agent,
        project=a.project or caller.project,
        title=a.title,
        branch=a.branch,
        parent=a.parent,
        files=a.files,
    )
    return Pushed(tuple(ids))


def _message(pushed: PushedMessage, now: datetime) -> NewMessage:
    if bool(pushed.text) == bool(pushed.parts):
        msg = "A message has either 'text' or 'parts'."
        raise InvalidInput(msg)
    parts = [Part(**part.model_dump()) for part in pushed.parts] or [Part("text", pushed.text)]
    return NewMessage(
        role=pushed.role,
        parts=tuple(parts),
        created_at=pushed.created_at or now,
        key=pushed.key,
        speaker=pushed.speaker,
        origin=pushed.origin,
        model=pushed.model,
        usage=pushed.usage,
    )


def endpoints(
    stopping: Callable[[], bool],
) -> tuple[Endpoint[Recall], Endpoint[Push], Endpoint[Cycle]]:
    """Return the endpoints that do something; a long one looks whether it is to stop."""

    def consolidate(memory: Memory, a: Cycle, _caller: Caller) -> CycleReport:
        return memory.consolidate(phases=a.phases, dry_run=a.dry_run, stopping=stopping)

    return (
        Endpoint("POST", "/retrieve", "Answer a question.", "read", Recall, _recall, Answer),
        Endpoint("POST", "/capture", "Store messages.", "push", Push, _capture, Pushed),
        Endpoint(
            "POST", "/consolidate", "Run a cycle of upkeep.", "write", Cycle, consolidate,
            CycleReport, limiter=CapacityLimiter(1),
        ),
    )  # fmt: skip
