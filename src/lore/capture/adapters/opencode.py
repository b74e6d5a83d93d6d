"""opencode: a database of sessions, messages and their parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lore.capture.adapters import fields, opencode_messages, places
from lore.capture.adapters.opencode_messages import Record, parsed
from lore.capture.transcripts import Context, Stretch
from lore.store import foreign
from lore.store.db import Connection

agent = opencode_messages.AGENT

_SQLITE = b"SQLite format 3\0"
_ABANDONED_MS = 3_600_000
"""An answer that nothing was added to for so long, while others went on, will not be finished."""


@dataclass(frozen=True, slots=True)
class _Row:
    """One message of the database, without what it says."""

    id: str
    session: str
    created: int
    updated: int


def find(home: Path) -> Iterator[Path]:
    """Return the databases below a person's home folder."""
    folder = home / ".local" / "share" / "opencode"
    if folder.is_dir() and not folder.is_symlink():
        for path in sorted(folder.glob("opencode*.db")):
            if places.is_regular(path):
                yield path


def fits(path: Path, head: bytes) -> bool:
    """Tell whether a file is a database of opencode."""
    return path.name.startswith("opencode") and path.suffix == ".db" and head.startswith(_SQLITE)


def read(path: Path, position: int) -> Iterator[Stretch]:
    """Return what was finished since a position: the time of the last change, in milliseconds.

    What has the very time of the position is told again, as is what comes after an answer that
    is still being written. All stretches but the last leave the position where it was.
    """
    with foreign.open_foreign(path) as db:
        rows = _rows(db, position)
        open_rows = _unfinished(db, rows)
        forks = _forks(db, rows)
        told = [
            row
            for row in rows
            if row.id not in open_rows and not forks.find_original(row.session, row.created)
        ]
        held = [row.updated for row in rows if row.id in open_rows]
        after = min(held) if held else max((row.updated for row in rows), default=position)
        sessions = list(dict.fromkeys(row.session for row in told))
        for i, session in enumerate(sessions):
            context = _context(db, session)
            teller = opencode_messages.Teller(context)
            for row in told:
                if row.session == session:
                    teller.add(row.id, _record(db, row.id), _parts(db, row.id))
            here = max(position, after) if i == len(sessions) - 1 else position
            parent = context.parent or _forked_from(db, session, forks)
            placed = replace(teller.context, parent=parent)
            yield Stretch(placed, tuple(teller.messages), here, teller.unknown)


def _rows(db: Connection, position: int) -> list[_Row]:
    names = ("id", "session_id", "time_created", "time_updated")
    least = {"time_updated": position}
    found = foreign.rows(db, "message", names, least=least, order=("time_created", "id"))
    return [
        _Row(fields.text(own), fields.text(session), _whole(created), _whole(updated))
        for own, session, created, updated in found
        if fields.text(session).strip()
    ]


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _unfinished(db: Connection, rows: list[_Row]) -> set[str]:
    """Return the answers that are still being written: the last of their session, and young."""
    last = {row.session: row for row in rows}
    newest = max((row.updated for row in rows), default=0)
    return {
        row.id
        for row in last.values()
        if newest - row.updated < _ABANDONED_MS
        and not opencode_messages.finished(_record(db, row.id))
    }


def _record(db: Connection, message: str) -> Record:
    found = foreign.rows(db, "message", ("data",), equal={"id": message})
    return parsed(found[0][0]) if found else {}


@dataclass(frozen=True, slots=True)
class _Forks:
    """Which messages are copies: older than their session, and of a time that another one has."""

    began: dict[str, int]
    originals: dict[int, str]
    """The sessions in which something was said at a time, where it was said first."""

    def find_original(self, session: str, created: int) -> str | None:
        """Return the session that a message was copied from, if it is still there."""
        return self.originals.get(created) if created < self.began.get(session, 0) else None


def _forks(db: Connection, rows: list[_Row]) -> _Forks:
    sessions = foreign.rows(db, "session", ("id", "time_created"))
    began = {fields.text(own): _whole(created) for own, created in sessions}
    concerned = {row.session for row in rows}
    if all(_first(db, session) >= began.get(session, 0) for session in concerned):
        return _Forks(began, {})
    known = foreign.rows(db, "message", ("session_id", "time_created"))
    said = ((fields.text(session), _whole(created)) for session, created in known)
    originals = {at: session for session, at in said if began.get(session, 0) <= at}
    return _Forks(began, originals)


def _first(db: Connection, session: str) -> int:
    return min(_times(db, session), default=0)


def _times(db: Connection, session: str) -> list[int]:
    found = foreign.rows(db, "message", ("time_created",), equal={"session_id": session})
    return sorted(_whole(created) for (created,) in found)


def _forked_from(db: Connection, session: str, forks: _Forks) -> str:
    """Return the session that the last copy in a session was made from, or nothing."""
    if not forks.originals:
        return ""
    found = (forks.find_original(session, created) for created in reversed(_times(db, session)))
    return next(filter(None, found), "")


def _context(db: Connection, session: str) -> Context:
    names = ("parent_id", "title", "directory", "version")
    found = foreign.rows(db, "session", names, equal={"id": session})
    if not found:
        return Context(session=session)
    parent, title, folder, version = (fields.text(value) for value in found[0])
    return opencode_messages.context(session, parent, title, folder, version)


def _parts(db: Connection, message: str) -> list[tuple[str, Record]]:
    equal = {"message_id": message}
    found = foreign.rows(db, "part", ("id", "data"), equal=equal, order=("id",))
    return [(fields.text(own), parsed(data)) for own, data in found]
