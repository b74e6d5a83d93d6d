"""A server on loopback, started as by the daemon, with a memory of its own."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lore.daemon import daemon_lock
from lore.daemon.http_server import HttpServer
from lore.http.hooks import HookCounters
from lore.memory import Memory
from lore.settings import load
from tests.fakes import NOON, FakeEmbedder, FixedClock


@dataclass(frozen=True)
class Served:
    """A memory that is served: its home, its address and its key."""

    memory: Memory
    home: Path
    url: str
    key: str
    hooks: HookCounters

    def post(self, path: str, body: object, **headers: str) -> tuple[int, Any]:
        """Post JSON and return the status and the JSON of the answer."""
        request = urllib.request.Request(
            f"{self.url}/api/v1{path}",
            body if isinstance(body, bytes) else json.dumps(body).encode(),
            {"content-type": "application/json", "authorization": f"Bearer {self.key}", **headers},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())


@contextmanager
def serving(home: Path, *, exclude: tuple[str, ...] = ()) -> Iterator[Served]:
    """Serve a fresh memory as the daemon of a home."""
    config = replace(
        load({}, home=home).settings, server_port=0, inject_threshold=0.05, capture_exclude=exclude
    )
    told: list[tuple[str, str]] = []
    with Memory.open(config=config, embedder=FakeEmbedder(), now=FixedClock()) as memory:
        held = daemon_lock.take_lock(home, now=NOON, version="test")
        doors = HttpServer(memory, lambda url, notice: told.append((url, notice)))
        doors.open()
        try:
            key = (home / "access.key").read_text().strip()
            yield Served(memory, home, told[-1][0], key, doors.hooks)
        finally:
            doors.close()
            held.release()
