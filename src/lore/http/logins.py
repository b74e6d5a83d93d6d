"""Logins: a ticket opens a browser session once, and a cookie keeps it open for a while."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

TICKET_S = 60.0
"""A browser is opened at once; what lies in a history or a log later on opens nothing."""

SESSION_S = 24 * 3600.0
"""A working day; 'lore open' makes another one."""

_MOST = 100
"""More are not open at a time: the oldest goes."""

_BYTES = 32
"""256 bits, as those of an access key."""


class Logins:
    """Tickets and browser sessions of one server, in its memory only, by their digests."""

    def __init__(self, cookie: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.cookie = cookie
        self._clock = clock
        self._tickets: OrderedDict[str, float] = OrderedDict()
        self._sessions: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def make_ticket(self) -> str:
        """Return a new ticket, good for one login within a minute."""
        return self._made(self._tickets, TICKET_S)

    def redeem(self, ticket: str) -> str | None:
        """Return the value of a new session's cookie for a ticket, which is used up by it."""
        with self._lock:
            until = self._tickets.pop(_digest(ticket), 0.0)
        return self._made(self._sessions, SESSION_S) if self._clock() < until else None

    def find_session(self, cookies: str) -> str | None:
        """Return the name of the browser session that a cookie header belongs to."""
        for pair in cookies.split(";"):
            name, _, value = pair.strip().partition("=")
            if name == self.cookie:
                digest = _digest(value)
                with self._lock:
                    until = self._sessions.get(digest, 0.0)
                if self._clock() < until:
                    return f"browser-{digest[:8]}"
        return None

    def _made(self, kept: OrderedDict[str, float], lasting_s: float) -> str:
        value = secrets.token_urlsafe(_BYTES)
        with self._lock:
            kept[_digest(value)] = self._clock() + lasting_s
            while len(kept) > _MOST:
                kept.popitem(last=False)
        return value


def _digest(value: str) -> str:
    """Return what is kept of a secret; looking it up tells nothing by the time that takes."""
    return hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()
