"""An upstream that misbehaves on its connections in whatever way a test wants.

def cut_off(peer: Peer) -> None:
    peer.send(HEAD + chunk(b"data: 1\n\n"))
    peer.reset()

with faulty(cut_off) as up: …  # up.url; up.requests has what came, up.left tells who hung up
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
    b"connection: close\r\n\r\n"
)
"""It hangs up after one answer, and says so: who reuses the connection would find it gone."""

LAST = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


@dataclass
class Peer:
    """One connection, whose request has been read."""

    connection: socket.socket
    request: bytes

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def reset(self) -> None:
        """Hang up so that the other side sees a reset."""
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()

    def half_close(self) -> None:
        self.connection.shutdown(socket.SHUT_WR)

    def wait_until_left(self) -> bool:
        """Wait until the other side hangs up; False if it sends something first."""
        with contextlib.suppress(ConnectionError):
            return not self.connection.recv(1)
        return True


@dataclass
class Faulty:
    """The upstream while it is served."""

    url: str = ""
    requests: list[bytes] = field(default_factory=list)
    left: threading.Event = field(default_factory=threading.Event)
    """Set by a test's own behaviour."""


@contextmanager
def faulty(behave: Callable[[Peer], None]) -> Iterator[Faulty]:
    """Serve each connection by a function, one request each, until the block ends."""
    served = Faulty()
    listening = socket.create_server(("127.0.0.1", 0))
    served.url = f"http://127.0.0.1:{listening.getsockname()[1]}"

    def serve_one(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            peer = Peer(connection, _request(connection))
            if peer.request:
                served.requests.append(peer.request)
                behave(peer)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=serve_one, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)


def _request(connection: socket.socket) -> bytes:
    """Read one request with its body."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65_536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    while len(body) < length:
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body
