"""Files that other processes see either whole or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

PART = ".part-"


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write that takes its name only once it is complete and on the disk."""
    make_private_folder(path.parent)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=PART)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as opened:
            yield opened
            opened.flush()
            os.fsync(handle)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def make_private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone."""
    for missing in reversed([folder, *folder.parents]):
        if not missing.exists():
            missing.mkdir(mode=0o700, exist_ok=True)
