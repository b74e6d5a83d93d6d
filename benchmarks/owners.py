"""What does a server of many memories cost: recalls in a second, and their time?

Each owner has the same made-up fragments in a home of their own; vectors are drawn, also those of
the questions, so that no model is measured. The library asks the same memories in one process, all
of them open. Then clients in processes of their own ask a server over REST, each time as another
owner: once with all memories open, once with so few that most have to be opened first. The memories
are files, or with `--postgres` rows of a PostgreSQL server that is started for it.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import json
import multiprocessing
import random
import resource
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.engines import run_server

from daemon import sentence
from lore.http.auth import allowed_host_names
from lore.http.request_limits import Limits
from lore.http.server import AppServer, bind
from lore.memory import Memory
from lore.records import Draft
from lore.server.memory_store import MemoryStore
from lore.server.owner_server import OwnerServer
from lore.server.owner_service import MemoryOpener, SharedModels
from lore.server.registry import Registry
from lore.settings import Settings, load

QUESTIONS = 40
DIMENSION = 384


class DrawnVectors:
    """An embedder that draws the vector of a text, always the same one."""

    name = identity = "drawn"
    dimension = DIMENSION

    def __init__(self) -> None:
        self._known: dict[str, NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:  # noqa: ARG002
        """Return a row of length 1 for each text."""
        return np.stack([self._row(text) for text in texts])

    def _row(self, text: str) -> NDArray[np.float32]:
        if text not in self._known:
            seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
            row = np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
            self._known[text] = row / np.linalg.norm(row)
        return self._known[text]

    def close(self) -> None:
        """Do nothing."""


def fill(registry: Registry, settings: Settings, owners: int, fragments: int) -> dict[str, str]:
    """Create owners with the same fragments; return a key of each by their id."""
    keys: dict[str, str] = {}
    rng = random.Random(1)
    for i in range(owners):
        owner = registry.add_owner(f"owner {i}")
        keys[owner.id], _ = registry.create_key("k", owner=owner.name)
    first, *rest = keys
    opener = MemoryOpener(
        registry, MemoryStore(registry, settings), SharedModels(DrawnVectors(), None)
    )
    drafts = [Draft(sentence(rng), sentence(rng, 6)) for _ in range(fragments)]
    for owner_id in keys if settings.store_url else [first]:
        with opener.open(owner_id) as memory:
            memory.knowledge.store_all(drafts)
            while memory.maintenance.embed_waiting(judge=False):
                pass
    if not settings.store_url:
        for owner_id in rest:
            shutil.copytree(registry.owner_folder(first), registry.owner_folder(owner_id))
    return keys


def ask_library(
    registry: Registry, settings: Settings, owners: Sequence[str], questions: Sequence[str],
    count: int,
) -> dict[str, float]:  # fmt: skip
    """Ask memories that are all open, one after another."""
    opener = MemoryOpener(
        registry, MemoryStore(registry, settings), SharedModels(DrawnVectors(), None)
    )
    memories: list[Memory] = [opener.open(owner) for owner in owners]
    rng = random.Random(2)
    try:
        for memory in memories:
            memory.recall(questions[0])
        times: list[float] = []
        started = time.perf_counter()
        for i in range(count):
            began = time.perf_counter()
            rng.choice(memories).recall(questions[i % len(questions)])
            times.append(time.perf_counter() - began)
        took_s = time.perf_counter() - started
    finally:
        for memory in memories:
            memory.close()
    return _figures(times, took_s)


def _figures(times: Sequence[float], took_s: float) -> dict[str, float]:
    cuts = statistics.quantiles(times, n=100)
    return {
        "per_s": round(len(times) / took_s, 1),
        "p50_ms": round(cuts[49] * 1000, 2),
        "p99_ms": round(cuts[98] * 1000, 2),
    }


@contextmanager
def serving(registry: Registry, settings: Settings) -> Iterator[int]:
    """Serve a registry on loopback, and yield the port."""
    bound, _ = bind("127.0.0.1", 0)
    server = OwnerServer(
        registry, settings, SharedModels(DrawnVectors(), None), tasks=(),
        host_names=allowed_host_names("127.0.0.1"), limits=Limits(requests_per_minute=0),
    )  # fmt: skip
    app_server = AppServer(server.app, bound)
    listening = threading.Event()
    thread = threading.Thread(target=app_server.run, args=(listening.set,), daemon=True)
    thread.start()
    listening.wait(30)
    try:
        yield int(bound.getsockname()[1])
    finally:
        app_server.stop()
        thread.join(30)
        server.close()


def ask_server(
    port: int, keys: Sequence[str], questions: Sequence[str], count: int, clients: int
) -> dict[str, float]:
    """Ask over REST by several processes, each time as another owner."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(clients) as pool:
        shares = [(port, list(keys), list(questions), count // clients, seed)
                  for seed in range(clients)]  # fmt: skip
        pool.starmap(_ask, [(*share[:3], 5, share[4]) for share in shares])
        started = time.perf_counter()
        results = pool.starmap(_ask, shares)
        took_s = time.perf_counter() - started
    return _figures([one for times in results for one in times], took_s)


def _ask(
    port: int, keys: Sequence[str], questions: Sequence[str], count: int, seed: int
) -> list[float]:
    rng = random.Random(seed)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    times = []
    for i in range(count):
        headers = {"x-lore-key": rng.choice(keys), "content-type": "application/json"}
        body = json.dumps({"query": questions[i % len(questions)]})
        began = time.perf_counter()
        connection.request("POST", "/api/v1/retrieve", body, headers)
        response = connection.getresponse()
        response.read()
        times.append(time.perf_counter() - began)
        assert response.status == http.HTTPStatus.OK, response.status
    connection.close()
    return times


def measure(options: argparse.Namespace, folder: Path, store_url: str = "") -> dict[str, Any]:
    """Fill a server's home, ask it each way, and return the figures."""
    settings = replace(
        load({}, home=folder).settings, server_open_memories=max(4, options.owners + 1),
        server_idle_close_s=86_400.0, gateway_on=False, store_url=store_url,
    )  # fmt: skip
    rng = random.Random(3)
    questions = [sentence(rng, 6) for _ in range(QUESTIONS)]
    with Registry.open(folder) as registry:
        keys = fill(registry, settings, options.owners, options.fragments)
        library = ask_library(registry, settings, list(keys), questions, options.requests)
        with serving(registry, settings) as port:
            warm = ask_server(port, list(keys.values()), questions, 2 * options.owners, 2)
            one = ask_server(port, list(keys.values()), questions, options.requests, 1)
            several = ask_server(port, list(keys.values()), questions, options.requests, 4)
        few = replace(settings, server_open_memories=max(4, options.owners // 10))
        with serving(registry, few) as port:
            cold = ask_server(port, list(keys.values()), questions, options.requests // 4, 2)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "owners": options.owners,
        "fragments_each": options.fragments,
        "library": library,
        "first requests, memories and apps opened": warm,
        "server, 1 client": one,
        "server, 4 clients": several,
        "server, a tenth open": cold,
        "p50_to_library": round(one["p50_ms"] / library["p50_ms"], 2),
        "rate_to_library": round(several["per_s"] / library["per_s"], 2),
        "peak_resident_mb": round(peak_mb),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--owners", type=int, default=200)
    parser.add_argument("--fragments", type=int, default=1_000)
    parser.add_argument("--requests", type=int, default=2_000)
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    store = run_server() if options.postgres else nullcontext("")
    with tempfile.TemporaryDirectory() as folder, store as url:
        print(json.dumps(measure(options, Path(folder) / "server", url), indent=1))


if __name__ == "__main__":
    main()
