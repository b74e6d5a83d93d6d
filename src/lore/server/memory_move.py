"""Moves the memories of a server from files to rows of PostgreSQL, or back.

Each memory is copied, read back and compared before the next one. Only when all are equal, the
registry names the new place, and only then the former copies are set aside: a file that was written
meanwhile is copied again, while rows, which only the stopped server writes, are not compared once
more. A move that was interrupted continues with the memory that it was at; until it is finished,
the server is refused. Until the registry names the new place, a move to the former one cancels it.

A folder may be copied while its memories move. So the database has a mark with the id of the move
and its state; rows are erased and loaded only while mark and registry agree. At the switch the
registry first notes that it begins, the mark then says that it happened, and the registry follows:
a move that is killed between the two can only be finished.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from lore import __version__, clock
from lore.config_files import make_private_folder
from lore.daemon import daemon_lock
from lore.errors import InvalidInput, LoreError, StoreError, StoreFull, StoreUnreachable
from lore.server.memory_store import (
    LIVE,
    MEMORY_FILE,
    MemoryStore,
    MoveMark,
    other_move_error,
)
from lore.server.registry import (
    ERASED_NOTE,
    MOVE_ID_NOTE,
    MOVE_NOTE,
    MOVED_NOTE,
    NEXT_ID_NOTE,
    STAMP_NOTE,
    SWITCH_NOTE,
    MemoryKind,
    Registry,
)
from lore.settings import Settings
from lore.store import files, maintenance, sqlite
from lore.store.database import Connection, Database, companion_files, open_database
from lore.store.row_lines import NameShortener, RowTally

MovePlace = Literal["postgres", "files"]

BACKUPS_FOLDER = "backups"
"""The folder of a memory's automatic backups, which forgetting reaches."""

_INDEX_FOLDER = f"{Path(MEMORY_FILE).stem}.vectors"
_PART_FILE = f"{MEMORY_FILE}.moving"
_ID_BYTES = 16
_BUSY_S = 30.0

Report = Callable[[str, int, int], None]
"""Called before each memory with its name, its place in the list, and how many there are."""


@dataclass(frozen=True, slots=True)
class MovedMemory:
    """A memory that was moved, or would be, and how many rows it has."""

    kind: MemoryKind
    name: str
    id: str
    rows: int
    former: str = ""
    """The file with the former copy; empty if it was deleted or there was none."""

    shortened: int = 0
    """How many names are shortened in the copy, since PostgreSQL cannot index them."""


@dataclass(frozen=True, slots=True)
class MoveResult:
    """Where the memories are now; with `is_done`, the former copies were set aside or deleted."""

    to: MovePlace
    memories: tuple[MovedMemory, ...]
    is_done: bool = True
    was_there: bool = False
    """Whether the memories had been moved before."""

    is_cancelled: bool = False
    """Whether a move to the other place was cancelled."""

    has_leftover_rows: bool = False
    """Whether a cancelled move left rows in a database, which was not set or did not answer."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A memory of the registry, and what the move notes about its copy."""

    kind: MemoryKind
    id: str
    name: str
    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / MEMORY_FILE

    @property
    def part(self) -> Path:
        return self.folder / _PART_FILE

    @property
    def note(self) -> str:
        """The key in the registry under which a finished copy is noted."""
        return f"{MOVED_NOTE}{self.kind}/{self.id}"

    @contextmanager
    def named_in_errors(self, hint: str = "") -> Iterator[None]:
        """Say in an error of the block which memory it is about, and how to go on."""
        try:
            yield
        except LoreError as error:
            error.args = (f"The memory of {self.kind} '{self.name}' ({self.id[:12]}): {error}",)
            error.hint = error.hint or hint
            raise

    def require_alone(self) -> None:
        """Refuse a memory that a daemon of its own serves."""
        if (holder := daemon_lock.find_holder(self.folder)) is not None:
            raise daemon_lock.already_running_error(self.folder, holder)

    def delete_copies(self, *, with_file: bool) -> None:
        """Delete what a move to files wrote; with the file, if the memory is still rows."""
        for path in (self.part, *((self.file,) if with_file else ())):
            for one in (path, *companion_files(path)):
                one.unlink(missing_ok=True)
        files.sync_folder(self.folder)


