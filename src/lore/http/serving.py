"""Serving: an app on a socket, in a thread of its own, until it is told to stop."""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from lore.errors import DaemonError
from lore.http import problems
from lore.http.limits import HEAD_BYTES, Limits

STOP_S = 1
"""Requests at hand may take so long to end once the server stops; then they are cut off."""

CONNECTION = "connection"
"""Where the state of each request has a place for what is known of its connection."""

_BACKLOG = 128
"""Connections that wait to be taken, as many as older systems allow at all."""

_OTHER_FILES = 256
"""The database, its readers, the indexes and transcripts take their files beside connections."""

_KEEP_ALIVE_S = 15
"""An agent calls several tools in a row; who is silent for longer connects again."""

_FILES = 4_096
"""Many systems allow a process 1,024 or, as macOS does, 256 of its own accord."""

log = logging.getLogger("lore.http")


class ImpatientProtocol(H11Protocol):
    """HTTP from a client that has only so long to say what it wants, and no room while it waits.

    Whoever comes gets in: of more connections than `most`, the one goes that has asked for nothing
    for longest.
    """

    def __init__(self, *, head_s: float, most: int, **given: Any) -> None:
        super().__init__(**given)
        self._head_s = head_s
        self._most = most
        self._idle_since_s = 0.0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        """Begin to wait for the head of the first request."""
        super().connection_made(transport)
        self.app_state = {**self.app_state, CONNECTION: {}}
        self._idle_since_s = self.loop.time()
        self._deadline = self.loop.call_later(self._head_s, transport.abort)
        self._make_room()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._idle_since_s = self.loop.time()

    def _make_room(self) -> None:
        """End one connection if there are too many; who has asked before is spared longest."""
        alive = [
            one
            for one in self.connections
            if isinstance(one, ImpatientProtocol) and not one.transport.is_closing()
        ]
        if len(alive) > self._most:
            idle = [one for one in alive if one is not self and one._is_idle()]
            gone = min(idle, key=ImpatientProtocol._standing, default=self)
            gone.transport.abort()

    def _is_idle(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # there is none before the first request
        return cycle is None or cycle.response_complete

    def _standing(self) -> tuple[bool, float]:
        """Return what spares a connection: that it has asked, and how lately."""
        return self.cycle is not None, self._idle_since_s

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP in the manner of every other refusal."""
        told = problems.of_malformed(msg)
        start = h11.Response(status_code=told.status_code, headers=told.raw_headers)
        for event in (start, h11.Data(data=bytes(told.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Read on; what has no whole head yet is waited for, but not for ever."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._forget_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self._head_s, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """End with the connection."""
        self._forget_deadline()
        super().connection_lost(exc)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def bind(host: str, port: int, last: int | None = None) -> tuple[socket.socket, bool]:
    """Return a socket bound to an address, and whether it has that port.

    The port that was used `last` instead goes before it, since agents were told that one; if
    both are taken, it is any other.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        msg = f"'{host}' is no address of this machine."
        raise DaemonError(msg, hint="Setting server.host names another.") from error
    ports = [*([last] if last and port else []), port, *([0] if port else [])]
    for tried in ports:
        try:
            bound = _bound(family, kind, protocol, (address[0], tried, *address[2:]))
        except OSError as error:
            if error.errno == errno.EADDRINUSE and tried != ports[-1]:
                continue
            msg = f"The server cannot be bound to {host}:{tried}: {error.strerror}."
            hint = "Settings server.host and server.port name another."
            raise DaemonError(msg, hint=hint) from error
        return bound, tried == port
    raise AssertionError  # the last one is bound, or raises


def _bound(family: int, kind: int, protocol: int, address: Any) -> socket.socket:
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(_BACKLOG)
    except OSError:
        opened.close()
        raise
    return opened


def raise_file_limit() -> int:
    """Let this process have as many files open as the server may need; return how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return soft
    return wanted


class Serving:
    """An app that is served by a thread."""

    def __init__(self, app: ASGIApp, bound: socket.socket, limits: Limits | None = None) -> None:
        self._socket = bound
        limits = limits or Limits()
        most = min(limits.connections, max(_BACKLOG, raise_file_limit() - _OTHER_FILES))
        patience = partial(ImpatientProtocol, head_s=limits.head_s, most=most)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=patience,  # type: ignore[arg-type]  # it is called like the class
                loop="asyncio",
                ws="none",
                lifespan="on",
                log_config=None,
                log_level="critical",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=STOP_S,
                h11_max_incomplete_event_size=HEAD_BYTES,
            )
        )

    def run(self, on_listening: Callable[[], None]) -> None:
        """Serve until `stop` is called, in the thread that calls this."""
        asyncio.run(self._serve(on_listening))

    async def _serve(self, on_listening: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_log_accident)
        watching = loop.create_task(self._tell(on_listening))
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            watching.cancel()
        if not self._server.started:
            msg = "The server could not be started."
            raise DaemonError(msg)

    async def _tell(self, on_listening: Callable[[], None]) -> None:
        while not self._server.started:
            await asyncio.sleep(0.01)
        on_listening()

    def stop(self) -> None:
        """Ask the server to stop; what is at hand has a moment to end."""
        self._server.should_exit = True


def _log_accident(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what went wrong outside of any request, without what it may quote."""
    error = context.get("exception")
    log.warning("connection failed", extra={"error": type(error).__name__})
