"""Access keys for the HTTP server: create, list, revoke and recognize."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import TypeVar

from lore.errors import InvalidInput, NotFound
from lore.memory.context import MemoryPart
from lore.records import ACCESS_SCOPES, AccessKey, AccessScope
from lore.records.server_records import ServerKey
from lore.redaction.redactor import home_key
from lore.store import access_keys
from lore.validation import Seconds, validate_methods

KEY_MARK = "lore_"
"""The prefix of every key, by which people and secret scanners recognize one."""

_PREFIX_BYTES, _SECRET_BYTES = 5, 32
"""The prefix finds the row; the 256 bits after it are the secret."""

_LONGEST_NAME = 100
"""The name must fit on one line of a list."""

Key = TypeVar("Key", AccessKey, ServerKey)


def new_key() -> tuple[str, str]:
    """Return the prefix of a new access key, and the key."""
    prefix = secrets.token_hex(_PREFIX_BYTES)
    return prefix, f"{KEY_MARK}{prefix}_{secrets.token_urlsafe(_SECRET_BYTES)}"


def digest_key(secret: bytes, key: str) -> str:
    """Return the stored digest of a key; it is useless without the secret."""
    return hmac.digest(secret, key.encode("utf-8", "replace"), "sha256").hex()


def identify(key: str, secret: bytes, find: Callable[[str], tuple[Key, str] | None]) -> Key | None:
    """Return the record of a whole key; `find` looks up a record and its digest by prefix."""
    mark, _, rest = key.partition("_")
    prefix, _, own = rest.partition("_")
    if f"{mark}_" != KEY_MARK or not own:
        return None
    record, digest = find(prefix) or (None, "")
    return record if hmac.compare_digest(digest, digest_key(secret, key)) else None


def choose(name_or_prefix: str, find: Callable[[str], list[Key]]) -> Key:
    """Return the one key that a name, a prefix or the whole key means; rather one that stands.

    A message has no more of a whole key than its prefix.
    """
    wanted = name_or_prefix.strip()
    matches = find(wanted)
    if not matches and wanted.startswith(KEY_MARK):
        wanted = wanted.removeprefix(KEY_MARK).partition("_")[0]
        matches = [key for key in find(wanted) if key.prefix == wanted]
    standing = [key for key in matches if key.revoked_at is None] or matches
    if not standing:
        msg = f"No access key is called '{wanted[:60]}'."
        raise NotFound(msg, hint="'lore key list' shows them.")
    if len(standing) > 1:
        msg = f"Several access keys are called '{wanted[:60]}'."
        raise InvalidInput(msg, hint="Give the prefix of the one you mean.")
    return standing[0]


@validate_methods
class Access(MemoryPart):
    """Access keys for the HTTP server: create, list, revoke and recognize."""

    def create_key(
        self,
        name: str,
        *,
        scopes: Sequence[AccessScope] = ("read", "write"),
        expires_in_s: Seconds | None = None,
    ) -> tuple[str, AccessKey]:
        """Create an access key; return it with its record. The key cannot be shown again."""
        unknown = sorted(set(scopes) - set(ACCESS_SCOPES))
        if unknown or not scopes:
            msg = (
                f"'{unknown[0]}' is not a scope." if unknown else "A key needs at least one scope."
            )
            raise InvalidInput(msg, hint=f"Scopes: {', '.join(ACCESS_SCOPES)}.")
        name = self._redactor.redact(" ".join(name.split()))[:_LONGEST_NAME]
        if not name:
            msg = "A key needs a name: it is revoked by name."
            raise InvalidInput(msg)
        now = self._database.now()
        try:
            until = None if expires_in_s is None else now + timedelta(seconds=expires_in_s)
        except OverflowError as error:
            msg = "The lifetime of the key is too long."
            raise InvalidInput(
                msg, hint="Leave it out for a key that lasts until it is revoked."
            ) from error
        prefix, key = new_key()
        ordered = tuple(scope for scope in ACCESS_SCOPES if scope in scopes)
        record = AccessKey(prefix, name, ordered, now, until)
        digest = digest_key(self._secret, key)
        self._database.write(partial(access_keys.add, key=record, digest=digest))
        return key, record

    def list_keys(self) -> list[AccessKey]:
        """Return all access keys, including expired and revoked ones."""
        with self._database.read() as db:
            return access_keys.list_all(db)

    def revoke_key(self, name_or_prefix: str) -> AccessKey:
        """Revoke an access key and return its record.

        The key may be given by name, by prefix or whole.
        """
        with self._database.read() as db:
            prefix = choose(name_or_prefix, partial(access_keys.find_named, db)).prefix
        now = self._database.now()
        self._database.write(partial(access_keys.revoke, prefix=prefix, now=now))
        with self._database.read() as db:
            return access_keys.find_named(db, prefix)[0]

    def find_key(self, key: str) -> AccessKey | None:
        """Return the record of an access key if the key is valid now, else None."""
        record = self.identify_key(key)
        return record if record and record.is_valid(self._database.now()) else None

    def identify_key(self, key: str) -> AccessKey | None:
        """Return the record of an access key, even if it is expired or revoked.

        Only the whole key identifies a record, so that a prefix reveals nothing.
        """
        return identify(key, self._secret, self._find)

    def is_key_valid(self, name: str) -> bool:
        """Return whether the access key with this prefix is valid now."""
        row = self._find(name)
        return row is not None and row[0].is_valid(self._database.now())

    def _find(self, prefix: str) -> tuple[AccessKey, str] | None:
        with self._database.read() as db:
            return access_keys.find(db, prefix)

    @property
    def _secret(self) -> bytes:
        return home_key(self._settings, "access")
