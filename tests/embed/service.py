"""An embedding service on this machine that speaks the real wire formats, by a script."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Reply:
    """What to say instead of the vectors asked for."""

    status: int = 200
    body: object = None
    headers: tuple[tuple[str, str], ...] = ()
    delay_s: float = 0.0


@dataclass
class Request:
    path: str
    key: str
    body: dict[str, object]


@dataclass
class Service:
    """A running service: replies still to give, requests already had."""

    url: str
    dimension: int = 4
    script: list[Reply] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)


def vector(text: str, dimension: int) -> list[float]:
    """The vector that the service computes: telling of the text, and not of length one."""
    return [float(len(text) + place) for place in range(dimension)]


def answer(body: dict[str, object], dimension: int) -> dict[str, object]:
    size = body.get("dimensions") or body.get("output_dimension") or dimension
    texts = body["input"]
    assert isinstance(texts, list)
    assert isinstance(size, int)
    data = [
        {"object": "embedding", "index": place, "embedding": vector(text, size)}
        for place, text in enumerate(texts)
    ]
    # Order is the client's business: the index tells.
    data.reverse()
    return {
        "object": "list",
        "data": data,
        "model": body["model"],
        "usage": {"total_tokens": 1},
    }


@contextmanager
def running_service() -> Iterator[Service]:
    service = Service("")

    class Conversation(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            key = self.headers.get("Authorization", "")
            service.requests.append(Request(self.path, key, body))
            reply = service.script.pop(0) if service.script else Reply()
            time.sleep(reply.delay_s)
            said = answer(body, service.dimension) if reply.body is None else reply.body
            raw = said if isinstance(said, bytes) else json.dumps(said).encode()
            try:
                self.send_response(reply.status)
                for name, value in reply.headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)
            except OSError:
                pass  # a client that gave up waiting

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Conversation)
    service.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
