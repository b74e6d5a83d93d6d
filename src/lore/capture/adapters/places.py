"""Places: finding the files of an agent, regular ones only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from lore import clock
from lore.capture.adapters import fields


def files(folder: Path, ending: str, *, beginning: str = "") -> Iterator[Path]:
    """Return the regular files below a folder, by the ends of their names; links lead nowhere."""
    if folder.is_symlink():
        return
    for place, below, names in os.walk(folder, followlinks=False):
        below.sort()
        for name in sorted(names):
            path = Path(place, name)
            if name.endswith(ending) and name.startswith(beginning) and is_regular(path):
                yield path


def is_regular(path: Path) -> bool:
    """Tell whether a path is a file of its own: no link, no pipe, no folder."""
    try:
        return path.is_file() and not path.is_symlink()
    except OSError:
        return False


def modified(path: Path) -> datetime:
    """Return when a file was last written, as a time for what has none of its own."""
    try:
        return fields.moment(path.stat().st_mtime) or clock.now()
    except OSError:
        return clock.now()
