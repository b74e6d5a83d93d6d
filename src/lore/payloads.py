"""Schemas of payloads: those that extraction returns, and task memory that a caller states.

They need pydantic, which is slow to import: only the digest and the task memory import this module.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lore.errors import InvalidInput
from lore.records import FragmentKind, Outcome

LONGEST_TEXT, MOST_WORDS = 4_000, 40
"""A field says one thing; a longer text is a document in the wrong place."""

Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Needed = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
Texts = Annotated[list[Text], Field(max_length=MOST_WORDS)]


class Payload(BaseModel):
    """Fields of every payload."""

    model_config = ConfigDict(extra="forbid", strict=True, str_strip_whitespace=True)

    summary: Needed
    details: Text = ""
    keywords: Texts = Field(default_factory=list)
    context: Text = ""
    replaces: Text = ""


class Workflow(Payload):
    """A command that works, and when to use it."""

    command: Text = ""
    trigger: Text = ""
    dependencies: Texts = Field(default_factory=list)


class Preference(Payload):
    """How a person wants things done."""

    category: Text = ""
    examples: Texts = Field(default_factory=list)


class BugFix(Payload):
    """An error, its cause and its fix."""

    symptom: Needed
    root_cause: Text = ""
    solution: Needed
    prevention: Text = ""


class Architecture(Payload):
    """A decision and its alternatives."""

    decision: Needed
    rationale: Text = ""
    alternatives: Texts = Field(default_factory=list)
    tradeoffs: Texts = Field(default_factory=list)


class Config(Payload):
    """A setting with its value and location."""

    setting: Needed
    location: Text = ""
    value: Text = ""
    purpose: Text = ""


class Fact(Payload):
    """No further fields."""


SCHEMAS: Mapping[str, type[Payload]] = {
    "workflow": Workflow,
    "preference": Preference,
    "bug_fix": BugFix,
    "architecture": Architecture,
    "config": Config,
    "fact": Fact,
}
"""The six schemas by name."""

SCHEMA_OF: Mapping[FragmentKind, str] = {
    "workflow": "workflow",
    "skill": "workflow",
    "preference": "preference",
    "bug_fix": "bug_fix",
    "architecture": "architecture",
    "decision": "architecture",
    "config": "config",
    "fact": "fact",
    "pattern": "fact",
    "anti_pattern": "fact",
}
"""The schema of each kind that extraction may return; episodes and insights have none."""


def validate_payload(
    kind: FragmentKind, payload: Mapping[str, Any], *, summary: str
) -> tuple[FragmentKind, dict[str, Any]] | None:
    """Validate a payload; return kind and payload, as a fact if the payload is invalid.

    Return None if it cannot even be a fact.
    """
    fields = {"summary": summary, **payload}
    name = SCHEMA_OF.get(kind)
    checked = None if name is None else _checked(SCHEMAS[name], fields)
    if checked is not None:
        return kind, checked
    plain = {name: fields[name] for name in Fact.model_fields if name in fields}
    fact = _checked(Fact, plain) or _checked(Fact, {"summary": summary})
    return None if fact is None else ("fact", fact)


def _checked(schema: type[Payload], arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        value = schema.model_validate(dict(arguments))
    except ValidationError:
        return None
    return value.model_dump(exclude_defaults=True)


class TaskPayload(BaseModel):
    """What a caller states about a task memory; further fields are kept as they are."""

    model_config = ConfigDict(extra="allow", str_strip_whitespace=True)


class LinkPayload(TaskPayload):
    """A relation to another memory."""

    to: Needed
    relation: Literal[
        "derived_from", "related_to", "contradicts", "elaborates", "example_of", "supersedes",
        "superseded_by",
    ]  # fmt: skip


Entries = Annotated[list[Needed], Field(max_length=1_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]


class PatternPayload(TaskPayload):
    """A way that worked."""

    pattern: Needed
    category: Text = ""
    conditions: Entries = Field(default_factory=list)
    correct_approach: Text = ""
    incorrect_approach: Text = ""
    confidence: Share = 0.8
    source_episodes: Entries = Field(default_factory=list)
    usage_count: Count = 0
    last_used: Text | None = None
    links: list[LinkPayload] = Field(default_factory=list)


class AntiPatternPayload(TaskPayload):
    """What fails, why, and how to prevent it."""

    what_fails: Needed
    why: Text = ""
    prevention: Text = ""
    source: Text = ""
    confidence: Share = 0.8
    source_episodes: Entries = Field(default_factory=list)
    usage_count: Count = 0
    last_used: Text | None = None
    links: list[LinkPayload] = Field(default_factory=list)


class SkillErrorPayload(TaskPayload):
    """A common error of a skill, and its fix."""

    error: Needed
    fix: Text = ""


class SkillPayload(TaskPayload):
    """Steps that lead to a goal."""

    name: Needed
    steps: Annotated[list[Needed], Field(min_length=1, max_length=200)]
    description: Text = ""
    prerequisites: Entries = Field(default_factory=list)
    common_errors: list[SkillErrorPayload] = Field(default_factory=list)
    exit_criteria: Entries = Field(default_factory=list)
    source_episodes: Entries = Field(default_factory=list)
    usage_count: Count = 0
    last_used: Text | None = None
    links: list[LinkPayload] = Field(default_factory=list)


class ActionPayload(TaskPayload):
    """An action of an episode."""

    t: Annotated[float, Field(ge=0)] = 0
    action: Needed
    target: Text = ""
    result: Text = "none"
    error: Text = ""


class ErrorPayload(TaskPayload):
    """An error of an episode, and its resolution."""

    type: Text = ""
    message: Needed
    resolution: Text = ""


class EpisodePayload(TaskPayload):
    """What was done for a goal, and how it ended."""

    goal: Needed
    outcome: Outcome = "unknown"
    reason: Text = ""
    task_id: Text = ""
    phase: Text = ""
    agent: Text = ""
    constraints: Entries = Field(default_factory=list)
    actions: Annotated[list[ActionPayload], Field(max_length=10_000)] = Field(default_factory=list)
    errors: Annotated[list[ErrorPayload], Field(max_length=1_000)] = Field(default_factory=list)
    files_read: Entries = Field(default_factory=list)
    files_changed: Entries = Field(default_factory=list)
    artifacts: Entries = Field(default_factory=list)
    commits: Entries = Field(default_factory=list)
    duration_s: Count = 0
    tokens: Count = 0
    retries: Count = 0


TASK_SCHEMAS: Mapping[FragmentKind, type[TaskPayload]] = {
    "pattern": PatternPayload,
    "anti_pattern": AntiPatternPayload,
    "skill": SkillPayload,
    "episode": EpisodePayload,
}


MOST_LEVELS = 100
"""Real records have less than ten levels; the store refuses more than 254."""


def find_json_problem(value: Any) -> str:
    """Return why a JSON value cannot be stored; nothing if it can."""
    level = [value]
    for _ in range(MOST_LEVELS):
        for one in level:
            if isinstance(one, int) and not -(2**63) <= one < 2**63:
                return "has an integer of more than 64 bits"
            if isinstance(one, float) and not math.isfinite(one):
                return "has a number that is too large"
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return ""
    return f"is nested in more than {MOST_LEVELS} levels"


def require_task_payload(kind: FragmentKind, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the payload of a task memory; raise `InvalidInput` that says which field is wrong."""
    schema = TASK_SCHEMAS.get(kind)
    if schema is None:
        msg = f"'{kind}' is not a kind of task memory."
        raise InvalidInput(msg, hint=f"Kinds: {', '.join(TASK_SCHEMAS)}.")
    problem = find_json_problem(dict(payload))
    if problem:
        msg = f"This is not a valid {kind.replace('_', '-')}: it {problem}."
        raise InvalidInput(msg, hint=_TASK_HINTS[kind])
    try:
        value = schema.model_validate(dict(payload))
    except ValidationError as error:
        problems = "; ".join(
            f"'{'.'.join(map(str, one['loc']))}': {one['msg'][:1].lower()}{one['msg'][1:]}"
            for one in error.errors(include_url=False, include_input=False)[:_MOST_PROBLEMS]
        )
        msg = f"This is not a valid {kind.replace('_', '-')}: {problems}."
        raise InvalidInput(msg, hint=_TASK_HINTS[kind]) from error
    return value.model_dump(exclude_defaults=True)


_MOST_PROBLEMS = 5
_TASK_HINTS: Mapping[FragmentKind, str] = {
    "pattern": "A pattern needs 'pattern', the sentence that says what works.",
    "anti_pattern": "An anti-pattern needs 'what_fails'.",
    "skill": "A skill needs 'name' and 'steps' with at least one step.",
    "episode": "An episode needs 'goal'; 'outcome' is success, failure, partial or unknown.",
}
