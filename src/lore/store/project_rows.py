"""Projects: the repository or folder of a session, and the entries of its shared page."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from lore import clock
from lore.errors import InvalidInput, NotFound
from lore.lazy_dataclass import dataclass
from lore.records import UNASKED_TRUST, Project
from lore.store import forgotten_names
from lore.store.codec import unpack_record
from lore.store.fragments import VISIBLE_FRAGMENT
from lore.store.overview import is_known_empty
from lore.store.sql_connection import Connection, among, int_array
from lore.store.sync_shapes import make_redacted_name, project_identity
from lore.text.name_limit import check_name, is_short, shorten_name

_FORGOTTEN_NAME = "(forgotten)"


@dataclass(frozen=True, slots=True)
class ProjectLocation:
    """A repository or folder: its path, its remote, and other folders that belong to it.

    `gone` means that the folder no longer exists, so that only its path identifies it.
    """

    path: str
    remote: str = ""
    name: str = ""
    aliases: tuple[str, ...] = ()
    gone: bool = False


def ensure_project_at(db: Connection, place: ProjectLocation, *, now: datetime) -> int:
    """Return the number of the project at a location, created if it is new.

    Repositories with the same remote are one project. A path that had another remote before is
    another project now. A forgotten location is stored without its names, and of a name that is
    too long its beginning and digest are stored: a file of git may have any remote.
    """
    n = find_project_at(db, place)
    place = _shorten_names(_hide_forgotten(db, place))
    if n is None:
        n = _claim_redacted(db, place)
    if n is None:
        taken = db.find("SELECT 1 FROM projects WHERE path = :path", path=place.path)
        path = shorten_name(f"{place.path} ({place.remote})") if taken else place.path
        n = _add_project(db, path, place.remote, place.name or place.path, now)
    elif place.remote:
        # The remote of a project that was known only by its path.
        sql = "UPDATE projects SET remote = :to WHERE n = :n AND path = :path AND remote = ''"
        db.run(sql, to=place.remote, path=place.path, n=n)
    _set_aliases(db, n, place)
    return n


def _claim_redacted(db: Connection, place: ProjectLocation) -> int | None:
    """Find the project that another machine brought without the secrets in its path or remote.

    It gets the names it has here, so that it stays one project.
    """
    path = make_redacted_name(project_identity("", place.path))
    remote = place.remote and make_redacted_name(project_identity(place.remote, place.path))
    n = _find_at(db, replace(place, path=path, remote=remote))
    if n is None:
        return None
    sql = "UPDATE projects SET remote = :to WHERE n = :n AND remote = :redacted AND remote <> ''"
    db.run(sql, to=place.remote, redacted=remote, n=n)
    sql = (
        "UPDATE projects SET path = :to, name = :name WHERE n = :n AND path = :redacted"
        " AND NOT EXISTS (SELECT 1 FROM projects WHERE path = :to)"
    )
    db.run(sql, to=place.path, name=place.name or place.path, redacted=path, n=n)
    return n


def _add_project(db: Connection, path: str, remote: str, name: str, now: datetime) -> int:
    id_, at = clock.new_id(now), clock.to_us(now)
    return db.insert_numbered(
        "projects", id=id_, path=path, remote=remote, name=name, created_at=at
    )


def find_project_at(db: Connection, place: ProjectLocation) -> int | None:
    """Return the number of the project at a location, or None.

    Stores from before the limit on names have long ones as they are.
    """
    place = _hide_forgotten(db, place)
    n, short = _find_at(db, place), _shorten_names(place)
    return n if n is not None or short == place else _find_at(db, short)


def _find_at(db: Connection, place: ProjectLocation) -> int | None:
    if place.remote:
        same = db.value("SELECT n FROM projects WHERE remote = :remote", remote=place.remote)
        if same:
            return int(same)
    row = db.find("SELECT n, remote FROM projects WHERE path = :path", path=place.path)
    if row and (not place.remote or not row[1]):
        return int(row[0])
    if place.gone:
        return find_project_alias(db, place.path)
    return None


def _hide_forgotten(db: Connection, place: ProjectLocation) -> ProjectLocation:
    short = _shorten_names(place)
    if not forgotten_names.find(db, (place.path, place.remote, short.path, short.remote)):
        return place
    path, remote = (
        name and forgotten_names.make_forgotten_name(name) for name in (short.path, short.remote)
    )
    return ProjectLocation(path, remote, _FORGOTTEN_NAME, gone=place.gone)


def _shorten_names(place: ProjectLocation) -> ProjectLocation:
    return replace(place, path=shorten_name(place.path), remote=shorten_name(place.remote))


def find_project_alias(db: Connection, path: str) -> int | None:
    """Return the number of the project that a folder last belonged to, or None."""
    return db.number("SELECT project_n FROM aliases WHERE id = :path", path=path)


def _set_aliases(db: Connection, n: int, place: ProjectLocation) -> None:
    own = db.value("SELECT path FROM projects WHERE n = :n", n=n)
    paths = dict.fromkeys((place.path, *place.aliases))
    forgotten = forgotten_names.find(db, paths)
    for path in paths:
        if path == own:
            db.run("DELETE FROM aliases WHERE id = :path AND project_n <> :n", path=path, n=n)
        elif not place.gone and path not in forgotten and is_short(path):
            db.run(
                "INSERT INTO aliases (id, project_n) VALUES (:path, :n) ON CONFLICT (id)"
                " DO UPDATE SET project_n = excluded.project_n WHERE aliases.project_n <> :n",
                path=path,
                n=n,
            )


class SharedRow(NamedTuple):
    """An entry of a shared page as last written or read; one that is left out is never written."""

    entry: str
    fragment_n: int
    digest: str
    left_out: bool


def shared_entries(db: Connection, project_n: int) -> list[SharedRow]:
    """Return the entries of a project's shared page."""
    sql = (
        "SELECT s.entry, s.fragment_n, s.digest, s.left_out FROM shared s"
        " JOIN items i ON i.n = s.fragment_n WHERE i.project_n = :n ORDER BY s.fragment_n"
    )
    return [unpack_record(SharedRow, row) for row in db.rows(sql, n=project_n)]


