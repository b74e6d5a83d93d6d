"""REST endpoints that act: tools, recall, capture, consolidation, logins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Annotated, Any, Protocol

from anyio import CapacityLimiter
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from lore import clock
from lore.errors import InvalidInput
from lore.http.auth import TICKET_S, Logins
from lore.http.endpoint import Endpoint, FilePath, Id, Name, NoArguments, Short, Text
from lore.memory import Memory
from lore.memory.search import ask_project_first
from lore.records import (
    FRAGMENT_KINDS,
    ITEM_TYPES,
    Answer,
    AskResult,
    CycleReport,
    FragmentKind,
    ItemType,
    NewMessage,
    Origin,
    Part,
    PartKind,
    RetrieveResult,
    Role,
    TaskType,
    strength_of,
)
from lore.tools.tool import Arguments, Caller, Outcome, Tool
from lore.tools.tool_output import Query, Question

_MAX_HITS = 1_000
"""The maximum that recall returns."""

_MAX_MESSAGES = 1_000
"""Per request; clients send longer conversations in several."""


class Recall(Question):
    """A recall query of a program, with explicit scope and limits.

    The project of the header x-lore-project is searched first; `project` excludes all others.
    """

    limit: int | None = Field(None, ge=1, le=_MAX_HITS, description="Most hits.")
    session: Annotated[Name, Field(description="With scope 'session': which one.")] = ""
    project: Annotated[
        Name, Field(description="Only this: path, name or id. For scope 'project' also the header.")
    ] = ""
    everywhere: Annotated[
        bool, Field(description="Search all projects at once, not that of x-lore-project first.")
    ] = False
    budget_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    types: Annotated[
        tuple[ItemType, ...],
        Field(min_length=1, max_length=3, description="What may be found."),
    ] = ITEM_TYPES
    trusted_only: Annotated[
        bool, Field(description="Only what the person or the assistant said.")
    ] = False
    explain: Annotated[bool, Field(description="With the numbers behind each score.")] = False
    task_type: Annotated[
        TaskType | None, Field(description="Put first what such a task needs.")
    ] = None
    kind: Annotated[
        FragmentKind | ItemType | None, Field(description="One kind of fragment, or type of item.")
    ] = None
    agent: Annotated[Short, Field(description="Conversations with this agent.")] = ""
    since: Annotated[Short, Field(description="Not older: '2026-05-08', 'last week'.")] = ""
    until: Annotated[Short, Field(description="Older than this time.")] = ""
    origin: Annotated[Origin | None, Field(description="Whose words it is.")] = None
    under: Annotated[Short, Field(description="A fragment's id: only it and all below it.")] = ""
    depth: Annotated[int, Field(ge=0, le=100)] | None = Field(
        None, description="Fragments of this level of the best branches: 0 broad, 3 detail."
    )


class Ask(Arguments):
    """A question that is answered with citations."""

    query: Query
    session: Annotated[Name, Field(description="Only what was said in this session.")] = ""
    project: Annotated[Name, Field(description="Only this project: path, name or id.")] = ""


class PushedPart(BaseModel):
    """One part of a message."""

    model_config = ConfigDict(extra="forbid")

    kind: PartKind = "text"
    text: Text
    name: Short = ""
    call_id: Short = ""
    origin: Origin | None = None
    failed: bool = False


class PushedMessage(BaseModel):
    """One message; `text` is short for a single part of plain text."""

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
    messages: Annotated[list[PushedMessage], Field(min_length=1, max_length=_MAX_MESSAGES)]
    agent: Annotated[str, Field(min_length=1, max_length=100)] = "http"
    project: Annotated[Name, Field(description="By default that of x-lore-project.")] = ""
    title: Annotated[str, Field(max_length=2_000)] = ""
    branch: Short = ""
    parent: Annotated[Short, Field(description="The session that this one comes from.")] = ""
    files: Annotated[tuple[FilePath, ...], Field(max_length=1_000)] = ()


class Cycle(Arguments):
    """A consolidation cycle."""

    phases: Annotated[tuple[Short, ...], Field(max_length=20, description="None for all.")] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Pushed:
    """The ids of the stored messages, in order."""

    ids: tuple[str, ...]


def _is_logged(caller: Caller) -> bool:
    """Return whether a retrieval is logged.

    What a person looks at in a browser is no retrieval of an agent, and a key that may not write
    leaves no row.
    """
    return caller.origin != "user" and caller.may_write


def _retrieve(memory: Memory, a: Recall, caller: Caller) -> RetrieveResult:
    is_logged = _is_logged(caller)
    if a.depth is not None:
        return _search_level(memory, a, a.depth, log=is_logged)

    def ask(project: str) -> Answer:
        return memory.recall(
            a.query,
            scope=a.scope,
            session=a.session or caller.session,
            project=project,
            limit=a.limit,
            budget_tokens=a.budget_tokens,
            explain=a.explain,
            trusted_only=a.trusted_only,
            types=a.types,
            since=a.since,
            until=a.until,
            agent=a.agent,
            kind=a.kind or "",
            origin=a.origin or "",
            under=a.under,
            task_type=a.task_type or "",
            log=is_logged,
            reader=caller.reader if is_logged else None,
        )

    is_limited = a.everywhere or a.project or a.scope != "all"
    project = a.project or (caller.project if a.scope == "project" else "")
    answer = ask_project_first(memory, "" if is_limited else caller.project, ask, project)
    shared = {one.name: getattr(answer, one.name) for one in fields(answer)}
    return RetrieveResult(**shared, strength=answer.strength)


def _search_level(memory: Memory, a: Recall, depth: int, *, log: bool) -> RetrieveResult:
    """Return the fragments of one level of the branches that fit a question."""
    if a.kind is not None and a.kind not in FRAGMENT_KINDS:
        msg = "Only fragments have a depth: give a kind of fragment, or none."
        raise InvalidInput(msg)
    hits = memory.search.search(
        a.query, parent_id=a.under, depth=depth, limit=a.limit or memory.settings.recall_max_hits,
        kind=a.kind or "", origin=a.origin or "", since=a.since, until=a.until, agent=a.agent,
        project=a.project, log=log,
    )  # fmt: skip
    best = max((hit.score for hit in hits), default=0.0)
    return RetrieveResult(
        a.query, tuple(hits), tokens=sum(hit.tokens for hit in hits), considered=len(hits),
        notice=memory.notice_now, relevant=bool(hits), confidence=best,
        strength=strength_of(best) if hits else "none",
    )  # fmt: skip


def _ask(memory: Memory, a: Ask, caller: Caller) -> AskResult:
    def ask(project: str) -> AskResult:
        return memory.search.ask(
            a.query, session=a.session, project=project, log=_is_logged(caller)
        )

    is_limited = a.project or a.session
    return ask_project_first(memory, "" if is_limited else caller.project, ask, a.project)


def _capture(memory: Memory, a: Push, caller: Caller) -> Pushed:
    ids = memory.capture(
        a.session,
        [_new_message(one, clock.now()) for one in a.messages],
        agent=a.agent,
        project=a.project or caller.project,
        title=a.title,
        branch=a.branch,
        parent=a.parent,
        files=a.files,
    )
    return Pushed(tuple(ids))


def _new_message(pushed: PushedMessage, now: datetime) -> NewMessage:
    if bool(pushed.text) == bool(pushed.parts):
        msg = "A message must have either 'text' or 'parts'."
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


_ASKS = 2
"""Questions that are answered at a time: each may wait for a model."""


def write_endpoints(stopping: Callable[[], bool]) -> tuple[Endpoint[Any], ...]:
    """Return the endpoints that act on the memory; long ones poll `stopping`."""

    def consolidate(memory: Memory, a: Cycle, _caller: Caller) -> CycleReport:
        return memory.digest.consolidate(phases=a.phases, dry_run=a.dry_run, stopping=stopping)

    return (
        Endpoint(
            "POST", "/retrieve", "Find what answers a question.", "read", Recall, _retrieve,
            RetrieveResult,
        ),
        Endpoint(
            "POST", "/ask", "Answer a question with citations.", "read", Ask, _ask, AskResult,
            limiter=CapacityLimiter(_ASKS),
        ),
        Endpoint("POST", "/capture", "Store messages.", "push", Push, _capture, Pushed),
        Endpoint(
            "POST", "/consolidate", "Run a consolidation cycle.", "write", Cycle, consolidate,
            CycleReport, limiter=CapacityLimiter(1),
        ),
    )  # fmt: skip


class CallTool(Protocol):
    """Calls a tool, or raises a LoreError."""

    def __call__(
        self, memory: Memory, name: str, arguments: Mapping[str, object], caller: Caller
    ) -> Outcome:
        """Call a tool by name."""


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The tools that are served, and the function that calls them."""

    tools: Sequence[Tool[Any]]
    call: CallTool


