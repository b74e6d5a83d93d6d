"""Notes of agents' files: the fragments that stand for them, and which of them were forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from lore import clock
from lore.store import fragments, history, items
from lore.store.codec import pack_json, unpack_json
from lore.store.sql_connection import Connection, among, id_text, int_array, json_field
from lore.text import words

FILE, DIGEST, RETIRED = "native_file", "native_digest", "native_retired"
"""The fields of a fragment's metadata that tie it to a note: its file, the digest of the note, and
whether the note is gone from the file."""

_PREFIX = "native_"

_FILE = json_field("f.metadata", FILE)

IN_ITS_FILE = f"{_FILE} IS NOT NULL AND {json_field('f.metadata', RETIRED)} IS NULL"
"""SQL: the fragment `f` stands for a note that is in its file."""


class NoteRow(NamedTuple):
    """The fragment of a note: its state, and what the note was when it was read."""

    n: int
    content: str
    payload: dict[str, Any]
    metadata: dict[str, Any]
    is_deleted: bool
    is_superseded: bool

    @property
    def digest(self) -> str:
        """Return the digest of the note."""
        return str(self.metadata.get(DIGEST, ""))

    @property
    def is_retired(self) -> bool:
        """Return whether the note is gone from its file."""
        return bool(self.metadata.get(RETIRED))


class KnownNotes(NamedTuple):
    """Which fragments were notes of which files, and the last number of any item then."""

    by_file: Mapping[str, Sequence[int]]
    last_n: int


def find_notes(db: Connection) -> KnownNotes:
    """Return the numbers of the fragments of all notes by file."""
    by_file: dict[str, list[int]] = {}
    for n, file in db.rows(f"SELECT f.n, {_FILE} FROM fragments f WHERE {_FILE} IS NOT NULL"):
        by_file.setdefault(str(file), []).append(n)
    return KnownNotes(by_file, items.highest_number(db))


def notes_of_file(
    db: Connection, file: str, known: KnownNotes, *, has_peers: bool
) -> list[NoteRow]:
    """Return the fragments of the notes in a file as they are now, oldest first.

    What a peer wrote is a note of this machine only in a file that `has_peers`.
    """
    rows = db.rows(
        "SELECT f.n, f.content, f.payload, f.metadata, f.deleted_at IS NOT NULL,"
        f" f.superseded_by IS NOT NULL FROM fragments f WHERE ({among('f.n', 'ns')}"
        f" OR f.n > :last_n) AND {_FILE} = :file AND (:has_peers OR f.origin <> 'peer')"
        " ORDER BY f.n",
        ns=int_array(known.by_file.get(file, ())),
        last_n=known.last_n,
        file=file,
        has_peers=has_peers,
    )
    return [
        NoteRow(n, content, unpack_json(payload), unpack_json(metadata), bool(deleted), bool(gone))
        for n, content, payload, metadata, deleted, gone in rows
    ]


def without_note(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a fragment's metadata without what ties it to a note in a file of its machine."""
    return {name: value for name, value in metadata.items() if not name.startswith(_PREFIX)}


def fragments_of_file(db: Connection, file: str, *, project_n: int | None) -> set[int]:
    """Return the fragments of the notes in a file."""
    sql = (
        f"SELECT f.n FROM fragments f JOIN items i ON i.n = f.n WHERE {_FILE} = :file"
        " AND (:project_n IS NULL OR i.project_n = :project_n)"
    )
    return set(db.column(sql, file=file, project_n=project_n))


def files_of(db: Connection, ns: Sequence[int]) -> list[str]:
    """Return the files of agents that have notes among some items."""
    sql = (
        f"SELECT DISTINCT {_FILE} FROM fragments f WHERE {among('f.n', 'ns')}"
        f" AND {_FILE} IS NOT NULL AND {json_field('f.metadata', RETIRED)} IS NULL ORDER BY 1"
    )
    return db.column(sql, ns=int_array(ns))


def find_superseded(db: Connection, *, project_n: int | None) -> list[tuple[int, str]]:
    """Return the superseded notes that are still in their files, with what superseded them."""
    sql = (
        "SELECT f.n, f.superseded_by FROM fragments f JOIN items i ON i.n = f.n"
        f" WHERE {_FILE} IS NOT NULL AND f.superseded_by IS NOT NULL AND f.deleted_at IS NULL"
        f" AND {json_field('f.metadata', RETIRED)} IS NULL"
        f" AND {items.applies_sql('i')}"
        " ORDER BY f.valid_to DESC, f.n DESC"
    )
    return [(n, newer) for n, newer in db.rows(sql, project_n=project_n)]


