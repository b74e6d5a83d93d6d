"""Where the memories of a server are: files in their homes, or rows of a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lore.errors import InvalidInput, NotFound, StoreDamaged
from lore.memory.vector_server import erase_vectors
from lore.records.server_records import Owner, Team
from lore.server.registry import OWNERS_FOLDER, TEAMS_FOLDER, MemoryKind, Registry
from lore.settings import Settings
from lore.store.database import find_meta, open_on_server, set_meta

if TYPE_CHECKING:
    from lore.store.postgres.server_database import PostgresDatabase

TEAM_MARK: Final = "team:"
"""Begins the name of a team in the pool; owners have none."""

MEMORY_FILE = "memory.db"

_MARK = "server"
"""The key in the server's own rows that says that a database is this server's."""


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    """Where the memory of an owner or a team is: a home, and the name of its rows, if any."""

    folder: Path
    rows_name: str


class MemoryStore:
    """The memories of a server by the settings; `claim` makes sure that they are the right ones."""

    def __init__(self, registry: Registry, settings: Settings) -> None:
        self._registry = registry
        self.settings = settings
        self.url = settings.store_url

    def claim(self) -> None:
        """Refuse another place than the one the memories are in; mark a database that is new.

        Everybody would find an empty memory there, and two places would then have a part each.
        """
        self.verify()
        if self.url and not self._registry.has_rows:
            self._registry.ensure_rows_name()
            with self.open_rows("server", "") as database:
                database.write(lambda db: set_meta(db, _MARK, "1"))
            self._registry.note_rows()

    def verify(self) -> None:
        """Refuse another place than the one the memories are in, also another database."""
        self.check()
        if not self._registry.has_rows:
            return
        with self.open_rows("server", "") as database, database.read() as db:
            is_marked = find_meta(db, _MARK) is not None
        if not is_marked:
            msg = "The database of 'store.url' has no rows of this server."
            hint = "Is it the right database? 'lore restore' brings the rows of a backup back."
            raise StoreDamaged(msg, hint=hint)

    def check(self) -> None:
        """Refuse settings that name another kind of place than the one the memories are in."""
        if self._registry.is_backup:
            msg = "This folder is a backup of a server on PostgreSQL."
            raise InvalidInput(msg, hint="'lore restore BACKUP --data DIR' makes a server of it.")
        if self._registry.has_rows and not self.url:
            msg = "The memories of this server are on PostgreSQL."
            raise InvalidInput(msg, hint="Set 'store.url' (LORE_STORE_URL) to that database.")
        if self.url and not self._registry.has_rows and self._has_files():
            msg = "The memories of this server are files, which 'store.url' would leave behind."
            hint = "Unset it (LORE_STORE_URL), or name a new folder for a server on PostgreSQL."
            raise InvalidInput(msg, hint=hint)

    def _has_files(self) -> bool:
        homes = (self._registry.home / kind for kind in (OWNERS_FOLDER, TEAMS_FOLDER))
        return any(True for home in homes for _ in home.glob(f"*/{MEMORY_FILE}"))

    @contextmanager
    def open_rows(self, kind: MemoryKind, id_: str) -> Iterator[PostgresDatabase]:
        """Open the rows of a memory until the block ends, without a memory around them."""
        database = open_on_server(
            self.url,
            self._registry.rows_name(kind, id_),
            self._registry.home / "rows",
            busy_timeout_s=self.settings.store_busy_timeout_s,
            connections=self.settings.store_connections,
            create=False,
        )
        with closing(database):
            yield database

    def find(self, name: str) -> MemoryPlace:
        """Return where the memory of an owner's id is, or of a team's id after `TEAM_MARK`.

        Raise if there is no such owner or team: a request in flight brings no removed one back.
        """
        is_team, id_ = name.startswith(TEAM_MARK), name.removeprefix(TEAM_MARK)
        if is_team and self._registry.find_team(id_) is None:
            msg = "There is no such team."
            raise NotFound(msg)
        if not is_team:
            self._registry.check_owner(id_)
        folder = self._registry.team_folder(id_) if is_team else self._registry.owner_folder(id_)
        rows = self._registry.rows_name("team" if is_team else "owner", id_) if self.url else ""
        return MemoryPlace(folder, rows)

    def erase_owner(self, owner: Owner) -> None:
        """Delete the memory of a removed owner, which nobody has open.

        Vectors in another database go first: if that is away, it raises, and all is repeated.
        """
        erase_vectors(self.settings, owner.id)
        self._erase_rows("owner", owner.id)
        self._registry.erase_removed(owner)

    def erase_team(self, team: Team) -> None:
        """Delete the memory of a removed team, which nobody has open."""
        erase_vectors(self.settings, team.id)
        self._erase_rows("team", team.id)
        self._registry.erase_team(team)

    def _erase_rows(self, kind: MemoryKind, id_: str) -> None:
        self.verify()  # else the registry would forget whose rows another database has
        if self.url:
            with self.open_rows(kind, id_) as database:
                database.erase_rows()
