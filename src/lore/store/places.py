"""Places: the project that a folder belongs to, as the store knows it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lore import clock
from lore.store.sqlite import Connection


@dataclass(frozen=True, slots=True)
class Place:
    """A repository or folder: its path, where it came from, and folders that belong to it.

    `gone` says that the folder is no more, so that only its path tells what it was.
    """

    path: str
    remote: str = ""
    name: str = ""
    aliases: tuple[str, ...] = ()
    gone: bool = False


def ensure(db: Connection, place: Place, *, now: datetime) -> int:
    """Return the number of the project at a place, made if it is new.

    Repositories with one remote are one project. A path that had another remote before is
    another project now.
    """
    n = find(db, place)
    if n is None:
        taken = db.find("SELECT 1 FROM projects WHERE path = :path", path=place.path)
        n = db.value(
            "INSERT INTO projects (id, path, remote, name, created_at)"
            " VALUES (:id, :path, :remote, :name, :at) RETURNING n",
            id=clock.new_id(now),
            path=f"{place.path} ({place.remote})" if taken else place.path,
            remote=place.remote,
            name=place.name or place.path,
            at=clock.to_us(now),
        )
    else:
        _enter_remote(db, n, place)
    _enter_aliases(db, int(n), place)
    return int(n)


def find(db: Connection, place: Place) -> int | None:
    """Return the number of the project at a place, or None if that is new."""
    if place.remote:
        same = db.value("SELECT n FROM projects WHERE remote = :remote", remote=place.remote)
        if same:
            return int(same)
    found = db.find("SELECT n, remote FROM projects WHERE path = :path", path=place.path)
    if found and (not place.remote or not found[1]):
        return int(found[0])
    if place.gone:
        return find_alias(db, place.path)
    return None


def find_alias(db: Connection, path: str) -> int | None:
    """Return the number of the project that a folder was last seen to belong to."""
    found = db.value("SELECT project_n FROM aliases WHERE id = :path", path=path)
    return None if found is None else int(found)


def _enter_remote(db: Connection, n: int, place: Place) -> None:
    """Write down where a project came from that was known by its path alone."""
    if place.remote:
        db.run(
            "UPDATE projects SET remote = :to WHERE n = :n AND path = :path AND remote = ''",
            to=place.remote,
            path=place.path,
            n=n,
        )


def _enter_aliases(db: Connection, n: int, place: Place) -> None:
    own = db.value("SELECT path FROM projects WHERE n = :n", n=n)
    for path in dict.fromkeys((place.path, *place.aliases)):
        if path == own:
            db.run("DELETE FROM aliases WHERE id = :path AND project_n <> :n", path=path, n=n)
        elif not place.gone:
            db.run(
                "INSERT INTO aliases (id, project_n) VALUES (:path, :n) ON CONFLICT (id)"
                " DO UPDATE SET project_n = excluded.project_n WHERE project_n <> :n",
                path=path,
                n=n,
            )
