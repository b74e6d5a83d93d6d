"""A gateway as the daemon serves it, in front of any upstream, and a client that sends bytes."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lore.gateway.app import Gateway
from lore.gateway.connection_owner import Owner
from lore.gateway.plugin_protocol import RequestPlugin
from lore.gateway.request_head import Upstreams
from lore.http.app import MountedApp
from lore.records.gateway import GatewayStats
from tests.http_api.live_server import Served, serving
from tests.waiting import PATIENCE_S

Pairs = Sequence[tuple[str, str | bytes]]

MOST_BYTES = 4_000_000


@dataclass(frozen=True)
class Got:
    """An answer as it came."""

    status: int
    headers: list[tuple[str, str]]
    """Names in lower case."""
    body: bytes

    def header(self, name: str) -> str:
        return dict(self.headers).get(name, "")

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Proxied:
    """A gateway that is served."""

    served: Served

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.served.port}"

    def ask(
        self,
        path: str,
        body: bytes | object | None = None,
        headers: Pairs | Mapping[str, str] = (),
        method: str = "",
    ) -> Got:
        """Send a request; a body that is no bytes goes as JSON."""
        return ask(self.served.port, path, body, headers, method)

    def connect(self) -> socket.socket:
        """Return a connection on which a test speaks itself."""
        return socket.create_connection(("127.0.0.1", self.served.port), 30)


def ask(
    port: int,
    path: str,
    body: bytes | object | None = None,
    headers: Pairs | Mapping[str, str] = (),
    method: str = "",
) -> Got:
    """Send a request to a port of this machine, with no headers but those given and Host."""
    pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        verb = method or ("GET" if sent is None else "POST")
        connection.putrequest(verb, path, skip_accept_encoding=True)
        for name, value in pairs:
            connection.putheader(name, value)
        if sent is not None:
            connection.putheader("content-length", str(len(sent)))
        connection.endheaders(sent)
        answer = connection.getresponse()
        told = [(name.lower(), value) for name, value in answer.getheaders()]
        return Got(answer.status, told, answer.read())
    finally:
        connection.close()


@contextmanager
def proxied(
    home: Path,
    upstream_url: str,
    *,
    plugin: RequestPlugin | None = None,
    max_bytes: int = MOST_BYTES,
    owner: Owner | None = None,
    host: str = "127.0.0.1",
    within_s: float = PATIENCE_S,
    stats: GatewayStats | None = None,
    openai_url: str = "",
) -> Iterator[Proxied]:
    """Serve a gateway, with all else that the daemon serves, until the block ends."""
    upstreams = Upstreams(upstream_url, openai_url or upstream_url, upstream_url)
    gateway = Gateway(
        upstreams,
        plugin=plugin,
        max_bytes=max_bytes,
        owner=owner,
        within_s=within_s,
        stats=stats,
    )
    with serving(home, host=host, rest=MountedApp("/", gateway, lifespan=gateway.run)) as served:
        yield Proxied(served)


HELLO: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 1024,
    "messages": [{"role": "user", "content": "Hello"}],
}
"""The smallest request to Anthropic."""
