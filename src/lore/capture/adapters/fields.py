"""Fields of foreign JSON: read as what they should be, whatever they hold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS = range(1990, 2200)
"""A time outside of these years is a slip of whoever wrote it."""

_MILLISECONDS_FROM = 100_000_000_000
"""As seconds this is the year 5138, as milliseconds 1973: larger numbers are milliseconds."""

_LARGEST_COUNT = 1 << 53
"""JSON has whole numbers up to here everywhere."""

_TOO_DEEP = "[cannot be shown]"


def text(value: Any) -> str:
    """Return a text or a number as text, and '' for anything else or a number beyond measure."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value) if abs(value) < _LARGEST_COUNT else _rounded(value)
    return ""


def _rounded(value: float) -> str:
    try:
        return f"{value:.6g}"
    except OverflowError:
        return ""


def table(value: Any) -> dict[str, Any]:
    """Return an object, or an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """Return a list, or an empty one."""
    return value if isinstance(value, list) else []


def moment(value: Any) -> datetime | None:
    """Return a time written as ISO 8601, or as seconds or milliseconds since 1970, or None."""
    try:
        if isinstance(value, str):
            at = _written(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            at = _counted(value)
        else:
            return None
        if at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
        at = at.astimezone(UTC) if at.tzinfo is not UTC else at
    except (ValueError, OverflowError, TypeError):
        return None
    return at if at.year in _YEARS else None


def _written(value: str) -> datetime:
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return _counted(float(value))


def _counted(value: float) -> datetime:
    seconds = value / 1000 if abs(value) >= _MILLISECONDS_FROM else value
    return _EPOCH + timedelta(seconds=seconds)


def counts(value: Any) -> dict[str, int]:
    """Return the counts above zero of an object, those of objects inside it by their own names."""
    found: dict[str, int] = {}
    for name, count in table(value).items():
        if type(count) is int:
            if 0 < count < _LARGEST_COUNT:
                found[text(name)] = count
        elif isinstance(count, dict):
            for each, number in count.items():
                if type(number) is int and 0 < number < _LARGEST_COUNT:
                    found[text(each)] = number
    return found


def compact(value: Any) -> str:
    """Return a value as JSON on one line."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        pass
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (RecursionError, ValueError, TypeError):
        return _TOO_DEEP


def digest(*values: Any) -> str:
    """Return a short name for some values: the same for the same values."""
    written = compact(values).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(written, digest_size=12).hexdigest()


def bounded(names: Iterable[str], known: tuple[str, ...], most: int) -> tuple[str, ...]:
    """Return what is known with new names added, the first `most` of them."""
    fresh = [name for name in names if name and name not in known]
    if not fresh or len(known) >= most:
        return known
    return tuple(dict.fromkeys((*known, *fresh)))[:most]
