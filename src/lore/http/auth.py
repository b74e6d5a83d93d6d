"""Authentication: access keys, browser logins, and the allowed Host and Origin headers.

A web page of another site can reach a server on this machine by its address, or by a DNS name that
points to it. Its browser then sends a foreign Origin or Host header. Both are rejected, whatever
address the server is bound to.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from anyio import CapacityLimiter, to_thread
from starlette.datastructures import Headers

from lore import clock, config_files
from lore.clock import Clock
from lore.proxy.address import KEY_FILE, LOOPBACK_HOSTS
from lore.records import AccessKey, AccessScope, Grant
from lore.tools.tool import LOCAL

TICKET_S = 60.0
"""The browser opens at once; a ticket found later in a history or log is useless."""

SESSION_S = 24 * 3600.0
"""A working day; 'lore open' starts another session."""

_MAX_TICKETS = 100
"""Maximum number of tickets; the oldest is dropped."""

_TOKEN_BYTES = 32
"""256 bits, as in access keys."""


def _now_s() -> float:
    return clock.now().timestamp()


class Logins:
    """Tickets and browser sessions of one memory.

    Tickets are held in memory, as digests. Sessions are signed with a secret, so that a browser
    stays logged in while the server restarts; without one they end with the server. A session ends
    with the key that made its ticket. `mark` begins every ticket and cookie: a server of many
    memories finds by it whose they are.
    """

    def __init__(
        self,
        cookie: str,
        clock: Callable[[], float] = _now_s,
        *,
        secret: str = "",
        mark: str = "",
        is_key_valid: Callable[[str], bool] = lambda _name: True,
    ) -> None:
        self.cookie = cookie
        self._clock = clock
        self._key = f"browser session {cookie} {secret or secrets.token_urlsafe(_TOKEN_BYTES)}"
        self._mark = mark
        self._is_key_valid = is_key_valid
        self._tickets: OrderedDict[str, tuple[float, str]] = OrderedDict()
        self._lock = threading.Lock()

    def make_ticket(self, key_name: str = "") -> str:
        """Return a new ticket for one login within a minute, made with a key."""
        value = self._mark + secrets.token_urlsafe(_TOKEN_BYTES)
        with self._lock:
            self._tickets[_digest(value)] = self._clock() + TICKET_S, key_name
            while len(self._tickets) > _MAX_TICKETS:
                self._tickets.popitem(last=False)
        return value

    def redeem(self, ticket: str) -> str | None:
        """Use up a ticket and return the cookie of a new session, or None if it is invalid."""
        with self._lock:
            until, key_name = self._tickets.pop(_digest(ticket), (0.0, ""))
        if self._clock() >= until or not self._is_key_valid(key_name):
            return None
        ends, nonce = f"{self._clock() + SESSION_S:.0f}", secrets.token_urlsafe(_TOKEN_BYTES)
        session = f"{self._mark}{ends}.{key_name.encode().hex()}.{nonce}"
        return f"{session}.{self._sign(session)}"

    def find_session(self, cookies: str) -> str | None:
        """Return the name of the browser session that a cookie header belongs to."""
        for pair in cookies.split(";"):
            name, _, value = pair.strip().partition("=")
            session, _, signature = value.rpartition(".")
            if name != self.cookie or not hmac.compare_digest(
                signature.encode("utf-8", "replace"), self._sign(session).encode()
            ):
                continue
            ends, key_name, _ = session.removeprefix(self._mark).split(".")
            if self._clock() < float(ends) and self._is_key_valid(bytes.fromhex(key_name).decode()):
                return f"browser-{_digest(session)[:8]}"
        return None

    def _sign(self, session: str) -> str:
        message = session.encode("utf-8", "replace")
        return hmac.new(self._key.encode(), message, hashlib.sha256).hexdigest()


def _digest(value: str) -> str:
    """Return the digest of a token; looking it up has no timing side channel."""
    return hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()


_KEY_BYTES, _MIN_KEY_CHARS = 32, 43
"""256 bits, in bytes and in base64 characters."""

_LOCAL_KEY_PREFIX = "lore_local_"


ALL_SCOPES: frozenset[AccessScope] = frozenset({"read", "write", "push", "admin"})


def ensure_local_key(home: Path) -> str:
    """Return the access key of a home, and create it if needed; all who can read its files have it.

    A key file that others could have read is replaced.
    """
    path = home / KEY_FILE
    if path.is_symlink() or (path.exists() and path.stat().st_mode & 0o077):
        path.unlink()
    key_bytes = config_files.ensure_key(
        path,
        make=lambda: f"{_LOCAL_KEY_PREFIX}{secrets.token_urlsafe(_KEY_BYTES)}\n".encode(),
        is_sound=lambda key: len(key.strip()) >= _MIN_KEY_CHARS and key.strip().isascii(),
    )
    return key_bytes.decode("ascii").strip()


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Authenticates requests by the local key, a stored access key, or a browser cookie."""

    local_key: str
    find_key: Callable[[str], AccessKey | None]
    logins: Logins
    now: Clock = clock.now
    lookups: CapacityLimiter | None = None
    """The threads that look up keys, if not those of all short work."""

    async def find_grant(self, headers: Headers) -> Grant | None:
        """Return the grant of the caller that sent these headers, or None."""
        presented = _presented_key(headers)
        if presented is None:
            return self._cookie_grant(headers)
        if hmac.compare_digest(presented.encode(), self.local_key.encode()):
            return Grant(LOCAL, ALL_SCOPES)
        record = await to_thread.run_sync(self.find_key, presented, limiter=self.lookups)
        if record is None or not record.is_valid(self.now()):
            return None
        return Grant(record.prefix, frozenset(record.scopes))

    async def rejection_reason(self, headers: Headers) -> str:
        """Return why a stored key is not valid; whoever has the whole key may learn it."""
        presented = _presented_key(headers) or ""
        record = await to_thread.run_sync(self.find_key, presented, limiter=self.lookups)
        if record is None:
            return ""
        return "This access key was revoked." if record.revoked_at else "This access key expired."

    def _cookie_grant(self, headers: Headers) -> Grant | None:
        name = self.logins.find_session(headers.get("cookie", ""))
        return None if name is None else Grant(name, ALL_SCOPES, browser=True)


