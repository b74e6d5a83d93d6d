"""Where the memories of a server are: files in their homes, or rows of a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from lore.errors import InvalidInput, NotFound, SchemaTooNew, StoreDamaged, StoreError
from lore.memory.vector_server import erase_vectors, has_vectors_elsewhere
from lore.records.server_records import Owner, Team
from lore.server.registry import OWNERS_FOLDER, TEAMS_FOLDER, MemoryKind, Registry
from lore.settings import Settings
from lore.store.database import Connection, find_meta, open_database, open_on_server, set_meta

if TYPE_CHECKING:
    from lore.store.postgres.server_database import PostgresDatabase

_MarkState = Literal["", "copying", "switched", "live"]
TEAM_MARK: Final = "team:"
"""Begins the name of a team in the pool; owners have none."""

MEMORY_FILE = "memory.db"

_MARK = "server"
"""The key in the server's own rows that says that a database is this server's."""


_MOVE = "move"
"""The key beside it of what the database notes about the rows and a move."""


@dataclass(frozen=True, slots=True)
class MoveMark:
    """What a database notes about the rows of a server, so that a copy of its folder can see it.

    `copying`: a move with this id copies from or to them, and has not switched; `switched`: it has,
    and is not finished; `live`: the server uses them, and no move is open. An older version left it
    empty.
    """

    state: _MarkState = ""
    move: str = ""

    @classmethod
    def read(cls, db: Connection) -> MoveMark | None:
        """Return the mark of the server whose rows are open, or None if it has none."""
        if find_meta(db, _MARK) is None:
            return None
        state, _, move = (find_meta(db, _MOVE) or "").partition(" ")
        for known in _STATES:
            if state == known:
                return cls(known, move)
        msg = "A newer version of Lore wrote the mark of the database."
        raise SchemaTooNew(msg, hint="Update Lore.")

    def write(self, db: Connection) -> None:
        """Replace the mark of the server whose rows are open."""
        set_meta(db, _MARK, "1")
        set_meta(db, _MOVE, f"{self.state} {self.move}".rstrip())

    def is_of(self, ids: frozenset[str], state: _MarkState) -> bool:
        """Return whether a move with one of the ids has this mark in a state.

        A move that an older version began has an empty id, and its mark no state.
        """
        return self.move in ids and (self.state == state or not self.state)


_STATES: Final[tuple[_MarkState, ...]] = ("", "copying", "switched", "live")
LIVE: Final = MoveMark("live")


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
        mark = self.verify()
        if self.url and mark != LIVE:
            self.mark_rows(LIVE)  # from now on, no copy of this folder takes the rows for leftovers
            self._registry.note_rows()
        self.erase_left_rows()

    def mark_rows(self, mark: MoveMark) -> None:
        """Mark the database as this server's, whether or not its memories are there yet."""
        self._registry.ensure_rows_name()
        with self.open_rows("server", "") as database:
            database.write(mark.write)

    def verify(self) -> MoveMark | None:
        """Refuse another place than the one the memories are in, also another database.

        Return the mark of the database, or None if the memories are no rows.
        """
        self.check()
        if not self._registry.has_rows:
            return None
        mark = self.require_mark()
        if mark.state == "switched":
            raise other_move_error()
        return mark

    def require_mark(self) -> MoveMark:
        """Return the mark of the database; refuse one that is not this server's."""
        return _require(self._find_mark(self._registry.rows_name("server", "")))

    def _find_mark(self, name: str) -> MoveMark | None:
        """Return the mark that a database has under this name, if any."""
        with self._open_named(name) as database, database.read() as db:
            return MoveMark.read(db)

    @contextmanager
    def lock_mark(self, name: str = "") -> Iterator[tuple[Connection, MoveMark]]:
        """Return the mark under a name, the server's by default; nobody else changes it meanwhile.

        Refuse a database that has none.
        """
        name = name or self._registry.rows_name("server", "")
        with self._open_named(name) as database, database.lock() as db:
            yield db, _require(MoveMark.read(db))

    def check(self) -> None:
        """Refuse settings that name another kind of place than the one the memories are in."""
        if self._registry.is_backup:
            msg = "This folder is a backup of a server on PostgreSQL."
            raise InvalidInput(msg, hint="'lore restore BACKUP --data DIR' makes a server of it.")
        if begun := self._registry.move_to:
            msg = f"A move of the memories to {begun} is not finished."
            former = "postgres" if self._registry.has_rows else "files"
            cancel = f" '--to {former}' cancels it." if former != begun else ""
            raise InvalidInput(msg, hint=f"'lore owner move --to {begun}' continues it.{cancel}")
        if self._registry.has_rows and not self.url:
            msg = "The memories of this server are on PostgreSQL."
            raise InvalidInput(msg, hint="Set 'store.url' (LORE_STORE_URL) to that database.")
        if self.url and not self._registry.has_rows and self._has_files():
            msg = "The memories of this server are files, which 'store.url' would leave behind."
            hint = "Unset it (LORE_STORE_URL), or move them: 'lore owner move --to postgres'."
            raise InvalidInput(msg, hint=hint)

    def _has_files(self) -> bool:
        homes = (self._registry.home / kind for kind in (OWNERS_FOLDER, TEAMS_FOLDER))
        return any(True for home in homes for _ in home.glob(f"*/{MEMORY_FILE}"))

    @contextmanager
    def open_rows(self, kind: MemoryKind, id_: str) -> Iterator[PostgresDatabase]:
        """Open the rows of a memory until the block ends, without a memory around them."""
        with self._open_named(self._registry.rows_name(kind, id_)) as database:
            yield database

    @contextmanager
    def _open_named(self, name: str) -> Iterator[PostgresDatabase]:
        database = open_on_server(
            self.url,
            name,
            self._registry.home / "rows",
            busy_timeout_s=self.settings.store_busy_timeout_s,
            connections=self.settings.store_connections,
            cache_mb=self.settings.store_vector_cache_mb,
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

    def erase(self, removed: Owner | Team) -> None:
        """Delete the memory of a removed owner or team, which nobody has open.

        Vectors in another database go first: if that is away, it raises, and all is repeated. If
        the settings do not name it any more, a note stays, and `erase_left_vectors` deletes them.
        """
        kind: MemoryKind = "team" if isinstance(removed, Team) else "owner"
        self.verify()  # else the registry would forget whose rows another database has
        if self.settings.vectors_url:
            erase_vectors(self.settings, removed.id)
        elif self._has_vectors_elsewhere(kind, removed.id):
            self._registry.note_vectors(removed.id)
        if self.url:
            with self.open_rows(kind, removed.id) as database:
                database.erase_rows()
        self._registry.erase_removed(removed)
        self.erase_left_vectors()
        self.erase_left_rows()

    def erase_left_rows(self, *, forgets_others: bool = False) -> bool:
        """Delete the rows that cancelled moves left in this database; return if others are left.

        Their names say nothing in another database, so that its mark is looked for first. Refuse
        rows that a copy of this folder has gone on with, or forget those, and leave them.
        """
        left = self._registry.left_rows()
        if not self.url:
            return bool(left)
        for mark in [one for one in left if self._find_mark(one) is not None]:
            names = left.pop(mark)
            with self.lock_mark(mark) as (_, present):
                is_left = present.is_of(self._registry.left_move_ids(mark), "copying")
                if not is_left and not forgets_others:
                    msg = "The rows that a cancelled move left are used by a copy of this folder."
                    hint = "'lore owner move' with '--forget-left' leaves them to it."
                    raise StoreError(msg, hint=hint)
                for name in names:
                    if is_left and name != mark:
                        self._erase_named(name)
            # The mark goes last: without it, nothing would find the database of a note.
            self._registry.forget_left_rows(mark)
            if is_left:
                self._erase_named(mark)
        return bool(left)

    def _erase_named(self, name: str) -> None:
        with self._open_named(name) as database:
            database.erase_rows()

    def erase_left_vectors(self) -> int:
        """Delete the vectors of memories that were removed while no vector server was set.

        Return of how many memories they are still there.
        """
        left = self._registry.left_vectors()
        if not self.settings.vectors_url:
            return len(left)
        for id_ in left:
            erase_vectors(self.settings, id_)
            self._registry.forget_vectors(id_)
        return 0

    def _has_vectors_elsewhere(self, kind: MemoryKind, id_: str) -> bool:
        if self.url:
            with self.open_rows(kind, id_) as rows:
                if has_vectors_elsewhere(rows):
                    return True
        # One who was removed before a move to rows has a file still.
        registry = self._registry
        folder = registry.team_folder(id_) if kind == "team" else registry.owner_folder(id_)
        if not (folder / MEMORY_FILE).exists():
            return False
        try:
            database = open_database(
                folder / MEMORY_FILE,
                busy_timeout_s=self.settings.store_busy_timeout_s,
                backups=None,
                read_only=True,
            )
            with closing(database):
                return has_vectors_elsewhere(database)
        except (StoreDamaged, SchemaTooNew):
            return True  # nobody can say


def _require(mark: MoveMark | None) -> MoveMark:
    if mark is None:
        msg = "The database of 'store.url' has no rows of this server."
        hint = "Is it the right database? 'lore restore' brings the rows of a backup back."
        raise StoreDamaged(msg, hint=hint)
    return mark


def other_move_error(hint: str = "") -> StoreError:
    """Return the error for rows that a copy of the folder has moved, or moves."""
    msg = "The rows in the database belong to another move: this folder or another is a copy."
    rest = f" {hint}" if hint else ""
    return StoreError(msg, hint=f"Use the folder whose move was finished; nothing was lost.{rest}")
