"""Texts of task memory that were forgotten.

A folder, an older export or a backup may bring them back. A digest of each text recognizes it
without storing it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from lore import clock
from lore.store import history
from lore.store.history import Tombstone
from lore.store.sql_connection import Connection
from lore.store.task_texts import IsForgotten, cut_texts

ForgottenSince = Callable[[int], IsForgotten]
"""Returns the test for the texts that were forgotten since a time: later ones are said anew."""

_TEXT = "text/"
"""How the ids of tombstones begin that are of a text."""


def is_text(id_: str) -> bool:
    """Return whether a tombstone is of a text."""
    return id_.startswith(_TEXT)


def add(db: Connection, texts: Iterable[str], *, now: datetime) -> None:
    """Forget texts wherever task memory has them."""
    sources = {_source(text) for text in texts if text.strip()}
    put(db, {f"{_TEXT}{source}": Tombstone(source, clock.to_us(now)) for source in sources})


def put(db: Connection, tombstones: Mapping[str, Tombstone]) -> None:
    """Add tombstones of texts and others; a text that is forgotten again gets the later time."""
    history.put_tombstones(db, tombstones)
    history.renew_tombstones(db, _times(tombstones))


def find_renewed(db: Connection, tombstones: Mapping[str, Tombstone]) -> set[str]:
    """Return the ids of tombstones of texts that were forgotten again, later than known here."""
    return history.find_older_tombstones(db, _times(tombstones))


def _times(tombstones: Mapping[str, Tombstone]) -> dict[str, int]:
    return {id_: one.us for id_, one in tombstones.items() if is_text(id_)}


def find(db: Connection, stored: Iterable[str], *, since_us: int = 0) -> IsForgotten:
    """Return the test for those among the texts of stored values that were forgotten since."""
    if not history.has_source_tombstones(db):
        return frozenset[str]().__contains__
    parts: set[str] = set()

    def collect(text: str) -> bool:
        parts.add(text)
        return False

    for one in stored:
        cut_texts(one, collect)
    by_source = {_source(text): text for text in parts}
    matches = set(history.find_tombstones_by_source(db, list(by_source), since_us=since_us))
    return lambda text: _source(text) in matches


def read_tombstones(tombstones: Mapping[str, Tombstone]) -> ForgottenSince | None:
    """Return the test for the texts that tombstones are of; None if they are of none."""
    times = {one.source: one.us for id_, one in tombstones.items() if is_text(id_)}
    if not times:
        return None
    return lambda since_us: lambda text: times.get(_source(text), -1) >= since_us


def _source(text: str) -> str:
    shown = " ".join(unicodedata.normalize("NFC", text).split())
    return history.source_digest("", "", f"\0text\0{shown}")
