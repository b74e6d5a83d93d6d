"""The registry of a server: who has a memory here, in which teams, and with which keys."""

from __future__ import annotations

import hmac
import secrets
import shutil
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal

from lore import clock, config_files, settings
from lore.errors import InvalidInput, NotFound, StoreDamaged, StoreError
from lore.memory import access
from lore.records import ACCESS_SCOPES, AccessScope
from lore.records.server_records import Owner, ServerKey, Team
from lore.server.key_vault import KeyVault
from lore.store import registry_rows
from lore.store.database import Connection, Database, open_database

REGISTRY_FILE, KEY_FILE = "server.db", "server.key"
OWNERS_FOLDER, TEAMS_FOLDER = "owners", "teams"

_KEY_BYTES = 32
_SALT_BYTES = 16

MemoryKind = Literal["owner", "team", "server"]
"""Whose rows are in a database: those of an owner, of a team, or the server's own mark."""

_ROWS_SALT, _HAS_ROWS, _BACKUP = "rows_salt", "has_rows", "backup"
"""What the server notes about itself: if it has rows in a database, and if it is a backup."""

MOVE_NOTE, MOVED_NOTE, STAMP_NOTE = "move", "moved/", "move_stamp"
"""What the server notes about a move of its memories: where to, what is copied, and its name."""

MOVE_ID_NOTE, NEXT_ID_NOTE, SWITCH_NOTE = "move_id", "move_next_id", "move_switch"
"""The id of a move that the database notes, too, the id that it gets next, and if it switches."""

ERASED_NOTE = "move_erased"
"""Notes that a move has erased all rows of memories, and erases the mark of the database."""

_NOTES_OF_A_MOVE = (
    MOVE_NOTE, STAMP_NOTE, MOVE_ID_NOTE, NEXT_ID_NOTE, SWITCH_NOTE, ERASED_NOTE,
)  # fmt: skip

_VECTORS_NOTE = "vectors/"
"""Begins the notes about removed memories whose vectors a vector server still has."""

_LEFT_NOTE = "left_rows/"
"""Begins the notes about rows in a database that no memory uses any more: its mark, and a name.

The value is the ids of the move that left them.
"""

_NO_ID = "1"
"""The value of such a note if the move has no id; versions without ids wrote it, too."""

_LONGEST_NAME = 100
"""The name must fit on one line of a list."""

_BUSY_S = 30.0

PROVIDERS = ("anthropic", "openai", "gemini")
"""Providers for which a team can have a key."""


