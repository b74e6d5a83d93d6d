"""Checkouts: the roots below which the files of one project lie, and paths below them.

A project is worked on in several checkouts, worktrees and homes. The same file has another path in
each of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import PurePosixPath

_ROOT_SHARE = 0.8
"""A directory is the root of a single checkout if this part of the files is below it."""

_REST_SHARE = 0.2
"""Files of no known checkout are looked at if they are this part of all."""

_FEWEST_NAMES = 2
"""Two paths are of one file if at least this many names at their ends agree."""

_FEWEST_FILES = 2
"""A root is known by this many files that another checkout has as well."""

_MOST_ALIKE = 40
"""Files of one name that are compared: 'index.ts' may be anywhere."""

_DEPTH_SHARE = 0.3
"""Of two roots above each other, the deeper counts if it has this part of the other's files."""


def find_roots(tasks: Sequence[Iterable[str]], folder: str = "") -> tuple[str, ...]:
    """Return the roots of the checkouts in which tasks changed files, the deepest first.

    `folder` is where the project is known to lie. Two places in which files of the same name were
    changed are two checkouts, unless one task changed files in both.
    """
    sets = [{plain_path(path) for path in files if is_absolute(path)} for files in tasks]
    everything = set().union(*sets) if sets else set()
    votes = _votes(everything, sets)
    roots = {root for root, files in votes.items() if len(files) >= _FEWEST_FILES}
    roots = {root for root in roots if not _is_shallow(root, roots, votes)}
    if folder and any(path.startswith(f"{folder}/") for path in everything):
        roots.add(folder)
    rest = [{path for path in files if not _is_below(path, roots)} for files in sets]
    if sum(map(len, rest)) >= _REST_SHARE * sum(map(len, sets)) and (single := _common_root(rest)):
        roots.add(single)
    return tuple(sorted(roots, key=lambda root: (-len(root), root)))


def _is_below(path: str, roots: Iterable[str]) -> bool:
    return any(path.startswith(f"{root}/") for root in roots)


def _votes(everything: set[str], sets: Sequence[set[str]]) -> dict[str, set[str]]:
    """Return for each possible root the files below it that another checkout has as well."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for path in sorted(everything):
        by_name[path.rsplit("/", 1)[-1]].append(path)
    seen: dict[tuple[str, str], bool] = {}
    votes: dict[str, set[str]] = defaultdict(set)
    for alike in by_name.values():
        for one, other in combinations(alike[:_MOST_ALIKE], 2):
            end = _common_end(one, other)
            if end.count("/") + 1 < _FEWEST_NAMES:
                continue
            a, b = one[: -len(end) - 1], other[: -len(end) - 1]
            if (a, b) not in seen:
                seen[a, b] = _are_together(a, b, sets)
            if not seen[a, b]:
                votes[a].add(end)
                votes[b].add(end)
    return votes


def _common_end(one: str, other: str) -> str:
    names: list[str] = []
    for a, b in zip(reversed(one.split("/")), reversed(other.split("/")), strict=False):
        if a != b:
            break
        names.append(a)
    return "/".join(reversed(names))


def _are_together(a: str, b: str, sets: Sequence[set[str]]) -> bool:
    """Return whether a task changed files in both places; a worktree may lie in a checkout."""
    if not a or not b:
        return True

    def has_own(files: set[str], place: str, other: str) -> bool:
        is_outer = other.startswith(f"{place}/")
        return any(
            _is_below(path, (place,)) and not (is_outer and _is_below(path, (other,)))
            for path in files
        )

    return any(has_own(files, a, b) and has_own(files, b, a) for files in sets)


def _is_shallow(root: str, roots: set[str], votes: dict[str, set[str]]) -> bool:
    """Return whether a deeper root has enough of the files to be the better one.

    The files of a worktree inside a checkout are not those of the checkout.
    """
    paths = [f"{root}/{end}" for end in votes[root]]
    return any(
        sum(_is_below(path, (deeper,)) for path in paths) >= _DEPTH_SHARE * len(paths)
        for deeper in roots
        if deeper.startswith(f"{root}/")
    )


def _common_root(sets: Sequence[set[str]]) -> str:
    """Return the deepest directory that most changed files are below."""
    counts: Counter[str] = Counter()
    total = 0
    for files in sets:
        total += len(files)
        for path in files:
            counts.update(str(parent) for parent in PurePosixPath(path).parents)
    roots = [name for name, count in counts.items() if count >= _ROOT_SHARE * total]
    return max(roots, key=len, default="").rstrip("/")


def relative_path(path: str, roots: Sequence[str] = ()) -> str:
    """Return a path below the root of its checkout, or its last names."""
    plain = plain_path(path)
    for root in roots:
        if plain.startswith(f"{root}/"):
            return plain[len(root) + 1 :]
    return "/".join(PurePosixPath(plain).parts[-3:]) if is_absolute(plain) else plain


def is_absolute(path: str) -> bool:
    """Return whether a path names its place from the root, on any system."""
    return path.startswith(("/", "~")) or ":" in path[:3]


def plain_path(path: str) -> str:
    """Return a path with slashes."""
    return path.replace("\\", "/")
