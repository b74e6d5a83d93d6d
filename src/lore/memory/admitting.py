"""The desk for access: keys for the server, made, listed, revoked and recognised."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from lore.checking import Seconds, checked_class
from lore.errors import InvalidInput, NotFound
from lore.memory.desk import Desk
from lore.records import ACCESS_SCOPES, AccessKey, AccessScope
from lore.redaction import home_key
from lore.store import access_keys

KEY_MARK = "lore_"
"""What every key begins with, so that a person and a scanner know one when they see it."""

_PREFIX_BYTES, _SECRET_BYTES = 5, 32
"""The prefix only finds the row; the 256 bits after it are what nobody can guess."""

_LONGEST_NAME = 100
"""A line in a list of keys."""


@checked_class
class Admitting(Desk):
    """For access."""

    __slots__ = ()

    def create_key(
        self,
        name: str,
        *,
        scopes: Sequence[AccessScope] = ("read", "write"),
        expires_in_s: Seconds | None = None,
    ) -> tuple[str, AccessKey]:
        """Make an access key and return it with its record; it can never be shown again."""
        unknown = sorted(set(scopes) - set(ACCESS_SCOPES))
        if unknown or not scopes:
            msg = f"'{unknown[0]}' is no scope." if unknown else "A key needs a scope."
            raise InvalidInput(msg, hint=f"Scopes: {', '.join(ACCESS_SCOPES)}.")
        name = self.redactor.redact(" ".join(name.split()))[:_LONGEST_NAME]
        if not name:
            msg = "A key needs a name, by which it can be revoked."
            raise InvalidInput(msg)
        now = self.database.now()
        try:
            until = None if expires_in_s is None else now + timedelta(seconds=expires_in_s)
        except OverflowError as error:
            msg = "A key cannot last so long."
            raise InvalidInput(msg, hint="Give no end, and it lasts until revoked.") from error
        prefix = secrets.token_hex(_PREFIX_BYTES)
        ordered = tuple(scope for scope in ACCESS_SCOPES if scope in scopes)
        made = AccessKey(prefix, name, ordered, now, until)
        key = f"{KEY_MARK}{prefix}_{secrets.token_urlsafe(_SECRET_BYTES)}"
        self.database.write(partial(access_keys.add, key=made, digest=self._digest(key)))
        return key, made

    def access_keys(self) -> list[AccessKey]:
        """Return all access keys that were made, also those that open nothing any more."""
        with self.database.read() as db:
            return access_keys.everyone(db)

    def revoke_key(self, name_or_prefix: str) -> AccessKey:
        """Let an access key open nothing from now on, and return its record.

        It may also be named by all of it, or by as much as stands before the secret.
        """
        given = name_or_prefix.strip()
        with self.database.read() as db:
            found = access_keys.named(db, given)
            if not found and given.startswith(KEY_MARK):
                prefix = given.removeprefix(KEY_MARK).partition("_")[0]
                found = [key for key in access_keys.named(db, prefix) if key.prefix == prefix]
        standing = [key for key in found if key.revoked_at is None] or found
        if not standing:
            msg = f"No access key is called '{name_or_prefix[:60]}'."
            raise NotFound(msg, hint="'lore key list' shows them.")
        if len(standing) > 1:
            msg = f"Several access keys are called '{name_or_prefix[:60]}'."
            raise InvalidInput(msg, hint="Give the prefix of the one you mean.")
        prefix, now = standing[0].prefix, self.database.now()
        self.database.write(partial(access_keys.revoke, prefix=prefix, now=now))
        with self.database.read() as db:
            return access_keys.named(db, prefix)[0]

    def find_key(self, key: str) -> AccessKey | None:
        """Return the record of an access key that is presented, if it opens anything now."""
        record = self.recognise_key(key)
        return record if record and record.opens(self.database.now()) else None

    def recognise_key(self, key: str) -> AccessKey | None:
        """Return the record of an access key, also of one that opens nothing any more.

        Only who has all of the key learns anything: its prefix alone tells nobody that it was.
        """
        mark, _, rest = key.partition("_")
        prefix, _, secret = rest.partition("_")
        if f"{mark}_" != KEY_MARK or not secret:
            return None
        with self.database.read() as db:
            found = access_keys.find(db, prefix)
        record, digest = found or (None, "")
        fits = hmac.compare_digest(digest, self._digest(key))
        return record if fits else None

    def _digest(self, key: str) -> str:
        """Return what is stored of a key: without the home's own key it tells nothing."""
        secret = home_key(self.settings, "access")
        return hmac.digest(secret, key.encode("utf-8", "replace"), "sha256").hex()
