"""How long does an agent wait for `lore hook`, on a large memory, idle and busy?

The memory is served with the real model; the vectors of its messages are drawn at random under the
model's name, and the threshold is 0, so that every prompt goes the whole way. Idle, it is served by
the daemon's doors alone; busy, by a daemon that captures, embeds and digests meanwhile. The process
of a hook is measured from its start to its end, beside `python -c pass` in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

from corpus import Corpus, ask
from daemon import RandomVectors, append, daemon, environment, status, wait_until, write_files
from latency_memory import messages_of
from lore.daemon import daemon_lock
from lore.daemon.http_server import HttpServer
from lore.embed import open_embedder
from lore.memory import Memory
from lore.proxy.address import Address, find_address
from lore.proxy.daemon_client import DaemonCall
from lore.proxy.hook_client import HOOK_PATH
from lore.settings import Settings, load

PROJECT = "/code/benchmark"
BUSY_FILES, BUSY_LINES = 40, 400
TOGETHER = 16
"""So many sessions begin at one time, on a machine that has fewer processors."""

CONFIG = "[server]\nport = 0\n[inject]\nthreshold = 0.0\n"
HOOK = (sys.executable, "-c", "from lore.cli import main; main()", "hook", "UserPromptSubmit")
BEGIN = (*HOOK[:-1], "SessionStart")
BARE = (sys.executable, "-c", "pass")


def fill(config: Settings, count: int) -> list[str]:
    """Store messages with vectors and return what they say."""
    real = open_embedder(config).embedder
    stand_in = RandomVectors(real.identity, real.dimension)
    said: list[str] = []
    with Memory.open(config=config, embedder=stand_in) as memory:
        for talk in Corpus().talks(count):
            memory.capture(talk.name, messages_of(talk), agent="benchmark", project=PROJECT)
            said += talk.texts
        memory.maintenance.embed_waiting()
    return said


def inputs(said: Sequence[str], count: int) -> list[bytes]:
    """Return what an agent says with each of many prompts, each of a session of its own."""
    chance = random.Random(3)
    prompts = [ask(chance.choice(said), chance) for _ in range(count)]
    return [
        json.dumps({
            "session_id": f"prompt-{place}-{chance.random()}",
            "transcript_path": "/nowhere.jsonl",
            "cwd": PROJECT,
            "hook_event_name": "UserPromptSubmit",
            "prompt": f"Please explain again: {prompt}",
        }).encode()
        for place, prompt in enumerate(prompts)
    ]  # fmt: skip


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return the median and the 99th percentile."""
    ordered = sorted(values)
    last = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return {"p50": round(statistics.median(ordered), 1), "p99": round(last, 1)}


def answers(address: Address, said: Sequence[bytes]) -> dict[str, object]:
    """Measure how long the daemon takes to answer, over the wire, without a process."""
    took, told, failed = [], 0, 0
    for body in said:
        began = time.perf_counter()
        code, answer = DaemonCall().post(address, f"{HOOK_PATH}UserPromptSubmit", body, {}, 30.0)
        took.append((time.perf_counter() - began) * 1000)
        told += b"additionalContext" in answer
        failed += code != HTTPStatus.OK
    return {"ms": spread(took), "told": round(told / len(said), 3), "failed": failed}


def processes(command: Sequence[str], home: Path, said: Sequence[bytes]) -> dict[str, object]:
    """Measure whole processes: time on the wall and of the processor, and how many told."""
    wall, cpu, told = [], [], 0
    for body in said:
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            command, input=body, capture_output=True, env=environment(home), check=True
        )
        wall.append((time.perf_counter() - began) * 1000)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        cpu.append(spent * 1000)
        told += bool(done.stdout)
    return {"wall_ms": spread(wall), "cpu_ms": spread(cpu), "told": round(told / len(said), 3)}


def beginnings(home: Path, count: int) -> dict[str, object]:
    """Let sessions begin at one time, and measure how many are told something."""
    began = time.perf_counter()
    running = [
        subprocess.Popen(
            BEGIN, env=environment(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(count)
    ]
    for place, process in enumerate(running):
        assert process.stdin
        said = {"session_id": f"begin-{place}-{began}", "cwd": PROJECT, "source": "startup"}
        process.stdin.write(json.dumps(said).encode())
        process.stdin.close()
    told = 0
    for process in running:
        assert process.stdout
        told += bool(process.stdout.read())
        process.stdout.close()
        process.wait()
    took_ms = round((time.perf_counter() - began) * 1000, 1)
    return {"sessions": count, "told": told, "all_ended_ms": took_ms}


def serve(home: Path) -> None:
    """Serve a memory as a daemon does that has no chores, until it is ended."""
    with Memory.open(home) as memory:
        daemon_lock.take_lock(home, now=datetime.now(UTC), version="benchmark")
        HttpServer(memory, lambda _url, _notice: None).open()
        signal.pause()


@contextmanager
def doors(home: Path) -> Iterator[None]:
    """Have a memory served meanwhile."""
    command = [sys.executable, __file__, "--serve", str(home / ".lore")]
    with subprocess.Popen(command, env=environment(home)) as running:
        try:
            yield
        finally:
            running.kill()


def reach(home: Path) -> Address:
    """Return the address of the server once it listens."""
    wait_until(lambda: find_address(str(home / ".lore")) is not None, 120)
    address = find_address(str(home / ".lore"))
    assert address is not None
    return address


def measure(home: Path, said: Sequence[str], count: int) -> dict[str, object]:
    """Measure the doors alone, a daemon at work, and no daemon."""
    found: dict[str, object] = {"python -c pass": processes(BARE, home, inputs(said, count // 2))}
    with doors(home):
        address = reach(home)
        answers(address, inputs(said, 5))
        found["idle"] = answers(address, inputs(said, count))
        found["idle, lore hook"] = processes(HOOK, home, inputs(said, count // 2))
        found["idle, sessions begin"] = [beginnings(home, TOGETHER) for _ in range(3)]
    for path in write_files(home, BUSY_FILES):
        append(path, random.Random(path.stem), count=BUSY_LINES)
    with daemon(home):
        address = reach(home)
        wait_until(lambda: status(home)["state"] not in ("idle", "starting"), 60)
        found["busy"] = answers(address, inputs(said, count))
        found["busy, lore hook"] = processes(HOOK, home, inputs(said, count // 2))
        found["busy, sessions begin"] = [beginnings(home, TOGETHER) for _ in range(3)]
        found["busy with"] = status(home)["state"]
    found["no daemon, lore hook"] = processes(HOOK, home, inputs(said, count // 2))
    found["load"] = os.getloadavg()
    return found


def main(tell: Callable[[str], object] = print) -> None:
    """Fill a memory and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        config = load({}, home=home / ".lore").settings
        config.home.mkdir(mode=0o700)
        said = fill(config, given.size)
        (config.home / "config.toml").write_text(CONFIG)
        tell(json.dumps(measure(home, said, given.count), indent=2))


if __name__ == "__main__":
    main()
