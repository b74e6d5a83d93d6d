"""Key files: the secrets of a home, each made once, whole or not at all, for its owner only."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def ensure(path: Path, *, make: Callable[[], bytes], is_sound: Callable[[bytes], bool]) -> bytes:
    """Return the key in a file, made if there is none or what is there cannot be one."""
    return _read(path, is_sound) or _make(path, make, is_sound)


def _read(path: Path, is_sound: Callable[[bytes], bool]) -> bytes:
    with suppress(FileNotFoundError):
        key = path.read_bytes()
        return key if is_sound(key) else b""
    return b""


def _make(path: Path, make: Callable[[], bytes], is_sound: Callable[[bytes], bool]) -> bytes:
    """Make a key that appears whole or not at all; of two at once, the first one stands."""
    if not path.parent.exists():
        path.parent.mkdir(mode=0o700, parents=True)
        path.parent.chmod(0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as opened:
            os.fchmod(handle, 0o600)
            opened.write(make())
            opened.flush()
            os.fsync(handle)
        if path.exists() and not _read(path, is_sound):
            Path(name).replace(path)
        else:
            with suppress(FileExistsError):
                os.link(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
    return path.read_bytes()
