"""Upgrade former links: find the message that each quotes, and delete those whose words are gone.

A link may begin with the question that its sentence answers, or the request whose outcome it
reports. Former versions did not store which message that was, and left its words when it was
forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import NamedTuple

from lore.errors import StoreDamaged
from lore.records import Part
from lore.store import consolidation, items, replacements
from lore.store.codec import pack_role, unpack_parts
from lore.store.sql_connection import Connection
from lore.text import call_text, statements, words

_TURN_MESSAGES = 40
"""Messages before a report among which its request is: as many as are read for a new link."""

_CACHED_ITEMS = 2_000


class _Quoted(NamedTuple):
    """The message that a sentence quotes, if any; `is_gone` if nothing explains its words."""

    asked_n: int | None = None
    is_gone: bool = False


def note_asked_messages(db: Connection) -> None:
    """Store which messages the links quote; delete and queue what quotes something that is gone."""
    read = lru_cache(_CACHED_ITEMS)(partial(_read_words, db))

    def find_quoted(n: int, text: str) -> _Quoted:
        sought, own = words.split(text), read(n)
        if _contains(own, sought):
            return _Quoted()
        asked_n = _find_asked(db, n)
        asked = read(asked_n) if asked_n is not None else ""
        for cut in range(len(sought), 0, -1):
            if _contains(asked, sought[:cut]) and _contains(own, sought[cut:]):
                return _Quoted(asked_n)
        return _Quoted(is_gone=True)

    stale = set()
    for n, older_n, older_text, newer_n, newer_text in db.rows(
        "SELECT n, older_n, older_text, newer_n, newer_text FROM replacements ORDER BY n"
    ):
        older, newer = find_quoted(older_n, older_text), find_quoted(newer_n, newer_text)
        if older.is_gone or newer.is_gone:
            db.run("DELETE FROM replacements WHERE n = :n", n=n)
            stale.add(newer_n)
        elif older.asked_n is not None or newer.asked_n is not None:
            db.update("replacements", n, older_asked_n=older.asked_n, newer_asked_n=newer.asked_n)
    if stale:
        replacements.queue(db, sorted(stale))
        replacements.count_change(db)
        consolidation.redact_reports(db, list(items.ids_of(db, sorted(stale)).values()))


def _contains(text: str, sought: list[str]) -> bool:
    """Return whether a text has some words one after the other; the last one may be cut."""
    return f" {' '.join(sought)}" in text


def _find_asked(db: Connection, n: int) -> int | None:
    """Return the message just before a person's, or the person's last one before another."""
    row = db.find("SELECT session_n, ordinal, role FROM messages WHERE n = :n", n=n)
    if row is None:
        return None
    session_n, ordinal, role = row
    is_user = role == pack_role("user")
    asked_n: int | None = db.value(
        "SELECT n FROM messages WHERE session_n = :session_n AND ordinal < :ordinal"
        " AND ordinal >= :first AND role = :asking ORDER BY ordinal DESC LIMIT 1",
        session_n=session_n,
        ordinal=ordinal,
        first=ordinal - (1 if is_user else _TURN_MESSAGES),
        asking=pack_role("assistant" if is_user else "user"),
    )
    return asked_n


def _read_words(db: Connection, n: int) -> str:
    """Return the words of an item as it is stored, and as its sentences are read."""
    texts = db.rows("SELECT content, summary FROM fragments WHERE n = :n", n=n)
    packed = db.value("SELECT parts FROM messages WHERE n = :n", n=n)
    stored = [text for row in texts for text in row]
    try:
        parts = unpack_parts(packed) if packed is not None else ()
    except StoreDamaged:
        parts = ()
    forms = [form for text in (*stored, *_texts_of(parts)) for form in _forms(text)]
    return "".join(f" {' '.join(words.split(form))}\n" for form in forms)


def _texts_of(parts: tuple[Part, ...]) -> Iterator[str]:
    """Yield the texts of parts, all spoken ones together, and the values that edits set."""
    yield "\n".join(part.text for part in parts)
    for part in parts:
        yield part.text
        if part.kind == "tool_call":
            for change in call_text.find_value_changes(part.name, part.text):
                yield f"{change.file}: {change.new}"


def _forms(text: str) -> Iterator[str]:
    """Yield a text as it is, and its sentences without markup."""
    yield text
    for by_line in (False, True):
        yield " ".join(one.text for one in statements.split_statements(text, by_line=by_line))
