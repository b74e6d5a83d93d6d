"""Shapes: values out of JSON that anybody may have written, as what they have to be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec
import orjson

from lore.errors import InvalidInput

Json = dict[str, Any]

MOST_COUNTED = 10_000_000
"""No model reads or writes so many tokens for one request: who says more does not know."""

_DIGITS = bytes(ord("0") if chr(one).isdigit() and one < 128 else 32 for one in range(256))
_LONG_RUN = b"0" * 19
"""No number of fewer digits is longer than 64 bits."""
_LONG_NUMBER = re.compile(rb"(?:^|[\[:,])\s*-?\d{19,}\s*(?:$|[,\]}])")


_HALVES = re.compile(
    rb"(?<!\\)((?:\\\\)*)"
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""Both halves of a character that JSON writes as two, or one of them alone."""

_HALF_CHARS = len(rb"\ud83d")


def read(body: bytes) -> Json:
    """Return the document of a body, or raise `InvalidInput` where it is no table."""
    document = value(body)
    if not isinstance(document, dict):
        msg = "The body is not a table."
        raise InvalidInput(msg)
    return document


def split(body: bytes) -> dict[str, bytes]:
    """Return the fields of a body as they are written, or raise `InvalidInput` for no table."""
    try:
        fields = _FIELDS.decode(body)
    except msgspec.MsgspecError:
        mended = _HALVES.sub(_whole, body)
        if mended != body:
            return split(mended)
        msg = "The body is not a table."
        raise InvalidInput(msg) from None
    return {name: bytes(value) for name, value in fields.items()}


def split_list(written: bytes) -> list[bytes]:
    """Return the items of a list as they are written, or raise `InvalidInput` for no list."""
    try:
        return [bytes(item) for item in _ITEMS.decode(written)]
    except msgspec.MsgspecError:
        raise InvalidInput(_OTHER_SHAPE) from None


_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_OTHER_SHAPE = "The body has a list of another shape than this wire's."


def value(written: bytes) -> Any:
    """Return what a part of a body says, or raise `InvalidInput` where it is no JSON.

    JavaScript that cuts a text in the middle of an emoji sends half of it.
    """
    try:
        return _parsed(written)
    except (ValueError, RecursionError):
        msg = "The body is not JSON."
        raise InvalidInput(msg) from None


def _parsed(body: bytes) -> object:
    loads = _loads(body)
    try:
        return loads(body)
    except ValueError:
        mended = _HALVES.sub(_whole, body)
        if mended == body:
            raise
        return loads(mended)


def _whole(found: re.Match[bytes]) -> bytes:
    """Return a character as it is written, or the sign for one that is lost."""
    return found[0] if len(found[2]) > _HALF_CHARS else found[1] + rb"\ufffd"


def _loads(body: bytes) -> Callable[[bytes], Any]:
    """Return the reader of a body: the quick one makes long numbers into others."""
    has_long = _LONG_RUN in body.translate(_DIGITS) and _LONG_NUMBER.search(body)
    return json.loads if has_long else orjson.loads


def text(value: object) -> str:
    """Return a text, or '' in the place of anything else."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int:
    """Return a number of things, or 0 in the place of anything else, and of what cannot be."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:20])
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 < value <= MOST_COUNTED else 0


def table(value: object) -> Json:
    """Return a table, or an empty one in the place of anything else."""
    return value if isinstance(value, dict) else {}


def tables(value: object) -> list[Json]:
    """Return a list of tables, or raise `InvalidInput` where it is something else."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise InvalidInput(_OTHER_SHAPE)
    return value


def found(value: object) -> list[Json]:
    """Return the tables in a list, or none of anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def arguments(value: object) -> Json | None:
    """Return the arguments of a call, or None if they are no table or could not be sent again."""
    if not isinstance(value, dict):
        return None
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return None  # deeper than can be written
    return value


def dumped(value: object) -> str:
    """Return a value as JSON on one line; null if it is deeper than can be written."""
    try:
        return written(value).decode()
    except (RecursionError, UnicodeEncodeError):
        return "null"


def written(value: object) -> bytes:
    """Return a value as JSON, with numbers of any length."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def loaded(written: str) -> object:
    """Return what JSON says, or None where it is cut off or none at all."""
    try:
        return _parsed(written.encode())
    except (ValueError, RecursionError):
        return None  # Both readers have errors of their own, and one has a limit for digits.