class Registry:
    """Owners, teams, members and keys of a server, in a database of its own.

    Names are for people. Folders are named by an HMAC of the name under the server's key, so that a
    listing of the disk, a path in a log or a backup says nothing about who is served.
    """

    def __init__(self, home: Path, database: Database, key: bytes) -> None:
        self.home = home
        self.database = database
        self._key = key
        self._access_key = hmac.digest(key, b"access", "sha256")
        self._owner_key = hmac.digest(key, b"owner", "sha256")
        self._team_key = hmac.digest(key, b"team", "sha256")
        self._rows_key = hmac.digest(key, b"rows", "sha256")
        self.vault = KeyVault(hmac.digest(key, b"provider keys", "sha256"))

    @classmethod
    def open(cls, home: Path, *, create: bool = True, now: clock.Clock = clock.now) -> Registry:
        """Open the registry in a server's home; create it if it is missing."""
        path = home / REGISTRY_FILE
        if not create and not path.exists():
            msg = f"There is no server in {home} yet."
            raise NotFound(msg, hint="'lore owner add NAME' creates one; --data names its folder.")
        key = _load_key(home, is_new=not path.exists())
        database = open_database(
            path, busy_timeout_s=_BUSY_S, backups=None, now=now, steps=registry_rows.MIGRATIONS
        )
        return cls(home, database, key)

    def close(self) -> None:
        """Finish queued writes and close the database."""
        self.database.close()

    def __enter__(self) -> Registry:
        """Return the registry itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the registry."""
        self.close()

    def owner_folder(self, id_: str) -> Path:
        """Return the folder of an owner's memory."""
        return self.home / OWNERS_FOLDER / id_

    def team_folder(self, id_: str) -> Path:
        """Return the folder of a team's memory."""
        return self.home / TEAMS_FOLDER / id_

    def add_owner(self, name: str) -> Owner:
        """Add an owner, who has an empty memory."""
        name = _check_name(name, "An owner")
        owner = Owner(_hash_name(self._owner_key, name), name, self.database.now())
        if self._find_owner(owner.id) is not None:
            raise InvalidInput(f"There is an owner '{name}' already.")
        if any(one.id == owner.id for one in self.removed_owners()):
            msg = f"The memory of a removed owner '{name}' is still being deleted."
            raise InvalidInput(msg, hint="Try again in a minute, or start 'lore serve'.")
        salt = secrets.token_hex(_SALT_BYTES)
        self.database.write(partial(registry_rows.add_owner, owner=owner, salt=salt))
        return owner

    def list_owners(self) -> list[Owner]:
        """Return all owners by name."""
        with self.database.read() as db:
            return registry_rows.list_owners(db)

    def count_owners(self) -> int:
        """Return the number of owners."""
        with self.database.read() as db:
            return registry_rows.count_owners(db)

    def get_owner(self, name: str) -> Owner:
        """Return the owner of this name, or raise."""
        owner = self._find_owner(_hash_name(self._owner_key, name))
        if owner is None:
            msg = f"There is no owner '{name[:60]}'."
            raise NotFound(msg, hint="'lore owner list' shows them.")
        return owner

    def check_owner(self, id_: str) -> None:
        """Raise if there is no owner of this id, or no longer."""
        if self._find_owner(id_) is None:
            msg = "There is no such owner."
            raise NotFound(msg)

    def has_memory(self, id_: str) -> bool:
        """Return whether an owner of this id is served and has stored something."""
        return self._find_owner(id_) is not None and self.owner_folder(id_).exists()

    def _find_owner(self, id_: str) -> Owner | None:
        with self.database.read() as db:
            return registry_rows.find_owner(db, id_)

    def remove_owner(self, name: str) -> Owner:
        """Remove an owner: keys stop at once; `erase_removed` deletes the memory."""
        owner = self.get_owner(name)
        now = self.database.now()
        self.database.write(partial(registry_rows.remove_owner, id_=owner.id, now=now))
        return owner

    def removed_owners(self) -> list[Owner]:
        """Return removed owners whose memory is not deleted yet."""
        with self.database.read() as db:
            return registry_rows.list_owners(db, removed=True)

    def erase_removed(self, removed: Owner | Team) -> None:
        """Delete the folder and the row of a removed owner or team, which nobody has open."""
        is_team = isinstance(removed, Team)
        _delete_folder(self.team_folder(removed.id) if is_team else self.owner_folder(removed.id))
        erase = registry_rows.erase_team if is_team else registry_rows.erase_owner
        self.database.write(partial(erase, id_=removed.id))

    def rows_name(self, kind: MemoryKind, id_: str) -> str:
        """Return the name under which a memory's rows are stored in a database of many.

        Nobody can choose or compute it: it depends on the server's key, on the kind and the id,
        and on a salt that whoever comes back under the same name does not get again.
        """
        with self.database.read() as db:
            return self._rows_name(db, kind, id_)

    def _rows_name(self, db: Connection, kind: MemoryKind, id_: str) -> str:
        salt = (
            registry_rows.find_state(db, _ROWS_SALT)
            if kind == "server"
            else registry_rows.find_salt(db, "owners" if kind == "owner" else "teams", id_)
        )
        if not salt:
            msg = f"There is no such {kind}."
            raise NotFound(msg)
        return hmac.digest(self._rows_key, f"{kind}/{id_}/{salt}".encode(), "sha256").hex()

    @property
    def has_rows(self) -> bool:
        """Whether the memories of this server are rows of a database, not files."""
        with self.database.read() as db:
            return bool(registry_rows.find_state(db, _HAS_ROWS))

    @property
    def is_backup(self) -> bool:
        """Whether this is the registry of a backup, whose memories must be restored first."""
        with self.database.read() as db:
            return bool(registry_rows.find_state(db, _BACKUP))

    def ensure_rows_name(self) -> None:
        """Give the server a name for its own rows, unless it has one."""

        def ensure(db: Connection) -> None:
            if not registry_rows.find_state(db, _ROWS_SALT):
                registry_rows.set_state(db, _ROWS_SALT, secrets.token_hex(_SALT_BYTES))

        self.database.write(ensure)

    def note_rows(self) -> None:
        """Note that the memories of this server are rows of a database, which has its mark."""
        self.database.write(lambda db: registry_rows.set_state(db, _HAS_ROWS, "1"))

    @property
    def move_to(self) -> str:
        """Where a move of the memories goes that is not finished, or an empty text."""
        return self.find_note(MOVE_NOTE)

    @property
    def move_ids(self) -> frozenset[str]:
        """The ids that the database may have for the move that is not finished.

        Two if it was interrupted while it got another one; an empty one if it began in a version
        without ids.
        """
        with self.database.read() as db:
            return _move_ids(db)

    @property
    def has_move_switched(self) -> bool:
        """Whether the memories are where the move goes that is not finished."""
        return self.has_rows == (self.move_to == "postgres")

    def find_note(self, key: str) -> str:
        """Return what was noted about a move, or an empty text."""
        with self.database.read() as db:
            return registry_rows.find_state(db, key)

    def set_notes(self, notes: Mapping[str, str]) -> None:
        """Note something about a move, all at once."""

        def work(db: Connection) -> None:
            for key, value in notes.items():
                registry_rows.set_state(db, key, value)

        self.database.write(work)

    def note_vectors(self, id_: str) -> None:
        """Note that a vector server still has the vectors of a removed memory."""
        self.set_notes({f"{_VECTORS_NOTE}{id_}": "1"})

    def left_vectors(self) -> list[str]:
        """Return the ids of removed memories whose vectors are still to be deleted."""
        with self.database.read() as db:
            keys = registry_rows.list_states(db, _VECTORS_NOTE)
        return [key.removeprefix(_VECTORS_NOTE) for key in keys]

    def forget_vectors(self, id_: str) -> None:
        """Note that the vectors of a removed memory are deleted."""
        self.database.write(partial(registry_rows.delete_states, prefix=f"{_VECTORS_NOTE}{id_}"))

    def switch_rows(self, *, has_rows: bool) -> None:
        """Note where the memories are after all of them were copied."""
        self.set_notes({_HAS_ROWS: "1" if has_rows else ""})

    def forget_copies(self) -> None:
        """Forget which memories a move has copied."""
        self.database.write(partial(registry_rows.delete_states, prefix=MOVED_NOTE))

    def left_rows(self) -> dict[str, list[str]]:
        """Return the names of rows that cancelled moves left, by the mark of their database."""
        with self.database.read() as db:
            keys = registry_rows.list_states(db, _LEFT_NOTE)
        left: dict[str, list[str]] = {}
        for key in keys:
            mark, _, name = key.removeprefix(_LEFT_NOTE).partition("/")
            left.setdefault(mark, []).append(name)
        return left

    def left_move_ids(self, mark: str) -> frozenset[str]:
        """Return the ids of the move that left rows in the database with a mark."""
        ids = self.find_note(f"{_LEFT_NOTE}{mark}/{mark}").split(" ")
        return frozenset("" if one == _NO_ID else one for one in ids)

    def forget_left_rows(self, mark: str) -> None:
        """Note that the rows are deleted that were left in the database with a mark."""
        self.database.write(partial(registry_rows.delete_states, prefix=f"{_LEFT_NOTE}{mark}/"))

    def _leave_rows(self, db: Connection) -> None:
        """Note all rows as left in a database, and give the memories other names."""
        owners = [*registry_rows.list_owners(db), *registry_rows.list_owners(db, removed=True)]
        teams = [*registry_rows.list_teams(db), *registry_rows.list_removed_teams(db)]
        mark = self._rows_name(db, "server", "")
        names = [self._rows_name(db, "owner", one.id) for one in owners]
        names += [self._rows_name(db, "team", one.id) for one in teams]
        ids = " ".join(one or _NO_ID for one in sorted(_move_ids(db)))
        for name in (mark, *names):
            registry_rows.set_state(db, f"{_LEFT_NOTE}{mark}/{name}", ids)
        self._renew_rows(db)

    def end_move(self, *, leaves_rows: bool = False) -> None:
        """Forget the notes about a move that is finished, or that was cancelled and left rows."""

        def work(db: Connection) -> None:
            if leaves_rows:
                self._leave_rows(db)
            registry_rows.delete_states(db, MOVED_NOTE)
            for key in _NOTES_OF_A_MOVE:
                registry_rows.set_state(db, key, "")

        self.database.write(work)

    def mark_backup(self) -> None:
        """Note that this is the registry of a backup."""
        self.database.write(lambda db: registry_rows.set_state(db, _BACKUP, "1"))

    def renew_rows(self) -> None:
        """Give all memories names that no rows have: those of a backup are loaded under them."""
        self.database.write(self._renew_rows)

    def _renew_rows(self, db: Connection) -> None:
        for one in registry_rows.list_owners(db):
            registry_rows.set_salt(db, "owners", one.id, secrets.token_hex(_SALT_BYTES))
        for team in registry_rows.list_teams(db):
            registry_rows.set_salt(db, "teams", team.id, secrets.token_hex(_SALT_BYTES))
        registry_rows.set_state(db, _ROWS_SALT, secrets.token_hex(_SALT_BYTES))
        registry_rows.set_state(db, _HAS_ROWS, "")
        registry_rows.set_state(db, _BACKUP, "")

    def add_team(self, name: str, *, quorum: int) -> Team:
        """Add a team without members."""
        name = _check_name(name, "A team")
        _check_quorum(quorum)
        team = Team(self.team_id(name), name, quorum, self.database.now())
        if self.find_team(team.id) is not None:
            raise InvalidInput(f"There is a team '{name}' already.")
        if any(one.id == team.id for one in self.removed_teams()):
            msg = f"The memory of a removed team '{name}' is still being deleted."
            raise InvalidInput(msg, hint="Try again in a minute, or start 'lore serve'.")
        salt = secrets.token_hex(_SALT_BYTES)
        self.database.write(partial(registry_rows.add_team, team=team, salt=salt))
        return team

    def remove_team(self, name: str) -> Team:
        """Remove a team: keys and membership end at once; `erase_removed` deletes the memory."""
        team = self.get_team(name)
        now = self.database.now()
        self.database.write(partial(registry_rows.remove_team, id_=team.id, now=now))
        return team

    def removed_teams(self) -> list[Team]:
        """Return removed teams whose memory is not deleted yet."""
        with self.database.read() as db:
            return registry_rows.list_removed_teams(db)

    def set_quorum(self, name: str, quorum: int) -> None:
        """Change how many members must approve what is published to a team."""
        team = self.get_team(name)
        _check_quorum(quorum)
        self.database.write(partial(registry_rows.set_quorum, id_=team.id, quorum=quorum))

    def set_budget(self, folder: Path, usd: float | None) -> None:
        """Set the daily budget of an owner's or a team's folder, also in a running server.

        None removes it: that of the server's settings applies then.
        """
        if usd is not None and not 0 <= usd < float("inf"):
            msg = "A daily budget is a number of US dollars, 0 or more."
            raise InvalidInput(msg)
        settings.write_user_setting(folder, "daily_budget", None if usd is None else repr(usd))

    def find_budget(self, folder: Path) -> float | None:
        """Return the daily budget of a folder, or None if it has none of its own."""
        own = config_files.flatten(config_files.read_toml(folder / settings.USER_FILE))
        usd = own.get("daily_budget")
        return float(usd) if isinstance(usd, int | float) else None

    def list_teams(self, *, owner: str = "") -> list[Team]:
        """Return all teams, or those that the owner of an id is a member of."""
        with self.database.read() as db:
            return registry_rows.list_teams(db, owner=owner)

    def get_team(self, name: str) -> Team:
        """Return the team of this name, or raise."""
        team = self.find_team(self.team_id(name))
        if team is None:
            msg = f"There is no team '{name[:60]}'."
            raise NotFound(msg, hint="'lore team list' shows them.")
        return team

    def team_id(self, name: str) -> str:
        """Return the id that a team of this name has: its case does not matter."""
        return _hash_name(self._team_key, name)

    def find_team(self, id_: str) -> Team | None:
        """Return the team of an id, or None."""
        with self.database.read() as db:
            return registry_rows.find_team(db, id_)

    def add_member(self, team: str, owner: str) -> None:
        """Make an owner a member of a team."""
        ids = self.get_team(team).id, self.get_owner(owner).id
        self.database.write(lambda db: registry_rows.add_member(db, *ids))

    def remove_member(self, team: str, owner: str) -> None:
        """End a membership; keys of the owner for this team stop at once."""
        ids = self.get_team(team).id, self.get_owner(owner).id
        if not self.database.write(lambda db: registry_rows.remove_member(db, *ids)):
            raise NotFound(f"'{owner[:60]}' is no member of '{team[:60]}'.")

    def list_members(self, team: str) -> list[str]:
        """Return the names of a team's members."""
        id_ = self.get_team(team).id
        with self.database.read() as db:
            return registry_rows.list_members(db, id_)

    def create_key(
        self,
        name: str,
        *,
        owner: str = "",
        team: str = "",
        scopes: Sequence[AccessScope] = ("read", "write"),
        expires_in_s: float | None = None,
    ) -> tuple[str, ServerKey]:
        """Create an access key; return it with its record. The key cannot be shown again.

        Without an owner it is the operator's, who reads the figures of the server. With a team, its
        owner acts for the team: the scope admin decides what the team publishes.
        """
        name = _check_name(name, "A key")
        unknown = sorted(set(scopes) - set(ACCESS_SCOPES))
        if unknown or not scopes:
            msg = f"'{unknown[0]}' is no scope." if unknown else "A key needs a scope."
            raise InvalidInput(msg, hint=f"Scopes: {', '.join(ACCESS_SCOPES)}.")
        person = self.get_owner(owner) if owner else None
        group = self.get_team(team) if team else None
        if group is not None and (person is None or person.name not in self.list_members(team)):
            msg = f"'{owner[:60]}' is no member of '{team[:60]}'."
            raise InvalidInput(msg, hint=f"'lore team join {team} {owner}' makes them one.")
        now = self.database.now()
        until = _expiry(now, expires_in_s)
        ordered = tuple(scope for scope in ACCESS_SCOPES if scope in scopes)
        prefix, key = access.new_key()
        record = ServerKey(
            prefix, name, ordered, now, until,
            owner=person.id if person else "", owner_name=person.name if person else "",
            team=group.id if group else "", team_name=group.name if group else "",
        )  # fmt: skip
        digest = access.digest_key(self._access_key, key)
        self.database.write(partial(registry_rows.add_key, key=record, digest=digest))
        return key, record

    def list_keys(self, *, owner: str = "") -> list[ServerKey]:
        """Return all keys, or those of an owner, expired and revoked ones too."""
        id_ = self.get_owner(owner).id if owner else ""
        with self.database.read() as db:
            return registry_rows.list_keys(db, owner=id_)

    def revoke_key(self, name_or_prefix: str) -> ServerKey:
        """Revoke a key by name, by prefix or whole; it stops at once."""
        with self.database.read() as db:
            prefix = access.choose(
                name_or_prefix, partial(registry_rows.find_named_keys, db)
            ).prefix
        now = self.database.now()
        self.database.write(partial(registry_rows.revoke_key, prefix=prefix, now=now))
        with self.database.read() as db:
            return registry_rows.find_named_keys(db, prefix)[0]

    def identify_key(self, key: str) -> ServerKey | None:
        """Return the record of an access key, even if it is expired or revoked.

        Only the whole key identifies a record, so that a prefix reveals nothing.
        """
        return access.identify(key, self._access_key, self._find_key)

    def find_key(self, key: str) -> ServerKey | None:
        """Return the record of a key that is valid now, else None."""
        record = self.identify_key(key)
        return record if record is not None and record.is_valid(self.database.now()) else None

    def is_key_valid(self, prefix: str) -> bool:
        """Return whether the key with this prefix is valid now."""
        row = self._find_key(prefix)
        return row is not None and row[0].is_valid(self.database.now())

    def _find_key(self, prefix: str) -> tuple[ServerKey, str] | None:
        with self.database.read() as db:
            return registry_rows.find_key(db, prefix)

    def set_provider_key(self, team: str, provider: str, key: str) -> None:
        """Store a provider key of a team, encrypted; an empty one removes it."""
        id_ = self.get_team(team).id
        if provider not in PROVIDERS:
            raise InvalidInput(f"Providers: {', '.join(PROVIDERS)}.")
        sealed = self.vault.seal(key, f"{id_}/{provider}") if key else ""
        now = self.database.now()
        self.database.write(
            lambda db: registry_rows.set_provider_key(db, id_, provider, sealed, now=now)
        )

    def list_provider_keys(self, team: str) -> list[str]:
        """Return the providers for which a team has a key."""
        id_ = self.get_team(team).id
        with self.database.read() as db:
            return registry_rows.list_provider_keys(db, id_)

    def find_provider_key(self, team_id: str, provider: str) -> str:
        """Return the provider key of a team, or an empty text."""
        with self.database.read() as db:
            sealed = registry_rows.find_provider_key(db, team_id, provider)
        return self.vault.open(sealed, f"{team_id}/{provider}") if sealed else ""


