"""Checks: is the database sound, and do the derived indexes agree with it?"""

from __future__ import annotations

from dataclasses import dataclass

from lore.errors import StoreDamaged
from lore.store import keywords, sqlite
from lore.store.sqlite import Connection, id_of, word_tables


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    what: str


def integrity(db: Connection) -> list[Finding]:
    """Look for damage in the file and for rows that belong to nothing."""
    found = [Finding(line) for line in sqlite.damage(db.path)]
    try:
        counts = [(what, db.value(f"SELECT count(*) FROM {query}")) for what, query in _ORPHANS]
    except StoreDamaged as error:
        return found or [Finding(str(error))]
    return found + [Finding(f"{count} {what}") for what, count in counts if count]


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
        f" (SELECT 1 FROM items i WHERE i.id = {id_of('f.superseded_by')})",
    ),
)


def keyword_agreement(db: Connection) -> list[Finding]:
    """Compare the keyword index with the items that should be in it."""
    found = [] if db.read_only else keywords.damage(db)
    try:
        found += _disagreements(db)
    except StoreDamaged as error:
        found.append(str(error))
    return [Finding(line) for line in found]


def _disagreements(db: Connection) -> list[str]:
    missing = sum(
        db.value(
            f"SELECT count(*) FROM {table} t WHERE {condition} t.n NOT IN ("
            + " UNION ALL ".join(word_tables.row_numbers(index) for index in indexes)
            + ")"
        )
        for table, condition, indexes in _INDEXED
    )
    stray = sum(
        db.value(
            f"SELECT count(*) FROM ({word_tables.row_numbers(index)}) w"
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


def vector_agreement(db: Connection, embedder_n: int, indexed: int) -> list[Finding]:
    """Compare the vector index with the vectors in the database."""
    stored = int(db.value("SELECT count(*) FROM vectors WHERE embedder_n = :n", n=embedder_n))
    if stored == indexed:
        return []
    return [Finding(f"the vector index holds {indexed} vectors, the database {stored}")]
