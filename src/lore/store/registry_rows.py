"""The registry of a server: owners, teams, members, keys and publications."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from lore import clock
from lore.records.server_records import Owner, Publication, PublicationState, ServerKey, Team
from lore.store.codec import unpack_record
from lore.store.migrations import Migration
from lore.store.sql_connection import ROW_NUMBER, Connection, Row

_TABLES = f"""
CREATE TABLE owners (
    n {ROW_NUMBER},
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    removed_at INTEGER,
    worked_at INTEGER NOT NULL DEFAULT 0);

CREATE TABLE teams (
    n {ROW_NUMBER},
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    quorum INTEGER NOT NULL,
    created_at INTEGER NOT NULL);

CREATE TABLE members (
    team_n INTEGER NOT NULL REFERENCES teams (n) ON DELETE CASCADE,
    owner_n INTEGER NOT NULL REFERENCES owners (n) ON DELETE CASCADE,
    PRIMARY KEY (team_n, owner_n));

CREATE TABLE server_keys (
    n {ROW_NUMBER},
    prefix TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    owner_n INTEGER REFERENCES owners (n) ON DELETE CASCADE,
    team_n INTEGER REFERENCES teams (n) ON DELETE CASCADE);

CREATE TABLE publications (
    n {ROW_NUMBER},
    id TEXT NOT NULL UNIQUE,
    team_n INTEGER NOT NULL REFERENCES teams (n) ON DELETE CASCADE,
    owner_n INTEGER NOT NULL REFERENCES owners (n) ON DELETE CASCADE,
    source_id TEXT NOT NULL,
    state TEXT NOT NULL,
    kind TEXT NOT NULL,
    summary TEXT NOT NULL,
    content TEXT NOT NULL,
    published_at INTEGER NOT NULL,
    decided_at INTEGER,
    fragment_id TEXT NOT NULL DEFAULT '');
CREATE INDEX publications_team ON publications (team_n, state);
CREATE INDEX publications_owner ON publications (owner_n);

CREATE TABLE approvals (
    publication_n INTEGER NOT NULL REFERENCES publications (n) ON DELETE CASCADE,
    owner_n INTEGER NOT NULL REFERENCES owners (n) ON DELETE CASCADE,
    at INTEGER NOT NULL,
    PRIMARY KEY (publication_n, owner_n));

CREATE TABLE provider_keys (
    team_n INTEGER NOT NULL REFERENCES teams (n) ON DELETE CASCADE,
    provider TEXT NOT NULL,
    sealed TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (team_n, provider));
"""


def r001_registry(db: Connection) -> None:
    """Create the tables of the registry."""
    for statement in _TABLES.split(";\n"):
        if statement.strip():
            db.rows(statement)


def r002_rows(db: Connection) -> None:
    """Give each owner and team a salt for the name of its rows, and let teams be removed."""
    for table in ("owners", "teams"):
        db.rows(f"ALTER TABLE {table} ADD COLUMN salt TEXT NOT NULL DEFAULT ''")
        db.run(f"UPDATE {table} SET salt = lower(hex(randomblob(16)))")
    db.rows("ALTER TABLE teams ADD COLUMN removed_at INTEGER")
    db.rows("CREATE TABLE server_state (key TEXT PRIMARY KEY, value TEXT NOT NULL)")


MIGRATIONS: tuple[Migration, ...] = (r001_registry, r002_rows)
"""The migrations of the registry's own file."""

_OWNER = "id, name, created_at, removed_at"
_TEAM = "id, name, quorum, created_at"
_KEY = (
    "SELECT k.prefix, k.name, k.scopes, k.created_at, k.expires_at, k.revoked_at,"
    " coalesce(o.id, ''), coalesce(o.name, ''), coalesce(t.id, ''), coalesce(t.name, '')"
)
_KEY_TABLES = (
    " FROM server_keys k LEFT JOIN owners o ON o.n = k.owner_n LEFT JOIN teams t ON t.n = k.team_n"
)
_PUBLICATION = (
    "SELECT p.id, t.name, o.name, p.source_id, p.state, p.kind, p.summary, p.content,"
    " p.published_at, (SELECT count(*) FROM approvals a JOIN members m ON m.owner_n = a.owner_n"
    " AND m.team_n = p.team_n WHERE a.publication_n = p.n),"
    " p.decided_at, p.fragment_id FROM publications p JOIN teams t ON t.n = p.team_n"
    " JOIN owners o ON o.n = p.owner_n"
)


