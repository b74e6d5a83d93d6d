"""Git state of a folder: branch, last commit, and files with uncommitted changes."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_S, MOST_FILES = 5.0, 50
"""The status of a large repository takes a second; more files are a checkout gone wrong."""

_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
"""A repository's own configuration must not make git start a program."""

_ENVIRONMENT = {"PATH": os.defpath, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
"""Looking must not lock the repository that an agent works in."""


@dataclass(frozen=True, slots=True)
class GitState:
    """Branch, last commit with its subject, and changed files; empty outside of a repository."""

    branch: str = ""
    commit: str = ""
    subject: str = ""
    uncommitted: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Return the state in one line."""
        if not self.commit and not self.branch:
            return ""
        place = f"branch {self.branch or '(detached)'}"
        last = f", commit {self.commit} {self.subject}".rstrip() if self.commit else ", no commit"
        files = f", {len(self.uncommitted)} files uncommitted" if self.uncommitted else ", clean"
        return f"{place}{last}{files}"


def read_git_state(folder: str) -> GitState:
    """Return the git state of a folder; an empty one without git or a repository."""
    git = shutil.which("git")
    if not git or not folder or not Path(folder).is_dir():
        return GitState()
    branch = _run(git, folder, "branch", "--show-current")
    status = _run(git, folder, "status", "--porcelain=v1", "-z", "--untracked-files=normal")
    if branch is None or status is None:
        return GitState()
    log = (_run(git, folder, "log", "-1", "--format=%h%x00%s") or "").strip("\n")
    commit, _, subject = log.partition("\0")
    return GitState(branch.strip(), commit, subject[:120], _changed_files(status))


def _run(git: str, folder: str, *words: str) -> str | None:
    """Return what git prints; None if it fails."""
    try:
        done = subprocess.run(  # noqa: S603 - git, as found in the path, with fixed words
            [git, *_SAFE, "-C", folder, *words],
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
            env=_ENVIRONMENT,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def _changed_files(status: str) -> tuple[str, ...]:
    files: list[str] = []
    entries = iter(status.split("\0"))
    for entry in entries:
        if len(entry) > 3:
            files.append(entry[3:])
            if entry[0] in "RC":
                next(entries, "")  # the former name
    return tuple(files[:MOST_FILES])
