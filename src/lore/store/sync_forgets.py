"""Forget what another machine forgot: under its ids and under those that copies have here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from lore.store import forgotten_names, forgotten_texts, hard_delete, history, items
from lore.store.codec import unpack_key
from lore.store.hard_delete import ForgetSelection, ForgottenAt
from lore.store.history import Tombstone
from lore.store.sql_connection import Connection, among, text_array
from lore.store.sync_writes import find_session


def forget(db: Connection, tombstones: Mapping[str, Tombstone], *, now: datetime) -> list[int]:
    """Forget what another machine forgot; return the numbers of the items that were deleted."""
    known = history.find_tombstones(db, list(tombstones))
    known -= forgotten_texts.find_renewed(db, tombstones)
    fresh = {id_: one for id_, one in tombstones.items() if id_ not in known}
    if not fresh:
        return []
    # They come first: what is forgotten by them keeps the time at which it was forgotten there.
    history.put_tombstones(db, fresh)
    selected = select_forgotten(db, fresh)
    deleted = _select_all(db, selected.selection)
    hard_delete.forget_at(db, selected, now=now)
    hard_delete.apply_tombstones(db, fresh, now=now)
    if forgotten_names.has_any(fresh):
        inside = ForgottenAt(projects=_forgotten_projects(db))
        deleted |= _select_all(db, inside.selection)
        hard_delete.forget_at(db, inside, now=now)
    return sorted(deleted)


def _select_all(db: Connection, selection: ForgetSelection) -> set[int]:
    """Return the items of a selection with all that goes with them."""
    expanded = hard_delete.expand_selection(db, selection)
    return set(hard_delete.with_derived(db, expanded).item_ns)


def select_forgotten(db: Connection, tombstones: Mapping[str, Tombstone]) -> ForgottenAt:
    """Select what tombstones of another machine name, also under ids that it has only there."""
    if not tombstones:
        return ForgottenAt()
    item_us: dict[int, int] = {}
    session_us: dict[int, int] = {}
    by_source: dict[str, int] = {}
    # An id with more after a '/' is of a part, such as a title: the whole stays.
    whole = {id_: one for id_, one in tombstones.items() if "/" not in id_}
    for id_, one in whole.items():
        _put_latest(item_us, items.find_number(db, id_), one.us)
        _put_latest(session_us, find_session(db, id_), one.us)
        _put_latest(by_source, one.source, one.us)
    copies = db.rows(
        f"SELECT key, n FROM sync_records WHERE kind = 'message' AND {among('key', 'ids')}",
        ids=text_array(list(tombstones)),
    )
    for id_, n in copies:
        _put_latest(item_us, n, tombstones[id_].us)
    if by_source:
        for n, us in _messages_by_source(db, by_source):
            _put_latest(item_us, n, us)
        for n, us in _sessions_by_source(db, by_source):
            _put_latest(session_us, n, us)
    return ForgottenAt(item_us, session_us)


def _put_latest(times: dict[Any, int], key: Any, us: int) -> None:
    if key is not None and key != "":
        times[key] = max(us, times.get(key, us))


def _messages_by_source(db: Connection, times: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """Yield the messages that were captured here as well, under other ids, with the times."""
    rows = db.rows(
        "SELECT m.n, s.agent, s.external_id, m.key FROM messages m"
        " JOIN sessions s ON s.n = m.session_n"
    )
    for n, agent, name, key in rows:
        us = times.get(history.source_digest(agent, name, unpack_key(key)))
        if us is not None:
            yield n, us


def _sessions_by_source(db: Connection, times: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """Yield the sessions that were captured here as well, and began before they were forgotten."""
    for n, agent, name, started_at in db.rows(
        "SELECT n, agent, external_id, started_at FROM sessions"
    ):
        us = times.get(forgotten_names.session_digest(agent, name))
        if us is not None and us >= started_at:
            yield n, us


def _forgotten_projects(db: Connection) -> dict[int, int]:
    """Return the projects here whose path or remote was forgotten elsewhere, with the times."""
    times = {
        n: forgotten_names.forgotten_at(db, names)
        for n, *names in db.rows("SELECT n, path, remote FROM projects")
    }
    return {n: us for n, us in times.items() if us is not None}
