"""Pagination: pages of rows, and opaque cursors that hold the key of the last row."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

import orjson

from lore.errors import InvalidInput
from lore.records import Page
from lore.validation import Bounds

T = TypeVar("T")
Key = Sequence[int | float | str]

MAX_PAGE_SIZE = 500
"""More would make a response too large; the next page is as quick."""

PageSize = Annotated[int, Bounds(least=1, most=MAX_PAGE_SIZE)]

MAX_CURSOR_CHARS = 400
"""Keys are numbers and a kind: a cursor has some 60 characters."""

_LARGEST = 2**62
"""Well within 64 bits, so that the next key is too."""


def page_of(rows: Sequence[tuple[Key, T]], limit: int) -> Page[T]:
    """Return a page of rows; a full page has a cursor for the next."""
    more = rows and len(rows) >= limit
    return Page(tuple(row for _, row in rows), encode_cursor(rows[-1][0]) if more else None)


def encode_cursor(key: Key) -> str:
    """Return the cursor of a key."""
    return base64.urlsafe_b64encode(orjson.dumps(list(key))).decode().rstrip("=")


def decode_cursor(cursor: str, *kinds: type) -> list[Any]:
    """Return the key of a cursor, or nothing for an empty one; refuse an invalid cursor."""
    if not cursor:
        return []
    msg = "This cursor is not valid for this list."
    hint = "Use 'next' of the previous page unchanged, or start without a cursor."
    try:
        padded = cursor[:MAX_CURSOR_CHARS] + "=" * (-len(cursor) % 4)
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
