"""Payloads: the strict schemas of what extraction gives, by kind of fragment.

Whoever asks for payloads and whoever stores them goes by these. They need pydantic, which takes
its time to load: only what digests imports them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lore.records import FragmentKind

LONGEST_TEXT, MOST_WORDS = 4_000, 40
"""A field says one thing; a longer one is a document in the wrong place."""

Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Needed = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
Texts = Annotated[list[Text], Field(max_length=MOST_WORDS)]


class Payload(BaseModel):
    """What every payload has."""

    model_config = ConfigDict(extra="forbid", strict=True, str_strip_whitespace=True)

    summary: Needed
    details: Text = ""
    keywords: Texts = Field(default_factory=list)
    context: Text = ""
    replaces: Text = ""


class Workflow(Payload):
    """A command that works, and when it is used."""

    command: Text = ""
    trigger: Text = ""
    dependencies: Texts = Field(default_factory=list)


class Preference(Payload):
    """How a person wants things done."""

    category: Text = ""
    examples: Texts = Field(default_factory=list)


class BugFix(Payload):
    """What went wrong, why, and what mended it."""

    symptom: Needed
    root_cause: Text = ""
    solution: Needed
    prevention: Text = ""


class Architecture(Payload):
    """What was decided, and against what."""

    decision: Needed
    rationale: Text = ""
    alternatives: Texts = Field(default_factory=list)
    tradeoffs: Texts = Field(default_factory=list)


class Config(Payload):
    """A setting with its value and place."""

    setting: Needed
    location: Text = ""
    value: Text = ""
    purpose: Text = ""


class Fact(Payload):
    """Nothing beside what every payload has."""


SCHEMAS: Mapping[str, type[Payload]] = {
    "workflow": Workflow,
    "preference": Preference,
    "bug_fix": BugFix,
    "architecture": Architecture,
    "config": Config,
    "fact": Fact,
}
"""The six schemas by their names."""

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
"""The schema of each kind that extraction may give; episodes and insights are made elsewhere."""


def check(
    kind: FragmentKind, payload: Mapping[str, Any], *, summary: str
) -> tuple[FragmentKind, dict[str, Any]] | None:
    """Return a kind with its payload as it may be stored: a wrong one becomes a fact.

    None if not even a fact can be made of it.
    """
    given = {"summary": summary, **payload}
    name = SCHEMA_OF.get(kind)
    checked = None if name is None else _checked(SCHEMAS[name], given)
    if checked is not None:
        return kind, checked
    plain = {name: given[name] for name in Fact.model_fields if name in given}
    fact = _checked(Fact, plain) or _checked(Fact, {"summary": summary})
    return None if fact is None else ("fact", fact)


def _checked(schema: type[Payload], given: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        value = schema.model_validate(dict(given))
    except ValidationError:
        return None
    return value.model_dump(exclude_defaults=True)