def add_owner(db: Connection, owner: Owner, *, salt: str) -> None:
    """Store an owner."""
    db.insert(
        "owners", id=owner.id, name=owner.name, created_at=clock.to_us(owner.created_at), salt=salt
    )


def find_salt(db: Connection, table: Literal["owners", "teams"], id_: str) -> str | None:
    """Return the salt of an owner or a team, also of a removed one, or None."""
    salt = db.value(f"SELECT salt FROM {table} WHERE id = :id", id=id_)
    return None if salt is None else str(salt)


def set_salt(db: Connection, table: Literal["owners", "teams"], id_: str, salt: str) -> None:
    """Give an owner or a team another salt."""
    db.run(f"UPDATE {table} SET salt = :salt WHERE id = :id", salt=salt, id=id_)


def find_state(db: Connection, key: str) -> str:
    """Return what the server noted about itself under a key, or an empty text."""
    return str(db.value("SELECT value FROM server_state WHERE key = :key", key=key) or "")


def set_state(db: Connection, key: str, value: str) -> None:
    """Note something about the server itself."""
    db.upsert("server_state", ("key",), key=key, value=value)


def list_states(db: Connection, prefix: str) -> list[str]:
    """Return the keys with a prefix under which the server noted something about itself."""
    sql = "SELECT key FROM server_state WHERE substr(key, 1, :length) = :prefix ORDER BY key"
    return db.column(sql, length=len(prefix), prefix=prefix)


def delete_states(db: Connection, prefix: str) -> None:
    """Delete what the server noted about itself under keys with a prefix."""
    sql = "DELETE FROM server_state WHERE substr(key, 1, :length) = :prefix"
    db.run(sql, length=len(prefix), prefix=prefix)


def list_owners(db: Connection, *, removed: bool = False) -> list[Owner]:
    """Return the owners by name; those who were removed and may have a folder left, if asked."""
    condition = "removed_at IS NOT NULL" if removed else "removed_at IS NULL"
    rows = db.rows(f"SELECT {_OWNER} FROM owners WHERE {condition} ORDER BY name")
    return [unpack_record(Owner, row) for row in rows]


def count_owners(db: Connection) -> int:
    """Return the number of owners."""
    return db.number("SELECT count(*) FROM owners WHERE removed_at IS NULL") or 0


def find_owner(db: Connection, name_or_id: str) -> Owner | None:
    """Return the owner of this name or id, or None."""
    row = db.find(
        f"SELECT {_OWNER} FROM owners WHERE (name = :w OR id = :w) AND removed_at IS NULL",
        w=name_or_id,
    )
    return None if row is None else unpack_record(Owner, row)


def remove_owner(db: Connection, id_: str, *, now: datetime) -> None:
    """Remove an owner with keys and memberships, and withdraw what they published.

    The row stays until the folder is deleted, and what teams have of it.
    """
    at = clock.to_us(now)
    db.run("UPDATE owners SET removed_at = :at WHERE id = :id", at=at, id=id_)
    own = "owner_n = (SELECT n FROM owners WHERE id = :id)"
    for table in ("server_keys", "members", "approvals"):
        db.run(f"DELETE FROM {table} WHERE {own}", id=id_)
    db.run(
        "UPDATE publications SET state = 'withdrawn', summary = '', content = '',"
        f" decided_at = :at WHERE {own}",
        at=at,
        id=id_,
    )


