"""Shapes: values out of JSON that anybody may have written, as what they have to be."""

from __future__ import annotations

from typing import Any

import orjson

from lore.errors import InvalidInput

Json = dict[str, Any]


def read(body: bytes) -> Json:
    """Return the document of a body, or raise `InvalidInput` where it is no table."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        msg = "The body is not JSON."
        raise InvalidInput(msg) from None
    if not isinstance(document, dict):
        msg = "The body is not a table."
        raise InvalidInput(msg)
    return document


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
        return orjson.loads(written)
    except orjson.JSONDecodeError:
        return None