def _move_ids(db: Connection) -> frozenset[str]:
    next_id = registry_rows.find_state(db, NEXT_ID_NOTE)
    return frozenset((registry_rows.find_state(db, MOVE_ID_NOTE), *([next_id] if next_id else [])))


def _delete_folder(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        msg = f"{folder} cannot be deleted: {error.strerror}."
        raise StoreError(msg) from error


def _load_key(home: Path, *, is_new: bool) -> bytes:
    """Return the server's key; never a new one for an old registry, whose folders it names."""
    path = home / KEY_FILE
    if not is_new and not path.exists():
        msg = f"{path} is missing: without it nobody's folder and no access key can be recognised."
        raise StoreDamaged(msg, hint="Bring it back from a backup of the server's home.")
    try:
        key = config_files.ensure_key(
            path, make=lambda: secrets.token_bytes(_KEY_BYTES), is_sound=lambda key: bool(key)
        )
    except OSError as error:
        msg = f"{path} cannot be read or written: {error.strerror}."
        raise StoreError(msg, hint="The server needs a folder of its own.") from error
    if len(key) != _KEY_BYTES:
        msg = f"{path} is no key of a server."
        raise StoreDamaged(msg, hint="Bring it back from a backup of the server's home.")
    return key


def _hash_name(key: bytes, name: str) -> str:
    """Return the id of a name: names that differ in case or spelling of characters are one."""
    plain = unicodedata.normalize("NFKC", " ".join(name.split())).casefold()
    return hmac.digest(key, plain.encode("utf-8", "replace"), "sha256").hex()


def _check_name(name: str, what: str) -> str:
    name = unicodedata.normalize("NFC", " ".join(name.split()))
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        msg = f"{what} needs a name of 1 to {_LONGEST_NAME} printable characters."
        raise InvalidInput(msg)
    return name


def _check_quorum(quorum: int) -> None:
    if quorum < 1:
        msg = "A quorum is at least 1."
        raise InvalidInput(msg)


def _expiry(now: datetime, lasting_s: float | None) -> datetime | None:
    try:
        return None if lasting_s is None else now + timedelta(seconds=lasting_s)
    except OverflowError as error:
        msg = "The lifetime of the key is too long."
        raise InvalidInput(msg, hint="Leave it out for one that lasts until revoked.") from error
