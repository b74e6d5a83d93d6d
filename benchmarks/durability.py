"""Does a memory keep what it is given when several processes write, and when they are killed?

Four processes add fifty texts each at once to Lore, to mem0's local mode and to Chroma; then
writers are timed beside plain SQLite writers in the same run; then writers are killed at random.
Peers that are not installed are left out, with a line that says so.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import apsw

from lore.embed.embedder import NoEmbedder
from lore.memory import Memory
from lore.records import NewMessage, Part
from lore.settings import Settings
from lore.store import maintenance

RESULTS = Path(__file__).parent / "results" / "durability.json"
QUIET = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MEM0_TELEMETRY": "False",
    "ANONYMIZED_TELEMETRY": "False",
    "OPENAI_API_KEY": "none",  # mem0 wants one to open, and never uses it here
}
PROCESSES, EACH = 4, 50
WRITERS, WRITES = (4, 8), 80
MESSAGES, BATCH = 4_000, 100
PATIENCE_MS = 60_000
START = datetime(2026, 1, 1, tzinfo=UTC)
DIMENSION = 8

Report = dict[str, Any]


class Store(Protocol):
    """A memory under test, as one process sees it."""

    def add(self, text: str) -> None:
        """Keep one text; return once it is kept."""

    def count(self) -> int:
        """Return how many texts are kept."""

    def close(self) -> None:
        """Give everything back."""


class Lore:
    """Lore itself, without an embedder."""

    def __init__(self, home: Path) -> None:
        self.memory = Memory.open(config=Settings(home=home), embedder=NoEmbedder())

    def add(self, text: str) -> None:
        """Store a fragment."""
        self.memory.store(text, key=text)

    def count(self) -> int:
        """Count the fragments."""
        return self.memory.maintenance.stats().fragments

    def close(self) -> None:
        """Close the memory."""
        self.memory.close()


class Naive:
    """SQLite as it is often used: one table, BEGIN, look whether it is there, INSERT."""

    begin = "BEGIN"

    def __init__(self, home: Path) -> None:
        home.mkdir(exist_ok=True)
        self.busy = 0
        self.db = apsw.Connection(str(home / "naive.db"))
        self.db.set_busy_timeout(PATIENCE_MS)
        for sql in (
            "PRAGMA journal_mode = wal",
            "PRAGMA synchronous = FULL",
            "CREATE TABLE IF NOT EXISTS texts (n INTEGER PRIMARY KEY, text TEXT UNIQUE)",
        ):
            self._patiently(sql)

    def _patiently(self, sql: str) -> None:
        while True:
            try:
                self.db.execute(sql).fetchall()
            except apsw.BusyError:
                time.sleep(0.01)
            else:
                return

    def add(self, text: str) -> None:
        """Insert a text, again and again while the database is busy."""
        while True:
            try:
                self.db.execute(self.begin).fetchall()
                self.db.execute("SELECT 1 FROM texts WHERE text = ?", (text,)).fetchall()
                self.db.execute("INSERT INTO texts (text) VALUES (?)", (text,)).fetchall()
                self.db.execute("COMMIT").fetchall()
            except apsw.BusyError:
                self.busy += 1
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK").fetchall()
            else:
                return

    def count(self) -> int:
        """Count the rows."""
        return len(self.db.execute("SELECT n FROM texts").fetchall())

    def close(self) -> None:
        """Close the connection."""
        self.db.close()


class Immediate(Naive):
    """The same on equal terms: BEGIN IMMEDIATE takes the lock before it reads, as Lore does."""

    begin = "BEGIN IMMEDIATE"


class FixedEmbedder:
    """Stands in for mem0's embedder: no network, no model."""

    def embed(self, text: str, memory_action: str = "") -> list[float]:
        """Return a vector made of the text's own bytes."""
        del memory_action
        rng = random.Random(text)
        return [rng.random() for _ in range(DIMENSION)]


