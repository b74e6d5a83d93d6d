"""Projects: find the repository or folder of a session, without running git.

Worktrees and clones of one repository are one project; unrelated folders never are.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Iterator
from dataclasses import field, replace
from datetime import datetime
from itertools import takewhile
from pathlib import Path

from lore import local_files
from lore.lazy_dataclass import dataclass
from lore.store import project_rows
from lore.store.database import Connection
from lore.store.project_rows import ProjectLocation
from lore.text.remotes import without_user

_LARGEST_FILE = 1_000_000
"""A git configuration has a few kilobytes; larger files are not read."""

_LONGEST_CHAIN = 4
"""The limit for clones of local clones, which may form a ring."""

_DEFAULT_PORTS = {"http": "80", "https": "443", "ssh": "22", "git": "9418"}

_SECTION = re.compile(r'^\[\s*(?P<name>[\w.-]+)(?:\s+"(?P<sub>(?:[^"\\]|\\.)*)")?\s*\]')
_URL = re.compile(r"^(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)$", re.DOTALL)
_SHORT_SSH = re.compile(r"^(?:[^@/\\]*@)?(?P<host>[^@:/\\]{2,}|\[[^\]]+\]):(?P<path>[^\\].*)$")
"""'git@host:owner/name'; a host of one letter is a drive."""


@dataclass(slots=True)
class ProjectFinder:
    """Finds the projects of folders and caches them; the home folder is no project."""

    home: Path | None = None
    _found: dict[str, ProjectLocation | None] = field(default_factory=dict)

    def find(self, folder: str) -> ProjectLocation | None:
        """Return the project of a folder, or None."""
        if folder not in self._found:
            self._found[folder] = _place_of(folder, self._homes())
        return self._found[folder]

    def find_repository(self, folder: str) -> str:
        """Return a folder if it lies in a repository, else an empty text."""
        if local_files.are_withheld():
            return ""
        path = os.path.realpath(folder)
        above = _folders_above(path, self._homes())
        return path if any(_common_folder(Path(each)) for each in above) else ""

    def _homes(self) -> frozenset[str]:
        home = str(self.home or Path.home())
        return frozenset(("/", home, os.path.realpath(home)))


def ensure_project(
    db: Connection, project: str, place: ProjectLocation | None, *, now: datetime
) -> int | None:
    """Return the number of the project at a place, or of a path, name or id; create it."""
    if place is not None:
        return project_rows.ensure_project_at(db, place, now=now)
    return project_rows.ensure_project(db, project, now=now) if project else None


def find_project_number(db: Connection, project: str, place: ProjectLocation | None) -> int | None:
    """Return the number of the project at a place or of this path, name or id, if it is stored."""
    return (
        project_rows.find_project_at(db, place)
        if place is not None
        else project_rows.find_project(db, project)
    )


def _place_of(folder: str, homes: frozenset[str]) -> ProjectLocation | None:
    if not folder.startswith("/") or "\0" in folder:
        return None
    if local_files.are_withheld():
        path = posixpath.normpath(folder)
        return None if path == "/" else ProjectLocation(path, "", Path(path).name, (), gone=True)
    path = os.path.realpath(folder)
    if path in homes:
        return None
    for above in _folders_above(path, homes):
        common = _common_folder(Path(above))
        if common is not None:
            repository = _repository(common)
            if repository.path not in homes:
                return replace(repository, aliases=_others(repository.path, above, path, folder))
    is_missing = not Path(path).is_dir()
    return ProjectLocation(path, "", Path(path).name, _others(path, folder), is_missing)


def _folders_above(path: str, homes: frozenset[str]) -> Iterator[str]:
    """Yield a folder and those above it, up to a home folder."""
    return takewhile(lambda each: each not in homes, (path, *map(str, Path(path).parents)))


def _others(own: str, *paths: str) -> tuple[str, ...]:
    spelt = (posixpath.normpath(path) for path in paths)
    return tuple(dict.fromkeys(path for path in spelt if path != own))


def _common_folder(folder: Path) -> Path | None:
    """Return the git folder that all worktrees of a repository share."""
    link = folder / ".git"
    if link.is_dir():
        inner: Path | None = link
    elif link.is_file():
        inner = _linked(link)
    else:
        inner = folder if _is_repository(folder) and (folder / "objects").is_dir() else None
    if inner is None:
        return None
    shared = _text(inner / "commondir").strip()
    common = Path(os.path.realpath(inner / shared)) if shared else Path(os.path.realpath(inner))
    return common if _is_repository(common) else None


def _linked(link: Path) -> Path | None:
    """Return the target of the file '.git' in a worktree or submodule."""
    before_key, _, target = _text(link).strip().partition("gitdir:")
    if before_key or not target.strip():
        return None
    inner = link.parent / target.strip()
    if inner.is_dir():
        return inner
    before, worktrees, _ = str(inner).rpartition("/worktrees/")
    return Path(before) if worktrees else None


def _is_repository(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "refs").is_dir()


def _repository(common: Path, chain: int = 0) -> ProjectLocation:
    settings = _settings_of(_text(common / "config"))
    worktree = settings.get("core.worktree", "")
    if worktree:
        path = os.path.realpath(common / worktree)
    else:
        path = str(common.parent if common.name == ".git" else common)
    name = Path(path).name.removesuffix(".git") or path
    url = _remote_of(settings)
    local = _local_path(url, path)
    origin = _common_folder(Path(local)) if local and chain < _LONGEST_CHAIN else None
    if origin is not None:
        return _repository(origin, chain + 1)
    return ProjectLocation(path, local or normalize_remote(url), name)


def _settings_of(text: str) -> dict[str, str]:
    """Parse a git configuration; the first of several values wins."""
    values: dict[str, str] = {}
    section = ""
    for raw in text.splitlines():
        line = raw.strip()
        header = _SECTION.match(line)
        if header:
            below = header["sub"]
            section = header["name"].lower() + (f".{below}" if below is not None else "")
            line = line[header.end() :].strip()
        key, equals, value = line.partition("=")
        if equals and line[0] not in "#;":
            values.setdefault(f"{section}.{key.strip().lower()}", _bare(value))
    return values


def _bare(value: str) -> str:
    value = value.strip()
    if value.startswith('"'):
        return value[1:].partition('"')[0]
    return re.split(r"\s[#;]", value, maxsplit=1)[0].strip()


def _remote_of(settings: dict[str, str]) -> str:
    """Return the address of 'origin', or of the only remote."""
    if "remote.origin.url" in settings:
        return settings["remote.origin.url"]
    urls = [
        value
        for key, value in settings.items()
        if key.startswith("remote.") and key.endswith(".url")
    ]
    return urls[0] if len(urls) == 1 else ""


def _local_path(url: str, base: str) -> str:
    """Return the path of a remote that is a local folder, else an empty text."""
    if url.lower().startswith("file://"):
        return "/" + url[7:].partition("/")[2]
    if _URL.match(url) or _SHORT_SSH.match(url) or not url or re.match(r"^[A-Za-z]:[/\\]", url):
        return ""
    return posixpath.normpath(posixpath.join(base, url))


def normalize_remote(url: str) -> str:
    """Return the canonical form of a remote's address: host and path, without credentials."""
    short = None if _URL.match(url) else _SHORT_SSH.match(url)
    if short:
        return _joined(short["host"], short["path"])
    long = _URL.match(without_user(url))
    if not long:
        return url.removesuffix("/").removesuffix(".git")
    host, _, path = long["rest"].partition("/")
    name, colon, port = host.rpartition(":")
    if colon and port in ("", _DEFAULT_PORTS.get(long["scheme"].lower().removeprefix("git+"))):
        host = name
    return _joined(host, re.split("[?#]", path, maxsplit=1)[0])


def _joined(host: str, path: str) -> str:
    path = re.sub("/+", "/", path).strip("/").removesuffix(".git").rstrip("/")
    return f"{host.lower()}/{path}"


def _text(path: Path) -> str:
    """Return the text of a small regular file, else an empty text."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        return os.read(handle, _LARGEST_FILE).decode("utf-8", "replace").removeprefix("\ufeff")
    finally:
        os.close(handle)