def living_notes(db: Connection, *, project_n: int | None) -> list[int]:
    """Return the fragments of notes that are in their files and not superseded."""
    sql = (
        f"SELECT f.n FROM fragments f JOIN items i ON i.n = f.n WHERE {_FILE} IS NOT NULL"
        f" AND {fragments.LIVING_FRAGMENT}"
        f" AND {items.applies_sql('i')} ORDER BY f.n"
    )
    return db.column(sql, project_n=project_n)


def notes_of_agent(db: Connection, ns: Sequence[int], agent: str) -> set[int]:
    """Return those of the fragments that are notes in the files of an agent: it reads them."""
    sql = (
        f"SELECT f.n FROM fragments f WHERE {among('f.n', 'ns')} AND {_FILE} IS NOT NULL"
        f" AND {json_field('f.payload', 'agent')} = :agent"
    )
    return set(db.column(sql, ns=int_array(ns), agent=agent)) if agent and len(ns) else set()


def instructions_of_agent(db: Connection, ids: Sequence[str], agent: str) -> set[str]:
    """Return those of the fragments that are rules in files of an agent: its prompt has them.

    Of its memories a prompt has only the index.
    """
    by_n = {n: id_ for id_, n in items.numbers_of(db, list(ids)).items()} if agent else {}
    return {by_n[n] for n in rules_of_agent(db, list(by_n), agent)}


def rules_of_agent(db: Connection, ns: Sequence[int], agent: str) -> set[int]:
    """Return those of the fragments that are rules in files of an agent."""
    own = fragments.by_number(db, sorted(notes_of_agent(db, ns, agent)))
    return {n for n, one in own.items() if one.payload.get("type") == "instruction"}


def texts_of_agent(db: Connection, agent: str) -> list[str]:
    """Return the texts of all notes in the files of an agent, superseded ones as well."""
    sql = (
        f"SELECT f.content FROM fragments f WHERE {_FILE} IS NOT NULL"
        f" AND {json_field('f.payload', 'agent')} = :agent AND f.deleted_at IS NULL"
    )
    return db.column(sql, agent=agent)


def set_note(
    db: Connection, n: int, payload: Mapping[str, Any], metadata: Mapping[str, Any]
) -> None:
    """Set what a fragment says about its note."""
    db.update("fragments", n, payload=pack_json(payload), metadata=pack_json(metadata))


def set_written_at(db: Connection, n: int, at: datetime) -> None:
    """Set when a note got its present words: what is newer is decided by that."""
    db.update("items", n, created_at=clock.to_us(at))


def retire(db: Connection, row: NoteRow, *, now: datetime) -> None:
    """Hide the fragment of a note that is gone from its file; it is restored with the note.

    One that a person deleted stays theirs to restore.
    """
    if not row.is_deleted:
        set_note(db, row.n, row.payload, {**row.metadata, RETIRED: True})
        fragments.set_deleted(db, row.n, now, now=now)


def restore(db: Connection, row: NoteRow, *, now: datetime) -> None:
    """Show the fragment of a note that is in its file again."""
    metadata = {name: value for name, value in row.metadata.items() if name != RETIRED}
    set_note(db, row.n, row.payload, metadata)
    fragments.set_deleted(db, row.n, None, now=now)


def forgotten_digests(db: Connection, sources: Iterable[str]) -> set[str]:
    """Return those of the digests that belong to forgotten notes."""
    listed = list(sources)
    if not listed or not history.has_source_tombstones(db):
        return set()
    return set(history.find_tombstones_by_source(db, listed))


def place_digest(file: str) -> str:
    """Return the digest by which the one note of a file is recognized after it was forgotten."""
    return history.source_digest("native", file, "")


def words_digest(text: str) -> str:
    """Return the digest by which a note is recognized by its words after it was forgotten."""
    return history.source_digest("native", "", " ".join(words.split(text)))


def tombstone_sources(db: Connection, ns: Sequence[int]) -> dict[str, str]:
    """Return ids of tombstones for notes among some items, with the digests that recognize them.

    A note is recognized by its words in any file, and a file with a single note by its place.
    """
    rows = db.rows(
        f"SELECT {id_text('i.id')}, f.content, f.metadata FROM fragments f JOIN items i"
        f" ON i.n = f.n WHERE {among('f.n', 'ns')} AND {_FILE} IS NOT NULL",
        ns=int_array(ns),
    )
    sources: dict[str, str] = {}
    for id_, content, packed in rows:
        metadata = unpack_json(packed)
        sources[f"{id_}/note"] = words_digest(content)
        if metadata.get("native_whole"):
            sources[f"{id_}/note-file"] = place_digest(str(metadata[FILE]))
    return sources