class Mem0:
    """mem0 with its own Memory class, FAISS on the disk, and nothing inferred."""

    def __init__(self, home: Path) -> None:
        from mem0 import Memory as Mem0Memory

        store = {
            "provider": "faiss",
            "config": {
                "path": str(home / "faiss"),
                "collection_name": "texts",
                "embedding_model_dims": DIMENSION,
            },
        }
        home.mkdir(exist_ok=True)
        self.memory = Mem0Memory.from_config({
            "vector_store": store,
            "history_db_path": str(home / "history.db"),
        })
        self.memory.embedding_model = FixedEmbedder()

    def add(self, text: str) -> None:
        """Add a text as it is."""
        self.memory.add(text, user_id="someone", infer=False)

    def count(self) -> int:
        """Count the vectors in the index."""
        return int(self.memory.vector_store.index.ntotal)

    def close(self) -> None:
        """Do nothing: mem0 writes after each text."""


class Chroma:
    """Chroma's client on the disk."""

    def __init__(self, home: Path) -> None:
        import chromadb

        settings = chromadb.config.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(path=str(home), settings=settings)
        self.texts = client.get_or_create_collection("texts", embedding_function=None)

    def add(self, text: str) -> None:
        """Add a text with its vector."""
        vector = FixedEmbedder().embed(text)
        self.texts.add(ids=[text], embeddings=[vector], documents=[text])

    def count(self) -> int:
        """Count the records."""
        return int(self.texts.count())

    def close(self) -> None:
        """Do nothing: Chroma has no end."""


STORES: dict[str, tuple[Callable[[Path], Store], str]] = {
    "lore": (Lore, "lore"),
    "naive": (Naive, "apsw"),
    "immediate": (Immediate, "apsw"),
    "mem0": (Mem0, "mem0"),
    "chroma": (Chroma, "chromadb"),
}


def work(name: str, home: Path, worker: int, count: int) -> None:
    """Be one of several writers: open, wait for the sign, write, and tell how long it took."""
    store = STORES[name][0](home)
    print("open", flush=True)
    sys.stdin.readline()
    took, failed = [], 0
    for i in range(count):
        started = time.perf_counter()
        try:
            store.add(text_of(worker, i))
        except Exception as error:  # noqa: BLE001 - a peer's failure is what is counted
            failed += 1
            print(f"{name}: {error!r}", file=sys.stderr)
        took.append(1000 * (time.perf_counter() - started))
    busy = getattr(store, "busy", 0)
    store.close()
    print(json.dumps({"took_ms": took, "failed": failed, "busy": busy}), flush=True)


def text_of(worker: int, i: int) -> str:
    """Return a text that no other worker writes."""
    return f"writer{worker} learned fact{i}: topic{i % 17} goes with topic{worker * i % 23}"


def start(*arguments: object) -> subprocess.Popen[str]:
    """Start this script as a worker."""
    return subprocess.Popen(
        [sys.executable, __file__, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **QUIET},
    )


