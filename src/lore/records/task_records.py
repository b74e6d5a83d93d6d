"""Task memory: patterns, skills, learnings, tasks, working state, handoffs and token counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, Literal, get_args

from lore.lazy_dataclass import dataclass
from lore.records.kinds import EdgeKind, Outcome
from lore.records.knowledge import Fragment

TaskType = Literal["exploration", "implementation", "debugging", "review", "refactoring"]
TaskState = Literal["open", "done"]
GivenAs = Literal["pattern", "anti_pattern", "skill", "episode", "fact"]
"""As what a memory was given to a task."""

UsageSign = Literal["read", "cited", "command", "path"]
"""By what a given memory was seen to be used."""

TASK_TYPES: tuple[TaskType, ...] = get_args(TaskType)

LINK_KINDS: tuple[EdgeKind, ...] = (
    "derived_from", "related_to", "contradicts", "elaborates", "example_of", "supersedes",
)  # fmt: skip
"""Relations between task memories; `superseded_by` is `supersedes` read backwards."""


@dataclass(frozen=True, slots=True)
class MemoryLink:
    """A relation to another memory, as a payload names it."""

    to: str
    relation: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """A way that worked in several episodes, with the ids of these."""

    pattern: str
    category: str = ""
    conditions: tuple[str, ...] = ()
    correct_approach: str = ""
    incorrect_approach: str = ""
    confidence: float = 0.8
    source_episodes: tuple[str, ...] = ()
    usage_count: int = 0
    last_used: datetime | None = None
    links: tuple[MemoryLink, ...] = ()


@dataclass(frozen=True, slots=True)
class AntiPattern:
    """What fails, why, and how to prevent it; `source` is the id of an episode."""

    what_fails: str
    why: str = ""
    prevention: str = ""
    source: str = ""
    confidence: float = 0.8
    source_episodes: tuple[str, ...] = ()
    usage_count: int = 0
    last_used: datetime | None = None


@dataclass(frozen=True, slots=True)
class SkillError:
    """An error that is common with a skill, and its fix."""

    error: str
    fix: str


@dataclass(frozen=True, slots=True)
class Skill:
    """A sequence of steps that succeeded before; it has at least one step."""

    name: str
    steps: tuple[str, ...]
    description: str = ""
    prerequisites: tuple[str, ...] = ()
    common_errors: tuple[SkillError, ...] = ()
    exit_criteria: tuple[str, ...] = ()
    source_episodes: tuple[str, ...] = ()
    usage_count: int = 0
    last_used: datetime | None = None


@dataclass(frozen=True, slots=True)
class Learning:
    """An error of a day and how it was resolved."""

    at: datetime
    type: str
    message: str
    resolution: str
    episode_id: str
    project_id: str = ""


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A task of an agent: given by `start`, closed by `end`; `name` is the caller's own id."""

    id: str
    goal: str
    phase: str
    action: str
    type: TaskType
    state: TaskState
    started_at: datetime
    ended_at: datetime | None = None
    outcome: Outcome = "unknown"
    reason: str = ""
    name: str = ""
    agent: str = ""
    profile: str = ""
    session_id: str = ""
    project_id: str = ""
    episode_id: str = ""


@dataclass(frozen=True, slots=True)
class TaskMemory:
    """A memory that a task was given, and what became of it; None while unknown."""

    item_id: str
    given_as: GivenAs
    tokens: int
    used: bool | None = None
    sign: UsageSign | Literal[""] = ""
    helped: bool | None = None


@dataclass(frozen=True, slots=True)
class BriefingEntry:
    """One memory of a briefing: its id, its text, and what it costs."""

    id: str
    text: str
    tokens: int
    kind: GivenAs
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class TaskBriefing:
    """What an agent gets before a task; `critical_avoid` is filled while debugging.

    `considered` are the ids of the memories that were compared, for the log.
    """

    task_id: str
    detected_task_type: TaskType
    relevant_patterns: tuple[BriefingEntry, ...] = ()
    avoid_these: tuple[BriefingEntry, ...] = ()
    critical_avoid: tuple[BriefingEntry, ...] = ()
    applicable_skills: tuple[BriefingEntry, ...] = ()
    tokens: int = 0
    considered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkingState:
    """What a session is doing right now; `next` has at most five entries."""

    task: str = ""
    decisions: tuple[str, ...] = ()
    progress: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class OpenWork:
    """The working state of a session; `source` is the message that states its task."""

    session_id: str
    agent: str
    at: datetime
    state: WorkingState
    source: str = ""


@dataclass(frozen=True, slots=True)
class AgentLedger:
    """The checkpoint of one agent in a project."""

    agent_id: str
    last_checkpoint: datetime
    tasks_completed: int = 0
    current_task: str = ""
    files_modified: tuple[str, ...] = ()
    uncommitted_changes: bool | None = None
    """Whether the agent's own edits are not committed; None if no session says so."""
    last_git_commit: str = ""
    tech_stack: tuple[str, ...] = ()
    patterns_learned: tuple[str, ...] = ()
    current_goal: str = ""


@dataclass(frozen=True, slots=True)
class Handoff:
    """What one agent passes on to another."""

    id: str
    from_agent: str
    to_agent: str
    timestamp: datetime
    what_was_done: str = ""
    artifacts: tuple[str, ...] = ()
    git_state: str = ""
    needs_testing: tuple[str, ...] = ()
    known_issues: tuple[str, ...] = ()
    relevant_patterns: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    session_id: str = ""
    project_id: str = ""
    read_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ContinuityEdit:
    """One change of a person on CONTINUITY.md: an entry added to a section or removed from it.

    `hidden` describes invisible characters in it.
    """

    verb: Literal["add", "remove"]
    section: str
    text: str
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MetricsSummary:
    """The finished tasks of a time: how they ended, what they cost, their mean rewards."""

    since: datetime
    until: datetime
    tasks: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    success_rate: float | None = None
    """Among the tasks whose outcome is known."""
    mean_duration_s: float = 0.0
    median_duration_s: float = 0.0
    mean_agents: float = 0.0
    mean_retries: float = 0.0
    outcome_reward: float | None = None
    efficiency_reward: float | None = None
    preference_reward: float | None = None
    by_agent: dict[str, int] = field(default_factory=dict)
    by_type: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TokenEconomics:
    """Tokens that a session or a task spent on memory, by layer, and the baseline."""

    discovery_tokens: int = 0
    read_tokens: int = 0
    layer1_loads: int = 0
    layer1_tokens: int = 0
    layer2_loads: int = 0
    layer2_tokens_scanned: int = 0
    layer2_tokens_available: int = 0
    layer3_loads: int = 0
    layer3_tokens: int = 0
    baseline_tokens: int = 0


@dataclass(frozen=True, slots=True)
class RetrievalRecord:
    """A retrieval as the log of strategies knows it; `outcome` is empty while unknown."""

    at: datetime
    verb: str
    query: str
    task_type: TaskType | Literal[""] = ""
    profile: str = ""
    candidates: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()
    took_ms: float = 0.0
    tokens: int = 0
    outcome: str = ""
    task_id: str = ""
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class TaskConsolidation:
    """What a consolidation of episodes did."""

    episodes: int = 0
    clusters: int = 0
    patterns: tuple[str, ...] = ()
    anti_patterns: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    links: int = 0


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """How many episodes were summarized, archived, and kept because something refers to them."""

    summarized: int = 0
    archived: int = 0
    referenced: int = 0


@dataclass(frozen=True, slots=True)
class ReviewEntry:
    """A pattern, warning or skill to look at, and why."""

    fragment: Fragment
    reason: str
    failures: int = 0
    unused_days: int = 0
