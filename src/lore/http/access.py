"""Access: the key of this installation, keys that were made, and what each one opens."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread
from starlette.datastructures import Headers

from lore import clock, key_files
from lore.clock import Clock
from lore.http.logins import Logins
from lore.proxy.address import KEY_FILE
from lore.records import AccessKey, AccessScope, Grant

_KEY_BYTES, _SHORTEST_KEY = 32, 43
"""256 bits, as bytes and in the letters of base64."""

_LOCAL_MARK = "lore_local_"


EVERYTHING: frozenset[AccessScope] = frozenset({"read", "write", "push", "admin"})


def local_key(home: Path) -> str:
    """Return the key of a home, which whoever can read its files has; made at the first call.

    A key that others could have read is replaced.
    """
    path = home / KEY_FILE
    if path.is_symlink() or (path.exists() and path.stat().st_mode & 0o077):
        path.unlink()
    made = key_files.ensure(
        path,
        make=lambda: f"{_LOCAL_MARK}{secrets.token_urlsafe(_KEY_BYTES)}\n".encode(),
        is_sound=lambda key: len(key.strip()) >= _SHORTEST_KEY and key.strip().isascii(),
    )
    return made.decode("ascii").strip()


@dataclass(frozen=True, slots=True)
class Access:
    """What lets a request in: the local key, a key that was made, or a browser's cookie."""

    local: str
    recognise_key: Callable[[str], AccessKey | None]
    logins: Logins
    now: Clock = clock.now

    async def find_grant(self, headers: Headers) -> Grant | None:
        """Return what is open to whoever sends these headers, or None if nothing is."""
        presented = _presented(headers)
        if presented is None:
            return self._of_cookie(headers)
        if hmac.compare_digest(presented.encode(), self.local.encode()):
            return Grant("local", EVERYTHING)
        record = await to_thread.run_sync(self.recognise_key, presented)
        if record is None or not record.opens(self.now()):
            return None
        return Grant(record.prefix, frozenset(record.scopes))

    async def why_closed(self, headers: Headers) -> str:
        """Say what became of a key that did open something; whoever has it whole may know."""
        record = await to_thread.run_sync(self.recognise_key, _presented(headers) or "")
        if record is None:
            return ""
        return "This access key was revoked." if record.revoked_at else "This access key expired."

    def _of_cookie(self, headers: Headers) -> Grant | None:
        name = self.logins.find_session(headers.get("cookie", ""))
        return None if name is None else Grant(name, EVERYTHING, browser=True)


def _presented(headers: Headers) -> str | None:
    """Return the key that a request shows, empty if it is shown in a wrong way."""
    authorization = headers.get("authorization")
    if authorization is not None:
        scheme, _, key = authorization.partition(" ")
        return key.strip() if scheme.lower() == "bearer" else ""
    return headers.get("x-lore-key")
