"""Cursors: the key of the last row of a page, as a text that nobody needs to understand."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Sequence
from typing import Any, TypeVar

import orjson

from lore.errors import InvalidInput
from lore.records import Page

T = TypeVar("T")
Key = Sequence[int | float | str]

LONGEST_CURSOR = 400
"""The keys of a list are numbers and a kind: a cursor has some 60 characters."""

_LARGEST = 2**62
"""Well within the 64 bits of the database, so that a step beyond it is too."""


def page_of(rows: Sequence[tuple[Key, T]], limit: int) -> Page[T]:
    """Return a page of rows; one that is full may go on."""
    more = rows and len(rows) >= limit
    return Page(tuple(row for _, row in rows), written(rows[-1][0]) if more else None)


def written(key: Key) -> str:
    """Return the cursor of a key."""
    return base64.urlsafe_b64encode(orjson.dumps(list(key))).decode().rstrip("=")


def read(cursor: str, *kinds: type) -> list[Any]:
    """Return the key of a cursor, or nothing at the beginning; refuse one that was made up."""
    if not cursor:
        return []
    msg = "That is no cursor of this list."
    hint = "Take 'next' of the page before as it is, or begin without one."
    try:
        padded = cursor[:LONGEST_CURSOR] + "=" * (-len(cursor) % 4)
        key = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error) as error:
        raise InvalidInput(msg, hint=hint) from error
    fits = isinstance(key, list) and len(key) == len(kinds)
    if not fits or not all(_fits(value, kind) for value, kind in zip(key, kinds, strict=True)):
        raise InvalidInput(msg, hint=hint)
    return list(key)


def _fits(value: object, kind: type) -> bool:
    if isinstance(value, bool):
        return False
    if kind is float:
        return isinstance(value, int | float) and math.isfinite(value)
    if kind is int:
        return isinstance(value, int) and abs(value) <= _LARGEST
    return isinstance(value, kind)
