"""Exclusion: folders whose sessions are never captured, from the setting `capture.exclude`."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePath


def covers_folder(patterns: Sequence[str], agent: str, folder: str) -> bool:
    """Return whether patterns cover the sessions of an agent in a folder.

    A pattern is a glob of a folder, which covers all below it, or of its name ('secret-*'). With an
    agent before it ('codex:~/code/*') it applies to that agent only.
    """
    if not patterns or not folder:
        return False
    path = PurePath(os.path.normpath(folder))
    return any(_covers(pattern, agent, path) for pattern in patterns)


def folder_patterns(folder: Path) -> tuple[str, ...]:
    """Return patterns of a folder itself, as an agent that runs there may name it."""
    names = (str(folder.absolute()), os.path.realpath(folder))
    return tuple(glob.escape(name) for name in dict.fromkeys(names))


def _covers(pattern: str, agent: str, path: PurePath) -> bool:
    named, separator, glob = pattern.partition(":")
    if separator and "/" not in named:
        if not fnmatchcase(agent, named):
            return False
        pattern = glob
    if "/" not in pattern and pattern != "~":
        return any(fnmatchcase(part, pattern) for part in path.parts)
    glob = os.path.normpath(Path(pattern).expanduser())
    return any(fnmatchcase(str(each), glob) for each in (path, *path.parents))
