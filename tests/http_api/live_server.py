"""A real server on loopback, and a client that sends whatever a test wants to send."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from lore.http.app import InfoRows, MountedApp, make_app
from lore.http.auth import Authenticator, Logins, allowed_host_names, ensure_local_key
from lore.http.request_limits import Limits
from lore.http.server import AppServer, bind
from lore.http.write_endpoints import Toolbox
from lore.memory import Memory
from lore.tools import tool_registry
from tests.fakes import FakeEmbedder

TOOLBOX = Toolbox(tool_registry.TOOLS, tool_registry.call_tool)


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Served:
    """A server that runs, with what a client needs to use it."""

    memory: Memory
    host: str
    port: int
    key: str
    logins: Logins

    def ask(
        self,
        method: str,
        path: str,
        *,
        headers: Sequence[tuple[str, str]] | Mapping[str, str] = (),
        body: bytes | None = None,
    ) -> Reply:
        """Send a request as it is given, without a key."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
        named = {name.lower() for name, _ in pairs}
        try:
            connection.putrequest(method, path, skip_host="host" in named)
            for name, value in pairs:
                connection.putheader(name, value)
            if body is not None and "content-length" not in named:
                connection.putheader("content-length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            told = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, told, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        """Read something with the local key; underscores in names of headers become hyphens."""
        spelt = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("GET", path, headers={"authorization": f"Bearer {self.key}", **spelt})

    def post(self, path: str, tree: object, **headers: str) -> Reply:
        """Send JSON with the local key."""
        spelt = {name.replace("_", "-"): value for name, value in headers.items()}
        usual = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        return self.ask("POST", path, headers={**usual, **spelt}, body=json.dumps(tree).encode())


@contextmanager
def serving(
    home: Path,
    *,
    host: str = "127.0.0.1",
    names: Sequence[str] = (),
    limits: Limits | None = None,
    mounts_for: Callable[[Memory], Sequence[MountedApp]] = lambda _memory: (),
    rest: MountedApp | None = None,
    toolbox: Toolbox = TOOLBOX,
    around: Callable[[ASGIApp, str], ASGIApp] = lambda app, _key: app,
    about: Callable[[], InfoRows] = tuple,
    explorer: Path | None = None,
    describe: Callable[[], bytes] | None = None,
) -> Iterator[Served]:
    """Serve a new memory until the block ends."""
    with Memory.open(home, embedder=FakeEmbedder()) as memory:
        bound, _ = bind(host, 0)
        port = bound.getsockname()[1]
        logins = Logins(f"lore_{port}")
        access = Authenticator(ensure_local_key(home), memory.access.identify_key, logins)
        app = make_app(
            memory,
            access,
            toolbox,
            host_names=allowed_host_names(host, names),
            limits=limits,
            mounts=mounts_for(memory),
            fallback=rest,
            about=about,
            explorer=explorer or home / "no-explorer",
            describe=describe,
        )
        served = AppServer(around(app, access.local_key), bound, limits)
        listening = threading.Event()
        thread = threading.Thread(target=served.run, args=(listening.set,), daemon=True)
        thread.start()
        assert listening.wait(30)
        try:
            yield Served(memory, "127.0.0.1", port, access.local_key, logins)
        finally:
            served.stop()
            thread.join(10)
            assert not thread.is_alive()
            bound.close()