def all_shared_entries(db: Connection) -> dict[str, SharedRow]:
    """Return the entries of all shared pages."""
    rows = db.rows("SELECT entry, fragment_n, digest, left_out FROM shared")
    return {row[0]: unpack_record(SharedRow, row) for row in rows}


def shareable_fragments(db: Connection, project_n: int, *, least_confidence: float) -> list[int]:
    """Return the fragments of a project that may be shared, oldest first."""
    sql = (
        "SELECT f.n FROM fragments f JOIN items i ON i.n = f.n"
        f" WHERE i.project_n = :n AND {VISIBLE_FRAGMENT} AND f.kind <> 'episode'"
        " AND f.trust >= :trust AND f.confidence >= :least ORDER BY i.created_at, f.n"
    )
    return db.column(sql, n=project_n, trust=UNASKED_TRUST, least=least_confidence)


def entries_of_fragments(db: Connection, ns: Sequence[int]) -> set[str]:
    """Return the entries of fragments on shared pages."""
    sql = f"SELECT entry FROM shared WHERE {among('fragment_n', 'ns')}"
    return set(db.column(sql, ns=int_array(ns)))


def put_shared_entries(db: Connection, entries: Iterable[SharedRow]) -> None:
    """Store entries as they are on the page now."""
    for entry in entries:
        values = entry._asdict() | {"left_out": int(entry.left_out)}
        db.upsert("shared", ("entry",), **values)


def remove_shared_entries(db: Connection, entries: Iterable[str]) -> None:
    """Delete entries that are no longer on the page."""
    for entry in entries:
        db.run("DELETE FROM shared WHERE entry = :entry", entry=entry)


def ensure_project(
    db: Connection, path: str, *, now: datetime, remote: str = "", name: str = ""
) -> int:
    """Return the number of the project with this path, name or id, created if it is new."""
    path = _normalize_path(path)
    existing = find_project(db, path)
    if existing is not None:
        return existing
    if forgotten_names.find(db, [path]):
        return _add_project(db, forgotten_names.make_forgotten_name(path), "", _FORGOTTEN_NAME, now)
    check_name(path, "A project")
    check_name(remote, "The remote of a project")
    name = name or path.rstrip("/").rsplit("/", 1)[-1] or path
    redacted = _claim_redacted(db, ProjectLocation(path, "", name))
    if redacted is not None:
        return redacted
    return _add_project(db, path, remote, name, now)


def _normalize_path(path: str) -> str:
    """Return an absolute path normalized, and a name or id unchanged."""
    return posixpath.normpath(path) if path.startswith("/") else path


def find_project(db: Connection, path_name_or_id: str) -> int | None:
    """Return the number of the project with this path or id, otherwise with this name."""
    path_name_or_id = _normalize_path(path_name_or_id)
    short = shorten_name(path_name_or_id)
    exact = find_project_alias(db, path_name_or_id) or db.number(
        "SELECT n FROM projects WHERE path IN (:w, :short, :forgotten) OR id = :w",
        w=path_name_or_id,
        short=short,
        forgotten=forgotten_names.make_forgotten_name(short),
    )
    if exact:
        return exact
    rows = db.rows("SELECT n FROM projects WHERE name = :w LIMIT 2", w=path_name_or_id)
    if len(rows) > 1:
        msg = f"Several projects are called '{path_name_or_id}'."
        raise InvalidInput(msg, hint="Give the path instead.")
    return int(rows[0][0]) if rows else None


def get_project(db: Connection, path_name_or_id: str) -> int:
    """Return the number of a project, or raise NotFound."""
    n = find_project(db, path_name_or_id)
    if n is None:
        msg = f"No project is called '{path_name_or_id}'."
        raise NotFound(msg, hint="Run 'lore stats' to list the projects.")
    return n


def names_of_projects(db: Connection, ns: Sequence[int]) -> list[str]:
    """Return the paths, remotes and other folders of projects."""
    sql = (
        f"SELECT path FROM projects WHERE {among('n', 'ns')}"
        f" UNION SELECT remote FROM projects WHERE {among('n', 'ns')}"
        f" UNION SELECT id FROM aliases WHERE {among('project_n', 'ns')}"
    )
    return db.column(sql, ns=int_array(ns))


def all_projects(db: Connection) -> dict[int, Project]:
    """Return all projects by number."""
    rows = db.rows("SELECT n, id, path, remote, name, created_at FROM projects ORDER BY path")
    return {row[0]: unpack_record(Project, row[1:]) for row in rows}


def names_by_id(db: Connection) -> dict[str, str]:
    """Return the names of all projects by their ids."""
    if is_known_empty(db, "projects"):
        return {}
    return dict(db.once("project names", lambda: db.rows("SELECT id, name FROM projects")))