def erase_owner(db: Connection, id_: str) -> None:
    """Delete the row of a removed owner, unless a team still has something of theirs."""
    db.run(
        "DELETE FROM owners WHERE id = :id AND removed_at IS NOT NULL AND n NOT IN"
        " (SELECT owner_n FROM publications WHERE fragment_id <> '')",
        id=id_,
    )


def set_worked(db: Connection, id_: str, *, now: datetime) -> None:
    """Record when background work last looked at an owner."""
    db.run("UPDATE owners SET worked_at = :at WHERE id = :id", at=clock.to_us(now), id=id_)


def least_worked(db: Connection, *, before: datetime, limit: int) -> list[str]:
    """Return the owners that background work has not looked at for longest, before a time."""
    return db.column(
        "SELECT id FROM owners WHERE removed_at IS NULL AND worked_at < :at"
        " ORDER BY worked_at, n LIMIT :limit",
        at=clock.to_us(before),
        limit=limit,
    )


def add_team(db: Connection, team: Team, *, salt: str) -> None:
    """Store a team."""
    db.insert(
        "teams", id=team.id, name=team.name, quorum=team.quorum,
        created_at=clock.to_us(team.created_at), salt=salt,
    )  # fmt: skip


def remove_team(db: Connection, id_: str, *, now: datetime) -> None:
    """Remove a team with keys, members and publications; the row stays until its memory is gone."""
    db.run("UPDATE teams SET removed_at = :at WHERE id = :id", at=clock.to_us(now), id=id_)
    for table in ("server_keys", "members", "publications", "provider_keys"):
        db.run(f"DELETE FROM {table} WHERE team_n = (SELECT n FROM teams WHERE id = :id)", id=id_)


def list_removed_teams(db: Connection) -> list[Team]:
    """Return the teams that were removed and may have a memory left."""
    rows = db.rows(f"SELECT {_TEAM} FROM teams WHERE removed_at IS NOT NULL ORDER BY name")
    return [unpack_record(Team, row) for row in rows]


def erase_team(db: Connection, id_: str) -> None:
    """Delete the row of a removed team."""
    db.run("DELETE FROM teams WHERE id = :id AND removed_at IS NOT NULL", id=id_)


def set_quorum(db: Connection, id_: str, quorum: int) -> None:
    """Change the quorum of a team."""
    db.run("UPDATE teams SET quorum = :quorum WHERE id = :id", quorum=quorum, id=id_)


def list_teams(db: Connection, *, owner: str = "") -> list[Team]:
    """Return all teams by name, or those that an owner is a member of."""
    sql = f"SELECT {_TEAM} FROM teams WHERE removed_at IS NULL AND (:owner = '' OR n IN"
    sql += " (SELECT m.team_n FROM members m JOIN owners o ON o.n = m.owner_n"
    sql += " WHERE o.id = :owner AND o.removed_at IS NULL))"
    return [unpack_record(Team, row) for row in db.rows(f"{sql} ORDER BY name", owner=owner)]


def find_team(db: Connection, name_or_id: str) -> Team | None:
    """Return the team of this name or id, or None."""
    row = db.find(
        f"SELECT {_TEAM} FROM teams WHERE (name = :w OR id = :w) AND removed_at IS NULL",
        w=name_or_id,
    )
    return None if row is None else unpack_record(Team, row)


def add_member(db: Connection, team: str, owner: str) -> None:
    """Make an owner a member of a team."""
    db.run(
        "INSERT INTO members (team_n, owner_n) SELECT t.n, o.n FROM teams t, owners o"
        " WHERE t.id = :team AND o.id = :owner AND o.removed_at IS NULL ON CONFLICT DO NOTHING",
        team=team, owner=owner,
    )  # fmt: skip


def remove_member(db: Connection, team: str, owner: str) -> int:
    """End a membership, with the owner's keys for this team; return how many ended."""
    here = (
        "team_n = (SELECT n FROM teams WHERE id = :team)"
        " AND owner_n = (SELECT n FROM owners WHERE id = :owner)"
    )
    db.run(f"DELETE FROM server_keys WHERE {here}", team=team, owner=owner)
    return db.run(f"DELETE FROM members WHERE {here}", team=team, owner=owner)


