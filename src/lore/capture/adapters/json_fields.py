"""Read fields of foreign JSON as the type they should have, and find an agent's files."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from lore import clock
from lore.capture.transcript_files import Unparsed, parse
from lore.errors import InvalidInput, NotFound

Record = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS = range(1990, 2200)
"""A time outside these years is an error of whoever wrote it."""

_MILLISECONDS_FROM = 100_000_000_000
"""As seconds this is the year 5138, as milliseconds 1973: larger numbers are milliseconds."""

_LARGEST_COUNT = 1 << 53
"""JSON has exact integers up to here everywhere."""

_TOO_DEEP = "[cannot be shown]"

_MOST_BYTES = 256 << 20
"""The largest document that is read; parsed, it takes several times as much memory."""


def as_text(value: Any) -> str:
    """Return a text or a number as text, and '' for anything else or a number too large."""
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


def as_dict(value: Any) -> dict[str, Any]:
    """Return a dict, or an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return a list, or an empty one."""
    return value if isinstance(value, list) else []


def as_datetime(value: Any) -> datetime | None:
    """Parse a time in ISO 8601, or as seconds or milliseconds since 1970; else None."""
    try:
        if isinstance(value, str):
            at = _parse_written(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            at = _parse_number(value)
        else:
            return None
        if at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
        at = at.astimezone(UTC) if at.tzinfo is not UTC else at
    except (ValueError, OverflowError, TypeError):
        return None
    return at if at.year in _YEARS else None


def _parse_written(value: str) -> datetime:
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return _parse_number(float(value))


def _parse_number(value: float) -> datetime:
    seconds = value / 1000 if abs(value) >= _MILLISECONDS_FROM else value
    return _EPOCH + timedelta(seconds=seconds)


def as_counts(value: Any) -> dict[str, int]:
    """Return the positive counts of an object; those of nested objects by their own names."""
    positive: dict[str, int] = {}
    for name, count in as_dict(value).items():
        if type(count) is int:
            if 0 < count < _LARGEST_COUNT:
                positive[as_text(name)] = count
        elif isinstance(count, dict):
            for each, number in count.items():
                if type(number) is int and 0 < number < _LARGEST_COUNT:
                    positive[as_text(each)] = number
    return positive


def to_json(value: Any) -> str:
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
    """Return a short hash of some values."""
    written = to_json(values).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(written, digest_size=12).hexdigest()


def repeat_keys(values: Iterable[Any]) -> Iterator[str]:
    """Yield a key for each value: its hash, and from the second equal value on a number.

    So the keys of a list stay when a part of it is taken out, or more is added.
    """
    times: Counter[str] = Counter()
    for value in values:
        key = digest(value)
        times[key] += 1
        yield key if times[key] == 1 else f"{key}-{times[key]}"


def load_document(path: Path) -> Any:
    """Return the parsed JSON of a file; raise an error that says why it cannot be read."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            msg = f"It is larger than {_MOST_BYTES >> 20} MB."
            raise InvalidInput(msg)
        document = parse(path.read_bytes())
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}."
        raise NotFound(msg) from error
    if isinstance(document, Unparsed):
        msg = f"It is {document.reason}."
        raise InvalidInput(msg)
    return document


def find_document(path: Path) -> Any:
    """Return the parsed JSON of a file beside a transcript, or None if it cannot be read."""
    try:
        return load_document(path) if is_regular(path) else None
    except (InvalidInput, NotFound):
        return None


def extend_bounded(names: Iterable[str], known: tuple[str, ...], most: int) -> tuple[str, ...]:
    """Return the known names with new ones added, at most `most`."""
    fresh = [name for name in names if name and name not in known]
    if not fresh or len(known) >= most:
        return known
    return tuple(dict.fromkeys((*known, *fresh)))[:most]


def find_files(folder: Path, ending: str, *, beginning: str = "") -> Iterator[Path]:
    """Yield the regular files below a folder with this ending; links are not followed."""
    if folder.is_symlink():
        return
    for place, below, names in os.walk(folder, followlinks=False):
        below.sort()
        for name in sorted(names):
            path = Path(place, name)
            if name.endswith(ending) and name.startswith(beginning) and is_regular(path):
                yield path


def is_regular(path: Path) -> bool:
    """Return whether a path is a regular file: no link, pipe or folder."""
    try:
        return path.is_file() and not path.is_symlink()
    except OSError:
        return False


def modified_at(path: Path) -> datetime:
    """Return when a file was last written, as a time for messages without one."""
    try:
        return as_datetime(path.stat().st_mtime) or clock.now()
    except OSError:
        return clock.now()


_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
"""Visual Studio Code and editors made from it, by the names of their folders."""


def find_editor_folders(home: Path, editors: Iterable[str] = _EDITORS) -> Iterator[Path]:
    """Yield the folders in which editors of the Visual Studio Code family keep a person's data."""
    places = [
        home / above / editor / "User"
        for editor in editors
        for above in (".config", "Library/Application Support")
    ]
    places += [home / server / "data" / "User" for server in (".vscode-server", ".cursor-server")]
    for place in places:
        if place.is_dir() and not place.is_symlink():
            yield place


def find_nothing(home: Path) -> Iterator[Path]:
    """Return no files, for an agent whose files have no standard location."""
    del home
    return iter(())
