"""Projects: which repository or folder a conversation took place in, told without running git.

Worktrees and clones of one repository are one project; folders that have nothing to do with
each other never are.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from lore.store import places, sessions
from lore.store.db import Connection
from lore.store.places import Place

_LARGEST_FILE = 1_000_000
"""A configuration of git is a few kilobytes; what is larger is not read."""

_LONGEST_CHAIN = 4
"""A clone of a clone of a local repository is the first one; a ring of them ends here."""

_DEFAULT_PORTS = {"http": "80", "https": "443", "ssh": "22", "git": "9418"}

_SECTION = re.compile(r'^\[\s*(?P<name>[\w.-]+)(?:\s+"(?P<sub>(?:[^"\\]|\\.)*)")?\s*\]')
_URL = re.compile(r"^(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)$", re.DOTALL)
_SHORT_SSH = re.compile(r"^(?:[^@/\\]*@)?(?P<host>[^@:/\\]{2,}|\[[^\]]+\]):(?P<path>[^\\].*)$")
"""'git@host:owner/name'; a host of one letter is a drive."""


@dataclass(slots=True)
class Projects:
    """The projects of folders, each looked up once; `home` itself is none."""

    home: Path | None = None
    _found: dict[str, Place | None] = field(default_factory=dict)

    def find(self, folder: str) -> Place | None:
        """Return the project that a folder belongs to, or None if it belongs to none."""
        if folder not in self._found:
            self._found[folder] = _place_of(folder, self._homes())
        return self._found[folder]

    def find_repository(self, folder: str) -> str:
        """Return a folder if it lies in a repository, or nothing if it is a folder like any."""
        homes = self._homes()
        path = os.path.realpath(folder)
        for above in (path, *map(str, Path(path).parents)):
            if above in homes:
                break
            if _common_folder(Path(above)) is not None:
                return path
        return ""

    def _homes(self) -> frozenset[str]:
        home = str(self.home or Path.home())
        return frozenset(("/", home, os.path.realpath(home)))


def ensure(db: Connection, project: str, place: Place | None, *, now: datetime) -> int | None:
    """Return the number of the project at a place, or else of this path, name or id."""
    if place is not None:
        return places.ensure(db, place, now=now)
    return sessions.ensure_project(db, project, now=now) if project else None


def find(db: Connection, project: str, place: Place | None) -> int | None:
    """Return the number of the project at a place, or of this path, name or id, if it is known."""
    return places.find(db, place) if place is not None else sessions.find_project(db, project)


def _place_of(folder: str, homes: frozenset[str]) -> Place | None:
    if not folder.startswith("/") or "\0" in folder:
        return None
    path = os.path.realpath(folder)
    if path in homes:
        return None
    for above in (path, *map(str, Path(path).parents)):
        if above in homes:
            break
        common = _common_folder(Path(above))
        if common is not None:
            found = _repository(common)
            if found.path not in homes:
                return replace(found, aliases=_others(found.path, above, path, folder))
    gone = not Path(path).is_dir()
    return Place(path, "", Path(path).name, _others(path, folder), gone)


def _others(own: str, *paths: str) -> tuple[str, ...]:
    spelt = (posixpath.normpath(path) for path in paths)
    return tuple(dict.fromkeys(path for path in spelt if path != own))


def _common_folder(folder: Path) -> Path | None:
    """Return the folder in which git keeps what all worktrees of a repository share."""
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
    """Return where the file '.git' of a worktree or submodule points to."""
    told, _, target = _text(link).strip().partition("gitdir:")
    if told or not target.strip():
        return None
    inner = link.parent / target.strip()
    if inner.is_dir():
        return inner
    before, worktrees, _ = str(inner).rpartition("/worktrees/")
    return Path(before) if worktrees else None


def _is_repository(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "refs").is_dir()


def _repository(common: Path, chain: int = 0) -> Place:
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
    return Place(path, local or normalised(url), name)


def _settings_of(text: str) -> dict[str, str]:
    """Return the values of a configuration of git; of several with one name, the first."""
    found: dict[str, str] = {}
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
            found.setdefault(f"{section}.{key.strip().lower()}", _bare(value))
    return found


def _bare(value: str) -> str:
    value = value.strip()
    if value.startswith('"'):
        return value[1:].partition('"')[0]
    return re.split(r"\s[#;]", value, maxsplit=1)[0].strip()


def _remote_of(settings: dict[str, str]) -> str:
    """Return the address of 'origin', or of the only remote there is."""
    if "remote.origin.url" in settings:
        return settings["remote.origin.url"]
    urls = [
        value
        for key, value in settings.items()
        if key.startswith("remote.") and key.endswith(".url")
    ]
    return urls[0] if len(urls) == 1 else ""


def _local_path(url: str, base: str) -> str:
    """Return the path of a remote that is a folder of this machine, or nothing."""
    if url.lower().startswith("file://"):
        return "/" + url[7:].partition("/")[2]
    if _URL.match(url) or _SHORT_SSH.match(url) or not url or re.match(r"^[A-Za-z]:[/\\]", url):
        return ""
    return posixpath.normpath(posixpath.join(base, url))


def normalised(url: str) -> str:
    """Return the one spelling of a remote's address: host and path, no secrets."""
    short = None if _URL.match(url) else _SHORT_SSH.match(url)
    if short:
        return _joined(short["host"], short["path"])
    long = _URL.match(url)
    if not long:
        return url.removesuffix("/").removesuffix(".git")
    place, _, path = long["rest"].partition("/")
    host = place.rpartition("@")[2]
    name, colon, port = host.rpartition(":")
    if colon and port in ("", _DEFAULT_PORTS.get(long["scheme"].lower().removeprefix("git+"))):
        host = name
    return _joined(host, re.split("[?#]", path, maxsplit=1)[0])


def _joined(host: str, path: str) -> str:
    path = re.sub("/+", "/", path).strip("/").removesuffix(".git").rstrip("/")
    return f"{host.lower()}/{path}"


def _text(path: Path) -> str:
    """Return what an ordinary, small file says; nothing for all others."""
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
