"""Disks that fail: a VFS that loses power or breaks at a chosen operation."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import apsw

SECTOR = 512

Files = dict[str, bytearray]


class PowerCut(Exception):
    """The machine has no power: nothing more reaches the disk."""


class Operation(NamedTuple):
    """One thing done to a file, in the order it was asked for."""

    kind: Literal["write", "truncate", "sync", "delete"]
    path: str
    offset: int = 0
    data: bytes = b""


class Disk:
    """What was asked of a disk, and what happens at the operation that fails."""

    def __init__(self) -> None:
        self.log: list[Operation] = []
        self.operations = 0
        self.fails_at: int | None = None
        self.fault: Callable[[], BaseException] = PowerCut
        self.keeps_failing = True

    def do(self, operation: Operation) -> None:
        """Write an operation down, or fail in its place."""
        self.operations += 1
        if self.fails_at is not None and (
            self.operations == self.fails_at
            or (self.keeps_failing and self.operations > self.fails_at)
        ):
            raise self.fault()
        self.log.append(operation)


class UnreliableVFS(apsw.VFS):
    """The system's own VFS, with a disk that can fail in between."""

    def __init__(self, name: str, disk: Disk) -> None:
        self.name = name
        self.disk = disk
        super().__init__(name, "unix", maxpathname=0)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _UnreliableFile(self.disk, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self.disk.do(Operation("delete", filename))
        super().xDelete(filename, syncdir)


class _UnreliableFile(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        self.path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__("unix", name, flags)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        self.disk.do(Operation("write", self.path, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self.disk.do(Operation("truncate", self.path, newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        # The log alone says what is durable: a real sync would only cost time.
        self.disk.do(Operation("sync", self.path))


def what_is_left(before: Files, log: list[Operation], rng: random.Random) -> Files:
    """Return the files after a power cut: all that was synced, and some of what was not.

    Of unsynced writes any subset arrives, in any order for want of one, some torn at a sector.
    """
    synced: dict[str, int] = {}
    for i, operation in enumerate(log):
        if operation.kind == "sync":
            synced[operation.path] = i
    survives = rng.choice((0.0, 0.5, 0.9, 1.0))
    tears = rng.choice((0.0, 0.3))
    files = {path: bytearray(content) for path, content in before.items()}
    for i, operation in enumerate(log):
        loose = i > synced.get(operation.path, -1) and operation.kind != "delete"
        if loose and rng.random() >= survives:
            continue
        if loose and operation.kind == "write" and rng.random() < tears:
            whole = len(operation.data) // SECTOR
            torn = operation.data[: SECTOR * rng.randint(0, whole)]
            operation = operation._replace(data=torn)
        apply(files, operation)
    return files


def apply(files: Files, operation: Operation) -> None:
    if operation.kind == "delete":
        files.pop(operation.path, None)
        return
    content = files.setdefault(operation.path, bytearray())
    if operation.kind == "write":
        end = operation.offset + len(operation.data)
        content.extend(b"\0" * (end - len(content)))
        content[operation.offset : end] = operation.data
    elif operation.kind == "truncate":
        del content[operation.offset :]


def load(folder: Path) -> Files:
    return {str(path): bytearray(path.read_bytes()) for path in folder.iterdir()}


def save(files: Files, folder: Path) -> None:
    """Put files in the place of those in a folder, as a machine finds them after a restart."""
    for path in folder.iterdir():
        path.unlink()
    for name, content in files.items():
        if not name.endswith("-shm"):
            Path(name).write_bytes(content)
