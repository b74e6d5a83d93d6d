"""Maintenance: backup and restore, integrity checks, index rebuilds, statistics, daily clean-up."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lore import clock
from lore.errors import (
    InvalidInput,
    NotFound,
    SchemaTooNew,
    StoreDamaged,
    StoreError,
)
from lore.index.quantization import SCALE_BYTES
from lore.records import Stats
from lore.store import (
    backup_seals,
    dialogue_state,
    files,
    fragments,
    graph,
    hard_delete,
    history,
    items,
    jobs,
    keywords,
    migrations,
    project_rows,
    sqlite,
    sync_rows,
    vectors,
)
from lore.store.database import Database, find_meta, open_database, set_meta
from lore.store.fragments import LIVING_FRAGMENT
from lore.store.hard_delete import ForgetSelection
from lore.store.history import Tombstone
from lore.store.sql_connection import Connection, id_blob
from lore.text import entities

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future


def check_integrity(db: Connection) -> list[str]:
    """Return the damage of the file, and orphaned rows of tables."""
    problems = db.integrity_problems()
    try:
        counts = [(what, db.value(f"SELECT count(*) FROM {query}")) for what, query in _ORPHANS]
    except StoreDamaged as error:
        return problems or [str(error)]
    return problems + [f"{count} {what}" for what, count in counts if count]


_ORPHANS = (
    (
        "items without content",
        "items i WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.n = i.n)"
        " AND NOT EXISTS (SELECT 1 FROM distillations d WHERE d.n = i.n)"
        " AND NOT EXISTS (SELECT 1 FROM fragments f WHERE f.n = i.n)",
    ),
    (
        "fragments below the top without a parent",
        "fragments f WHERE f.depth > 0 AND f.deleted_at IS NULL AND NOT EXISTS"
        " (SELECT 1 FROM edges e WHERE e.target_n = f.n AND e.kind = 'hierarchical')",
    ),
    (
        "fragments superseded by one that is not there",
        "fragments f WHERE f.superseded_by IS NOT NULL AND NOT EXISTS"
        f" (SELECT 1 FROM items i WHERE i.id = {id_blob('f.superseded_by')})",
    ),
)


def compare_keyword_index(db: Connection) -> list[str]:
    """Return where the keyword index differs from the items that belong in it."""
    problems = [] if db.read_only else keywords.find_damage(db)
    try:
        return problems + _disagreements(db)
    except StoreDamaged as error:
        return [*problems, str(error)]


def _disagreements(db: Connection) -> list[str]:
    missing = sum(
        db.value(
            f"SELECT count(*) FROM {table} t WHERE {condition} t.n NOT IN ("
            + " UNION ALL ".join(db.words.all_rows_query(index) for index in indexes)
            + ")"
        )
        for table, condition, indexes in _INDEXED
    )
    stray = sum(
        db.value(
            f"SELECT count(*) FROM ({db.words.all_rows_query(index)}) w"
            f" WHERE w.n NOT IN (SELECT n FROM {table})"
        )
        for index, table in _INDEXES.items()
    )
    lines = (
        (missing, "missing from the keyword index"),
        (stray, "in the keyword index that are not here"),
    )
    return [f"{count} items {what}" for count, what in lines if count]


_INDEXES = {
    "message_words": "items",
    "long_words": "items",
    "log_words": "items",
    "fragment_words": "items",
    "session_words": "sessions",
}

_INDEXED = (
    ("messages", "t.traits & 1 = 0 AND", ("message_words", "long_words")),
    ("distillations", "", ("log_words",)),
    (
        "fragments",
        "t.deleted_at IS NULL AND t.superseded_by IS NULL AND",
        ("fragment_words",),
    ),
    ("sessions", "(t.title <> '' OR t.files <> '') AND", ("session_words",)),
)


def compare_vector_index(db: Connection, embedder_n: int, indexed: int) -> list[str]:
    """Return where the vector index differs from the vectors in the database."""
    stored = int(
        db.value(
            f"SELECT coalesce(sum(length(v.vector) / (e.dimension + {SCALE_BYTES})), 0)"
            " FROM vectors v JOIN embedders e ON e.n = v.embedder_n WHERE v.embedder_n = :n",
            n=embedder_n,
        )
    )
    if stored == indexed:
        return []
    return [f"the vector index holds {indexed} vectors, the database {stored}"]


_BUSY_TIMEOUT_S = 5.0
_DAY_US = 86_400_000_000

_OWN_BACKUPS = ("lore-", "before-")
"""Prefixes of the backups that Lore creates itself."""

_RECEIPT_DAYS = 30
"""Receipts of idempotent writes are kept this long; repeats come within minutes."""


def backup(database: Database, target: Path, *, key: bytes | None = None) -> Path:
    """Write a consistent backup of a live database; an existing file is not overwritten.

    With the key of its home it is sealed.
    """
    if target.is_dir():
        stamp = database.now().strftime("%Y%m%dT%H%M%S")
        target = target / f"lore-{stamp}.db"
    if target.exists():
        msg = f"{target} already exists."
        raise InvalidInput(msg, hint="Choose another file name.")
    if not target.parent.is_dir():
        msg = f"There is no folder {target.parent}."
        raise NotFound(msg)
    database.copy_to(target, None if key is None else partial(backup_seals.seal, key=key))
    return target


def restore(
    path: Path, source: Path, backups: Path, *, key: bytes | None = None, trust: bool = False
) -> Path | None:
    """Replace the database by a backup; return where the former one was saved.

    What was forgotten is removed from the restored copy as well. With a key, a backup without its
    seal is refused, unless a person trusts it.
    """
    if not source.is_file():
        msg = f"There is no file {source}."
        raise NotFound(msg)
    _refuse_unsound(source)
    files.make_folder(path.parent)
    forgotten = _tombstones(path, backups)
    fresh = path.with_name(f"{path.name}.restored-{os.getpid()}")
    saved: Path | None = None
    try:
        if key is None or trust:
            with _read_only(source) as db:
                sqlite.copy_database(db, fresh)
        else:
            _copy_sealed(source, fresh, key)
        _refuse_foreign_schema(source, fresh)
        _forget_again(fresh, forgotten, _new_epoch)
        if path.exists():
            files.make_folder(backups)
            saved = backups / f"before-restore-{uuid.uuid4().hex[:8]}.db"
        _swap(fresh, path, saved)
        if saved is not None:
            _forget_late(path, saved, forgotten)
            if key is not None:
                with suppress(StoreDamaged):
                    backup_seals.seal(saved, key)
    finally:
        for leftover in (fresh, *sqlite.companion_files(fresh)):
            leftover.unlink(missing_ok=True)
    return saved


_UNSEALED = (
    "If it is your own, made elsewhere or by an older Lore, add --trust, or put the 'redaction.key'"
    " of its memory into this one first. Otherwise ask for an export: 'lore import --no-trust'"
    " does not believe it."
)


def _copy_sealed(source: Path, fresh: Path, key: bytes) -> None:
    """Copy the bytes of a backup and refuse it without its seal: what was checked is used."""
    files.make_private(fresh)
    try:
        shutil.copyfile(source, fresh)
    except OSError as error:
        raise _copy_error(error, fresh) from error
    if not backup_seals.is_sealed(fresh, key):
        msg = f"{source} was not sealed by this memory, or was changed since."
        raise InvalidInput(msg, hint=_UNSEALED)


def _copy_error(error: OSError, target: Path) -> StoreError:
    if error.errno in files.FULL_DISK:
        return files.disk_full_error(target)
    return StoreError(f"The copy could not be written to {target}: {error.strerror}.")


def _refuse_foreign_schema(source: Path, fresh: Path) -> None:
    with _read_only(fresh) as db:
        foreign = migrations.find_foreign_schema(db)
    if foreign:
        shown = ", ".join(foreign[:_MOST_SHOWN])
        msg = f"{source} has a schema that Lore did not make: {shown}."
        raise InvalidInput(msg, hint="The present database was left as it is.")


_MOST_SHOWN = 5


def _read_only(path: Path) -> closing[Connection]:
    return closing(sqlite.open_connection(path, busy_timeout_s=_BUSY_TIMEOUT_S, read_only=True))


def _forget_again(
    path: Path, tombstones: dict[str, Tombstone], *further: Callable[[Connection], None]
) -> None:
    """Apply tombstones to a database file, and further writes."""
    with closing(open_database(path, busy_timeout_s=_BUSY_TIMEOUT_S, backups=None)) as database:
        now = database.now()
        database.write(lambda db: hard_delete.apply_tombstones(db, tombstones, now=now))
        for work in further:
            database.write(work)
        database.erase_traces()


def _forget_late(path: Path, saved: Path, forgotten: dict[str, Tombstone]) -> None:
    """Forget in the restored database what was forgotten while it was being prepared."""
    with suppress(StoreDamaged):
        late = {i: one for i, one in _read_tombstones(saved).items() if forgotten.get(i) != one}
        if late:
            _forget_again(path, late)


def _refuse_unsound(source: Path) -> None:
    with closing(sqlite.open_connection(source, busy_timeout_s=1, read_only=True)) as db:
        if not migrations.check(db):
            msg = f"{source} is an empty database, not a backup of Lore."
            raise InvalidInput(msg)
    if sqlite.integrity_problems(source):
        msg = f"{source} is damaged; the present database was left as it is."
        raise StoreDamaged(msg)


def _tombstones(path: Path, backups: Path) -> dict[str, Tombstone]:
    """Return the tombstones; for a damaged database, those of its backups."""
    if not path.exists():
        return {}
    try:
        return _read_tombstones(path)
    except StoreDamaged:
        tombstones: dict[str, Tombstone] = {}
        for copy in sorted(backups.glob("*.db")):
            with suppress(StoreDamaged):
                tombstones |= _read_tombstones(copy)
        return tombstones


def _read_tombstones(path: Path) -> dict[str, Tombstone]:
    with _read_only(path) as db:
        return history.all_tombstones(db) if migrations.check(db) else {}


def load_file(database: Database, lines: Iterable[bytes]) -> int:
    """Load a portable dump into a new file, all or nothing; return how many rows it has."""
    counts = []

    def work(db: Connection) -> None:
        counts.append(sqlite.load_rows(db, lines))
        index_words(db)
        _new_epoch(db)

    database.write_alone(work)
    return counts[0]


def _new_epoch(db: Connection) -> None:
    db.run("UPDATE meta SET value = :epoch WHERE key = 'epoch'", epoch=uuid.uuid4().hex)
    db.run("DELETE FROM meta WHERE key = :key", key=backup_seals.SEAL_KEY)


def _swap(fresh: Path, path: Path, saved: Path | None) -> None:
    """Save the former content and replace it within one SQLite transaction.

    Other processes may have the file open, so its pages are replaced, not the file. Only a file
    that cannot be opened is replaced by name.
    """
    if saved is not None:
        try:
            sqlite.swap_database(fresh, path, saved)
        except StoreDamaged:
            files.make_private(saved)
            shutil.copyfile(path, saved)
        else:
            return
    for companion in sqlite.companion_files(path):
        companion.unlink(missing_ok=True)
    fresh.replace(path)
    files.sync_folder(path.parent)


def forget_everywhere(
    database: Database,
    selection: ForgetSelection,
    text: str,
    backups: Path,
    *,
    key: bytes | None = None,
    folders: Sequence[str] = (),
) -> list[str]:
    """Forget in the database and in the automatic backups, down to the bytes on disk.

    With the key, a backup that is sealed gets a new seal. What is left to do then is noted with the
    deletion: the bytes of the items, and the pages in `folders`.
    """

    def work(db: Connection) -> list[str]:
        now = database.now()
        deleted = hard_delete.forget(db, selection, text=text, now=now)
        if deleted or text:
            sync_rows.add_deleted(db, selection.item_ns, now)
            sync_rows.set_stale_pages(db, folders)
        return deleted

    ids = database.write(work)
    database.erase_traces()
    with database.read() as db:
        tombstones = history.all_tombstones(db)
    for leftover in (
        *sqlite.leftover_copies(database.path.parent),
        *sqlite.leftover_copies(backups),
    ):
        leftover.unlink(missing_ok=True)
    for copy in sorted(backups.glob("*.db")):
        if copy.is_file() and not copy.is_symlink():
            is_sealed = key is not None and _has_seal(copy, key)
            _forget_in_copy(copy, tombstones, text)
            if key is not None and is_sealed and copy.exists():
                backup_seals.seal(copy, key)
    return ids


def _has_seal(copy: Path, key: bytes) -> bool:
    with suppress(StoreError):
        return backup_seals.is_sealed(copy, key)
    return False


def _forget_in_copy(copy: Path, gone: dict[str, Tombstone], text: str) -> None:
    """Forget in a backup everything that was ever forgotten.

    A backup of Lore's own that cannot be cleaned is deleted, because it holds the text; a file of
    another program is left alone.
    """
    try:
        with closing(open_database(copy, busy_timeout_s=_BUSY_TIMEOUT_S, backups=None)) as database:
            cleaned = not database.read_only
            if cleaned:
                database.write(partial(_forget_all, gone=gone, text=text, now=database.now()))
                database.erase_traces()
    except (StoreDamaged, SchemaTooNew):
        cleaned = False
    if not cleaned and copy.name.startswith(_OWN_BACKUPS):
        copy.unlink(missing_ok=True)


def _forget_all(db: Connection, *, gone: dict[str, Tombstone], text: str, now: datetime) -> None:
    hard_delete.apply_tombstones(db, gone, now=now)
    if text:
        hard_delete.forget(db, hard_delete.select_text(db, text), text=text, now=now)


def has_forgotten_since(db: Connection, moment: datetime) -> bool:
    """Return whether a user forgot something after a moment.

    Tombstones do not show this: pruning and undoing a cycle leave some as well.
    """
    at = find_meta(db, "forgotten_at")
    return at is not None and int(at) > clock.to_us(moment)


def get_epoch(db: Connection) -> str:
    """Return the id of this incarnation of the database; a restore starts a new one."""
    return str(find_meta(db, "epoch"))


def is_maintenance_due(db: Connection, now: datetime) -> bool:
    """Return whether the daily maintenance last ran more than a day ago.

    A time in the future was set by a wrong clock and counts as due.
    """
    last_run = find_meta(db, "upkeep_at")
    return last_run is None or not 0 <= clock.to_us(now) - int(last_run) < _DAY_US


def schedule_maintenance(database: Database) -> Future[None] | None:
    """Queue the daily maintenance if it is due; return None if not, or if read-only."""
    if database.read_only:
        return None
    with database.read() as db:
        due = is_maintenance_due(db, database.now())
    return database.submit(partial(run_maintenance, now=database.now())) if due else None


def run_maintenance(db: Connection, now: datetime) -> None:
    """Decay fragments, and delete old receipts and states."""
    if not is_maintenance_due(db, now):
        return
    at = clock.to_us(now)
    fragments.decay_relevance(db, now=now)
    db.run("DELETE FROM receipts WHERE at < :before", before=at - _RECEIPT_DAYS * _DAY_US)
    dialogue_state.delete_old_states(db, now=now)
    set_meta(db, "upkeep_at", str(at))


describe_library = sqlite.describe_library


def check_keywords(database: Database) -> list[str]:
    """Check the keyword index; the check writes, so it runs on the writer thread."""
    if database.read_only:
        with database.read() as db:
            return compare_keyword_index(db)
    return database.write(compare_keyword_index)


_BATCH = 500


def index_words(db: Connection) -> None:
    """Build the keyword index from the rows that it is derived from."""
    keywords.clear(db)
    ns = db.column("SELECT n FROM messages ORDER BY n")
    for start in range(0, len(ns), _BATCH):
        keywords.index_messages(db, ns[start : start + _BATCH])
    for n, text in db.rows("SELECT n, text FROM distillations"):
        keywords.add_distillation(db, n, text)
    for row in db.rows(
        f"SELECT n, summary, content, kind FROM fragments f WHERE {LIVING_FRAGMENT}"
    ):
        keywords.add_fragment(db, *row)
    for n in db.column("SELECT n FROM sessions"):
        keywords.index_session(db, n)


def rebuild_keywords(db: Connection) -> int:
    """Rebuild the keyword index and the mentions; return the number of entries."""
    index_words(db)
    db.run("DELETE FROM mentions")
    db.run("DELETE FROM entities")
    for n, content, summary in db.rows("SELECT n, content, summary FROM fragments ORDER BY n"):
        mentioned = entities.fragment_mentions(content, summary)
        graph.add_mentions(db, n, mentioned)
        graph.link_titles(db, n, content, mentioned)
    return keywords.count_indexed(db)


def collect_stats(db: Connection, *, embedder: str, notice: str) -> Stats:
    """Count the records of the memory."""
    counts = items.count_by_type(db)
    per_project: dict[int, int] = dict(
        db.rows("SELECT project_n, count(*) FROM items WHERE project_n IS NOT NULL GROUP BY 1")
    )
    tables = ("edges", "sessions", "entities")
    sizes = {table: int(db.value(f"SELECT count(*) FROM {table}")) for table in tables}
    standing = db.value("SELECT count(*) FROM standing WHERE state IN ('stands', 'confirmed')")
    return Stats(
        path=db.shown_place,
        bytes=db.size(),
        messages=counts["message"],
        distillations=counts["distillation"],
        fragments=counts["fragment"],
        **sizes,
        standing=int(standing),
        vectors=vectors.count_active(db),
        waiting=vectors.count_pending(db),
        tokens=int(db.value("SELECT coalesce(sum(tokens), 0) FROM items")),
        embedder=embedder,
        journal=db.journal_mode(),
        projects=tuple(
            (project.path, per_project.get(n, 0))
            for n, project in project_rows.all_projects(db).items()
        ),
        jobs=tuple(jobs.open_jobs(db)),
        notice=notice,
    )
