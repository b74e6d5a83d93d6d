"""The relay of `lore run`: agents keep their connection while the daemon is restarted.

The agent replaces the process that started the relay. Each of its requests gets a connection of
its own to the daemon. If the daemon dies before it answers, the request waits until another one
runs; if none can be started, or the user has stopped it, requests go to the provider without
memory.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lore.proxy.address import find_address

if TYPE_CHECKING:
    from lore.settings import Settings

HOLD_S = 30.0
"""How long a request waits for a daemon: a start takes two seconds, and more on a busy machine."""

POLL_S = 0.25
"""How often the relay checks that the daemon and the agent are alive."""

LONGEST_BACKOFF_S = 30.0
"""A daemon that does not start is started less and less often."""

MAX_ATTEMPTS = 3
"""A request that ends the daemon this often goes to the provider without it."""

_RELAYED = b"x-lore-relay: 1"
"""Header that tells the gateway that the agent can do without it."""

MARK_PREFIX = "relay-"
"""Prefix of the files in the home that say which relays run."""

_CHUNK = 65_536
_MAX_HEAD_BYTES = 1_000_000
_CONNECT_S = 5.0

Place = tuple[str, int]


class _NotAnswered(Exception):
    """The connection ended before the first byte of a response."""


def start(home: Path) -> str:
    """Start a relay for this process; return its URL, or '' if it cannot be started."""
    try:
        with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
            number = listening.fileno()
            words = ["-m", "lore.cli.relay", str(home), str(number), str(os.getpid())]
            subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(number,),
                start_new_session=True,
            )
            return f"http://127.0.0.1:{listening.getsockname()[1]}"
    except OSError:
        return ""


def count_relays(home: Path) -> int:
    """Count the agents that `lore run` has started and that still run."""
    count = 0
    for path in home.glob(f"{MARK_PREFIX}*"):
        pid = path.name.removeprefix(MARK_PREFIX)
        try:
            os.kill(int(pid), 0)
        except (ValueError, ProcessLookupError):
            with suppress(OSError):
                path.unlink()
        except PermissionError:
            continue
        else:
            count += 1
    return count


class Relay:
    """Forwards the requests of one agent to the daemon of a home.

    `start_daemon` starts one and returns once it listens or has failed; `find_fallback` returns
    where requests go without a daemon.
    """

    def __init__(
        self,
        find_daemon: Callable[[], Place | None],
        start_daemon: Callable[[], object],
        was_stopped: Callable[[], bool],
        find_fallback: Callable[[], Place],
        *,
        hold_s: float = HOLD_S,
    ) -> None:
        self._find_daemon, self._start_daemon = find_daemon, start_daemon
        self._was_stopped, self._find_fallback = was_stopped, find_fallback
        self._hold_s = hold_s
        self._failures, self._start_at = 0, 0.0
        self.stopping = threading.Event()

    def supervise(self) -> None:
        """Start the daemon whenever it has died, until the relay ends."""
        while not self.stopping.wait(POLL_S):
            if self._find_daemon() is None and not self._was_stopped():
                self._restart()

    def _restart(self) -> None:
        if time.monotonic() < self._start_at:
            return
        self._start_daemon()
        self._failures = 0 if self._find_daemon() else self._failures + 1
        delay_s = min(2.0**self._failures - 1, LONGEST_BACKOFF_S)
        self._start_at = time.monotonic() + delay_s

    def serve(self, client: socket.socket) -> None:
        """Serve one connection: one request, and its response as it comes."""
        with client, suppress(OSError):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            request = _read_request(client)
            if request:
                self._forward(client, request)

    def _forward(self, client: socket.socket, request: bytes) -> None:
        until = time.monotonic() + self._hold_s
        for _ in range(MAX_ATTEMPTS):
            place = self._wait_for_daemon(until)
            if place is None:
                break
            with suppress(_NotAnswered):
                _exchange(client, request, place)
                return
        with suppress(_NotAnswered):
            _exchange(client, request, self._find_fallback())

    def _wait_for_daemon(self, until: float) -> Place | None:
        """Return the daemon's address once it listens; None if it does not come back."""
        while True:
            place = self._find_daemon()
            if place is not None and _is_listening(place):
                return place
            is_hopeless = self._was_stopped() or self._failures > 1
            if is_hopeless or time.monotonic() >= until or self.stopping.wait(0.02):
                return None


def _is_listening(place: Place) -> bool:
    try:
        socket.create_connection(place, _CONNECT_S).close()
    except OSError:
        return False
    return True