def tool_endpoints(toolbox: Toolbox) -> tuple[Endpoint[Any], ...]:
    """Return an endpoint for each tool."""
    return tuple(_tool_endpoint(tool, toolbox.call) for tool in toolbox.tools)


def _tool_endpoint(tool: Tool[Any], call: CallTool) -> Endpoint[Any]:
    def run(memory: Memory, arguments: Mapping[str, object], caller: Caller) -> Outcome:
        return call(memory, tool.name, arguments, caller)

    return Endpoint(
        "POST",
        f"/tools/{tool.name}",
        tool.title,
        "read" if tool.reads_only else "write",
        tool.arguments,
        run,
        result=tool.result,
        tags=("tools",),
        is_validated=False,
    )


@dataclass(frozen=True, slots=True)
class Ticket:
    """The path for one browser login, and how long it is valid."""

    path: str
    expires_in_s: float


def login_endpoints(logins: Logins) -> tuple[Endpoint[NoArguments]]:
    """Return the endpoint that creates login tickets."""

    def make(_memory: Memory, _nothing: NoArguments, caller: Caller) -> Ticket:
        if caller.grant is not None and caller.grant.browser:
            raise HTTPException(403, "A browser's login makes no other; run 'lore open'.")
        key_name = caller.grant.name if caller.grant is not None else ""
        return Ticket(f"/login?ticket={logins.make_ticket(key_name)}", TICKET_S)

    return (
        Endpoint(
            "POST", "/logins", "Make a path that logs a browser in, once.", "admin",
            NoArguments, make, Ticket, tags=("access",),
        ),
    )  # fmt: skip
