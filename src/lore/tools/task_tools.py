"""Tools about tasks: what is known before one, what came of it, and memory layer by layer."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from lore.memory import Memory
from lore.records import Outcome as TaskOutcome
from lore.records import TaskType
from lore.tools import tool_output
from lore.tools.tool import (
    Arguments,
    Caller,
    Outcome,
    Result,
    Seen,
    Tool,
    find_session,
    require_stored,
)
from lore.tools.tool_output import Id, Query, Words

_NOTHING = "Nothing is known for this yet. Call after_task() when it is done."

Goal = Annotated[str, Field(min_length=1, max_length=8_000, description="What to do.")]
Short = Annotated[str, Field(max_length=200)]


class BeforeTaskArguments(Arguments):
    """What before_task takes."""

    goal: Goal
    phase: Short = Field("", description="If any.")
    action: Short = Field("", description="If any.")


class GivenMemory(Result):
    """A memory for a task: its id, what it says in short, and what it costs."""

    id: str
    text: Seen
    tokens: int
    kind: str
    score: float = 0.0


class BeforeTaskResult(Result):
    """What is known for a task."""

    task_id: str
    detected_task_type: TaskType
    relevant_patterns: tuple[GivenMemory, ...] = ()
    avoid_these: tuple[GivenMemory, ...] = ()
    critical_avoid: tuple[GivenMemory, ...] = ()
    applicable_skills: tuple[GivenMemory, ...] = ()
    tokens: int = 0


def before_task(memory: Memory, arguments: BeforeTaskArguments, caller: Caller) -> Outcome:
    """Begin a task and return what is known for it."""
    require_stored(memory, caller)
    briefing = memory.tasks.start(
        arguments.goal,
        phase=arguments.phase,
        action=arguments.action,
        session=find_session(memory, caller),
        project=caller.project,
        agent=caller.agent,
    )
    result = BeforeTaskResult.model_validate(briefing)
    text = memory.tasks.describe(briefing) or _NOTHING
    return Outcome(tool_output.wrap_lines([f"task {briefing.task_id}", text]), result)


class AfterTaskArguments(Arguments):
    """What after_task takes."""

    outcome: TaskOutcome = Field("unknown", description="Honestly.")
    task: Short = Field("", description="Else the open one.")
    used: list[Short] = Field(default_factory=list, max_length=50, description="Ids used.")
    report: dict[str, Any] = Field(
        default_factory=dict,
        description="errors, files_changed",
    )


class UsedMemory(Result):
    """What became of a memory that the task was given."""

    item_id: str
    given_as: str
    used: bool | None
    sign: str
    helped: bool | None


class AfterTaskResult(Result):
    """The task, its episode, and what became of the memories that it was given."""

    task_id: str
    outcome: TaskOutcome
    reason: Seen
    episode_id: str
    memories: tuple[UsedMemory, ...] = ()


def after_task(memory: Memory, arguments: AfterTaskArguments, caller: Caller) -> Outcome:
    """End a task: store its episode and which memories it used."""
    require_stored(memory, caller)
    report = dict(arguments.report)
    ended = memory.tasks.end(
        arguments.task,
        outcome=arguments.outcome,
        reason=str(report.pop("reason", "")),
        session=find_session(memory, caller),
        project=caller.project,
        agent=caller.agent,
        used=arguments.used,
        report=report,
    )
    result = AfterTaskResult(
        task_id=ended.task.id,
        outcome=ended.task.outcome,
        reason=ended.task.reason,
        episode_id=ended.episode_id,
        memories=tuple(UsedMemory.model_validate(one) for one in ended.memories),
    )
    used = sum(bool(one.used) for one in ended.memories)
    [short] = memory.search.short_ids([ended.episode_id]).values()
    text = f"Stored as episode {short}: {ended.task.outcome}. Used {used} of {len(ended.memories)}."
    return Outcome(text, result)


class IndexArguments(Arguments):
    """What index takes."""

    query: Words = Field("", description="Only topics near this.")


class TopicEntry(Result):
    """A topic: the id of its strongest memory, a title, and what it costs to read."""

    id: str
    title: Seen
    relevance: float
    last_accessed: datetime
    tokens: int
    memories: int


class IndexResult(Result):
    """The topics that matter now, and how much there is in all."""

    topics: tuple[TopicEntry, ...]
    total_topics: int
    total_memories: int
    total_tokens: int
    tokens: int


def index(memory: Memory, arguments: IndexArguments, caller: Caller) -> Outcome:
    """Return the topics of the caller's project."""
    record = memory.tasks.index(
        query=arguments.query, session=find_session(memory, caller), project=caller.project,
        counts=caller.may_write,
    )  # fmt: skip
    text = memory.tasks.describe(record) or "Nothing is known here yet."
    return Outcome(tool_output.wrap_lines([text]), IndexResult.model_validate(record))


class TopicArguments(Arguments):
    """What details takes."""

    topic: Id


class TopicMemory(Result):
    """A memory of a topic."""

    id: str
    kind: str
    text: Seen


