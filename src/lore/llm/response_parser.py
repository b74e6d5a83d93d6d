"""Parse model responses: find the JSON, also inside code fences or prose, and validate it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, TypeVar

from pydantic import BaseModel, Field, ValidationError

from lore.llm.chat import ChatResponse, Usage

P = TypeVar("P", bound=BaseModel)

TokenCount = Annotated[int, Field(ge=0, le=10**9)]
"""A token count as providers report it; no response takes a billion."""

MAX_RESPONSE_CHARS = 400_000
"""Ten times the longest expected response."""

TRUNCATED = "The answer was cut off at its limit; answer more briefly."
REFUSED = "The answer was refused."
EMPTY = "The answer is empty."
_TOO_LONG = "The answer is too long."

_FENCED = re.compile(r"```(?:json|JSON)?[^\S\n]*\n(.*?)\n?[^\S\n]*```", re.DOTALL)
_FIELD_NAME = re.compile(r"[A-Za-z]\w{0,30}", re.ASCII)
_MAX_ERRORS = 5
_MAX_ERROR_CHARS = 160


def parse_response(
    text: str, usage: Usage, schema: type[BaseModel] | None, problem: str = ""
) -> ChatResponse:
    """Return a response with its parsed value, or with the problem it has."""
    if not problem and len(text) > MAX_RESPONSE_CHARS:
        problem = _TOO_LONG
    if not problem and not text.strip():
        problem = EMPTY
    if problem:
        return ChatResponse(text[:MAX_RESPONSE_CHARS], usage, problem=problem)
    if schema is None:
        return ChatResponse(text, usage)
    value, problem = parse_value(text, schema)
    return ChatResponse(text, usage, value, problem)


def parse_value(text: str, schema: type[BaseModel]) -> tuple[BaseModel | None, str]:
    """Return the value in a text, or a description of the problem for the model."""
    problem = ""
    for candidate in _json_candidates(text):
        try:
            return schema.model_validate_json(candidate), ""
        except ValidationError as error:
            problem = problem or _describe_errors(error)
    return None, problem


def parse_partial(body: bytes, part: type[P]) -> P | None:
    """Parse part of a JSON document, ignoring errors elsewhere in it; None if that fails."""
    try:
        return part.model_validate_json(body)
    except ValidationError:
        return None


def schema_instruction(schema: type[BaseModel]) -> str:
    """Return an instruction to answer in JSON, for providers without structured output."""
    import json

    form = json.dumps(schema.model_json_schema(), separators=(",", ":"), sort_keys=True)
    return (
        "Answer with one JSON object that fits this JSON schema, and with nothing before or"
        f" after it:\n{form}"
    )


def _json_candidates(text: str) -> Iterator[str]:
    stripped = text.strip()
    yield stripped
    for fenced in _FENCED.finditer(text):
        yield fenced[1]
    start, end = stripped.find("{"), stripped.rfind("}")
    if 0 <= start < end:
        yield stripped[start : end + 1]


def _path_part(step: int | str) -> str:
    plain = isinstance(step, int) or _FIELD_NAME.fullmatch(step)
    return str(step) if plain else "(a field)"


def _describe_errors(error: ValidationError) -> str:
    """Describe validation errors without quoting input: they go into logs and jobs."""
    problems = []
    for one in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(_path_part(step) for step in one["loc"])[:_MAX_ERROR_CHARS]
        problems.append(f"{place}: {one['msg'][:_MAX_ERROR_CHARS]}" if place else one["msg"])
    more = f" (and {len(problems) - _MAX_ERRORS} more)" if len(problems) > _MAX_ERRORS else ""
    return "The answer does not fit the schema. " + "; ".join(problems[:_MAX_ERRORS]) + more