def write_at_once(name: str, home: Path, writers: int, each: int) -> Report:
    """Let processes write at once; return how quick they were and how much is kept."""
    STORES[name][0](home).close()
    workers = [start("--work", name, home, i, each) for i in range(writers)]
    opened = sum(worker.stdout.readline() == "open\n" for worker in workers if worker.stdout)
    started = time.perf_counter()
    for worker in workers:
        with suppress(BrokenPipeError):
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
    answers = [worker.communicate(timeout=120)[0] for worker in workers]
    wall_s = time.perf_counter() - started
    reports = [json.loads(answer) for answer in answers if answer.strip()]
    took = sorted(ms for report in reports for ms in report["took_ms"]) or [0.0]
    last = STORES[name][0](home)
    kept = last.count()
    last.close()
    return {
        "processes": writers,
        "opened": opened,
        "written": writers * each,
        "kept": kept,
        "failed": sum(report["failed"] for report in reports),
        "busy_errors": sum(report["busy"] for report in reports),
        "per_s": round(writers * each / wall_s, 1),
        "p50_ms": round(took[len(took) // 2], 2),
        "p99_ms": round(took[int(0.99 * (len(took) - 1))], 2),
    }


def compare_keeping(root: Path) -> Report:
    """Let four processes add fifty texts each to every memory that is installed."""
    found: Report = {}
    for name in ("lore", "chroma", "mem0"):
        if find_spec(STORES[name][1]) is None:
            print(f"{name:8} not installed, left out")
            continue
        found[name] = write_at_once(name, root / f"keep-{name}", PROCESSES, EACH)
        print(f"{name:8} kept {found[name]['kept']} of {PROCESSES * EACH}")
    return found


def compare_writers(root: Path) -> Report:
    """Time Lore's writers beside plain ones; the ratio is that to BEGIN IMMEDIATE."""
    found: Report = {}
    for writers in WRITERS:
        all_stores = {
            name: write_at_once(name, root / f"write-{name}-{writers}", writers, WRITES)
            for name in ("naive", "immediate", "lore")
        }
        ratio = all_stores["lore"]["per_s"] / all_stores["immediate"]["per_s"]
        found[str(writers)] = {**all_stores, "throughput_ratio": round(ratio, 2)}
        for name, figures in all_stores.items():
            print(
                f"{writers} writers  {name:9} {figures['per_s']:8} writes/s  p50"
                f" {figures['p50_ms']:7} ms  p99 {figures['p99_ms']:7} ms"
                f"  busy errors {figures['busy_errors']}"
            )
        print(f"{writers} writers  ratio of throughput {ratio:.2f}")
    found["threads"] = compare_threads(root)
    return found


def compare_threads(root: Path) -> Report:
    """Time eight threads of one process, which share commits, beside one that does not."""
    total = 8 * WRITES
    plain = Immediate(root / "threads-plain")
    started = time.perf_counter()
    for i in range(total):
        plain.add(text_of(0, i))
    plain_per_s = total / (time.perf_counter() - started)
    plain.close()
    store = Lore(root / "threads-lore")
    started = time.perf_counter()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: store.add(text_of(0, i)), range(total)))
    lore_per_s = total / (time.perf_counter() - started)
    store.close()
    ratio = lore_per_s / plain_per_s
    print(
        f"8 threads  lore {lore_per_s:.0f} writes/s, plain in turn {plain_per_s:.0f}: {ratio:.2f}"
    )
    return {
        "lore_per_s": round(lore_per_s, 1),
        "plain_per_s": round(plain_per_s, 1),
        "throughput_ratio": round(ratio, 2),
    }


def messages_of(session: int) -> list[NewMessage]:
    """Return a batch of messages of about forty words."""
    rng = random.Random(session)
    return [
        NewMessage(
            "user" if i % 2 else "assistant",
            (Part("text", " ".join(f"word{rng.randint(0, 3000)}" for _ in range(40)) + "."),),
            START + timedelta(seconds=i),
            key=str(i),
        )
        for i in range(BATCH)
    ]


