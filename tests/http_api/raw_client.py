"""A server whose app records what it sees, and a client that sends it raw bytes."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from starlette.types import Message, Receive, Scope, Send

from lore.http.request_limits import Limits
from lore.http.server import AppServer, bind

HOST = b"host: localhost\r\n"
SECOND = b"GET /second HTTP/1.1\r\nhost: localhost\r\n\r\n"


@dataclass(frozen=True)
class Seen:
    """A request as the app saw it."""

    method: str
    target: bytes
    version: str
    headers: list[tuple[bytes, bytes]]
    body: bytes


@dataclass
class Noting:
    """An app that notes what it sees, and answers as the path says."""

    seen: list[Seen] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note a request once all of it is there."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        path = scope["path"]
        if path == "/early":
            await _tell(send, 200, b"early")
            return
        body, more = b"", True
        if path == "/begun":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.left.append(path)
                return
            body, more = body + message["body"], message["more_body"]
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        self.seen.append(
            Seen(
                scope["method"],
                scope["raw_path"] + query,
                scope["http_version"],
                list(scope["headers"]),
                body,
            )
        )
        if path == "/waits":
            await receive()
            self.left.append(path)
        elif path == "/stream":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for piece in (b"one", b"two"):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body"})
        elif path in ("/204", "/304"):
            length = [(b"content-length", b"7")] if path == "/304" else []
            status = int(path[1:])
            await send({"type": "http.response.start", "status": status, "headers": length})
            await send({"type": "http.response.body"})
        else:
            await _tell(send, 200, b"answer")


async def _live(receive: Receive, send: Send) -> None:
    message: Message = {"type": ""}
    while message["type"] != "lifespan.shutdown":
        message = await receive()
        await send({"type": f"{message['type']}.complete"})


async def _tell(send: Send, status: int, body: bytes) -> None:
    length = str(len(body)).encode()
    headers = [(b"content-length", length)]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@dataclass(frozen=True)
class Line:
    """A server whose app notes, and connections to it."""

    app: Noting
    port: int

    @contextlib.contextmanager
    def connect(self) -> Iterator[socket.socket]:
        with socket.create_connection(("127.0.0.1", self.port), 30) as client:
            yield client

    def say(self, sent: bytes) -> bytes:
        """Send bytes and nothing after them; return all that comes back."""
        with self.connect() as client:
            with contextlib.suppress(ConnectionError):
                client.sendall(sent)
            return read_all(client)

    def ask(self, sent: bytes) -> tuple[list[Seen], bytes]:
        """Send requests, and a last one that ends the connection; return what the app saw."""
        self.app.seen.clear()
        told = self.say(
            sent + b"GET /last HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        )
        return [one for one in self.app.seen if one.target != b"/last"], told


def read_all(client: socket.socket) -> bytes:
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := client.recv(65_536):
            received += piece
    return received


def read_until(client: socket.socket, end: bytes) -> bytes:
    received = b""
    while not received.rstrip().endswith(end):
        piece = client.recv(65_536)
        assert piece, received
        received += piece
    return received


def statuses(told: bytes) -> list[int]:
    """Return the statuses of all answers; no body of this app has such a line."""
    return [int(piece[:3]) for piece in told.split(b"HTTP/1.1 ")[1:]]


@contextlib.contextmanager
def listening() -> Iterator[Line]:
    """Serve an app that notes until the block ends; a head has a second."""
    app = Noting()
    bound, _ = bind("127.0.0.1", 0)
    serving = AppServer(app, bound, Limits(head_s=1.0))
    begun = threading.Event()
    thread = threading.Thread(target=serving.run, args=(begun.set,), daemon=True)
    thread.start()
    assert begun.wait(30)
    try:
        yield Line(app, bound.getsockname()[1])
    finally:
        serving.stop()
        thread.join(10)
        bound.close()
