"""A server in this process, and a client that calls its app without a socket."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from lore.gateway.request_head import Upstreams
from lore.http.auth import allowed_host_names
from lore.http.request_limits import Limits
from lore.records import AccessScope
from lore.server.memory_store import MemoryStore
from lore.server.owner_server import OwnerServer
from lore.server.owner_service import SharedModels
from lore.server.registry import Registry
from lore.settings import Settings, load
from tests.engines import ENGINES
from tests.fakes import FakeEmbedder

T = TypeVar("T")

on_both_engines = pytest.mark.parametrize("served", ENGINES, indirect=True)
"""Runs a test on a server with files, and on one with rows of PostgreSQL."""


def database_of(request: pytest.FixtureRequest) -> str:
    """Return the database of the engine that a fixture was asked for; '' for files."""
    is_postgres = getattr(request, "param", "sqlite") == "postgres"
    return str(request.getfixturevalue("postgres_url")) if is_postgres else ""


UNBOUNDED = Limits(requests_per_minute=0, anonymous_per_minute=0)
ALL: tuple[AccessScope, ...] = ("read", "write", "push", "admin")
HOST = "lore.example"


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def bytes(self) -> bytes:
        """Everything that was sent, headers too."""
        return b"\n".join([*(name + b": " + value for name, value in self.headers), self.body])

    def header(self, name: str) -> str:
        return next((v.decode() for n, v in self.headers if n == name.encode()), "")


@dataclass
class Served:
    """A server whose loop runs in a thread, so that a test can wait for it."""

    server: OwnerServer
    registry: Registry
    store: MemoryStore
    home: Path
    loop: asyncio.AbstractEventLoop
    keys: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, *, scopes: Sequence[AccessScope] = ALL) -> str:
        """Add an owner with a key, and return the key."""
        self.registry.add_owner(name)
        self.keys[name], _ = self.registry.create_key(f"{name}'s", owner=name, scopes=scopes)
        return self.keys[name]

    def folder(self, name: str) -> Path:
        return self.registry.owner_folder(self.registry.get_owner(name).id)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(120)

    def get(self, path: str, key: str = "", **headers: str) -> Reply:
        return self.run(self.ask("GET", path, _headers(key, headers)))

    def post(self, path: str, tree: object, key: str = "", **headers: str) -> Reply:
        sent = {"content-type": "application/json", **_headers(key, headers)}
        return self.run(self.ask("POST", path, sent, json.dumps(tree).encode()))

    async def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        body: bytes = b"",
    ) -> Reply:
        """Call the app with a request; a stream is left after its first event."""
        pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
        return await call(self.server.app, method, path, pairs, body)


def _headers(key: str, headers: Mapping[str, str]) -> dict[str, str]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return {**({"authorization": f"Bearer {key}"} if key else {}), **named}


async def call(
    app: Any,
    method: str,
    path: str,
    headers: Sequence[tuple[str, str]],
    body: bytes,
    heard: list[bytes] | None = None,
) -> Reply:
    """Call an ASGI app with one request; `heard` collects a stream until the server ends it."""
    from urllib.parse import unquote_to_bytes

    raw_path, _, query = path.partition("?")
    named = {name.lower() for name, _ in headers}
    pairs = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    if "host" not in named:
        pairs.insert(0, (b"host", HOST.encode()))
    if body and "content-length" not in named:
        pairs.append((b"content-length", str(len(body)).encode()))
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
        "scheme": "http", "path": unquote_to_bytes(raw_path).decode("utf-8", "replace"),
        "raw_path": raw_path.encode("latin-1", "replace"), "query_string": query.encode("latin-1"),
        "root_path": "", "headers": pairs, "client": ("127.0.0.1", 50_000),
        "server": (HOST, 80), "state": {"connection": {}},
    }  # fmt: skip
    left = asyncio.Event()
    sent = [{"type": "http.request", "body": body, "more_body": False}]
    started: dict[str, Any] = {}
    pieces: list[bytes] = [] if heard is None else heard

    async def receive() -> Mapping[str, Any]:
        if sent:
            return sent.pop()
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            started.update(message)
        else:
            pieces.append(message.get("body", b""))
            is_stream = heard is None and any(
                name == b"content-type" and value.startswith(b"text/event-stream")
                for name, value in started["headers"]
            )
            if is_stream or not message.get("more_body", False):
                left.set()

    await app(scope, receive, send)
    return Reply(started["status"], [*started["headers"]], b"".join(pieces))


@contextmanager
def serving(
    home: Path,
    *,
    limits: Limits = UNBOUNDED,
    change: Callable[[Settings], Settings] = lambda settings: settings,
    upstreams: Upstreams | None = None,
    names: Sequence[str] = (HOST,),
    url: str = "",
) -> Iterator[Served]:
    """Serve a new home until the block ends, without background work.

    `url` is the database of its memories; they are in files without it.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    settings = change(
        replace(load({}, home=home).settings, gateway_on=upstreams is not None, store_url=url)
    )
    models = SharedModels(FakeEmbedder(), None)
    with Registry.open(home) as registry:
        server = OwnerServer(
            registry, settings, models, host_names=allowed_host_names("0.0.0.0", names),
            limits=limits, upstreams=upstreams, tasks=(),
        )  # fmt: skip
        try:
            yield Served(server, registry, MemoryStore(registry, settings), home, loop)
        finally:
            assert server.close()
            loop.call_soon_threadsafe(loop.stop)
            thread.join(10)
            loop.close()