def compare_batches(root: Path) -> Report:
    """Time messages in batches beside a plain full-text table that gets the same batches."""
    batches = [messages_of(i) for i in range(MESSAGES // BATCH)]
    with Memory.open(config=Settings(home=root / "batches"), embedder=NoEmbedder()) as memory:
        memory.capture("warm", messages_of(-1))
        wall, cpu = time.perf_counter(), time.process_time()
        for i, batch in enumerate(batches):
            memory.capture(f"session{i}", batch)
        lore_wall_s, lore_cpu_s = time.perf_counter() - wall, time.process_time() - cpu
    db = apsw.Connection(str(root / "plain.db"))
    db.execute("PRAGMA journal_mode = wal").fetchall()
    db.execute("CREATE VIRTUAL TABLE plain USING fts5(text)").fetchall()
    wall, cpu = time.perf_counter(), time.process_time()
    for batch in batches:
        with db:
            db.executemany("INSERT INTO plain VALUES (?)", [(m.parts[0].text,) for m in batch])
    plain_wall_s, plain_cpu_s = time.perf_counter() - wall, time.process_time() - cpu
    db.close()
    found = {
        "messages_per_s": round(MESSAGES / lore_wall_s),
        "messages_per_cpu_s": round(MESSAGES / lore_cpu_s),
        "plain_fts_per_s": round(MESSAGES / plain_wall_s),
        "wall_ratio": round(plain_wall_s / lore_wall_s, 3),
        "cpu_ratio": round(plain_cpu_s / lore_cpu_s, 3),
    }
    print(
        f"batches of {BATCH}: {found['messages_per_s']} messages/s,"
        f" {found['messages_per_cpu_s']} per CPU second;"
        f" a plain full-text table {found['plain_fts_per_s']}/s"
    )
    return found


def write_until_killed(home: Path, worker: int, first: int) -> None:
    """Write and acknowledge until the process is killed."""
    store = Lore(home)
    print("open", flush=True)
    for i in range(first, first + 1_000_000):
        store.add(text_of(worker, i))
        print(i, flush=True)


def kill_writers(root: Path, seconds: float) -> Report:
    """Kill writers at random instants and count acknowledged writes that are gone."""
    home = root / "kills"
    rng = random.Random(7)
    Lore(home).close()
    kills, slowest_s = 0, 0.0
    acknowledged: set[str] = set()
    following = dict.fromkeys(range(4), 0)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        workers = {i: start("--until-killed", home, i, first) for i, first in following.items()}
        for worker in workers.values():
            assert worker.stdout is not None
            worker.stdout.readline()
        time.sleep(rng.uniform(0.0, 0.3))
        for i, worker in workers.items():
            worker.send_signal(signal.SIGKILL)
            lines = [line for line in worker.communicate()[0].split("\n")[:-1] if line]
            acknowledged.update(text_of(i, int(line)) for line in lines)
            following[i] = int(lines[-1]) + 2 if lines else following[i] + 1
            kills += 1
        started = time.perf_counter()
        store = Lore(home)
        slowest_s = max(slowest_s, time.perf_counter() - started)
        store.close()
    store = Lore(home)
    with store.memory.database.read() as db:
        there = {row[0] for row in db.rows("SELECT content FROM fragments")}
        damage = list(maintenance.check_integrity(db))
    damage += store.memory.database.write(maintenance.compare_keyword_index)
    store.close()
    lost = len(acknowledged - there)
    print(
        f"kills {kills}  acknowledged {len(acknowledged)}  lost {lost}  damage {len(damage)}"
        f"  slowest opening {1000 * slowest_s:.0f} ms"
    )
    return {
        "kills": kills,
        "acknowledged": len(acknowledged),
        "lost": lost,
        "damage": damage,
        "slowest_open_ms": round(1000 * slowest_s, 1),
    }


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of this script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the figures go")
    parser.add_argument("--kill-seconds", type=float, default=20.0, help="how long to kill")
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--until-killed", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> None:
    """Run all comparisons, print them and write them down."""
    options = parsed(arguments)
    if options.work:
        name, home, worker, count = options.work
        work(name, Path(home), int(worker), int(count))
        return
    if options.until_killed:
        home, worker, first = options.until_killed
        write_until_killed(Path(home), int(worker), int(first))
        return
    os.environ.update(QUIET)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        report = {
            "keeping": compare_keeping(root),
            "writers": compare_writers(root),
            "batches": compare_batches(root),
            "kills": kill_writers(root, options.kill_seconds),
        }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, indent=2) + "\n")
    print(f"written to {options.json}")


if __name__ == "__main__":
    main(sys.argv[1:])
