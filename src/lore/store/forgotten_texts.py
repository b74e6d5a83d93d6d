"""Texts of task memory that were forgotten.

A folder, an older export or a backup may bring them back. A digest of each text recognizes it
without storing it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime

from lore.store import history
from lore.store.sql_connection import Connection
from lore.store.task_texts import IsForgotten, cut_texts

_TEXT = "text/"
"""How the ids of tombstones begin that are of a text."""


def add(db: Connection, texts: Iterable[str], *, now: datetime) -> None:
    """Forget texts wherever task memory has them."""
    sources = {f"{_TEXT}{_source(text)}": _source(text) for text in texts if text.strip()}
    history.add_tombstones(db, list(sources), now, sources=sources)


def find(db: Connection, stored: Iterable[str]) -> IsForgotten:
    """Return the test for the forgotten ones among the texts of stored values."""
    if not history.has_source_tombstones(db):
        return frozenset[str]().__contains__
    parts: set[str] = set()

    def collect(text: str) -> bool:
        parts.add(text)
        return False

    for one in stored:
        cut_texts(one, collect)
    by_source = {_source(text): text for text in parts}
    matches = set(history.find_tombstones_by_source(db, list(by_source)))
    return lambda text: _source(text) in matches


def read_tombstones(tombstones: Mapping[str, str]) -> IsForgotten | None:
    """Return the test for the texts that tombstones are of; None if they are of none."""
    matches = {source for id_, source in tombstones.items() if id_.startswith(_TEXT)}
    return (lambda text: _source(text) in matches) if matches else None


def _source(text: str) -> str:
    shown = " ".join(unicodedata.normalize("NFC", text).split())
    return history.source_digest("", "", f"\0text\0{shown}")
