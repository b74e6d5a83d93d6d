"""Archives: what chat services export, as a zip file or as the JSON that is in it."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from lore.capture.adapters import fields
from lore.errors import InvalidInput, NotFound

_ZIP = b"PK\x03\x04"
_HEAD_BYTES = 65_536
_MOST_BYTES = 2 << 30
"""The largest conversations that are read; the whole has to fit into memory several times."""


def holds(path: Path, head: bytes, sign: bytes) -> bool:
    """Tell whether an archive has conversations with a field of this name near their start."""
    if path.suffix == ".json":
        return sign in (head if len(head) >= _HEAD_BYTES else _beginning(path) or head)
    if path.suffix != ".zip" or not head.startswith(_ZIP):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            for name in _members(archive):
                with archive.open(name) as stream:
                    return sign in stream.read(_HEAD_BYTES)
    except (OSError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError):
        return False
    return False


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(_HEAD_BYTES)
    except OSError:
        return b""


def conversations(path: Path) -> Iterator[dict[str, Any]]:
    """Return the conversations of an archive, in order."""
    for document in _documents(path):
        try:
            told = orjson.loads(document)
        except orjson.JSONDecodeError as error:
            msg = f"{path} is no JSON: {error}."
            raise InvalidInput(msg) from error
        if isinstance(told, dict):
            told = told.get("conversations", [told])
        for conversation in fields.items(told):
            yield fields.table(conversation)


def _documents(path: Path) -> Iterator[bytes]:
    try:
        if path.suffix != ".zip":
            with path.open("rb") as stream:
                yield _all_of(path, stream.read(_MOST_BYTES + 1))
            return
        with zipfile.ZipFile(path) as archive:
            for name in _members(archive):
                with archive.open(name) as stream:
                    yield _all_of(path, stream.read(_MOST_BYTES + 1))
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}."
        raise NotFound(msg) from error
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
        msg = f"{path} is damaged or locked: {error}"
        raise InvalidInput(msg) from error


def _all_of(path: Path, document: bytes) -> bytes:
    if len(document) > _MOST_BYTES:
        msg = f"The conversations in {path} are larger than {_MOST_BYTES >> 20} MB."
        raise InvalidInput(msg, hint="Export a shorter span of time.")
    return document


def _members(archive: zipfile.ZipFile) -> list[str]:
    """Return the names of the conversations in an archive; large ones come in several files."""
    found = []
    for name in archive.namelist():
        last = name.rpartition("/")[2]
        if last.startswith("conversations") and last.endswith(".json"):
            found.append(name)
    return sorted(found)
