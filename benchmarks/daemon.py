"""What does the daemon cost: memory, processor time, delay, and time to stop?

A real daemon serves a home with many messages and many transcript files. Vectors of the messages
are drawn at random under the name of the real model; what the files tell, and what is appended
to them, the daemon embeds with the real one. Eight clients use its doors, four over REST and four
over MCP. Nothing is digested meanwhile: `consolidate.py` measures that.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore.daemon.daemon_lock import find_holder
from lore.embed import open_embedder
from lore.embed.embedder import NoEmbedder
from lore.memory import Memory
from lore.proxy.address import find_address
from lore.records import NewMessage, Part
from lore.settings import Settings, load

SESSION = 200
LINES = 10
GROWING = 10
CLIENTS = 8
ROUNDS = 60
RELEASED_S = 25
"""Seconds after which an idle daemon has released what it can; the model is loaded until 40 s."""
LONG_TEXTS, LONG_WORDS = 20, 200
TICK_S = os.sysconf("SC_CLK_TCK")
LORE = (sys.executable, "-m", "lore.cli")
WORDS = [f"{a}{b}" for a in "bdfgklmnprst" for b in ("ar", "el", "in", "or", "um", "ash", "eck")]


class RandomVectors:
    """An embedder of the real one's name that draws its vectors."""

    def __init__(self, identity: str, dimension: int) -> None:
        self.name = self.identity = identity
        self.dimension = dimension
        self._rng = np.random.default_rng(1)

    def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:  # noqa: ARG002
        """Return a row of length 1 for each text."""
        rows = self._rng.standard_normal((len(texts), self.dimension)).astype(np.float32)
        unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def close(self) -> None:
        """Do nothing."""


def sentence(rng: random.Random, words: int = 25) -> str:
    """Return made-up words."""
    return " ".join(rng.choice(WORDS) + rng.choice(WORDS) for _ in range(words))


def fill(config: Settings, count: int) -> None:
    """Store messages with vectors."""
    rng = random.Random(1)
    start = datetime.now(UTC) - timedelta(hours=1)  # too recent to be digested
    real = open_embedder(config).embedder
    with Memory.open(
        config=config, embedder=RandomVectors(real.identity, real.dimension)
    ) as memory:
        for first in range(0, count, SESSION):
            said = [
                NewMessage(
                    "user" if i % 2 else "assistant",
                    (Part("text", sentence(rng)),),
                    start + timedelta(milliseconds=30 * i),
                    key=str(i),
                )
                for i in range(first, min(first + SESSION, count))
            ]
            memory.capture(f"filled-{first}", said, project="/code/filled")
        memory.maintenance.embed_waiting(judge=False)


def line(rng: random.Random, session: str, text: str = "") -> bytes:
    """Return a line of a transcript."""
    said = {
        "type": "user",
        "sessionId": session,
        "uuid": str(uuid.UUID(int=rng.getrandbits(128))),
        "parentUuid": None,
        "timestamp": datetime.now(UTC).isoformat(),
        "cwd": "/code/demo",
        "gitBranch": "main",
        "version": "2.1.0",
        "message": {"role": "user", "content": text or sentence(rng)},
    }
    return json.dumps(said).encode() + b"\n"


def write_files(home: Path, count: int) -> list[Path]:
    """Write transcripts where an agent would."""
    rng = random.Random(2)
    folder = home / ".claude" / "projects" / "-code-demo"
    folder.mkdir(parents=True)
    files = []
    for _ in range(count):
        session = str(uuid.UUID(int=rng.getrandbits(128)))
        path = folder / f"{session}.jsonl"
        path.write_bytes(b"".join(line(rng, session) for _ in range(LINES)))
        files.append(path)
    return files


def append(path: Path, rng: random.Random, text: str = "", count: int = 1) -> None:
    """Let a transcript grow."""
    with path.open("ab") as stream:
        stream.write(b"".join(line(rng, path.stem, text) for _ in range(count)))


def lore(home: Path, *arguments: str) -> str:
    """Run a command and return what it prints."""
    done = subprocess.run(
        [*LORE, *arguments], env=environment(home), check=True, capture_output=True, text=True
    )
    return done.stdout


