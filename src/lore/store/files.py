"""Files and folders of the store: private from the first moment, durable, on a fit disk."""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from pathlib import Path

from lore.errors import StoreError, StoreFull, StoreReadOnly

FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The system's numbers for a disk that takes no more."""

SHARED_FILE_SYSTEMS = (
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "fuse", "fuseblk", "afs",
    "ceph", "glusterfs", "lustre", "vboxsf", "prl_fs", "afpfs", "webdav",
)  # fmt: skip
"""File systems without the shared memory that WAL needs between processes."""


_ESCAPED = re.compile(r"\\([0-7]{3})")


def make_private(path: Path) -> None:
    """Make an empty file that only its owner may read, unless there is one."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileExistsError:
        return
    except OSError as error:
        raise _refused(error, path) from error
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
    sync_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, that only their owner may enter."""
    missing = [f for f in (folder, *folder.parents) if not f.exists()]
    try:
        for each in reversed(missing):
            each.mkdir(mode=0o700, exist_ok=True)
            each.chmod(0o700)
        if not folder.is_dir():
            msg = f"{folder} is a file, not a folder."
            raise StoreError(msg, hint="LORE_HOME names another place.")
    except OSError as error:
        raise _refused(error, folder) from error


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system can."""
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
        point = _ESCAPED.sub(lambda found: chr(int(found[1], 8)), fields[1]).rstrip("/") or "/"
        inside = target == point or target.startswith(point if point == "/" else point + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    name = kind.split(".", 1)[0]
    return kind if name in SHARED_FILE_SYSTEMS else ""


def has_space(path: Path) -> bool:
    """Tell whether the file system of `path` takes another page."""
    probe = path.parent / f".space-{os.getpid()}"
    try:
        probe.write_bytes(b"\0" * 65_536)
    except OSError as error:
        return error.errno not in FULL_DISK
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)
    return True


def full(path: Path) -> StoreFull:
    """Return the error for a disk that takes no more."""
    return StoreFull(
        f"No space left to write {path}; nothing was changed.",
        hint="Free some space; reading goes on meanwhile.",
    )


def _refused(error: OSError, path: Path) -> StoreError:
    """Return Lore's error for a file or folder that the system does not let us make."""
    if error.errno in FULL_DISK:
        return StoreFull(f"No space left to make {path}.", hint="Free some space.")
    return StoreReadOnly(
        f"{path} cannot be made: {error.strerror}.", hint="LORE_HOME names another place."
    )
