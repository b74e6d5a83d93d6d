"""The layers in which memory is disclosed: index, timeline, details; and what they cost."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import Literal

from lore.lazy_dataclass import dataclass
from lore.records.kinds import Outcome
from lore.records.task_records import TaskMemory, TaskRecord

DisclosureLayer = Literal["index", "timeline", "details"]
Checkpoint = Literal["task_complete", "session_end", "triggered"]
"""When token counts are checked: after a task, at the end of a session, or after many loads."""


@dataclass(frozen=True, slots=True)
class IndexTopic:
    """A topic in the index: the id of its strongest memory, a title, and what it costs to read.

    `latest_at` is when its newest memory was said, `last_accessed` when one was last read.
    """

    id: str
    title: str
    relevance: float
    last_accessed: datetime
    latest_at: datetime
    tokens: int
    memories: int = 1


@dataclass(frozen=True, slots=True)
class MemoryIndex:
    """Layer 1: what there is to know in a project; `topics` are the most relevant ones."""

    topics: tuple[IndexTopic, ...] = ()
    total_topics: int = 0
    total_memories: int = 0
    total_tokens: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class TimelineAction:
    """Something that was done: when, in about ten words, how it ended, and on which topic."""

    at: datetime
    action: str
    outcome: Outcome
    id: str
    topic: str = ""


@dataclass(frozen=True, slots=True)
class KeyDecision:
    """A decision, and why it was taken."""

    at: datetime
    decision: str
    id: str
    rationale: str = ""
    topic: str = ""


@dataclass(frozen=True, slots=True)
class MemoryTimeline:
    """Layer 2: what was done lately, what was decided, and what is going on."""

    recent_actions: tuple[TimelineAction, ...] = ()
    key_decisions: tuple[KeyDecision, ...] = ()
    current_focus: str = ""
    blocked_by: tuple[str, ...] = ()
    next_up: tuple[str, ...] = ()
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class TopicMemory:
    """A memory of a topic in full."""

    id: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class TopicDetails:
    """Layer 3: a topic with its memories in full."""

    topic: IndexTopic
    memories: tuple[TopicMemory, ...] = ()
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class LoadedContext:
    """What was loaded for a question: as deep a layer as it took, and what each layer cost."""

    layer: DisclosureLayer | Literal["none"]
    topics: tuple[IndexTopic, ...] = ()
    timeline: MemoryTimeline = field(default_factory=MemoryTimeline)
    details: tuple[TopicDetails, ...] = ()
    index_tokens: int = 0
    timeline_tokens: int = 0
    timeline_tokens_available: int = 0
    details_tokens: int = 0


@dataclass(frozen=True, slots=True)
class EndedTask:
    """A task that ended, with its episode and what became of the memories that it was given."""

    task: TaskRecord
    episode_id: str
    memories: tuple[TaskMemory, ...] = ()


@dataclass(frozen=True, slots=True)
class CarriedOutAction:
    """A corrective action: the metric before and after, and whether the change was kept."""

    at: datetime
    action: str
    metric: str
    before: float
    after: float | None
    is_kept: bool


@dataclass(frozen=True, slots=True)
class EconomicsReport:
    """What memory cost and saved; `ratio` is None if no details were read."""

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
    bypassed: bool = False
    actions: tuple[CarriedOutAction, ...] = ()
