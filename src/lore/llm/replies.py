"""The forms of the answers that a chat is asked for; whatever does not fit them is no answer.

Every field is required and none refers to its own form, as providers that can be held to a schema
demand. How long and how many is seen to after reading: they cannot be held to that.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class Answer(BaseModel):
    """What all forms have in common: no other fields, no other types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class WorkflowForm(Answer):
    """How something is done that is done again."""

    form: Literal["workflow"]
    command: str
    trigger: str
    dependencies: list[str]


class PreferenceForm(Answer):
    """What someone wants to have done in a certain way."""

    form: Literal["preference"]
    category: str
    examples: list[str]


class BugFixForm(Answer):
    """What went wrong, why, and what helped."""

    form: Literal["bug_fix"]
    symptom: str
    root_cause: str
    solution: str
    prevention: str


class ArchitectureForm(Answer):
    """What was decided, why, and against what."""

    form: Literal["architecture"]
    decision: str
    rationale: str
    alternatives: list[str]
    tradeoffs: list[str]


class ConfigForm(Answer):
    """A setting: where it stands, its value, and what it is for."""

    form: Literal["config"]
    setting: str
    location: str
    value: str
    purpose: str


class FactForm(Answer):
    """Nothing but what all facts have."""

    form: Literal["fact"]


class Link(Answer):
    """What a fact is to another one of the same answer."""

    kind: Literal[
        "related_to", "elaborates", "example_of", "supports", "contradicts", "derived_from"
    ]
    to: int


class Found(Answer):
    """One fact, with the numbers of the messages that say it."""

    number: int
    under: int
    content: str
    summary: str
    kind: Literal[
        "fact", "decision", "preference", "pattern", "anti_pattern", "architecture", "config",
        "workflow", "bug_fix", "skill",
    ]  # fmt: skip
    importance: Literal["high", "medium", "low"]
    sources: list[int]
    corrects: str
    relations: list[Link]
    details: str
    keywords: list[str]
    context: str
    payload: WorkflowForm | PreferenceForm | BugFixForm | ArchitectureForm | ConfigForm | FactForm


class Facts(Answer):
    """The answer to `extract`."""

    facts: list[Found]


class Insight(Answer):
    """The answer to `reflect`."""

    insight: str
    from_items: list[int]


class Judged(Answer):
    """What was found of one pair."""

    pair: int
    verdict: Literal["changes", "contradicts", "agrees"]


class Verdicts(Answer):
    """The answer to `judge`."""

    verdicts: list[Judged]