def list_members(db: Connection, team: str) -> list[str]:
    """Return the names of a team's members."""
    return db.column(
        "SELECT o.name FROM members m JOIN owners o ON o.n = m.owner_n"
        " JOIN teams t ON t.n = m.team_n WHERE t.id = :team ORDER BY o.name",
        team=team,
    )


def add_key(db: Connection, key: ServerKey, digest: str) -> None:
    """Store a key by its prefix and the digest of the whole key."""
    number = "SELECT n FROM {} WHERE id = :id"
    db.insert(
        "server_keys",
        prefix=key.prefix,
        name=key.name,
        digest=digest,
        scopes=" ".join(key.scopes),
        created_at=clock.to_us(key.created_at),
        expires_at=None if key.expires_at is None else clock.to_us(key.expires_at),
        owner_n=db.number(number.format("owners"), id=key.owner) if key.owner else None,
        team_n=db.number(number.format("teams"), id=key.team) if key.team else None,
    )


def find_key(db: Connection, prefix: str) -> tuple[ServerKey, str] | None:
    """Return the key with this prefix and its digest, or None; keys of removed owners are gone."""
    row = db.find(
        f"{_KEY}, k.digest{_KEY_TABLES} WHERE k.prefix = :p AND o.removed_at IS NULL", p=prefix
    )
    return None if row is None else (_key(row[:-1]), str(row[-1]))


def list_keys(db: Connection, *, owner: str = "") -> list[ServerKey]:
    """Return all keys, or those of an owner, oldest first."""
    sql = f"{_KEY}{_KEY_TABLES} WHERE :owner = '' OR o.id = :owner ORDER BY k.n"
    return [_key(row) for row in db.rows(sql, owner=owner)]


def find_named_keys(db: Connection, name_or_prefix: str) -> list[ServerKey]:
    """Return the keys with this prefix or name."""
    sql = f"{_KEY}{_KEY_TABLES} WHERE k.prefix = :w OR k.name = :w ORDER BY k.n"
    return [_key(row) for row in db.rows(sql, w=name_or_prefix)]


def revoke_key(db: Connection, prefix: str, *, now: datetime) -> None:
    """Revoke a key; one that is revoked already keeps its time."""
    db.run(
        "UPDATE server_keys SET revoked_at = coalesce(revoked_at, :at) WHERE prefix = :prefix",
        at=clock.to_us(now), prefix=prefix,
    )  # fmt: skip


def _key(row: Row) -> ServerKey:
    return unpack_record(ServerKey, row, scopes=lambda scopes: tuple(scopes.split()))


def add_publication(db: Connection, publication: Publication, *, team: str, owner: str) -> None:
    """Store a publication that waits for approval."""
    number = "SELECT n FROM {} WHERE id = :id"
    db.insert(
        "publications",
        id=publication.id,
        team_n=db.number(number.format("teams"), id=team),
        owner_n=db.number(number.format("owners"), id=owner),
        source_id=publication.source_id,
        state=publication.state,
        kind=publication.kind,
        summary=publication.summary,
        content=publication.content,
        published_at=clock.to_us(publication.published_at),
    )


def list_publications(
    db: Connection, team: str, states: Sequence[PublicationState], *, limit: int
) -> list[Publication]:
    """Return the publications of a team in some states, newest first."""
    rows = db.rows(f"{_PUBLICATION} WHERE t.id = :team ORDER BY p.n DESC", team=team)
    listed = [unpack_record(Publication, row) for row in rows]
    return [one for one in listed if one.state in states][:limit]


def find_publication(db: Connection, team: str, id_: str) -> Publication | None:
    """Return a publication of a team, or None."""
    row = db.find(f"{_PUBLICATION} WHERE t.id = :team AND p.id = :id", team=team, id=id_)
    return None if row is None else unpack_record(Publication, row)


