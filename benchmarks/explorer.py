"""How quick is the explorer: time to the first view, nodes of a page, processor time of a call?

A server with a memory of made-up fragments runs in a process of its own, without the periodic tasks
of the daemon, and the distribution's Chromium opens its pages. Each size is measured in the same
run, so that the last column of a table is what growth costs. `--keep FOLDER` keeps the memories:
100,000 fragments take minutes to store.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from daemon import RandomVectors, cpu_s, sentence
from lore.daemon.http_server import HttpServer
from lore.http import explorer_build
from lore.memory import Memory
from lore.records import Draft, NewMessage, Part
from lore.settings import load

SIZES = (500, 100_000)
TREE, SESSION = 20, 20
"""Fragments of one tree, messages of one session."""

ROUNDS, BATCH = 10, 5_000
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
READY = """() => !document.querySelector('[aria-label="Loading"]') &&
  document.querySelector("main h1") !== null"""
_SERVE = "serve"


class Call(NamedTuple):
    """A request to the API; with a body it is a POST."""

    path: str
    body: dict[str, Any] | None = None


@dataclass(frozen=True)
class Server:
    """A server in another process."""

    pid: int
    url: str
    key: str

    def send(self, call: Call) -> Any:
        """Send a call and return its answer."""
        host = self.url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=300)
        headers = {"x-lore-key": self.key, "content-type": "application/json"}
        body = None if call.body is None else json.dumps(call.body)
        method = "GET" if body is None else "POST"
        connection.request(method, f"/api/v1{call.path}", body, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        assert answer.status == 200, text
        return json.loads(text)


def open_memory(home: Path) -> Memory:
    """Open the memory of a home with vectors that are drawn."""
    settings = replace(load({}, home=home).settings, server_port=0, server_requests_per_minute=0)
    return Memory.open(config=settings, embedder=RandomVectors("drawn", 384))


def fill(home: Path, size: int) -> None:
    """Store made-up fragments in trees, and a tenth as many messages."""
    rng = random.Random(1)
    with open_memory(home) as memory:
        now = memory.database.now()
        roots: list[str] = []
        for first in range(0, size, BATCH):
            count = min(BATCH, size - first)
            roots += memory.knowledge.store_all(
                Draft(sentence(rng, 12), depth=0, project=f"/code/{n % 7}")
                for n in range(count // TREE)
            )
            memory.knowledge.store_all(
                Draft(
                    sentence(rng), parent_id=rng.choice(roots), project="",
                    origin="peer" if n % 50 == 0 else "user",
                )
                for n in range(count - count // TREE)
            )  # fmt: skip
        for n in range(max(1, size // 10 // SESSION)):
            new = [
                NewMessage(
                    "assistant" if k % 2 else "user", (Part("text", sentence(rng)),),
                    now - timedelta(minutes=n * SESSION - k), str(k),
                )
                for k in range(SESSION)
            ]  # fmt: skip
            memory.capture(f"s{n}", new, agent="codex", project=f"/code/{n % 7}", title=f"Talk {n}")
        memory.maintenance.embed_waiting()
    (home / "filled").touch()


def serve(home: Path) -> None:
    """Serve a home until the standard input ends."""
    with open_memory(home) as memory:
        urls: list[str] = []
        server = HttpServer(memory, lambda url, notice: urls.append(url or notice))
        server.open()
        sys.stdout.write(urls[-1] + "\n")
        sys.stdout.flush()
        sys.stdin.read()
        server.close()


@contextmanager
def running(home: Path) -> Iterator[Server]:
    """Run a server meanwhile."""
    with subprocess.Popen(
        [sys.executable, __file__, _SERVE, str(home)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout
        assert process.stdin
        url = process.stdout.readline().strip()
        try:
            yield Server(process.pid, url, (home / "access.key").read_text().strip())
        finally:
            process.stdin.close()


def calls(server: Server) -> dict[str, Call]:
    """Return the calls of the pages."""
    fragment = server.send(Call("/learned?limit=1"))["items"][0]["id"]
    session = server.send(Call("/sessions?limit=1"))["items"][0]["id"]
    question = " ".join(sentence(random.Random(2), 6).split())
    return {
        "review": Call("/review?limit=30"),
        "review/counts": Call("/review/counts"),
        "retrieve": Call("/retrieve", {"query": question, "everywhere": True, "explain": True}),
        "ask": Call("/ask", {"query": question}),
        "graph": Call("/graph?limit=1000"),
        "learned": Call("/learned?limit=50"),
        "learned/days": Call("/learned/days"),
        "sessions": Call("/sessions?limit=50"),
        "session": Call(f"/sessions/{session}/turns?limit=50"),
        "fragment": Call(f"/fragments/{fragment}"),
        "edges": Call(f"/fragments/{fragment}/edges?limit=50"),
        "stats": Call("/stats"),
        "spend": Call("/spend/series?group=model"),
        "health": Call("/health/report"),
    }


def measure_calls(server: Server) -> dict[str, float]:
    """Return the processor milliseconds of the server for each call; the first one apart."""
    figures: dict[str, float] = {}
    for name, call in calls(server).items():
        before = cpu_s(server.pid)
        server.send(call)
        figures[f"{name}, first"] = (cpu_s(server.pid) - before) * 1000
        before = cpu_s(server.pid)
        for _ in range(ROUNDS):
            server.send(call)
        figures[name] = (cpu_s(server.pid) - before) * 1000 / ROUNDS
    return figures


def measure_pages(server: Server) -> tuple[dict[str, float], dict[str, float]]:
    """Return the milliseconds until each page shows its content, and its nodes."""
    from playwright.sync_api import sync_playwright

    known = calls(server)
    paths = {
        "search": "/", "hits": f"/?q={(known['retrieve'].body or {})['query']}",
        "fragment": known["fragment"].path, "sessions": "/sessions", "review": "/review",
        "timeline": "/timeline", "graph": "/graph", "spend": "/spend",
    }  # fmt: skip
    times: dict[str, float] = {}
    nodes: dict[str, float] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(FLAGS)
        )
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.goto(server.url + server.send(Call("/logins", {}))["path"])
        for name, path in paths.items():
            took = []
            for _ in range(3):
                page.goto("about:blank")
                started = time.perf_counter()
                page.goto(server.url + path)
                page.wait_for_function(READY)
                took.append((time.perf_counter() - started) * 1000)
            times[name] = statistics.median(took)
            nodes[name] = page.evaluate("document.querySelectorAll('*').length")
        browser.close()
    return times, nodes


def show(title: str, columns: list[dict[str, float]], sizes: list[int]) -> None:
    """Print a table with a column for each size, and how often the last is the first."""
    lines = [f"{title:28}" + "".join(f"{size:>12,}" for size in sizes) + f"{'ratio':>8}"]
    for name in columns[0]:
        values = [column[name] for column in columns]
        ratio = values[-1] / values[0] if values[0] else 0.0
        lines.append(f"  {name:26}" + "".join(f"{one:12,.1f}" for one in values) + f"{ratio:8.1f}")
    sys.stdout.write("\n".join(lines) + "\n\n")
    sys.stdout.flush()


def sizes_of_build() -> dict[str, float]:
    """Return the kilobytes of the built pages, compressed: all of them, and the first view."""
    files = list((explorer_build.FOLDER / "assets").glob("*.gz"))
    first = [one for one in files if one.name.startswith("index-")]
    return {
        "all, gzip kB": sum(one.stat().st_size for one in files) / 1000,
        "first view, gzip kB": sum(one.stat().st_size for one in first) / 1000,
    }


def main() -> None:
    """Measure the explorer at each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--no-browser", action="store_true")
    told = parser.parse_args()
    if not explorer_build.is_built():
        sys.exit(explorer_build.NOT_BUILT)
    columns: list[tuple[dict[str, float], ...]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for size in told.sizes:
            home = (told.keep or Path(scratch)) / f"fragments-{size}"
            home.mkdir(parents=True, exist_ok=True)
            if not (home / "filled").exists():
                fill(home, size)
            with running(home) as server:
                figures = measure_calls(server)
                pages = ({}, {}) if told.no_browser else measure_pages(server)
            columns.append((figures, *pages))
    titles = ("CPU ms of a call", "ms to the first view", "nodes of a page")
    for title, group in zip(titles, zip(*columns, strict=True), strict=True):
        if group[0]:
            show(title, list(group), told.sizes)
    show("size", [sizes_of_build()], [0])


if __name__ == "__main__":
    if sys.argv[1:2] == [_SERVE]:
        serve(Path(sys.argv[2]))
    else:
        main()