def _presented_key(headers: Headers) -> str | None:
    """Return the key of a request, or '' if the authorization header is malformed."""
    authorization = headers.get("authorization")
    if authorization is not None:
        scheme, _, key = authorization.partition(" ")
        return key.strip() if scheme.lower() == "bearer" else ""
    return headers.get("x-lore-key")


ANY_ADDRESS = ("0.0.0.0", "::", "")  # noqa: S104 - they are recognised, not bound
_DEFAULT_PORTS = {"http": 80, "https": 443}
"""Port of a URL that names none."""


def allowed_host_names(bound: str, also: Iterable[str] = ()) -> frozenset[str]:
    """Return the host names by which a server bound to an address may be called."""
    host_names = (
        name.strip().strip("[]").rstrip(".").lower() for name in (*LOOPBACK_HOSTS, bound, *also)
    )
    return frozenset(host_names) - frozenset(ANY_ADDRESS)


def host_rejection_reason(headers: Headers, names: frozenset[str], *, by_cookie: bool) -> str:
    """Return what is wrong with the Host or Origin of a request, or ''."""
    hosts = headers.getlist("host")
    host, port = _split_host(f"//{hosts[0]}") if len(hosts) == 1 else ("", None)
    if host not in names:
        return "This host name is not allowed. Add it to the setting server.allowed_hosts."
    origins = headers.getlist("origin")
    if len(origins) > 1 or (origins and not _is_same_origin(origins[0], host, port)):
        return "Requests from pages of another origin are not allowed."
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and (
        by_cookie or origins
    ):
        return "Requests from pages of another site are not allowed."
    return ""


def _is_same_origin(origin: str, host: str, port: int | None) -> bool:
    scheme = origin.partition(":")[0]
    if scheme not in _DEFAULT_PORTS or (scheme == "https" and host in LOOPBACK_HOSTS):
        return False  # this server speaks plain HTTP; only a proxy in front of it can speak HTTPS
    usual = _DEFAULT_PORTS[scheme]
    name, origin_port = _split_host(origin)
    return (name, origin_port or usual) == (host, port or usual)


def _split_host(address: str) -> tuple[str, int | None]:
    """Return host and port of an address; '' if it is invalid or has other parts."""
    if not (address.isascii() and address.isprintable() and " " not in address):
        return "", None  # urlsplit would drop tabs, and accept a host that the client did not send
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "", None
    if parts.username is not None or parts.path or parts.query or parts.fragment:
        return "", None
    return host.removesuffix("."), port
