"""Git state of a folder: branch and last commit, from plain files.

Git itself is never run: the configuration of a repository can make it start any program.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from lore import local_files
from lore.text.regex import compile_lazy

_MOST_HEAD, _MOST_PACKED = 4_096, 16_000_000
"""Bytes that are read: a reference has one line, and a large repository 100,000 packed ones."""

_SHORT_COMMIT = 12
"""Digits of a commit that are unique in every repository."""

_COMMIT = compile_lazy(r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")
_BRANCH = compile_lazy(r"^ref: refs/heads/(?P<name>[\w@#%+=,-][\w@#%+=,./-]{0,99})$")
"""Git allows more characters in a name, but a name with them could pass for a sentence."""

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class GitState:
    """Branch and last commit; empty outside of a repository."""

    branch: str = ""
    commit: str = ""

    @property
    def text(self) -> str:
        """Return the state in one line."""
        if not self.commit and not self.branch:
            return ""
        last = f", commit {self.commit}" if self.commit else ", no commit"
        return f"branch {self.branch or '(detached)'}{last}"


def read_git_state(folder: str) -> GitState:
    """Return the git state of a folder; an empty one outside of a repository."""
    if not folder.startswith("/") or "\0" in folder or local_files.are_withheld():
        return GitState()
    place = Path(os.path.realpath(folder))
    for above in (place, *place.parents):
        inner = _git_folder(above)
        if inner is not None:
            return _read_head(inner)
    return GitState()


def _read_head(inner: Path) -> GitState:
    head = _read(inner, "HEAD").strip()
    if _COMMIT.match(head):
        return GitState(commit=head[:_SHORT_COMMIT])
    match = _BRANCH.match(head)
    names = match["name"].split("/") if match else []
    if match is None or any(not name or name.startswith(".") for name in names):
        return GitState()
    shared = inner.parent.parent if inner.parent.name == "worktrees" else inner
    return GitState(match["name"], _find_commit(shared, f"refs/heads/{match['name']}"))


def _find_commit(shared: Path, reference: str) -> str:
    loose = _read(shared, reference).strip()
    if _COMMIT.match(loose):
        return loose[:_SHORT_COMMIT]
    for line in _read(shared, "packed-refs", _MOST_PACKED).splitlines():
        commit, _, name = line.partition(" ")
        if name == reference and _COMMIT.match(commit):
            return commit[:_SHORT_COMMIT]
    return ""


def _git_folder(folder: Path) -> Path | None:
    """Return the git folder of a checkout; links that leave the repository are not followed."""
    link = folder / ".git"
    try:
        mode = link.lstat().st_mode
    except OSError:
        return None
    if stat.S_ISDIR(mode):
        return link
    key, _, target = _read(folder, ".git").strip().partition("gitdir: ")
    if key or not target or "\0" in target:
        return None
    inner = Path(os.path.realpath(folder / target))
    return inner if _belongs_to(inner, link) else None


def _belongs_to(inner: Path, link: Path) -> bool:
    """Return whether a git folder is that of a worktree or submodule with this '.git' file."""
    if inner.parent.name == "worktrees":
        back = _read(inner, "gitdir").strip()
        return bool(back) and os.path.realpath(inner / back) == str(link)
    return any(inner.is_relative_to(above / ".git/modules") for above in link.parent.parents)


def _read(folder: Path, name: str, most: int = _MOST_HEAD) -> str:
    """Return the text of a small regular file below a folder, without following links in it."""
    try:
        handle = os.open(folder, _OPEN | os.O_DIRECTORY)
    except (OSError, ValueError):
        return ""
    try:
        *above, last = name.split("/")
        for step in above:
            handle = _step(handle, step, os.O_DIRECTORY)
        handle = _step(handle, last)
        is_small = stat.S_ISREG(os.fstat(handle).st_mode) and os.fstat(handle).st_size <= most
        return os.read(handle, most).decode("utf-8", "replace") if is_small else ""
    except (OSError, ValueError):
        return ""
    finally:
        os.close(handle)


def _step(parent: int, name: str, flags: int = 0) -> int:
    """Open an entry of an open folder, and close the folder."""
    handle = os.open(name, _OPEN | flags, dir_fd=parent)
    os.close(parent)
    return handle