@dataclass(frozen=True, slots=True)
class _Copy:
    """What is noted about a finished copy: its rows, their digest, and names that are shorter."""

    rows: int = 0
    digest: str = ""
    shortened: int = 0

    @classmethod
    def parse(cls, note: str) -> _Copy:
        """Return what a note says; an empty copy for none."""
        rows, digest, shortened = (*note.split(" "), "", "")[:3] if note else ("0", "", "")
        return cls(int(rows), digest, int(shortened or 0))

    def __str__(self) -> str:
        """Return the note."""
        return f"{self.rows} {self.digest} {self.shortened}"


_NO_ROWS = _Copy(0, RowTally().digest)


@dataclass(frozen=True, slots=True)
class _Source:
    """A memory that is copied: its dump, and the connection to its file that nobody else has."""

    dump: Callable[[], Iterator[bytes]]
    connection: Connection | None = None
    shortens: bool = True

    def read(self) -> tuple[Iterator[bytes], NameShortener]:
        """Return the lines to be copied, and what counts the names that it shortens in them."""
        shortener, lines = NameShortener(), self.dump()
        return (shortener.shorten(lines) if self.shortens else lines), shortener

    def count(self) -> _Copy:
        """Count the rows as they would be copied."""
        lines, shortener = self.read()
        tally = RowTally.of(lines)
        return _Copy(tally.rows, tally.digest, shortener.count)


def move_memories(
    home: Path,
    settings: Settings,
    to: MovePlace,
    *,
    delete_former: bool = False,
    forget_left: bool = False,
    dry_run: bool = False,
    on_memory: Report = lambda _name, _number, _all: None,
) -> MoveResult:
    """Move every memory of a server, which must not run, to another kind of place.

    The former copy of each stays as a file in its folder of backups, where forgetting reaches it,
    unless `delete_former`. With `forget_left`, copies that cancelled moves left in a database that
    is gone for good are no longer looked for. A dry run only counts.
    """
    with Registry.open(home, create=False) as registry:
        move = _Move(registry, settings, to, on_memory)
        with _locked(home):
            move.check(forget_left=forget_left)
            if dry_run:
                return move.preview()
            if forget_left:
                move.forget_left()
            return move.run(delete_former=delete_former)


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    """Refuse a home whose server runs, and keep it from starting."""
    lock = daemon_lock.take_lock(home, now=clock.now(), version=__version__)
    try:
        yield
    finally:
        lock.release()


