"""Schemas of the payloads that extraction returns, by kind of fragment.

They need pydantic, which is slow to import: only the digest imports this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lore.records import FragmentKind

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
