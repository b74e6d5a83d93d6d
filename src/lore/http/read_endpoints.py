"""REST endpoints that read: pages of lists, and single items. Reading reinforces nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from lore import __version__
from lore.http.endpoint import (
    Cursor,
    Endpoint,
    Id,
    InProject,
    Limit,
    Name,
    NoArguments,
    Short,
    get_endpoint,
)
from lore.memory import Memory
from lore.memory.context import MAX_PAGE_SIZE
from lore.records import (
    AgentLedger,
    Distillation,
    EconomicsReport,
    Edge,
    EdgeKind,
    Fragment,
    FragmentEvent,
    FragmentKind,
    Handoff,
    Message,
    MetricsSummary,
    OpenWork,
    Origin,
    Page,
    Project,
    Reading,
    SessionLog,
    SessionPage,
    SessionSummary,
    Spend,
    SpendGroup,
    SpendReport,
    SpentToday,
    Stats,
    StoredEpisode,
    SyncState,
    TimelineEntry,
    Title,
    Turn,
    WorkingState,
)
from lore.tools.tool import Arguments, Caller

MAX_TURNS = 100
"""A turn lists what it cost, was given and left, so a page of them is larger than others."""


class Paged(Arguments):
    """A page of a list."""

    limit: Limit = 50
    cursor: Cursor = ""


class OfProject(Paged):
    """A page of a list, for one project or for all."""

    project: InProject = ""


class OfSessions(OfProject):
    """A page of sessions."""

    query: Annotated[
        Short, Field(description="A part of the title, of a file's path, or of the agent's name.")
    ] = ""
    agent: Annotated[Short, Field(description="A part of the agent's name.")] = ""
    since: Annotated[Short, Field(description="Spoken in since: '2026-05-08', 'last week'.")] = ""


class OfSession(Paged):
    """A page of a session's messages."""

    id: Annotated[Id, Field(description="Id of a session, or the agent's own name for it.")]


class OfMessages(OfSession):
    """A page of a session's messages, or of those of a turn."""

    first: Annotated[int, Field(ge=0, le=2**31, description="From this place on.")] = 0
    last: Annotated[
        int | None, Field(ge=0, le=2**31, description="To this place; none for all.")
    ] = None


class OfTurns(OfSession):
    """A page of a session's turns."""

    limit: Annotated[int, Field(ge=1, le=MAX_TURNS, description="Most items of a page.")] = 20


class OneSession(Arguments):
    """One session."""

    id: Annotated[Id, Field(description="Id of a session, or the agent's own name for it.")]


class OfDistillations(OfProject):
    """A page of distillations."""

    session: Annotated[Name, Field(description="Those of one session.")] = ""


class OfFragments(OfProject):
    """A page of fragments."""

    kind: Annotated[FragmentKind | None, Field(description="Of one kind.")] = None
    origin: Annotated[Origin | None, Field(description="From one origin.")] = None


class OfPatterns(OfProject):
    """A page of patterns."""

    kind: Annotated[
        Literal["pattern", "anti_pattern"], Field(description="What works, or what does not.")
    ] = "pattern"


class OfEconomics(Arguments):
    """What memory cost and saved: of one session, of a project, or of all."""

    session: Annotated[Name, Field(description="Of one session.")] = ""
    project: InProject = ""


class OfEdges(Paged):
    """A page of edges."""

    fragment: Annotated[Name, Field(description="Those at one fragment, by its id.")] = ""
    kind: Annotated[EdgeKind | None, Field(description="Of one kind.")] = None


class OfItem(Arguments):
    """One item."""

    id: Annotated[Id, Field(description="Id, or at least 8 of its first characters.")]


class Around(Arguments):
    """What happened before and after something."""

    anchor: Annotated[Id, Field(description="Id of a message or fragment, or a time.")]
    before: Annotated[int, Field(ge=0, le=MAX_PAGE_SIZE, description="So many before it.")] = 5
    after: Annotated[int, Field(ge=0, le=MAX_PAGE_SIZE, description="So many after it.")] = 5
    project: InProject = ""


class OfSpend(Paged):
    """A page of the spend ledger, with totals."""

    since: Annotated[
        str, Field(max_length=200, description="From when it is added up; today if not given.")
    ] = ""
    by: Annotated[SpendGroup, Field(description="What it is added up by.")] = "model"


class OfWork(Arguments):
    """Work of one project, or of all."""

    project: InProject = ""
    limit: Limit = 50


class OfHandoffs(OfWork):
    """Handoffs of one project, or of all."""

    to_agent: Annotated[Name, Field(description="Those for an agent, or for any.")] = ""
    unread: Annotated[bool, Field(description="Only those that nobody took over.")] = False


