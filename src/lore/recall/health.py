"""The health checks of 'lore doctor', and their repairs."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

from lore.recall.sources import Sources
from lore.records import Check
from lore.settings import Settings
from lore.store import files, jobs, maintenance, sessions, vectors

_LITTLE_SPACE = 200_000_000

_COPIES = ("*.db", "*.jsonl")
"""File patterns of copies and exports of a memory."""

_NAMED = 3
"""Names listed in one line of doctor; the others are counted."""


def check_home(config: Settings) -> list[Check]:
    """Check the folder, its permissions, the disk and the versions."""
    return [_check_versions(), _check_folder(config), _check_disk(config), _check_files(config)]


def _check_versions() -> Check:
    return Check("versions", "ok", maintenance.describe_library())


def _check_folder(config: Settings) -> Check:
    home = config.home
    if not home.exists():
        return Check(
            "home", "degraded", f"{home} does not exist yet.", "'lore capture --all' makes it."
        )
    wrong = [
        path.name
        for path in (home, config.database)
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077
    ]
    if wrong:
        names = ", ".join(wrong)
        return Check(
            "home", "degraded", f"Others may read {names}.", f"chmod go= {home} {config.database}"
        )
    shared = files.shared_file_system(config.database)
    if shared:
        detail = f"{home} is on {shared}, a shared file system: slower, with a rollback journal."
        return Check("home", "degraded", detail, "LORE_HOME names a folder on a local disk.")
    return Check("home", "ok", str(home))


def _check_disk(config: Settings) -> Check:
    folder = config.home if config.home.exists() else config.home.parent
    if not folder.exists():
        return Check("disk", "ok", "not looked at")
    free = shutil.disk_usage(folder).free
    detail = f"{free / 1e9:.1f} GB free"
    if free < _LITTLE_SPACE:
        return Check("disk", "degraded", detail, "Free some space: writes will fail soon.")
    return Check("disk", "ok", detail)


def _check_files(config: Settings) -> Check:
    """Report copies in the home: 'lore forget' does not reach them."""
    copies = sorted(
        str(path.relative_to(config.home))
        for pattern in _COPIES
        for path in config.home.rglob(pattern)
        if path != config.database and not _is_cleaned(config, path) and path.is_file()
    )
    if not copies:
        return Check("files", "ok", "no copies of the memory but the backups")
    more = f" and {len(copies) - _NAMED:,} more" if len(copies) > _NAMED else ""
    return Check(
        "files",
        "degraded",
        f"{', '.join(copies[:_NAMED])}{more} may still hold what you forgot.",
        "Move them out of the home, or delete them.",
    )


def _is_cleaned(config: Settings, path: Path) -> bool:
    """Return whether forgetting reaches a file: a database in the folder of backups."""
    return path.parent == config.backups and path.suffix == ".db" and not path.is_symlink()


def check_quickly(sources: Sources, notice: str) -> list[Check]:
    """Check what takes no time: not that each page and each index entry is sound."""
    return [
        _check_writing(sources),
        _check_embedder(sources, notice),
        *_check_vector_server(sources),
        _check_sessions(sources),
        _check_jobs(sources),
    ]


def check_memory(sources: Sources, notice: str, *, fix: bool) -> list[Check]:
    """Check the database and everything derived from it."""
    return [
        _check_database(sources),
        _check_keywords(sources, fix=fix),
        _check_vectors(sources, fix=fix),
        _check_embedder(sources, notice),
        _check_sessions(sources),
        _check_jobs(sources),
    ]


def _check_database(sources: Sources) -> Check:
    with sources.database.read() as db:
        findings = maintenance.check_integrity(db)
    if findings:
        return Check(
            "database",
            "broken",
            "; ".join(findings[:5]),
            "'lore export' saves what can be read, 'lore restore' takes a backup.",
        )
    return _check_writing(sources)


def _check_writing(sources: Sources) -> Check:
    if sources.database.read_only:
        return Check(
            "database", "degraded", "open for reading only", "Check owner and permissions."
        )
    with sources.database.read() as db:
        return Check("database", "ok", db.shown_place)


def _check_keywords(sources: Sources, *, fix: bool) -> Check:
    findings = maintenance.check_keywords(sources.database)
    if findings and fix and not sources.database.read_only:
        count = sources.database.write(maintenance.rebuild_keywords)
        return Check("keywords", "fixed", f"rebuilt for {count:,} items")
    return _derived("keywords", findings, "the index agrees with the database")


def _check_vectors(sources: Sources, *, fix: bool) -> Check:
    if not sources.embedder.dimension:
        return Check("vectors", "degraded", "no embedder", "'lore model install' adds the model.")
    return next(iter(_check_vector_server(sources)), None) or _check_index(sources, fix=fix)


def _check_vector_server(sources: Sources) -> list[Check]:
    """Report a vector server that is away."""
    notice = sources.index_notice
    remedy = "Nothing is lost: Lore fills it again when it is back."
    return [Check("vectors", "degraded", notice, remedy)] if notice else []


def _check_index(sources: Sources, *, fix: bool) -> Check:
    with sources.database.read() as db:
        embedder_n = sources.embedder_n
        waiting = vectors.count_pending(db)
        next_identity = vectors.find_next_identity(db)
        next_waiting = vectors.count_pending(db, following=True)
    index = sources.vector_index()
    if embedder_n is None:
        return Check("vectors", "ok", f"none yet, {_items(waiting)} to embed")
    with sources.database.read() as db:
        vectors.update_index(db, index, embedder_n, sources.embedder.dimension)
        findings = index.check()
        findings += maintenance.compare_vector_index(db, embedder_n, len(index))
        if findings and fix:
            index.clear()
            count = vectors.update_index(db, index, embedder_n, sources.embedder.dimension)
            return Check("vectors", "fixed", f"rebuilt with {count:,} vectors")
    if waiting and not findings:
        return Check(
            "vectors", "degraded", f"{_items(waiting)} without a vector yet", "'lore embed'"
        )
    if next_identity and not findings:
        detail = f"{sources.embedder.identity} serves until {next_identity} has embedded"
        detail = f"{detail} {_items(next_waiting)} more"
        return Check("vectors", "ok", detail, "The daemon does that, or 'lore embed'.")
    return _derived("vectors", findings, f"{len(index):,} vectors, the index agrees")


def _derived(name: str, findings: list[str], good: str) -> Check:
    if not findings:
        return Check(name, "ok", good)
    detail = "; ".join(findings[:5])
    return Check(name, "broken", detail, "'lore doctor --fix' rebuilds it from the database.")


def _check_embedder(sources: Sources, notice: str) -> Check:
    if notice:
        return Check("embedder", "degraded", notice, "'lore model install' adds the model.")
    return Check("embedder", "ok", sources.embedder.identity)


def _check_sessions(sources: Sources) -> Check:
    """Report sessions that were captured for a second project: only their first counts."""
    with sources.database.read() as db:
        moved = sessions.sessions_with_state(db, "other_project")
    if not moved:
        return Check("sessions", "ok", "each in the one project that was named for it")
    named = ", ".join(moved[:_NAMED]) + (" …" if len(moved) > _NAMED else "")
    return Check("sessions", "ok", f"captured for a second project, kept in the first: {named}")


def _check_jobs(sources: Sources) -> Check:
    with sources.database.read() as db:
        open_jobs = jobs.open_jobs(db)
    parked = [job for job in open_jobs if job.state == "parked"]
    if parked:
        reasons = "; ".join(f"{job.kind} {job.id}: {job.last_error}" for job in parked[:5])
        detail = f"{len(parked):,} parked after {jobs.MAX_ATTEMPTS} attempts: {reasons}"
        return Check("jobs", "degraded", detail, "'lore jobs retry --all' tries them again.")
    return Check("jobs", "ok", f"{len(open_jobs):,} pending, none parked")


def _items(count: int) -> str:
    return f"{count:,} item{'' if count == 1 else 's'}"
