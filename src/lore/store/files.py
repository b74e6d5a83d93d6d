"""Files and folders of the store: private from creation, durable, on a suitable file system."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from lore.errors import StoreError, StoreFull, StoreReadOnly

FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The error numbers of a full disk."""

SHARED_FILE_SYSTEMS = (
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "fuse", "fuseblk", "afs",
    "ceph", "glusterfs", "lustre", "vboxsf", "prl_fs", "afpfs", "webdav",
)  # fmt: skip
"""File systems without the shared memory that WAL needs between processes."""


_ESCAPED = re.compile(r"\\([0-7]{3})")


def make_private(path: Path) -> None:
    """Create an empty file that only its owner may read, unless it exists."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileExistsError:
        return
    except OSError as error:
        raise _creation_error(error, path) from error
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
    sync_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, accessible only to their owner."""
    missing = [f for f in (folder, *folder.parents) if not f.exists()]
    try:
        for each in reversed(missing):
            each.mkdir(mode=0o700, exist_ok=True)
            each.chmod(0o700)
        if not folder.is_dir():
            msg = f"{folder} is a file, not a folder."
            raise StoreError(msg, hint="Set LORE_HOME to another folder.")
    except OSError as error:
        raise _creation_error(error, folder) from error


def write_whole(target: Path, write: Callable[[BinaryIO], int]) -> int:
    """Write a private file whole, in place of what stood there; return what `write` returns."""
    part = target.with_name(f"{target.name}.part-{os.getpid()}")
    try:
        with part.open("wb") as stream:
            part.chmod(0o600)
            count = write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(target)
    except OSError as error:
        msg = f"{target} could not be written: {error.strerror}."
        raise StoreError(msg) from error
    finally:
        part.unlink(missing_ok=True)
    return count


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that new names in it are durable, where the system supports it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def shared_file_system(path: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """Return the name of the network or shared file system that holds `path`, or ''."""
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    target = os.path.realpath(path)
    best, kind = "", ""
    for line in lines:
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = _ESCAPED.sub(lambda match: chr(int(match[1], 8)), fields[1]).rstrip("/") or "/"
        inside = target == point or target.startswith(point if point == "/" else point + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    name = kind.split(".", 1)[0]
    return kind if name in SHARED_FILE_SYSTEMS else ""


def has_space(path: Path) -> bool:
    """Return whether the file system of `path` has room for another page."""
    probe = path.parent / f".space-{os.getpid()}"
    try:
        probe.write_bytes(b"\0" * 65_536)
    except OSError as error:
        return error.errno not in FULL_DISK
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)
    return True


def disk_full_error(path: Path) -> StoreFull:
    """Return the error for a full disk."""
    return StoreFull(
        f"No space left to write {path}; nothing was changed.",
        hint="Free some space; reading still works.",
    )


def _creation_error(error: OSError, path: Path) -> StoreError:
    if error.errno in FULL_DISK:
        return StoreFull(f"No space left to create {path}.", hint="Free some space.")
    return StoreReadOnly(
        f"{path} cannot be created: {error.strerror}.", hint="Set LORE_HOME to another folder."
    )
