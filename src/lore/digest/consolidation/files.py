"""Files: which of those that fragments speak of are gone from their project's folder.

A path counts if a session of the project has read or written the file, so that it was there
once; a fragment is about missing files if it names such paths and none of them is left.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lore.store import missing
from lore.store.db import Connection
from lore.store.missing import Folder

_PATH = re.compile(r"[\w.@~+-]*(?:/[\w.@+-]+)+|[\w@+-]+(?:\.[\w@+-]+)+")

_MOST_LOOKED_FOR = 20_000
"""Files of one project that are looked for in a cycle: about a second of a slow disk."""


class Checked(NamedTuple):
    """What looking for files found: fragments whose files are gone, and those with theirs back."""

    gone: list[int]
    back: list[int]


def check(db: Connection) -> Checked:
    """Look for the files that fragments name, in the folders that are on this machine."""
    gone: set[int] = set()
    folders = {one.project_n: (Path(one.path), one) for one in missing.folders(db) if _is_here(one)}
    was_gone = missing.marked(db)
    back: set[int] = set()
    for project_n, (path, folder) in folders.items():
        there = {name: _is_there(path / name) for name in _inside(folder)}
        absent = [name for name, is_there in there.items() if not is_there]
        candidates = {one.n: one for one in was_gone if one.project_n == project_n}
        for name in absent:
            candidates |= {one.n: one for one in missing.naming(db, project_n, name)}
        for one in candidates.values():
            named = [there[name] for name in _named(one.text, folder.path) if name in there]
            (gone if named and not any(named) else back).add(one.n)
    known = {one.n for one in was_gone}
    return Checked(sorted(gone - known), sorted(back & known))


def _is_here(folder: Folder) -> bool:
    """Tell whether a project's folder is on this machine, with anything in it."""
    try:
        return folder.path.startswith("/") and any(Path(folder.path).iterdir())
    except OSError:
        return False


def _is_there(path: Path) -> bool:
    """Tell whether a file exists; of one that cannot be looked at nothing is said against."""
    try:
        return path.exists()
    except OSError:
        return True


def _inside(folder: Folder) -> list[str]:
    """Return the files of a folder that sessions named, relative to it."""
    found = (_relative(name, folder.path) for name in sorted(folder.files))
    return list(dict.fromkeys(name for name in found if name))[:_MOST_LOOKED_FOR]


def _named(text: str, folder: str) -> Iterator[str]:
    for found in _PATH.findall(text):
        name = _relative(found.rstrip("."), folder)
        if name:
            yield name


def _relative(name: str, folder: str) -> str:
    """Return a path relative to a folder; '' if it leads out of it."""
    root = folder.rstrip("/") + "/"
    if name.startswith(root):
        name = name[len(root) :]
    name = posixpath.normpath(name) if name else ""
    leads_out = name in ("", ".", "..") or name.startswith(("/", "../", "~")) or "\0" in name
    return "" if leads_out else name
