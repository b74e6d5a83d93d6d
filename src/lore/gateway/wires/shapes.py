"""Shapes: values out of JSON that anybody may have written, as what they have to be."""

from __future__ import annotations

import re
from typing import Any

import orjson

from lore.errors import InvalidInput

Json = dict[str, Any]


_HALVES = re.compile(
    rb"(?<!\\)((?:\\\\)*)"
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""Both halves of a character that JSON writes as two, or one of them alone."""

_HALF_CHARS = len(rb"\ud83d")


def read(body: bytes) -> Json:
    """Return the document of a body, or raise `InvalidInput` where it is no table.

    JavaScript that cuts a text in the middle of an emoji sends half of it.
    """
    try:
        document = _parsed(body)
    except orjson.JSONDecodeError:
        msg = "The body is not JSON."
        raise InvalidInput(msg) from None
    if not isinstance(document, dict):
        msg = "The body is not a table."
        raise InvalidInput(msg)
    return document


def _parsed(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        mended = _HALVES.sub(_whole, body)
        if mended == body:
            raise
        return orjson.loads(mended)


def _whole(found: re.Match[bytes]) -> bytes:
    """Return a character as it is written, or the sign for one that is lost."""
    return found[0] if len(found[2]) > _HALF_CHARS else found[1] + rb"\ufffd"


def text(value: object) -> str:
    """Return a text, or '' in the place of anything else."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int:
    """Return a number of things, or 0 in the place of anything else."""
    return value if isinstance(value, int) and value > 0 else 0


def table(value: object) -> Json:
    """Return a table, or an empty one in the place of anything else."""
    return value if isinstance(value, dict) else {}


def tables(value: object) -> list[Json]:
    """Return a list of tables, or raise `InvalidInput` where it is something else."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        msg = "The body has a list of another shape than this wire's."
        raise InvalidInput(msg)
    return value


def found(value: object) -> list[Json]:
    """Return the tables in a list, or none of anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def dumped(value: object) -> str:
    """Return a value as JSON on one line."""
    return orjson.dumps(value).decode()


def loaded(written: str) -> object:
    """Return what JSON says, or None where it is cut off or none at all."""
    try:
        return _parsed(written.encode())
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return None
