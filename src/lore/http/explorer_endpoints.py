"""REST endpoints of the explorer that belong to no single item. Reading reinforces nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from anyio import CapacityLimiter
from pydantic import Field

from lore import __version__
from lore.http.endpoint import (
    Endpoint,
    Id,
    InProject,
    Name,
    NoArguments,
    Short,
    get_endpoint,
)
from lore.http.read_endpoints import OfProject, Paged
from lore.memory import Memory
from lore.records import (
    ACCESS_SCOPES,
    AccessScope,
    ContinuityText,
    CycleReport,
    HealthReport,
    KnowledgeGraph,
    LearnedDay,
    LearnedEntry,
    Origin,
    Page,
    SeriesGroup,
    SeriesStep,
    SpendSeries,
    StrategyOverview,
    TaskDetails,
    TaskRecord,
    TaskState,
)
from lore.tools.tool import Arguments, Caller


@dataclass(frozen=True, slots=True)
class Me:
    """Who calls: the name and scopes of the key or browser, and as whose words it writes.

    `read_only` if nothing can be written: the key lacks the scope, or the memory is read-only.
    """

    name: str
    scopes: tuple[AccessScope, ...]
    browser: bool
    origin: Origin
    read_only: bool
    version: str
    home: str


def _me(memory: Memory, _a: NoArguments, caller: Caller) -> Me:
    grant = caller.grant
    scopes = tuple(one for one in ACCESS_SCOPES if grant is not None and grant.allows(one))
    return Me(
        name=grant.name if grant is not None else "",
        scopes=scopes,
        browser=grant is not None and grant.browser,
        origin=caller.origin,
        read_only="write" not in scopes or memory.database.read_only,
        version=__version__,
        home=memory.context.shown_home,
    )


class OfSeries(Arguments):
    """Spend over time."""

    since: Annotated[Short, Field(description="From when; 30 days if not given.")] = ""
    by: Annotated[SeriesStep, Field(description="The length of a step.")] = "day"
    group: Annotated[SeriesGroup, Field(description="What each step is divided by.")] = ""
    project: InProject = ""


class OfLearned(OfProject):
    """A page of what happened to knowledge."""

    since: Annotated[Short, Field(description="From when: '2026-05-08', 'last week'.")] = ""


class OfDays(Arguments):
    """What happened to knowledge by day."""

    since: Annotated[Short, Field(description="From when; 400 days if not given.")] = ""
    project: InProject = ""


class OfGraph(Arguments):
    """A part of the graph of knowledge."""

    project: InProject = ""
    at: Annotated[Short, Field(description="Only what was known then: '2026-05-08'.")] = ""
    focus: Annotated[Short, Field(description="What is around this fragment.")] = ""
    limit: Annotated[int, Field(ge=1, le=1_000, description="Most nodes.")] = 300


def _series(memory: Memory, a: OfSeries, _caller: Caller) -> SpendSeries:
    return memory.budget.spend_series(since=a.since, step=a.by, group=a.group, project=a.project)


def _learned(memory: Memory, a: OfLearned, _caller: Caller) -> Page[LearnedEntry]:
    return memory.knowledge.page_of_learned(
        project=a.project, since=a.since, limit=a.limit, cursor=a.cursor
    )


def _learned_days(memory: Memory, a: OfDays, _caller: Caller) -> list[LearnedDay]:
    return memory.knowledge.learned_days(project=a.project, since=a.since)


def _cycles(memory: Memory, a: Paged, _caller: Caller) -> Page[CycleReport]:
    return memory.digest.page_of_cycles(limit=a.limit, cursor=a.cursor)


def _graph(memory: Memory, a: OfGraph, _caller: Caller) -> KnowledgeGraph:
    return memory.knowledge.graph(project=a.project, at=a.at, focus=a.focus, limit=a.limit)


class OfTasks(OfProject):
    """A page of tasks."""

    state: Annotated[TaskState | None, Field(description="Open ones, or done ones.")] = None


class OneTask(Arguments):
    """One task."""

    id: Annotated[Id, Field(description="Id, eight or more characters of it, or its name.")]


class OneProject(Arguments):
    """One project."""

    project: Annotated[Name, Field(min_length=1, description="Path, name or id of a project.")]


class OfStrategies(Arguments):
    """Figures of strategies."""

    since: Annotated[Short, Field(description="Sessions since: '2026-05-08', 'last week'.")] = ""


class OfHealth(Arguments):
    """The state of the memory."""

    full: Annotated[
        bool, Field(description="Check each page and index entry, too; that takes seconds.")
    ] = False


def _tasks(memory: Memory, a: OfTasks, _caller: Caller) -> Page[TaskRecord]:
    return memory.tasks.page_of_tasks(
        project=a.project, state=a.state or "", limit=a.limit, cursor=a.cursor
    )


def _task(memory: Memory, a: OneTask, _caller: Caller) -> TaskDetails:
    return memory.tasks.details_of_task(a.id)


def _continuity(memory: Memory, a: OneProject, caller: Caller) -> ContinuityText:
    folder = memory.sessions.project(a.project).path
    return memory.continuity.text(folder, reads_folder=not caller.keyed)


def _strategies(memory: Memory, a: OfStrategies, _caller: Caller) -> StrategyOverview:
    return memory.strategies.overview(since=a.since)


def _health(memory: Memory, a: OfHealth, _caller: Caller) -> HealthReport:
    return memory.maintenance.health_report(full=a.full)


EXPLORER_ENDPOINTS: tuple[Endpoint[Any], ...] = (
    get_endpoint("/me", "Who calls, and what they may do.", NoArguments, _me, result=Me),
    get_endpoint(
        "/spend/series", "Spend and savings over time, and today's budget.", OfSeries, _series,
        result=SpendSeries,
    ),
    get_endpoint(
        "/learned", "What was learned, changed, replaced and deleted, newest first.", OfLearned,
        _learned, item=LearnedEntry,
    ),
    get_endpoint(
        "/learned/days", "How much was learned and forgotten on each day.", OfDays, _learned_days,
        result=list[LearnedDay],
    ),
    get_endpoint(
        "/cycles", "Consolidation cycles with their reports, newest first.", Paged, _cycles,
        item=CycleReport,
    ),
    get_endpoint(
        "/graph", "A part of the graph of knowledge with positions.", OfGraph, _graph,
        result=KnowledgeGraph,
    ),
    get_endpoint("/tasks", "Tasks, the latest first.", OfTasks, _tasks, item=TaskRecord),
    get_endpoint(
        "/tasks/{id}", "One task with the memories that it was given.", OneTask, _task,
        result=TaskDetails,
    ),
    get_endpoint(
        "/continuity", "The page with the state of a project's work.", OneProject, _continuity,
        result=ContinuityText,
    ),
    get_endpoint(
        "/strategies", "Retrieval strategies with intervals and their shares.", OfStrategies,
        _strategies, result=StrategyOverview,
    ),
    Endpoint(
        "GET", "/health/report", "Jobs, errors, indexes and the checks of doctor.", "read",
        OfHealth, _health, HealthReport, tags=("reading",), limiter=CapacityLimiter(1),
    ),
)  # fmt: skip
"""In the order of the documentation."""