class _Move:
    """One move, with what the registry notes about it."""

    def __init__(
        self, registry: Registry, settings: Settings, to: MovePlace, on_memory: Report
    ) -> None:
        self._registry = registry
        self._store = MemoryStore(registry, settings)
        self._to = to
        self._on_memory = on_memory

    def check(self, *, forget_left: bool = False) -> None:
        """Refuse a move without a database, one of a backup, and one against an interrupted one."""
        may_have_switched = bool(self._registry.find_note(SWITCH_NOTE)) and self._to == "postgres"
        is_nothing_moved = self._cancels and not may_have_switched
        is_nothing_moved |= forget_left and self._is_there and not self._registry.move_to
        if not self._store.url and not is_nothing_moved:
            msg = "A move needs the address of the database."
            raise InvalidInput(msg, hint="Set 'store.url' (LORE_STORE_URL); 'files' needs it too.")
        if self._registry.is_backup:
            msg = "This folder is a backup of a server on PostgreSQL."
            raise InvalidInput(msg, hint="'lore restore BACKUP --data DIR' makes a server of it.")
        begun = self._registry.move_to
        if begun and begun != self._to and not self._cancels:
            raise self._interrupted_error()
        if self._cancels:
            self._check_cancelled(may_have_switched=may_have_switched)
        elif begun and not self._registry.find_note(ERASED_NOTE):
            self._check_continued()
        elif self._registry.has_rows:
            self._store.verify()

    def _interrupted_error(self) -> InvalidInput:
        begun = self._registry.move_to
        msg = f"A move to {begun} was interrupted."
        return InvalidInput(msg, hint=f"Finish it first: 'lore owner move --to {begun}'.")

    def _check_cancelled(self, *, may_have_switched: bool) -> None:
        """Refuse to cancel a move that the database says to have switched, here or in a copy."""
        if not self._store.url:
            return
        try:
            mark = self._store.require_mark()
        except StoreUnreachable:
            if may_have_switched:
                raise  # the rows may be on their way out
            return
        if self._is_in_switch(mark):
            raise self._interrupted_error()
        # A move to files only reads rows until it switches.
        reads_only = self._to == "postgres" and mark.state != "switched"
        if not reads_only and not mark.is_of(self._registry.move_ids, "copying"):
            raise self._other_move_error()

    def _check_continued(self) -> None:
        """Refuse to continue a move that the database does not know, or knows to be elsewhere."""
        mark = self._store.require_mark()
        if self._is_in_switch(mark) or self._is_own(mark):
            return
        # Killed after the rows became live, a move has only its last note to write.
        if not (self._is_there and self._to == "postgres" and mark == LIVE):
            raise self._other_move_error()

    def _is_in_switch(self, mark: MoveMark) -> bool:
        """Return whether the database has switched, which the registry was about to note."""
        registry = self._registry
        is_noted = bool(registry.find_note(SWITCH_NOTE)) and not registry.has_move_switched
        return is_noted and mark.state == "switched" and mark.move in registry.move_ids

    def _is_own(self, mark: MoveMark) -> bool:
        """Return whether the mark of the database and the registry agree about the move."""
        ids, has_switched = self._registry.move_ids, self._registry.has_move_switched
        if mark == LIVE:  # an older version, which leaves marks as they are, has moved rows away
            return has_switched and "" in ids and self._registry.move_to == "files"
        return mark.is_of(ids, "switched" if has_switched else "copying")

    def _other_move_error(self) -> StoreError:
        """Return the error for rows that a copy of the folder has moved, or moves."""
        has_files_here = self._registry.move_to == "postgres" and not self._registry.has_rows
        hint = "With 'store.url' unset (LORE_STORE_URL), '--to files' cancels the move of this one."
        return other_move_error(hint if has_files_here else "")

    @contextmanager
    def _locked_mark(self) -> Iterator[tuple[Connection, MoveMark]]:
        """Lock the mark of the database until the block ends; refuse that of another move.

        A copy of the folder cannot continue, cancel or switch the move meanwhile.
        """
        with self._store.lock_mark() as (db, mark):
            if not self._is_own(mark):
                raise self._other_move_error()
            yield db, mark

    @property
    def _is_there(self) -> bool:
        """Whether the registry names the new place already."""
        return self._registry.has_rows == (self._to == "postgres")

    @property
    def _cancels(self) -> bool:
        """Whether this is the way back from a move that has not switched."""
        return self._registry.move_to not in ("", self._to) and self._is_there

    def preview(self) -> MoveResult:
        """Count the rows of all memories, and change nothing."""
        if self._cancels:
            return MoveResult(self._to, (), is_done=False, is_cancelled=True)
        if self._is_there and not self._registry.move_to:
            return MoveResult(self._to, (), is_done=False, was_there=True)
        counted = []
        for place in self._each():
            with place.named_in_errors():
                place.require_alone()
                copy = self._count(place)
            counted.append(
                MovedMemory(place.kind, place.name, place.id, copy.rows, shortened=copy.shortened)
            )
        return MoveResult(self._to, tuple(counted), is_done=False)

    def run(self, *, delete_former: bool) -> MoveResult:
        """Copy and compare all memories, name the new place, and set the former copies aside."""
        if self._cancels:
            return self._cancel()
        has_leftover_rows = self._erase_leftover_rows()
        if self._is_there and not self._registry.move_to:
            return MoveResult(self._to, (), was_there=True, has_leftover_rows=has_leftover_rows)
        if not self._registry.move_to:
            self._begin()
        elif not self._is_there and self._is_in_switch(self._store.require_mark()):
            self._registry.switch_rows(has_rows=self._to == "postgres")
        elif not self._is_there:
            self._take_over()
        if not self._is_there:
            hint = f"Repeat the command to go on; '--to {self._from}' cancels the move."
            for place in self._each():
                with place.named_in_errors(hint):
                    place.require_alone()
                    if not self._is_copied(place):
                        self._copy(place)
            self._switch()
        moved = [self._finish(place, delete_former=delete_former) for place in self._places()]
        if self._to == "files":
            self._erase_rest()
        else:
            self._make_live("switched")
        self._registry.end_move()
        return MoveResult(self._to, tuple(moved), has_leftover_rows=has_leftover_rows)

    def forget_left(self) -> None:
        """Erase what cancelled moves left, and look no longer for what cannot be reached."""
        self._erase_leftover_rows(forgets_others=True)
        for mark in self._registry.left_rows():
            self._registry.forget_left_rows(mark)

    def _erase_leftover_rows(self, *, forgets_others: bool = False) -> bool:
        """Delete the rows that cancelled moves left; return whether there still are any."""
        try:
            return self._store.erase_left_rows(forgets_others=forgets_others)
        except StoreUnreachable:
            return True

    def _begin(self) -> None:
        """Note that a move began; rows get names that no rows of a database have."""
        if self._to == "postgres":
            self._registry.renew_rows()
        id_ = secrets.token_hex(_ID_BYTES)
        self._store.mark_rows(MoveMark("copying", id_))
        stamp = clock.now().strftime("%Y%m%dT%H%M%S")
        self._registry.set_notes({MOVE_NOTE: self._to, STAMP_NOTE: stamp, MOVE_ID_NOTE: id_})

    def _take_over(self) -> None:
        """Give an interrupted move another id, so that only one of two copies of it goes on."""
        id_ = secrets.token_hex(_ID_BYTES)
        with self._locked_mark() as (db, mark):
            self._registry.set_notes({MOVE_ID_NOTE: mark.move, NEXT_ID_NOTE: id_})
            MoveMark("copying", id_).write(db)
        self._registry.set_notes({MOVE_ID_NOTE: id_, NEXT_ID_NOTE: "", SWITCH_NOTE: ""})

    def _switch(self) -> None:
        """Name the new place in the database and in the registry."""
        self._registry.set_notes({SWITCH_NOTE: "1"})
        with self._locked_mark() as (db, _):
            MoveMark("switched", self._registry.find_note(MOVE_ID_NOTE)).write(db)
        self._registry.switch_rows(has_rows=self._to == "postgres")

    def _make_live(self, state: Literal["copying", "switched"]) -> None:
        """Note in the database that the move is no longer open and the server uses its rows."""
        with self._store.lock_mark() as (db, mark):
            if mark.is_of(self._registry.move_ids, state):
                LIVE.write(db)

    def _cancel(self) -> MoveResult:
        """Delete the copies of a move that has not switched, and forget it."""
        self._registry.forget_copies()  # else a move that goes on would take them for complete
        has_leftover_rows = False
        with _disk_errors():
            for place in self._places():
                place.delete_copies(with_file=self._to == "postgres")
        if self._to == "files":
            has_leftover_rows = not self._erase_copies()
        elif self._store.url:
            with suppress(StoreUnreachable):  # then the server does it when it starts
                self._make_live("copying")
        self._registry.end_move(leaves_rows=has_leftover_rows)
        if self._to == "files" and not has_leftover_rows:
            self._erase_mark()
        return MoveResult(self._to, (), is_cancelled=True, has_leftover_rows=has_leftover_rows)

    def _erase_copies(self) -> bool:
        """Delete the rows that were copied; return whether the database answered."""
        if not self._store.url:
            return False
        try:
            self._take_over()
            for place in self._places():
                self._erase(place.kind, place.id)
            self._erase_removed()
        except StoreUnreachable:
            return False
        return True

    def _erase_rest(self) -> None:
        """Delete the rows of those who were removed, and those of the server itself."""
        if not self._registry.find_note(ERASED_NOTE):
            self._erase_removed()
            self._registry.set_notes({ERASED_NOTE: "1"})
        self._erase_mark()

    def _erase_removed(self) -> None:
        for owner in self._registry.removed_owners():
            self._erase("owner", owner.id)
        for team in self._registry.removed_teams():
            self._erase("team", team.id)

    def _erase(self, kind: MemoryKind, id_: str) -> None:
        """Delete the rows of a memory; refuse those of another move."""
        with self._locked_mark(), self._store.open_rows(kind, id_) as database:
            database.erase_rows()

    def _erase_mark(self) -> None:
        """Delete the mark, after all rows: without it, nobody would find them."""
        with self._store.open_rows("server", "") as database:
            database.erase_rows()

    def _places(self) -> list[_Place]:
        registry = self._registry
        owners = (
            _Place("owner", one.id, one.name, registry.owner_folder(one.id))
            for one in registry.list_owners()
        )
        teams = (
            _Place("team", one.id, one.name, registry.team_folder(one.id))
            for one in registry.list_teams()
        )
        return [*owners, *teams]

    def _each(self) -> Iterator[_Place]:
        places = self._places()
        for number, place in enumerate(places, 1):
            self._on_memory(place.name, number, len(places))
            yield place

    @contextmanager
    def _open_source(self, place: _Place, *, read_only: bool = False) -> Iterator[_Source | None]:
        """Open a memory where it is now; None if it has none yet.

        A file that is not only read must be open nowhere else, and stays so until the end.
        """
        if self._to == "files":
            with self._store.open_rows(place.kind, place.id) as rows:
                yield _Source(partial(rows.dump_rows, portable=True), shortens=False)
        elif not place.file.exists():
            yield None
        elif read_only:
            with closing(_open_file(place.file, read_only=True)) as database:
                yield _Source(database.dump_rows)
        else:
            _open_file(place.file).close()  # its tables must be up to date
            with sqlite.open_alone(place.file) as connection:
                yield _Source(partial(sqlite.dump_rows, connection), connection)

    def _count(self, place: _Place) -> _Copy:
        """Count the rows of a memory where it is now, and change nothing."""
        with self._open_source(place, read_only=True) as source:
            return _NO_ROWS if source is None else source.count()

    def _noted(self, place: _Place) -> _Copy:
        return _Copy.parse(self._registry.find_note(place.note))

    def _is_copied(self, place: _Place) -> bool:
        """Return whether a memory was copied before, and has not changed since."""
        digest = self._noted(place).digest
        return bool(digest) and self._count(place).digest == digest

    def _copy(self, place: _Place) -> None:
        """Copy a memory to its new place."""
        with _disk_errors(), self._open_source(place) as source:
            if source is None:
                self._registry.set_notes({place.note: str(_NO_ROWS)})
            else:
                self._copy_source(place, source)

    def _copy_source(self, place: _Place, source: _Source) -> None:
        """Copy a memory, read it back and compare; note what was copied."""
        tally = RowTally()
        lines, shortener = source.read()
        load = self._load_rows if self._to == "postgres" else _load_file
        if differing := tally.differences(load(place, tally.watch(lines))):
            msg = f"The copy differs in {', '.join(differing)}."
            hint = f"Please report this. 'lore owner move --to {self._from}' cancels the move."
            raise StoreError(msg, hint=hint)
        copy = _Copy(tally.rows, tally.digest, shortener.count)
        self._registry.set_notes({place.note: str(copy)})

    def _load_rows(self, place: _Place, lines: Iterator[bytes]) -> RowTally:
        with self._store.open_rows(place.kind, place.id) as database:
            with self._locked_mark():
                database.erase_rows()  # of an attempt that was interrupted
                database.load_rows(lines)
            return RowTally.of(database.dump_rows(portable=True))

    def _finish(self, place: _Place, *, delete_former: bool) -> MovedMemory:
        """Set the former copy of a memory aside, or delete it."""
        with place.named_in_errors(), _disk_errors():
            former = self._set_aside(place, delete_former=delete_former)
        copy = self._noted(place)
        return MovedMemory(
            place.kind, place.name, place.id, copy.rows, str(former or ""), copy.shortened
        )

    def _set_aside(self, place: _Place, *, delete_former: bool) -> Path | None:
        former = place.folder / BACKUPS_FOLDER / f"before-move-to-{self._to}-{self._stamp}.db"
        if not delete_former:
            make_private_folder(former.parent)
        if self._to == "postgres":
            self._remove_file(place, None if delete_former else former)
            _remove_index(place.folder / _INDEX_FOLDER)
        else:
            if place.file.exists() and not former.exists() and not delete_former:
                with closing(_open_file(place.file)) as database:
                    database.copy_to(former)
            if not self._registry.find_note(ERASED_NOTE):
                self._erase(place.kind, place.id)
        return former if former.exists() else None

    def _remove_file(self, place: _Place, target: Path | None) -> None:
        """Rename the file of a memory, or delete it; copy it again if it was written meanwhile."""
        with self._open_source(place) as source:
            if source is None or source.connection is None:
                return
            if source.count().digest != self._noted(place).digest:
                self._copy_source(place, source)
            sqlite.checkpoint(source.connection)
            if target is None:
                place.file.unlink()
            else:
                place.file.replace(target)
                files.sync_folder(target.parent)
        for companion in companion_files(place.file):
            companion.unlink(missing_ok=True)
        files.sync_folder(place.folder)

    @property
    def _from(self) -> MovePlace:
        return "files" if self._to == "postgres" else "postgres"

    @property
    def _stamp(self) -> str:
        """A name for the former copies that is the same after an interruption."""
        return self._registry.find_note(STAMP_NOTE)


