"""HTTP server: run an app on a socket in its own thread until it is stopped."""

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
from lore.http.error_responses import problem_response
from lore.http.request_limits import MAX_HEAD_BYTES, Limits

STOP_S = 1
"""Grace period for running requests at shutdown."""

CONNECTION_STATE = "connection"
"""Key of the per-connection state in the state of each request."""

_BACKLOG = 128
"""Pending connections, as many as older systems allow."""

_RESERVED_FILES = 256
"""Files that the database, its readers, indexes and transcripts need beside connections."""

_KEEP_ALIVE_S = 15
"""Agents call several tools in a row; after a longer pause they reconnect."""

_WANTED_FILES = 4_096
"""Many systems allow a process 1,024 open files by default; macOS allows 256."""

log = logging.getLogger("lore.http")


class DeadlineProtocol(H11Protocol):
    """HTTP protocol with a deadline for request heads and a limit on connections.

    A new connection is always accepted: above the limit, the connection that has been idle for
    longest is closed.
    """

    def __init__(self, *, head_s: float, most: int, **options: Any) -> None:
        super().__init__(**options)
        self._head_s = head_s
        self._most = most
        self._idle_since_s = 0.0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        """Start the deadline for the head of the first request."""
        super().connection_made(transport)
        self.app_state = {**self.app_state, CONNECTION_STATE: {}}
        self._idle_since_s = self.loop.time()
        self._deadline = self.loop.call_later(self._head_s, transport.abort)
        self._evict_idle()

    def on_response_complete(self) -> None:
        """Record since when the connection is idle."""
        super().on_response_complete()
        self._idle_since_s = self.loop.time()

    def _evict_idle(self) -> None:
        """Close one connection if there are too many; prefer those that sent no request yet."""
        alive = [
            one
            for one in self.connections
            if isinstance(one, DeadlineProtocol) and not one.transport.is_closing()
        ]
        if len(alive) > self._most:
            idle = [one for one in alive if one is not self and one._is_idle()]
            evicted = min(idle, key=DeadlineProtocol._eviction_order, default=self)
            evicted.transport.abort()

    def _is_idle(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return cycle is None or cycle.response_complete

    def _eviction_order(self) -> tuple[bool, float]:
        """Return the sort key for eviction: whether it sent a request, and idle since when."""
        return self.cycle is not None, self._idle_since_s

    def send_400_response(self, msg: str) -> None:
        """Answer malformed HTTP with the same error format as everywhere."""
        response = problem_response(400, "BadRequest", msg, headers={"connection": "close"})
        start = h11.Response(status_code=response.status_code, headers=response.raw_headers)
        for event in (start, h11.Data(data=bytes(response.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Parse data; start the deadline while the head of a request is incomplete."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._cancel_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self._head_s, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline."""
        self._cancel_deadline()
        super().connection_lost(exc)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def bind(host: str, port: int, last: int | None = None) -> tuple[socket.socket, bool]:
    """Return a socket bound to an address, and whether it has the wanted port.

    If the server used port `last` instead the last time, try that first, since agents have been
    configured with it. If both are taken, use any free port.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        msg = f"'{host}' is not an address of this machine."
        raise DaemonError(msg, hint="Setting server.host names another.") from error
    ports = [*([last] if last and port else []), port, *([0] if port else [])]
    for tried in ports:
        try:
            bound = _bind_socket(family, kind, protocol, (address[0], tried, *address[2:]))
        except OSError as error:
            if error.errno == errno.EADDRINUSE and tried != ports[-1]:
                continue
            msg = f"The server cannot be bound to {host}:{tried}: {error.strerror}."
            hint = "Settings server.host and server.port name another."
            raise DaemonError(msg, hint=hint) from error
        return bound, tried == port
    raise AssertionError  # the last port is bound or raises


def _bind_socket(family: int, kind: int, protocol: int, address: Any) -> socket.socket:
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
    """Raise the limit of open files to what the server may need; return the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED_FILES if hard == resource.RLIM_INFINITY else min(_WANTED_FILES, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return soft
    return wanted


class AppServer:
    """Runs an app in the calling thread until another thread stops it."""

    def __init__(
        self,
        app: ASGIApp,
        bound: socket.socket,
        limits: Limits | None = None,
        *,
        grace_s: int = STOP_S,
    ) -> None:
        self._socket = bound
        limits = limits or Limits()
        most = min(limits.connections, max(_BACKLOG, raise_file_limit() - _RESERVED_FILES))
        patience = partial(DeadlineProtocol, head_s=limits.head_s, most=most)
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
                timeout_graceful_shutdown=grace_s,
                h11_max_incomplete_event_size=MAX_HEAD_BYTES,
            )
        )

    def run(self, on_listening: Callable[[], None]) -> None:
        """Serve until `stop` is called."""
        asyncio.run(self._serve(on_listening))

    async def _serve(self, on_listening: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_log_connection_error)
        watching = loop.create_task(self._notify_listening(on_listening))
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            watching.cancel()
        if not self._server.started:
            msg = "The server could not be started."
            raise DaemonError(msg)

    async def _notify_listening(self, on_listening: Callable[[], None]) -> None:
        while not self._server.started:
            await asyncio.sleep(0.01)
        on_listening()

    def stop(self) -> None:
        """Ask the server to stop; running requests get a grace period."""
        self._server.should_exit = True


def _log_connection_error(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error outside of any request, without its message."""
    error = context.get("exception")
    log.warning("connection failed", extra={"error": type(error).__name__})
