"""Access keys: who may use the server; a key itself is never stored, only its digest."""

from __future__ import annotations

from datetime import datetime

from lore import clock
from lore.records import AccessKey
from lore.store.packing import moment
from lore.store.sqlite import Connection, Row

_COLUMNS = "prefix, name, scopes, created_at, expires_at, revoked_at"


def add(db: Connection, key: AccessKey, digest: str) -> None:
    """Enter a key by its prefix and the digest of all of it."""
    db.run(
        "INSERT INTO access_keys (prefix, name, digest, scopes, created_at, expires_at)"
        " VALUES (:prefix, :name, :digest, :scopes, :created_at, :expires_at)",
        prefix=key.prefix,
        name=key.name,
        digest=digest,
        scopes=" ".join(key.scopes),
        created_at=clock.to_us(key.created_at),
        expires_at=None if key.expires_at is None else clock.to_us(key.expires_at),
    )


def everyone(db: Connection) -> list[AccessKey]:
    """Return all keys, in the order they were made."""
    return [_key(row) for row in db.rows(f"SELECT {_COLUMNS} FROM access_keys ORDER BY n")]


def find(db: Connection, prefix: str) -> tuple[AccessKey, str] | None:
    """Return the key with a prefix, and the digest of all of it."""
    row = db.find(f"SELECT {_COLUMNS}, digest FROM access_keys WHERE prefix = :p", p=prefix)
    return None if row is None else (_key(row[:-1]), str(row[-1]))


def named(db: Connection, name_or_prefix: str) -> list[AccessKey]:
    """Return the keys that have a prefix or a name."""
    rows = db.rows(
        f"SELECT {_COLUMNS} FROM access_keys WHERE prefix = :w OR name = :w ORDER BY n",
        w=name_or_prefix,
    )
    return [_key(row) for row in rows]


def revoke(db: Connection, prefix: str, *, now: datetime) -> None:
    """Let a key open nothing from now on; one that was revoked before stays so since then."""
    db.run(
        "UPDATE access_keys SET revoked_at = coalesce(revoked_at, :at) WHERE prefix = :prefix",
        at=clock.to_us(now),
        prefix=prefix,
    )


def _key(row: Row) -> AccessKey:
    prefix, name, scopes, created, expires, revoked = row
    return AccessKey(
        prefix=prefix,
        name=name,
        scopes=tuple(scopes.split()),
        created_at=moment(created),
        expires_at=None if expires is None else moment(expires),
        revoked_at=None if revoked is None else moment(revoked),
    )
