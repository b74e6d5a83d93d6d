"""Phases prune_edges and prune_fragments: decay edges, and hide and remove faded fragments."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

from lore import local_files
from lore.digest.consolidation.phase import PhaseRun, label, live_fragments
from lore.store import consolidation, fragments, graph, hard_delete, reversible_changes
from lore.store.consolidation import ProjectFolder, PruneLimit
from lore.store.database import Connection
from lore.store.hard_delete import ForgetSelection


def prune_edges(run: PhaseRun) -> None:
    """Decay associative edges by the days since the last decay; hierarchical ones never."""

    def fade(db: Connection, cycle_n: int) -> None:
        faded, dropped = reversible_changes.decay_edges(db, cycle_n, now=run.now)
        run.count("faded", faded)
        run.count("dropped", dropped)

    run.write(fade)


UNREAD_LIMIT = PruneLimit(0.02, timedelta(days=60))
ANY_LIMIT = PruneLimit(0.01, timedelta(days=90))
ROOT_LIMIT = PruneLimit(0.02, timedelta(days=180))
"""When children that were never read, any children, and roots without children are pruned."""

_PRUNE_BATCH = 200


def prune_fragments(run: PhaseRun) -> None:
    """Remove what was hidden a day ago, then hide what has faded."""
    _remove(run)
    with run.database.read() as db:
        faded = consolidation.prunable_fragments(
            db, unread=UNREAD_LIMIT, any_=ANY_LIMIT, root=ROOT_LIMIT, now=run.now
        )
    for piece in run.batches(faded, _PRUNE_BATCH):
        run.write(partial(_hide, ns=piece, run=run))


def _remove(run: PhaseRun) -> None:
    """Remove hidden fragments whose cycles can no longer be undone."""
    with run.database.read() as db:
        past = consolidation.cycles_past_undo(db, running=run.cycle_n, now=run.now)
        hidden = {
            step.fragment_n: step.at
            for n in past
            for step in consolidation.steps_of_cycle(db, n, "hidden")
        }
        hidden_ns = sorted(n for n in hidden if n is not None)
        deleted = fragments.deletion_times(db, hidden_ns)
        doomed = [n for n in hidden_ns if deleted.get(n) == hidden[n]]

    def remove(db: Connection, _cycle_n: int) -> None:
        if doomed:
            ids = hard_delete.forget(db, ForgetSelection(tuple(doomed)), now=run.now)
            run.count("removed", len(ids))
        consolidation.drop_steps(db, past)

    if past:
        run.write(remove)
    if doomed and not run.dry_run:
        if run.context.forget_vectors is not None:
            run.context.forget_vectors(doomed)
        run.database.erase_traces()


def _hide(db: Connection, cycle_n: int, *, ns: Sequence[int], run: PhaseRun) -> None:
    recorder = consolidation.step_recorder(cycle_n)
    by_number = live_fragments(db, ns)
    for n in ns:
        parent = graph.find_parent(db, n)
        children = graph.children(db, n, deleted=True)
        if n not in by_number or (children and parent is None):
            continue
        for child in children if parent is not None else ():
            reversible_changes.reparent(db, child, parent, now=run.now, recorder=recorder)
        reversible_changes.hide_fragment(db, n, now=run.now, recorder=recorder)
        run.count("pruned")
        run.count("children moved", len(children))
        run.report_line(label(by_number[n]))
    consolidation.request_overviews(db, ns)


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
    back: set[int] = set()
    was_gone = consolidation.fragments_missing_files(db)
    for folder in filter(_is_local, consolidation.project_folders(db)):
        relative = (_relative(name, folder.path) for name in sorted(folder.files))
        inside = list(dict.fromkeys(filter(None, relative)))[:_MAX_FILES]
        there = {name: _exists(Path(folder.path, name)) for name in inside}
        candidates = {one.n: one for one in was_gone if one.project_n == folder.project_n}
        for name in (name for name in inside if not there[name]):
            naming = consolidation.fragments_naming(db, folder.project_n, name)
            candidates |= {one.n: one for one in naming}
        for one in candidates.values():
            paths = (_relative(name.rstrip("."), folder.path) for name in _PATH.findall(one.text))
            existing = [there[path] for path in paths if path in there]
            (gone if existing and not any(existing) else back).add(one.n)
    missing_before = {one.n for one in was_gone}
    return FileCheck(sorted(gone - missing_before), sorted(back & missing_before))


def _is_local(folder: ProjectFolder) -> bool:
    if local_files.are_withheld():
        return False
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
