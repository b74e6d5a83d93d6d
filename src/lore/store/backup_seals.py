"""Seals of backups: a file is restored unasked only if this home wrote it and nobody changed it.

The seal is a row of `meta`: an HMAC over all bytes of the file, with zeros in the seal's own place.
"""

from __future__ import annotations

import hashlib
import hmac
import mmap
import os
import re
import secrets
from contextlib import closing
from pathlib import Path

from lore.errors import StoreError
from lore.store import sqlite
from lore.store.database import find_meta

SEAL_KEY = "backup_seal"

_SEAL = re.compile(r"(lore-seal:[0-9a-f]{32}:)([0-9a-f]{64})")
_CHUNK = 1 << 20
_BUSY_TIMEOUT_S = 5.0


def seal(path: Path, key: bytes) -> None:
    """Seal a database file that no one uses."""
    mark = f"lore-seal:{secrets.token_hex(16)}:"
    sqlite.write_offline(
        path,
        "INSERT INTO meta (key, value) VALUES (:key, :value)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        key=SEAL_KEY,
        value=mark + "0" * 64,
    )
    place = _find_place(path, mark)
    with path.open("r+b") as file:
        file.seek(place)
        file.write(_digest(path, place, key).encode())
        file.flush()
        os.fsync(file.fileno())


def is_sealed(path: Path, key: bytes) -> bool:
    """Return whether a file has an intact seal of this key."""
    if any(companion.exists() for companion in sqlite.companion_files(path)):
        return False  # what SQLite reads beside the file is not sealed
    with closing(
        sqlite.open_connection(path, busy_timeout_s=_BUSY_TIMEOUT_S, read_only=True)
    ) as db:
        match = _SEAL.fullmatch(find_meta(db, SEAL_KEY) or "")
    for companion in sqlite.companion_files(path):
        companion.unlink(missing_ok=True)
    if match is None:
        return False
    try:
        digest = _digest(path, _find_place(path, match[1]), key)
    except StoreError:
        return False
    return hmac.compare_digest(digest, match[2])


def _find_place(path: Path, mark: str) -> int:
    """Return where the digest of the seal is; the mark before it must be in the file once."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        at = content.find(mark.encode())
        if at < 0 or content.find(mark.encode(), at + 1) >= 0:
            msg = f"{path} has no single seal."
            raise StoreError(msg)
        return at + len(mark)


def _digest(path: Path, place: int, key: bytes) -> str:
    sealed = hmac.new(key, digestmod=hashlib.sha256)
    with path.open("rb") as file:
        for start in range(0, place, _CHUNK):
            sealed.update(file.read(min(_CHUNK, place - start)))
        file.seek(place + 64)
        sealed.update(b"0" * 64)
        while chunk := file.read(_CHUNK):
            sealed.update(chunk)
    return sealed.hexdigest()