def environment(home: Path) -> dict[str, str]:
    """Return an environment with a home of its own; the model is unloaded soon."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LORE_")}
    return {**kept, "HOME": str(home), "LORE_EMBED_IDLE_UNLOAD_S": "40"}


def cpu_s(pid: int) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK_S


def resident(pid: int) -> dict[str, float]:
    """Return the memory of a process in MB: all of it, its own, and files it shares."""
    rolled: dict[str, int] = {}
    for entry in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, value = entry.split(":")
        rolled[name] = int(value.split()[0])
    said = Path(f"/proc/{pid}/status").read_text().splitlines()
    told = {entry.split(":")[0]: entry.split(":")[1] for entry in said}

    def mb(kib: int) -> float:
        return round(kib * 1024 / 1e6, 1)

    return {
        "resident_mb": mb(rolled["Rss"]),
        "private_mb": mb(rolled["Private_Clean"] + rolled["Private_Dirty"]),
        "shared_mb": mb(rolled["Shared_Clean"] + rolled["Shared_Dirty"]),
        "anonymous_mb": mb(int(told["RssAnon"].split()[0])),
        "files_mb": mb(int(told["RssFile"].split()[0])),
        "peak_mb": mb(int(told["VmHWM"].split()[0])),
    }


def wait_until(what: Callable[[], bool], most_s: float) -> float:
    """Wait for something and return how long that took."""
    started = time.monotonic()
    while not what():
        if time.monotonic() - started > most_s:
            msg = "it did not come to pass"
            raise TimeoutError(msg)
        time.sleep(0.1)
    return time.monotonic() - started


def status(home: Path) -> dict[str, Any]:
    """Return what the daemon tells of itself."""
    told: dict[str, Any] = json.loads(lore(home, "status", "--json"))
    return told


def is_embedded(home: Path) -> bool:
    """Tell whether all is captured and embedded."""
    time.sleep(2)
    told = status(home)
    has_captured = "messages" in told["today"]
    return has_captured and (told["waiting"], told["state"]) == (0, "idle")


@contextmanager
def daemon(home: Path) -> Iterator[int]:
    """Run a daemon meanwhile and give its pid."""
    lore(home, "up", "--detach")
    try:
        yield int(status(home)["pid"])
    finally:
        lore(home, "down")


def share_of_core(pid: int, seconds: float, meanwhile: Callable[[], None] = lambda: None) -> float:
    """Return the processor time that a process takes, in percent of the time."""
    before, started = cpu_s(pid), time.monotonic()
    while time.monotonic() - started < seconds:
        meanwhile()
        time.sleep(1)
    return round(100 * (cpu_s(pid) - before) / (time.monotonic() - started), 3)


def delays_s(config: Settings, files: Sequence[Path], tries: int) -> list[float]:
    """Return how long it takes until what was appended is found by its words."""
    rng = random.Random(3)
    found = []
    for i in range(tries):
        word = f"heron{i}quartz"
        append(rng.choice(files), rng, f"the {word} was seen")
        with Memory.open(config=config, embedder=NoEmbedder()) as memory:
            found.append(round(wait_until(lambda: bool(memory.recall(word).hits), 90), 1))  # noqa: B023
        time.sleep(rng.uniform(0, 20))
    return found


def stop_s(home: Path) -> float:
    """Return how long it takes from the signal until the home is free."""
    holder = find_holder(home / ".lore")
    assert holder
    started = time.monotonic()
    os.kill(holder.pid, signal.SIGTERM)
    while find_holder(home / ".lore"):
        time.sleep(0.01)
    return round(time.monotonic() - started, 2)


def use(home: Path, clients: int, rounds: int) -> None:
    """Let clients ask and store by every door at once: half of them over REST, half over MCP."""
    found = find_address(str(home / ".lore"))
    assert found
    key = (home / ".lore" / "access.key").read_text().strip()
    headers = {
        "authorization": f"Bearer {key}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-06-18",
    }

    def work(place: int) -> None:
        rng = random.Random(place)
        connection = http.client.HTTPConnection(found.host, found.port, timeout=120)
        for i in range(rounds):
            said = sentence(rng, 8)
            name, given = (
                ("recall", {"query": said}),
                ("search", {"query": said}),
                ("store", {"content": f"{said} {place} {i}"}),
            )[i % 3]
            path, body = f"/api/v1/tools/{name}", dict[str, object](given)
            if place % 2:
                params = {"name": name, "arguments": given}
                path = "/mcp"
                body = {"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": params}
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            answer = response.read()
            assert response.status == http.HTTPStatus.OK, answer
            assert b'"isError":true' not in answer, answer
        connection.close()

    threads = [threading.Thread(target=work, args=(place,)) for place in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure(root: Path, messages: int, files: int, idle_s: float) -> dict[str, object]:
    """Fill a home, run daemons on it and return the figures."""
    config = load({}, home=root / ".lore").settings
    fill(config, messages)
    transcripts = write_files(root, files)
    lore(root, "config", "server.port", "0")
    lore(root, "config", "server.requests_per_minute", "0")
    for setting in ("distill.idle_s", "curate.idle_s"):
        lore(root, "config", setting, "86400")
    rng = random.Random(4)
    told: dict[str, object] = {"messages": messages, "files": files}
    with daemon(root) as pid:
        told["all captured and embedded after s"] = round(
            wait_until(lambda: is_embedded(root), 900), 1
        )
        told["model loaded"] = resident(pid)
        told["cpu of all that s"] = cpu_s(pid)
        use(root, CLIENTS, ROUNDS)
        told["used by 8 clients"] = resident(pid)
        time.sleep(RELEASED_S)
        told["idle since then, model loaded"] = resident(pid)
        time.sleep(60)
        told["model unloaded"] = resident(pid)
        told["idle, % of a core"] = share_of_core(pid, idle_s)

        def grow() -> None:
            for path in transcripts[:GROWING]:
                append(path, rng)

        told["10 files grow by a line a second, % of a core"] = share_of_core(pid, idle_s, grow)
        told["after growth"] = resident(pid)
        told["append to found, s"] = delays_s(config, transcripts, 4)
        told["stop when idle, s"] = stop_s(root)
    for path in transcripts[:100]:
        for _ in range(LONG_TEXTS):  # each its own: a text that was embedded before takes no time
            append(path, rng, sentence(rng, LONG_WORDS))
    with daemon(root) as pid:
        # The state may change between two looks at it; what waits takes minutes.
        wait_until(lambda: status(root)["waiting"] > 0, 60)
        time.sleep(3)
        told["while embedding long texts"] = resident(pid)
        told["waiting when stopped"] = status(root)["waiting"]
        told["stop while embedding, s"] = stop_s(root)
    told["log"] = (root / ".lore" / "lore.log").read_text().splitlines()[-3:]
    return told


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--idle-s", type=float, default=60.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), arguments.messages, arguments.files, arguments.idle_s)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