def find_open_publication(db: Connection, team: str, owner: str, source: str) -> Publication | None:
    """Return the publication of an owner's fragment that waits or is approved, or None."""
    row = db.find(
        f"{_PUBLICATION} WHERE t.id = :team AND o.id = :owner AND p.source_id = :source"
        " AND p.state IN ('pending', 'approved')",
        team=team, owner=owner, source=source,
    )  # fmt: skip
    return None if row is None else unpack_record(Publication, row)


def owner_of_publication(db: Connection, id_: str) -> str:
    """Return the id of the owner who published something."""
    sql = "SELECT o.id FROM publications p JOIN owners o ON o.n = p.owner_n WHERE p.id = :id"
    return str(db.value(sql, id=id_) or "")


def list_withdrawn(db: Connection) -> list[tuple[str, str, str]]:
    """Return what is withdrawn and still in a team's memory: publication, team and fragment."""
    rows = db.rows(
        "SELECT p.id, t.id, p.fragment_id FROM publications p JOIN teams t ON t.n = p.team_n"
        " WHERE p.state = 'withdrawn' AND p.fragment_id <> ''"
    )
    return [(str(id_), str(team), str(fragment)) for id_, team, fragment in rows]


def approved_fragments(db: Connection, team: str) -> dict[str, str]:
    """Return the approved fragments of a team's memory, with who published them."""
    rows = db.rows(
        "SELECT p.fragment_id, o.name FROM publications p JOIN owners o ON o.n = p.owner_n"
        " JOIN teams t ON t.n = p.team_n WHERE t.id = :team AND p.state = 'approved'",
        team=team,
    )
    return {str(id_): str(name) for id_, name in rows}


def approve(db: Connection, publication: str, owner: str, *, now: datetime) -> None:
    """Record an owner's approval of a publication, once."""
    db.run(
        "INSERT INTO approvals (publication_n, owner_n, at) SELECT p.n, o.n, :at"
        " FROM publications p, owners o WHERE p.id = :publication AND o.id = :owner"
        " ON CONFLICT DO NOTHING",
        publication=publication, owner=owner, at=clock.to_us(now),
    )  # fmt: skip


def decide(
    db: Connection, publication: str, state: PublicationState, *, now: datetime, fragment: str = ""
) -> bool:
    """Set the state of a publication; of what is rejected or withdrawn, the text goes.

    Only a pending one is approved or rejected: return whether it still was.
    """
    keeps = state in ("pending", "approved")
    text = "" if keeps else ", summary = '', content = ''"
    only = "" if state == "withdrawn" else " AND state = 'pending'"
    rows = db.rows(
        f"UPDATE publications SET state = :state, decided_at = :at, fragment_id = :fragment{text}"
        f" WHERE id = :id{only} RETURNING n",
        state=state, at=clock.to_us(now), fragment=fragment, id=publication,
    )  # fmt: skip
    return bool(list(rows))


def set_provider_key(
    db: Connection, team: str, provider: str, sealed: str, *, now: datetime
) -> None:
    """Store a provider key of a team, sealed; an empty one removes it."""
    n = db.number("SELECT n FROM teams WHERE id = :id", id=team)
    db.run("DELETE FROM provider_keys WHERE team_n = :n AND provider = :p", n=n, p=provider)
    if sealed:
        at = clock.to_us(now)
        db.insert("provider_keys", team_n=n, provider=provider, sealed=sealed, created_at=at)


def find_provider_key(db: Connection, team: str, provider: str) -> str:
    """Return the sealed provider key of a team, or an empty text."""
    sql = "SELECT k.sealed FROM provider_keys k JOIN teams t ON t.n = k.team_n"
    sql += " WHERE t.id = :team AND k.provider = :provider"
    return str(db.value(sql, team=team, provider=provider) or "")


def list_provider_keys(db: Connection, team: str) -> list[str]:
    """Return the providers for which a team has a key."""
    sql = "SELECT k.provider FROM provider_keys k JOIN teams t ON t.n = k.team_n"
    return db.column(f"{sql} WHERE t.id = :team ORDER BY k.provider", team=team)
