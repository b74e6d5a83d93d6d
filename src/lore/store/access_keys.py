"""Access keys of the HTTP server; the store keeps only a digest of each key."""

from __future__ import annotations

from datetime import datetime

from lore import clock
from lore.records import AccessKey
from lore.store.codec import unpack_record
from lore.store.sql_connection import Connection, Row

_COLUMNS = "prefix, name, scopes, created_at, expires_at, revoked_at"


def add(db: Connection, key: AccessKey, digest: str) -> None:
    """Store a key by its prefix and the digest of the whole key."""
    db.insert(
        "access_keys",
        prefix=key.prefix,
        name=key.name,
        digest=digest,
        scopes=" ".join(key.scopes),
        created_at=clock.to_us(key.created_at),
        expires_at=None if key.expires_at is None else clock.to_us(key.expires_at),
    )


def list_all(db: Connection) -> list[AccessKey]:
    """Return all keys, oldest first."""
    return [_key(row) for row in db.rows(f"SELECT {_COLUMNS} FROM access_keys ORDER BY n")]


def find(db: Connection, prefix: str) -> tuple[AccessKey, str] | None:
    """Return the key with this prefix and its digest, or None."""
    row = db.find(f"SELECT {_COLUMNS}, digest FROM access_keys WHERE prefix = :p", p=prefix)
    return None if row is None else (_key(row[:-1]), str(row[-1]))


def find_named(db: Connection, name_or_prefix: str) -> list[AccessKey]:
    """Return the keys with this prefix or name."""
    rows = db.rows(
        f"SELECT {_COLUMNS} FROM access_keys WHERE prefix = :w OR name = :w ORDER BY n",
        w=name_or_prefix,
    )
    return [_key(row) for row in rows]


def revoke(db: Connection, prefix: str, *, now: datetime) -> None:
    """Revoke a key; a key that is revoked already keeps its time of revocation."""
    db.run(
        "UPDATE access_keys SET revoked_at = coalesce(revoked_at, :at) WHERE prefix = :prefix",
        at=clock.to_us(now),
        prefix=prefix,
    )


def _key(row: Row) -> AccessKey:
    return unpack_record(AccessKey, row, scopes=lambda scopes: tuple(scopes.split()))
