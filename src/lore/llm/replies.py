"""The forms of the answers that a chat is asked for; whatever does not fit them is no answer.

Every field is required and none refers to its own form, as providers that can be held to a schema
demand. How long and how many is seen to after reading: they cannot be held to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Union

from pydantic import BaseModel, ConfigDict, create_model

from lore.payloads import SCHEMAS, Payload


class Answer(BaseModel):
    """What all forms have in common: no other fields, no other types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Filled(Answer):
    """The payload of a fact, with the name of its schema."""

    form: str


def _form(name: str, schema: type[Payload]) -> type[Filled]:
    """Return the form of what a schema has of its own: every field, and of plain types."""
    fields: dict[str, Any] = {"form": (Literal[name], ...)}
    for field, info in schema.model_fields.items():
        if field not in Payload.model_fields:
            fields[field] = (str if info.annotation is str else list[str], ...)
    title = f"{schema.__name__}Form"
    return create_model(title, __base__=Filled, __doc__=schema.__doc__, **fields)


if TYPE_CHECKING:
    Form = Filled
else:
    Form = Union[tuple(_form(*named) for named in SCHEMAS.items())]  # noqa: UP007 - of a list


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
    payload: Form


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