def _read_request(client: socket.socket) -> bytes:
    """Read one request; ask the server to close the connection after its response."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = client.recv(_CHUNK)
        data += piece
        if not piece or len(data) > _MAX_HEAD_BYTES:
            return b""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    fields = {line.partition(b":")[0].strip().lower(): line for line in lines}

    def value(name: bytes) -> bytes:
        return fields.get(name, b"").partition(b":")[2].strip().lower()

    if value(b"expect") == b"100-continue":
        client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        fields.pop(b"expect")
    if b"chunked" in value(b"transfer-encoding"):
        while not (body == b"0\r\n\r\n" or body.endswith(b"\r\n0\r\n\r\n")):
            body += _receive(client)
    elif value(b"content-length").isdigit():
        missing = int(value(b"content-length")) - len(body)
        pieces = [body]
        while missing > 0:
            pieces.append(_receive(client))
            missing -= len(pieces[-1])
        body = b"".join(pieces)
    left_out = (b"connection", b"keep-alive", b"expect")
    forwarded = [line for line in lines if line.partition(b":")[0].strip().lower() not in left_out]
    return b"\r\n".join([first, *forwarded, _RELAYED, b"connection: close", b"", body])


def _receive(client: socket.socket) -> bytes:
    piece = client.recv(_CHUNK)
    if not piece:
        msg = "The client has left."
        raise ConnectionAbortedError(msg)
    return piece


def _exchange(client: socket.socket, request: bytes, place: Place) -> None:
    """Send a request and forward its response; raise `_NotAnswered` if there is none."""
    try:
        server = socket.create_connection(place, _CONNECT_S)
    except OSError:
        raise _NotAnswered from None
    with server:
        server.settimeout(None)
        left = threading.Event()
        watcher = threading.Thread(target=_watch, args=(client, server, left), daemon=True)
        is_answered = False
        try:
            server.sendall(request)
            watcher.start()
            while piece := server.recv(_CHUNK):
                is_answered = True
                client.sendall(piece)
        except OSError:
            if is_answered:
                raise
        if not is_answered and not left.is_set():
            raise _NotAnswered


def _watch(client: socket.socket, server: socket.socket, left: threading.Event) -> None:
    """End the request when the client leaves, so that the provider stops as well."""
    with suppress(OSError):
        while not left.is_set():
            if not client.recv(_CHUNK, socket.MSG_PEEK):
                break
            left.wait(POLL_S)
    left.set()
    with suppress(OSError):
        server.shutdown(socket.SHUT_RDWR)


def _serve_fallback(settings: Settings) -> Place:
    """Serve a gateway without memory in this process, and return where it listens."""
    from dataclasses import replace

    from starlette.applications import Starlette

    from lore.daemon.http_server import gateway_app
    from lore.errors import DaemonError
    from lore.http.server import AppServer
    from lore.memory.facade import closed_memory

    memory = closed_memory(replace(settings, gateway_memory=False))
    if settings.daily_budget is not None:
        memory.budget.load_prices()
    gateway = gateway_app(memory, lambda: DaemonError("The daemon does not run."))
    app = Starlette(lifespan=lambda _app: gateway.lifespan())  # type: ignore[misc, arg-type]  # it has one
    app.mount("", gateway.app)
    bound = socket.create_server(("127.0.0.1", 0))
    listens = threading.Event()
    server = AppServer(app, bound)
    threading.Thread(target=server.run, args=(listens.set,), daemon=True).start()
    listens.wait(HOLD_S)
    place: Place = bound.getsockname()[:2]
    return place


class Fallback:
    """The gateway without memory, started for the first request that needs it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._place: Place | None = None

    def __call__(self) -> Place:
        """Return where it listens."""
        with self._lock:
            if self._place is None:
                self._place = _serve_fallback(self._settings)
            return self._place


def run(home: Path, listening: socket.socket, agent_pid: int) -> None:
    """Relay the requests of an agent until it ends."""
    from lore.cli import fast_path
    from lore.daemon import status_file
    from lore.gateway.connection_owner import CAN_FIND_OWNER, find_owner
    from lore.settings import load

    def find_daemon() -> Place | None:
        address = find_address(str(home))
        return None if address is None else (address.host, address.port)

    def was_stopped() -> bool:
        """Tell a daemon that was stopped from one that was killed, by what it wrote last."""
        return status_file.has_stopped(home)

    relay = Relay(
        find_daemon,
        lambda: fast_path.start_daemon(str(home)),
        was_stopped,
        Fallback(load(home=home).settings),
    )
    mark = home / f"{MARK_PREFIX}{os.getpid()}"
    with suppress(OSError):
        mark.touch(mode=0o600)
    threading.Thread(target=relay.supervise, daemon=True).start()
    listening.settimeout(POLL_S)
    while os.getppid() == agent_pid:
        with suppress(TimeoutError):
            client, end = listening.accept()
            client.settimeout(None)
            if CAN_FIND_OWNER and find_owner(end, client.getsockname()) != os.geteuid():
                client.close()
                continue
            threading.Thread(target=relay.serve, args=(client,), daemon=True).start()
    relay.stopping.set()
    with suppress(OSError):
        mark.unlink()


if __name__ == "__main__":
    run(Path(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])), int(sys.argv[3]))
    os._exit(0)  # nothing is left to do, and threads may wait for connections