@dataclass(frozen=True, slots=True)
class Spending:
    """Cost of model calls: background work today, a report, and a page of ledger entries."""

    today: SpentToday
    report: SpendReport
    items: tuple[Spend, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two fragments that contradict each other."""

    newer: Fragment
    older: Fragment


def _sessions(memory: Memory, a: OfSessions, _caller: Caller) -> Page[SessionSummary]:
    return memory.sessions.page_of_sessions(
        project=a.project, query=a.query, agent=a.agent, since=a.since, limit=a.limit,
        cursor=a.cursor,
    )  # fmt: skip


def _session(memory: Memory, a: OneSession, _caller: Caller) -> SessionPage:
    return memory.sessions.page(a.id)


def _turns(memory: Memory, a: OfTurns, _caller: Caller) -> Page[Turn]:
    return memory.sessions.page_of_turns(a.id, limit=a.limit, cursor=a.cursor)


def _messages(memory: Memory, a: OfMessages, _caller: Caller) -> Page[Message]:
    return memory.sessions.page_of_messages(
        a.id, first=a.first, last=a.last, limit=a.limit, cursor=a.cursor
    )


def _log(memory: Memory, a: OneSession, _caller: Caller) -> SessionLog:
    return memory.sessions.log(a.id)


def _state(memory: Memory, a: OneSession, _caller: Caller) -> WorkingState:
    return memory.handoffs.state(a.id)


def _open_work(memory: Memory, a: OfWork, _caller: Caller) -> list[OpenWork]:
    return memory.handoffs.open_work(project=a.project, all_projects=not a.project)[: a.limit]


def _handoffs(memory: Memory, a: OfHandoffs, _caller: Caller) -> list[Handoff]:
    return memory.handoffs.recent(
        project=a.project,
        to_agent=a.to_agent,
        unread=a.unread,
        limit=a.limit,
        all_projects=not a.project,
    )


def _ledgers(memory: Memory, a: OfWork, _caller: Caller) -> list[AgentLedger]:
    return memory.handoffs.ledgers(project=a.project, limit=a.limit, all_projects=not a.project)


def _metrics(memory: Memory, a: OfWork, _caller: Caller) -> MetricsSummary:
    return memory.handoffs.metrics(project=a.project, all_projects=not a.project)


def _message(memory: Memory, a: OfItem, _caller: Caller) -> Message:
    return memory.sessions.message(a.id)


def _distillations(memory: Memory, a: OfDistillations, _caller: Caller) -> Page[Distillation]:
    return memory.sessions.page_of_distillations(
        session=a.session, project=a.project, limit=a.limit, cursor=a.cursor
    )


def _fragments(memory: Memory, a: OfFragments, _caller: Caller) -> Page[Fragment]:
    return memory.knowledge.page_of_fragments(
        kind=a.kind or "",
        origin=a.origin or "",
        project=a.project,
        limit=a.limit,
        cursor=a.cursor,
    )


def _patterns(memory: Memory, a: OfPatterns, _caller: Caller) -> Page[Fragment]:
    return memory.knowledge.page_of_fragments(
        kind=a.kind, project=a.project, limit=a.limit, cursor=a.cursor
    )


def _skills(memory: Memory, a: OfProject, _caller: Caller) -> Page[Fragment]:
    return memory.knowledge.page_of_fragments(
        kind="skill", project=a.project, limit=a.limit, cursor=a.cursor
    )


def _economics(memory: Memory, a: OfEconomics, _caller: Caller) -> EconomicsReport:
    return memory.tasks.economics(session=a.session, project=a.project)


def _fragment(memory: Memory, a: OfItem, _caller: Caller) -> Reading:
    return memory.knowledge.fragment(a.id)


def _edges(memory: Memory, a: OfEdges, _caller: Caller) -> Page[Edge]:
    return memory.knowledge.page_of_edges(
        fragment=a.fragment, kind=a.kind or "", limit=a.limit, cursor=a.cursor
    )


def _episodes(memory: Memory, a: OfProject, _caller: Caller) -> Page[StoredEpisode]:
    return memory.sessions.page_of_episodes(project=a.project, limit=a.limit, cursor=a.cursor)


def _roots(memory: Memory, a: OfProject, _caller: Caller) -> Page[Title]:
    return memory.knowledge.page_of_roots(project=a.project, limit=a.limit, cursor=a.cursor)


def _history(memory: Memory, a: OfItem, _caller: Caller) -> list[FragmentEvent]:
    return memory.knowledge.history(a.id)


def _timeline(memory: Memory, a: Around, _caller: Caller) -> list[TimelineEntry]:
    return memory.search.timeline(a.anchor, before=a.before, after=a.after, project=a.project)


def _stats(memory: Memory, _a: NoArguments, _caller: Caller) -> Stats:
    return memory.maintenance.stats()


@dataclass(frozen=True, slots=True)
class Status:
    """The state of the server: its home, whether it can write, and what waits for a vector.

    `role` is `owner` on a server of many memories, where the home is not shown. `budget_pressure`
    is the used share of the daily budget or of a provider's quota, the higher one, 0 to 1.
    """

    role: Literal["local", "owner"]
    version: str
    home: str
    read_only: bool
    items: int
    waiting: int
    jobs: int
    budget_pressure: float
    sync: SyncState
    notice: str


def _status(memory: Memory, _a: NoArguments, _caller: Caller) -> Status:
    stats = memory.maintenance.stats()
    return Status(
        role="owner" if memory.context.is_served else "local",
        version=__version__,
        home=memory.context.shown_home,
        read_only=memory.database.read_only,
        items=stats.messages + stats.distillations + stats.fragments,
        waiting=stats.waiting,
        jobs=len(stats.jobs),
        budget_pressure=memory.budget.budget_pressure(),
        sync=memory.sync.state(),
        notice=stats.notice,
    )


def _spend(memory: Memory, a: OfSpend, _caller: Caller) -> Spending:
    page = memory.budget.page_of_spend(limit=a.limit, cursor=a.cursor)
    report = memory.budget.spend_report(since=a.since, by=a.by)
    return Spending(memory.budget.spent_today(), report, page.items, page.next)


def _projects(memory: Memory, a: Paged, _caller: Caller) -> Page[Project]:
    return memory.sessions.page_of_projects(limit=a.limit, cursor=a.cursor)


def _conflicts(memory: Memory, a: OfProject, _caller: Caller) -> Page[Contradiction]:
    page = memory.knowledge.page_of_conflicts(project=a.project, limit=a.limit, cursor=a.cursor)
    return Page(tuple(Contradiction(*pair) for pair in page.items), page.next)


STATUS_ENDPOINT = get_endpoint(
    "/status", "Version and state of the memory.", NoArguments, _status, result=Status
)
"""Also served as `/status`, beside `/health`."""

READ_ENDPOINTS: tuple[Endpoint[Any], ...] = (
    get_endpoint("/projects", "Projects, as they became known.", Paged, _projects, item=Project),
    get_endpoint(
        "/sessions", "Sessions, last spoken in first.", OfSessions, _sessions, item=SessionSummary
    ),
    get_endpoint(
        "/sessions/{id}", "One session with its totals and the state of its prompt.",
        OneSession, _session, result=SessionPage,
    ),
    get_endpoint(
        "/sessions/{id}/turns", "Turns of a session: cost, what memory gave, what was learned.",
        OfTurns, _turns, item=Turn,
    ),
    get_endpoint(
        "/sessions/{id}/messages", "Messages of a session in order.", OfMessages, _messages,
        item=Message,
    ),
    get_endpoint(
        "/sessions/{id}/log", "The log of a session in the order of the conversation.",
        OneSession, _log, result=SessionLog,
    ),
    get_endpoint(
        "/sessions/{id}/state", "The working state of a session.", OneSession, _state,
        result=WorkingState,
    ),
    get_endpoint(
        "/work", "Work that the latest sessions of each project left open.", OfWork, _open_work,
        result=list[OpenWork],
    ),
    get_endpoint(
        "/handoffs", "Handoffs, the latest first.", OfHandoffs, _handoffs,
        result=list[Handoff],
    ),
    get_endpoint(
        "/ledgers", "Checkpoints of agents, the latest first.", OfWork, _ledgers,
        result=list[AgentLedger],
    ),
    get_endpoint(
        "/metrics/tasks", "Efficiency and rewards of tasks of the last seven days.", OfWork,
        _metrics, result=MetricsSummary,
    ),
    get_endpoint("/messages/{id}", "One message whole.", OfItem, _message, result=Message),
    get_endpoint(
        "/distillations", "Distillations, newest first.", OfDistillations, _distillations,
        item=Distillation,
    ),
    get_endpoint(
        "/fragments", "Fragments that are not deleted, newest first.", OfFragments, _fragments,
        item=Fragment,
    ),
    get_endpoint(
        "/fragments/{id}", "One fragment with what is around it.", OfItem, _fragment,
        result=Reading,
    ),
    get_endpoint(
        "/fragments/{id}/history", "What happened to a fragment, oldest first.", OfItem, _history,
        result=list[FragmentEvent],
    ),
    get_endpoint(
        "/patterns", "Patterns of work, or anti-patterns, newest first.", OfPatterns, _patterns,
        item=Fragment,
    ),
    get_endpoint("/skills", "Skills, newest first.", OfProject, _skills, item=Fragment),
    get_endpoint(
        "/economics", "Tokens that memory cost and saved.", OfEconomics, _economics,
        result=EconomicsReport,
    ),
    get_endpoint("/edges", "Edges between fragments.", OfEdges, _edges, item=Edge),
    get_endpoint(
        "/episodes", "Episodes, those that ended last first.", OfProject, _episodes,
        item=StoredEpisode,
    ),
    get_endpoint(
        "/index", "Roots of the knowledge, strongest first.", OfProject, _roots, item=Title
    ),
    get_endpoint(
        "/timeline", "What was said and learned around a time or an item.", Around, _timeline,
        result=list[TimelineEntry],
    ),
    get_endpoint(
        "/conflicts", "Fragments that contradict each other.", OfProject, _conflicts,
        item=Contradiction,
    ),
    STATUS_ENDPOINT,
    get_endpoint("/stats", "What the memory holds.", NoArguments, _stats, result=Stats),
    get_endpoint(
        "/spend", "What calls to models cost and saved.", OfSpend, _spend, result=Spending
    ),
)  # fmt: skip
"""In the order of the documentation."""