class TopicResult(Result):
    """A topic with its memories in full."""

    topic: TopicEntry
    memories: tuple[TopicMemory, ...]
    tokens: int


def details(memory: Memory, arguments: TopicArguments, caller: Caller) -> Outcome:
    """Return the memories of one topic."""
    record = memory.tasks.details(
        arguments.topic, session=find_session(memory, caller), project=caller.project,
        counts=caller.may_write,
    )  # fmt: skip
    result = TopicResult.model_validate(record)
    text = memory.tasks.describe(record)
    return Outcome(tool_output.wrap_lines([tool_output.QUOTED, text]), result)


class LoadArguments(Arguments):
    """What load takes."""

    query: Query


class LoadResult(Result):
    """What was loaded: how deep, from which topics, and what each layer cost."""

    layer: Literal["none", "index", "timeline", "details"]
    topics: tuple[TopicEntry, ...] = ()
    memories: tuple[TopicMemory, ...] = ()
    index_tokens: int = 0
    timeline_tokens: int = 0
    details_tokens: int = 0


def load(memory: Memory, arguments: LoadArguments, caller: Caller) -> Outcome:
    """Return what a question needs: topics, then the timeline, then details."""
    record = memory.tasks.load(
        arguments.query, session=find_session(memory, caller), project=caller.project,
        counts=caller.may_write,
    )  # fmt: skip
    result = LoadResult(
        layer=record.layer,
        topics=tuple(map(TopicEntry.model_validate, record.topics)),
        memories=tuple(
            TopicMemory.model_validate(memory) for one in record.details for memory in one.memories
        ),
        index_tokens=record.index_tokens,
        timeline_tokens=record.timeline_tokens,
        details_tokens=record.details_tokens,
    )
    if record.layer == "none":
        return Outcome("No topic is near this. recall() searches every message.", result)
    text = memory.tasks.describe(record)
    return Outcome(tool_output.wrap_lines([tool_output.QUOTED, text]), result)


class EconomicsArguments(Arguments):
    """What token_economics takes."""

    everywhere: bool = Field(
        False,  # noqa: FBT003 - the default
        description="All sessions of the project, not only this one.",
    )


class ActionResult(Result):
    """A corrective action and its effect."""

    at: datetime
    action: str
    metric: str
    before: float
    after: float | None
    is_kept: bool


class EconomicsResult(Result):
    """What memory cost and saved."""

    sessions: int
    tasks: int
    retrievals: int
    discovery_tokens: int
    read_tokens: int
    ratio: float | None
    savings_vs_full_load: float
    tokens_saved: int
    baseline_tokens: int
    layer1_loads: int
    layer1_tokens: int
    layer2_loads: int
    layer2_tokens_scanned: int
    layer2_tokens_available: int
    layer3_loads: int
    layer3_tokens: int
    bypassed: bool
    actions: tuple[ActionResult, ...]


def token_economics(memory: Memory, arguments: EconomicsArguments, caller: Caller) -> Outcome:
    """Return what memory cost and saved in the caller's session or project."""
    session = "" if arguments.everywhere else find_session(memory, caller)
    report = memory.tasks.economics(session=session, project=caller.project)
    ratio = "none" if report.ratio is None else f"{report.ratio:.3f}"
    text = (
        f"discovery {report.discovery_tokens}, read {report.read_tokens}, ratio {ratio},"
        f" saved {report.tokens_saved} of {report.baseline_tokens}"
        f" ({report.savings_vs_full_load:.0f} %)"
    )
    return Outcome(text, EconomicsResult.model_validate(report))


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="before_task",
        title="Before a task",
        description=("Call this before a task: gives what worked and failed."),
        arguments=BeforeTaskArguments,
        result=BeforeTaskResult,
        run=before_task,
        reads_only=False,
        idempotent=False,
    ),
    Tool(
        name="after_task",
        title="After a task",
        description=("Call this after a task: stores how it ended."),
        arguments=AfterTaskArguments,
        result=AfterTaskResult,
        run=after_task,
        reads_only=False,
    ),
    Tool(
        name="load",
        title="Load context",
        description=(
            "Call this to get all that is known on a subject of this project: finds its topics,"
            " and reads them in full only if the timeline does not answer."
        ),
        arguments=LoadArguments,
        result=LoadResult,
        run=load,
        profile="full",
    ),
)

LAYER_TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="index",
        title="Index",
        description=(
            "Call this to see which topics this project's memory has, what each is about and what"
            " it costs to read, in about 100 tokens."
        ),
        arguments=IndexArguments,
        result=IndexResult,
        run=index,
        profile="full",
    ),
    Tool(
        name="details",
        title="Details of a topic",
        description="Call this with the id of a topic of index() to read its memories in full.",
        arguments=TopicArguments,
        result=TopicResult,
        run=details,
        profile="full",
    ),
    Tool(
        name="token_economics",
        title="Token economics",
        description=(
            "Call this to see what memory cost this session and what it saved against loading all"
            " of it."
        ),
        arguments=EconomicsArguments,
        result=EconomicsResult,
        run=token_economics,
        profile="full",
    ),
)
"""Single layers and their cost, in the full profile only."""
