"""Reading an answer: its JSON, also from between fences or words, held against a schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, TypeVar

from pydantic import BaseModel, Field, ValidationError

from lore.llm.chat import Reply, Usage

P = TypeVar("P", bound=BaseModel)

Count = Annotated[int, Field(ge=0, le=10**9)]
"""Tokens, as a provider tells them; no answer takes a thousand million."""

LONGEST_REPLY_CHARS = 400_000
"""Ten times the longest answer that is asked for."""

TRUNCATED = "The answer was cut off at its limit; answer more briefly."
REFUSED = "The answer was refused."
EMPTY = "The answer is empty."
_TOO_LONG = "The answer is too long."

_FENCED = re.compile(r"```(?:json|JSON)?[^\S\n]*\n(.*?)\n?[^\S\n]*```", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z]\w{0,30}", re.ASCII)
_MOST_TOLD = 5
_LONGEST_TOLD_CHARS = 160


def read_reply(text: str, usage: Usage, schema: type[BaseModel] | None, problem: str = "") -> Reply:
    """Return the reply that a text is, with the value in it or what is wrong with it."""
    if not problem and len(text) > LONGEST_REPLY_CHARS:
        problem = _TOO_LONG
    if not problem and not text.strip():
        problem = EMPTY
    if problem:
        return Reply(text[:LONGEST_REPLY_CHARS], usage, problem=problem)
    if schema is None:
        return Reply(text, usage)
    value, problem = read_value(text, schema)
    return Reply(text, usage, value, problem)


def read_value(text: str, schema: type[BaseModel]) -> tuple[BaseModel | None, str]:
    """Return the value in a text, or what is wrong with it in words for whoever wrote it."""
    problem = ""
    for candidate in _candidates(text):
        try:
            return schema.model_validate_json(candidate), ""
        except ValidationError as error:
            problem = problem or _told(error)
    return None, problem


def read_part(body: bytes, part: type[P]) -> P | None:
    """Return a part of an answer that is a document of JSON, whatever else is wrong with it."""
    try:
        return part.model_validate_json(body)
    except ValidationError:
        return None


def schema_request(schema: type[BaseModel]) -> str:
    """Ask for JSON in words, where a provider cannot be asked in another way."""
    import json

    form = json.dumps(schema.model_json_schema(), separators=(",", ":"), sort_keys=True)
    return (
        "Answer with one JSON object that fits this JSON schema, and with nothing before or"
        f" after it:\n{form}"
    )


def _candidates(text: str) -> Iterator[str]:
    stripped = text.strip()
    yield stripped
    for fenced in _FENCED.finditer(text):
        yield fenced[1]
    start, end = stripped.find("{"), stripped.rfind("}")
    if 0 <= start < end:
        yield stripped[start : end + 1]


def _step(step: int | str) -> str:
    """Return a step on the way to a mistake; the name of a field can be anything."""
    plain = isinstance(step, int) or _PLAIN.fullmatch(step)
    return str(step) if plain else "(a field)"


def _told(error: ValidationError) -> str:
    """Tell what is wrong without what was said: it goes into logs and jobs."""
    told = []
    for one in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(_step(step) for step in one["loc"])[:_LONGEST_TOLD_CHARS]
        told.append(f"{place}: {one['msg'][:_LONGEST_TOLD_CHARS]}" if place else one["msg"])
    more = f" (and {len(told) - _MOST_TOLD} more)" if len(told) > _MOST_TOLD else ""
    return "The answer does not fit the schema. " + "; ".join(told[:_MOST_TOLD]) + more
