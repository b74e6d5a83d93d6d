"""Archives: what chat services export, as a zip file or as the JSON that is in it."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson

from lore.capture.adapters import fields
from lore.capture.adapters.json_lists import read_objects
from lore.errors import InvalidInput, NotFound

_ZIP = b"PK\x03\x04"
_HEAD_BYTES = 65_536
_MOST_BYTES = 256 << 20
"""The largest conversation that is read; parsed, it takes several times as much memory."""

_SMALL_BYTES = 16 << 20
_MOST_TIMES = 100
"""Talk is packed to a fifth or a tenth; only what repeats itself without end to a hundredth."""


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
    """Return the conversations of an archive, in order; one at a time is held in memory."""
    for document in _documents(path):
        try:
            told = orjson.loads(document)
        except orjson.JSONDecodeError as error:
            msg = f"A conversation in it is no JSON: {error}."
            raise InvalidInput(msg) from error
        listed = told.get("conversations") if isinstance(told, dict) else None
        for conversation in [told] if listed is None else fields.items(listed):
            yield fields.table(conversation)


def _documents(path: Path) -> Iterator[bytes]:
    try:
        if path.suffix != ".zip":
            with path.open("rb") as stream:
                yield from read_objects(stream, most_bytes=_MOST_BYTES)
            return
        with zipfile.ZipFile(path) as archive:
            for name in _members(archive):
                _refuse_bomb(archive.getinfo(name))
                with archive.open(name) as packed:
                    yield from read_objects(cast("BinaryIO", packed), most_bytes=_MOST_BYTES)
    except OSError as error:
        msg = f"{path} cannot be opened: {error.strerror}."
        raise NotFound(msg) from error
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
        msg = f"It is damaged or locked: {error}"
        raise InvalidInput(msg) from error


def _refuse_bomb(member: zipfile.ZipInfo) -> None:
    """Refuse what unpacks to far more than talk does; no more than it says is ever unpacked."""
    if member.file_size > max(_SMALL_BYTES, _MOST_TIMES * member.compress_size):
        packed, whole = member.compress_size >> 10, member.file_size >> 20
        msg = f"Its {packed:,} KB would unpack to {whole:,} MB, which conversations never do."
        raise InvalidInput(msg)


def _members(archive: zipfile.ZipFile) -> list[str]:
    """Return the names of the conversations in an archive; large ones come in several files."""
    found = []
    for name in archive.namelist():
        last = name.rpartition("/")[2]
        if last.startswith("conversations") and last.endswith(".json"):
            found.append(name)
    return sorted(found)
