"""Parse JSON from clients and providers, and coerce its values to expected types."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec
import orjson

from lore.errors import InvalidInput

Json = dict[str, Any]

MAX_COUNT = 10_000_000
"""No model reads or writes this many tokens for one request; larger counts are invalid."""

_DIGITS = bytes(ord("0") if chr(one).isdigit() and one < 128 else 32 for one in range(256))
_LONG_RUN = b"0" * 19
"""Numbers with fewer digits fit into 64 bits."""
_LONG_NUMBER = re.compile(rb"(?:^|[\[:,])\s*-?\d{19,}\s*(?:$|[,\]}])")


_SURROGATES = re.compile(
    rb"(?<!\\)((?:\\\\)*)"
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""A surrogate pair, or a lone surrogate."""

_SURROGATE_CHARS = len(rb"\ud83d")


def parse_object(body: bytes) -> Json:
    """Parse a body that has to be a JSON object, or raise `InvalidInput`."""
    document = parse_value(body)
    if not isinstance(document, dict):
        msg = "The body must be a JSON object."
        raise InvalidInput(msg)
    return document


def split_fields(body: bytes) -> dict[str, bytes]:
    """Split a body into its raw top-level fields, or raise `InvalidInput` if it is no object."""
    try:
        fields = _FIELDS.decode(body)
    except msgspec.MsgspecError:
        mended = _SURROGATES.sub(_repair_surrogate, body)
        if mended != body:
            return split_fields(mended)
        msg = "The body must be a JSON object."
        raise InvalidInput(msg) from None
    return {name: bytes(value) for name, value in fields.items()}


def split_items(written: bytes) -> list[bytes]:
    """Split a JSON list into its raw items, or raise `InvalidInput` if it is no list."""
    try:
        return [bytes(item) for item in _ITEMS.decode(written)]
    except msgspec.MsgspecError:
        raise InvalidInput(_WRONG_SHAPE) from None


_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_WRONG_SHAPE = "The body has a list that this API does not accept."


def parse_value(written: bytes) -> Any:
    """Parse a part of a body, or raise `InvalidInput`.

    Lone surrogates are replaced: JavaScript that cuts a text within an emoji sends them.
    """
    try:
        return _parse(written)
    except (ValueError, RecursionError):
        msg = "The body is not JSON."
        raise InvalidInput(msg) from None


def _parse(body: bytes) -> object:
    loads = _choose_parser(body)
    try:
        return loads(body)
    except ValueError:
        mended = _SURROGATES.sub(_repair_surrogate, body)
        if mended == body:
            raise
        return loads(mended)


def _repair_surrogate(match: re.Match[bytes]) -> bytes:
    """Return a surrogate pair as it is, or U+FFFD for a lone surrogate."""
    return match[0] if len(match[2]) > _SURROGATE_CHARS else match[1] + rb"\ufffd"


def _choose_parser(body: bytes) -> Callable[[bytes], Any]:
    """Return the parser for a body: orjson would change integers above 64 bits."""
    has_long = _LONG_RUN in body.translate(_DIGITS) and _LONG_NUMBER.search(body)
    return json.loads if has_long else orjson.loads


def as_text(value: object) -> str:
    """Return a string, or '' for any other value."""
    return value if isinstance(value, str) else ""


def as_count(value: object) -> int:
    """Return a valid count, or 0 for any other value."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:20])
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 < value <= MAX_COUNT else 0


def as_object(value: object) -> Json:
    """Return an object, or an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def require_objects(value: object) -> list[Json]:
    """Return a list of objects, or raise `InvalidInput`."""
    if not isinstance(value, list) or not set(map(type, value)) <= {dict}:
        raise InvalidInput(_WRONG_SHAPE)
    return value


def objects_in(value: object) -> list[Json]:
    """Return the objects in a list, or [] for any other value."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def call_arguments(value: object) -> Json | None:
    """Return the arguments of a call, or None if they are no object or cannot be serialized."""
    if not isinstance(value, dict):
        return None
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return None  # nested too deeply
    return value


def to_json_text(value: object) -> str:
    """Return a value as JSON text; 'null' if it is nested too deeply."""
    try:
        return to_json_bytes(value).decode()
    except (RecursionError, UnicodeEncodeError):
        return "null"


def to_json_bytes(value: object) -> bytes:
    """Return a value as JSON, with integers of any length."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def read_object(body: bytes) -> Json:
    """Return the JSON object in a body, or an empty one if there is none."""
    return as_object(parse_or_none(body.decode(errors="replace")))


def parse_or_none(written: str) -> object:
    """Parse JSON text, or return None if it is invalid or cut off."""
    try:
        return _parse(written.encode())
    except (ValueError, RecursionError):
        return (
            None  # json and orjson raise different errors, and json limits the digits of integers.
        )