def _open_file(path: Path, *, read_only: bool = False) -> Database:
    database = open_database(
        path, busy_timeout_s=_BUSY_S, backups=path.parent / BACKUPS_FOLDER, read_only=read_only
    )
    if database.read_only and not read_only:
        database.close()
        msg = f"{path} cannot be written or is damaged."
        raise StoreError(msg, hint="Look at its folder and its permissions; nothing was switched.")
    return database


def _load_file(place: _Place, lines: Iterator[bytes]) -> RowTally:
    """Load rows into a new file, which gets its name when it is complete."""
    make_private_folder(place.folder)
    for leftover in (place.part, *companion_files(place.part)):
        leftover.unlink(missing_ok=True)
    with closing(open_database(place.part, busy_timeout_s=_BUSY_S, backups=None)) as database:
        if not maintenance.load_file(database, lines):
            tally = RowTally()
        else:
            tally = RowTally.of(database.dump_rows())
            database.checkpoint()
    if tally.rows:
        place.part.replace(place.file)
    for leftover in (place.part, *companion_files(place.part)):
        leftover.unlink(missing_ok=True)
    files.sync_folder(place.folder)
    return tally


def _remove_index(folder: Path) -> None:
    """Delete the index of a memory's vectors, which forgetting would not reach any more."""
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
    files.sync_folder(folder.parent)


@contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        msg = f"The move stopped: {error.strerror or error}. Nothing is lost."
        kind = StoreFull if error.errno in files.FULL_DISK else StoreError
        raise kind(msg, hint="Run the same command again to continue.") from error
