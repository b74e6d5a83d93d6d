"""The journal of requests in progress, so that a killed process forgets no cost.

Every process appends to a file of its own and keeps it locked; the system releases the lock when
the process ends, however it ends. A record is given to the kernel before its request leaves, which
a kill of the process cannot undo. A file lasts only as long as the store lacks something of it.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import stat
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from lore.records import RequestCost, RequestHold, Spend

MAX_BYTES = 1_000_000
"""A longer file is written anew with what is still open."""

_MAX_ATTEMPTS = 5
"""Another process may take a file for an abandoned one before it is locked."""

_ENTRY_FIELDS = tuple(field.name for field in fields(Spend))

_numbers = itertools.count()
"""One process may open several journals, each in a file of its own."""


@dataclass(frozen=True, slots=True)
class JournalRecord:
    """The state of a request: its reservation, and its cost once that is known."""

    hold: RequestHold
    entry: Spend | None = None

    def line(self) -> bytes:
        """Return the record as a line of the file."""
        hold, cost = self.hold, self.hold.cost
        tree = {
            "key": hold.key,
            "at": hold.at,
            "model": cost.model,
            "session": cost.session,
            "project": cost.project,
            "kind": cost.kind,
            "usd": hold.usd,
            "prompt_usd": hold.prompt_usd,
            "stored": hold.is_stored,
            "entry": self.entry and {name: getattr(self.entry, name) for name in _ENTRY_FIELDS},
        }
        return json.dumps(tree, default=datetime.isoformat).encode() + b"\n"

    @classmethod
    def of(cls, tree: dict[str, Any]) -> JournalRecord:
        """Return the record of a parsed line."""
        cost = RequestCost(
            tree["model"],
            None,
            session=tree["session"],
            project=tree["project"],
            kind=tree["kind"],
        )
        hold = RequestHold(
            tree["key"],
            datetime.fromisoformat(tree["at"]),
            cost,
            tree["usd"],
            is_stored=tree["stored"],
            prompt_usd=tree["prompt_usd"],
        )
        entry = tree["entry"]
        if entry is not None:
            entry = Spend(**{**entry, "at": datetime.fromisoformat(entry["at"])})
        return cls(hold, entry)


class SpendJournal:
    """The open requests of one process, in a file of the home; thread-safe.

    If the disk is full, nothing is appended, and requests go on.
    """

    def __init__(self, database: Path, process: str) -> None:
        self._folder, self._prefix = database.parent, f"{database.name}-spend-"
        self._process = process
        self._lock = threading.Lock()
        self._open_lines: dict[str, bytes] = {}
        self._path: Path | None = None
        self._file = -1
        self._size = 0
        self._is_torn = False

    def record(self, record: JournalRecord) -> None:
        """Append the state of a request, which replaces its former state."""
        line = record.line()
        with self._lock:
            self._open_lines[record.hold.key] = line
            self._append(line)

    def remove(self, key: str) -> None:
        """Remove a request that is in the store by now."""
        with self._lock:
            if self._open_lines.pop(key, None) is None:
                return
            if not self._open_lines:
                self._clear()
                return
            self._append(json.dumps({"key": key}).encode() + b"\n")

    def close(self) -> None:
        """Remove the file; if something is still open, leave it to the next process."""
        with self._lock:
            if self._file >= 0:
                if not self._open_lines and self._path is not None:
                    _unlink(self._path)
                os.close(self._file)
            self._file, self._path, self._size, self._is_torn = -1, None, 0, False
            self._open_lines.clear()

    def has_file(self, process: str) -> bool:
        """Return whether a process has left a journal, whose records are exact."""
        return any(self._files(f"{process}-"))

    def adopt(self) -> list[JournalRecord]:
        """Take over the open requests of killed processes, and remove their files."""
        adopted: dict[str, JournalRecord] = {}
        for path in self._files():
            with suppress(OSError):
                adopted |= self._adopt_file(path)
        return list(adopted.values())

    def _files(self, process: str = "") -> list[Path]:
        try:
            paths = sorted(self._folder.iterdir())
        except OSError:
            return []
        return [path for path in paths if path.name.startswith(self._prefix + process)]

    def _adopt_file(self, path: Path) -> dict[str, JournalRecord]:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return {}
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # its owner would still hold it
            records = _parse(file)
            for record in records.values():
                self.record(record)
            if not self._is_torn:
                _unlink(path)
            return records

    def _append(self, line: bytes) -> None:
        try:
            if self._file < 0 or self._size > MAX_BYTES + 2 * self._open_bytes():
                self._begin_file()
            else:
                self._write(line)
        except OSError:
            self._is_torn = True

    def _open_bytes(self) -> int:
        return sum(map(len, self._open_lines.values())) if self._size > MAX_BYTES else 0

    def _begin_file(self) -> None:
        """Start a file with all that is open, and remove the former one."""
        before, former = self._file, self._path
        self._path, self._file = self._create()
        self._size, self._is_torn = 0, False
        self._write(b"".join(self._open_lines.values()))
        if former is not None:
            _unlink(former)
            os.close(before)

    def _create(self) -> tuple[Path, int]:
        """Create a file and lock it before anyone takes it for the file of a killed process."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        for _ in range(_MAX_ATTEMPTS):
            path = self._folder / f"{self._prefix}{self._process}-{next(_numbers)}"
            file = os.open(path, flags, 0o600)
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(path.lstat(), os.fstat(file)):
                    return path, file
            _unlink(path)
            os.close(file)
        msg = "The journal cannot be locked."
        raise OSError(msg)

    def _write(self, lines: bytes) -> None:
        """Write whole lines; one that was cut off by a full disk is ended first."""
        data = b"\n" + lines if self._is_torn else lines
        if os.write(self._file, data) < len(data):
            self._is_torn = True
            return
        self._size, self._is_torn = self._size + len(data), False

    def _clear(self) -> None:
        with suppress(OSError):
            if self._file >= 0:
                os.ftruncate(self._file, 0)
                self._size, self._is_torn = 0, False


def _parse(lines: Iterable[bytes]) -> dict[str, JournalRecord]:
    """Return the open requests of a file; a line that was cut off is no record."""
    records: dict[str, JournalRecord] = {}
    for line in lines:
        with suppress(ValueError, TypeError, KeyError):
            tree = json.loads(line)
            if "at" in tree:
                records[tree["key"]] = JournalRecord.of(tree)
            else:
                records.pop(tree["key"], None)
    return records


def _unlink(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
