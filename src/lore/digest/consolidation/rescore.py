"""Phase rescore: decay the relevance of every fragment; missing files lower its confidence."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lore.digest.consolidation.phase import PhaseRun
from lore.store import consolidation, fragments
from lore.store.consolidation import ProjectFolder
from lore.store.database import Connection

_PATH = re.compile(r"[\w.@~+-]*(?:/[\w.@+-]+)+|[\w@+-]+(?:\.[\w@+-]+)+")

_MAX_FILES = 20_000
"""Files per project that are checked in a cycle: about a second of a slow disk."""


class FileCheck(NamedTuple):
    """Fragments whose files are missing, and those whose files are back."""

    gone: list[int]
    back: list[int]


def check_files(db: Connection) -> FileCheck:
    """Look for the files that fragments name, in the project folders of this machine."""
    gone: set[int] = set()
    folders = {
        one.project_n: (Path(one.path), one)
        for one in consolidation.project_folders(db)
        if _is_local(one)
    }
    was_gone = consolidation.fragments_missing_files(db)
    back: set[int] = set()
    for project_n, (path, folder) in folders.items():
        there = {name: _exists(path / name) for name in _files_inside(folder)}
        absent = [name for name, is_there in there.items() if not is_there]
        candidates = {one.n: one for one in was_gone if one.project_n == project_n}
        for name in absent:
            candidates |= {
                one.n: one for one in consolidation.fragments_naming(db, project_n, name)
            }
        for one in candidates.values():
            existing = [there[name] for name in _paths_in(one.text, folder.path) if name in there]
            (gone if existing and not any(existing) else back).add(one.n)
    missing_before = {one.n for one in was_gone}
    return FileCheck(sorted(gone - missing_before), sorted(back & missing_before))


def _is_local(folder: ProjectFolder) -> bool:
    try:
        return folder.path.startswith("/") and any(Path(folder.path).iterdir())
    except OSError:
        return False


def _exists(path: Path) -> bool:
    """Return whether a file exists; one that cannot be examined counts as existing."""
    try:
        return path.exists()
    except OSError:
        return True


def _files_inside(folder: ProjectFolder) -> list[str]:
    relative = (_relative(name, folder.path) for name in sorted(folder.files))
    return list(dict.fromkeys(name for name in relative if name))[:_MAX_FILES]


def _paths_in(text: str, folder: str) -> Iterator[str]:
    for match in _PATH.findall(text):
        name = _relative(match.rstrip("."), folder)
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


def rescore(run: PhaseRun) -> None:
    """Compute the relevance of all fragments, and the confidence of those about files."""
    with run.database.read() as db:
        checked = check_files(db)

    def fade(db: Connection, _cycle_n: int) -> None:
        consolidation.mark_missing_files(db, checked.gone, checked.back, now=run.now)
        run.count("doubted", consolidation.update_doubt(db, now=run.now))
        run.count("files missing", len(checked.gone))
        run.count("files back", len(checked.back))
        run.count("rescored", fragments.decay_relevance(db, now=run.now))

    run.write(fade)
