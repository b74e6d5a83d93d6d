"""How quick is a memory among many on PostgreSQL, against the same memory in a SQLite file?

One owner's fragments are stored through the library on both engines; on the server their rows are
then copied to the other owners, words, vectors and all. The same questions are asked of both in
turn, then of owners drawn at random by several clients at once, each a process. Vectors are drawn
from the hash of a text and cached for each question, so that no model is measured. Beside the time
stands what the processor spent on a recall, in the client and in the server: it does not depend on
what else the machine does. The server is the one that tests start, with its usual settings but
for `--shared-buffers`; its tables are not logged, which saves half of the writing. Both engines
must give the same hits. 1,000 owners of 10,000 fragments take 34 GB, and 15 minutes to fill.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median, quantiles

import numpy as np
import psycopg
from numpy.typing import NDArray
from tests.engines import run_server, stopped_server

from lore.memory import Memory
from lore.records import Draft
from lore.settings import Settings
from lore.store.postgres.owner_connection import owner_of

WORDS, WORDS_OF_TEXT, WORDS_OF_QUESTION = 8_000, 30, 5
QUESTIONS = 40
OPEN = 24
"""Owners, drawn at random, whose memories a client has open."""

CLIENTS = (1, 2, 8)
COPIED = (
    "meta", "projects", "sessions", "items", "fragments", "entities", "mentions", "embedders",
    "vectors", "vector_rows", "word_totals", "used_numbers",
)  # fmt: skip
"""Tables that are copied as they are; words carry letters of their owner."""


class DrawnEmbedder:
    """Gives every text a vector that is drawn from its hash."""

    name = identity = "drawn-256"
    dimension = 256

    def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Return a vector of length one for each text."""
        del query
        seeds = (int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) for text in texts)
        rows = [np.random.default_rng(seed).standard_normal(self.dimension) for seed in seeds]
        matrix = np.array(rows, np.float32).reshape(-1, self.dimension)
        unit: NDArray[np.float32] = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
        return unit

    def close(self) -> None:
        """Do nothing."""


def draw_texts(count: int, words: int, seed: int) -> list[str]:
    """Return texts whose words are as frequent as those of a language."""
    chance = random.Random(seed)
    weights = [1 / (rank + 10) for rank in range(WORDS)]
    syllables = [first + second for first in "bdfgklmnprst" for second in "aeiou"]
    vocabulary = ["".join(chance.choices(syllables, k=3)) for _ in range(WORDS)]
    return [" ".join(chance.choices(vocabulary, weights, k=words)) for _ in range(count)]


def open_memory(home: Path, url: str = "", owner: str = "") -> Memory:
    """Open a memory in a file, or of an owner on the server."""
    config = Settings(home=home, store_url=url, store_owner=owner)
    return Memory.open(config=config, embedder=DrawnEmbedder())


def fill(memory: Memory, texts: Sequence[str]) -> float:
    """Store the texts and their vectors; return how many a second."""
    started = time.perf_counter()
    for at in range(0, len(texts), 500):
        drafts = [Draft(content=text, kind="fact") for text in texts[at : at + 500]]
        memory.knowledge.store_all(drafts)
    memory.context.embed_waiting(judge=False)
    return len(texts) / (time.perf_counter() - started)


def copy_owner(
    admin: psycopg.Connection[tuple[object, ...]], source: str, targets: Sequence[str]
) -> None:
    """Copy the rows of an owner to others."""
    old = owner_of(source)
    owners = ", ".join(f"'{owner_of(target)}'::uuid" for target in targets)
    given = f"CROSS JOIN unnest(ARRAY[{owners}]) AS given (new) WHERE owner = '{old}'"
    for table in COPIED:
        columns = admin.execute(
            "SELECT string_agg(column_name, ', ') FROM information_schema.columns"
            f" WHERE table_schema = 'lore' AND table_name = '{table}'"
            " AND column_name NOT IN ('owner', 'seq')"
        ).fetchone()
        names = str(columns[0]) if columns else ""
        admin.execute(
            f"INSERT INTO lore.{table} (owner, {names}) SELECT new, {names}"
            f" FROM lore.{table} {given}"
        )
    admin.execute(
        "INSERT INTO lore.fragment_words (owner, n, words, length) SELECT new, n,"
        f" replace(words::text, '''{str(old)[:6]}', '''' || left(new::text, 6))::tsvector,"
        f" length FROM lore.fragment_words {given}"
    )


def stop_logging(admin: psycopg.Connection[tuple[object, ...]]) -> None:
    """Make all tables unlogged: those first to which no logged one refers."""
    rows = admin.execute(
        "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relpersistence = 'p'"
        " AND relnamespace = 'lore'::regnamespace"
    ).fetchall()
    left = [str(name) for (name,) in rows]
    while left:
        logged = []
        for name in left:
            try:
                admin.execute(f"ALTER TABLE {name} SET UNLOGGED")
            except psycopg.errors.InvalidTableDefinition:
                logged.append(name)
        if logged == left:
            return
        left = logged


def copy_owners(url: str, owners: int, together: int) -> dict[str, object]:
    """Copy the first owner to all others; return how long that took and what is on disk.

    The rows of owners that are copied `together` are mixed on disk, as if all had written at once.
    """
    started = time.perf_counter()
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("SET session_replication_role = replica")  # keys need no check
        admin.execute("SET maintenance_work_mem = '1GB'")
        stop_logging(admin)
        words = admin.execute(
            "SELECT indexdef FROM pg_indexes WHERE indexname = 'fragment_words_words'"
        ).fetchone()
        admin.execute("DROP INDEX lore.fragment_words_words")
        names = [str(i) for i in range(1, owners)]
        for at in range(0, len(names), together):
            copy_owner(admin, "0", names[at : at + together])
        admin.execute(str(words[0]) if words else "")
        admin.execute("VACUUM ANALYZE")
        took_s = time.perf_counter() - started
        sizes = admin.execute(
            "SELECT relname, pg_table_size(c.oid), pg_indexes_size(c.oid) FROM pg_class c"
            " WHERE relnamespace = 'lore'::regnamespace AND relkind = 'r'"
            " ORDER BY pg_total_relation_size(c.oid) DESC LIMIT 6"
        ).fetchall()
        total = admin.execute("SELECT pg_database_size(current_database())").fetchone()
    return {
        "copied_s": round(took_s, 1),
        "disk_gb": round(int(str(total[0])) / 1e9, 2) if total else 0,
        "largest_mb": {str(name): [_mb(rows), _mb(index)] for name, rows, index in sizes},
    }


def _mb(size: object) -> int:
    return round(int(str(size)) / 1e6)


def ask(memory: Memory, questions: Sequence[str]) -> list[float]:
    """Return how many milliseconds each answer took."""
    spent = []
    for question in questions:
        started = time.perf_counter()
        memory.recall(question, log=False)
        spent.append(1000 * (time.perf_counter() - started))
    return spent


def same_hits(file: Memory, first: Memory, questions: Sequence[str]) -> str:
    """Return of how many questions both engines give the same hits in the same order."""
    texts = [
        [[hit.text for hit in memory.recall(question, log=False).hits] for question in questions]
        for memory in (file, first)
    ]
    equal = sum(one == other for one, other in zip(*texts, strict=True))
    return f"{equal} of {len(questions)}"


def server_cpu_s(url: str) -> Callable[[], float]:
    """Return what reads the processor time of the server's processes so far."""
    with psycopg.connect(url) as admin:
        row = admin.execute("SELECT setting FROM pg_settings WHERE name = 'data_directory'")
        folder = Path(str((row.fetchone() or ("",))[0]))
    postmaster = (folder / "postmaster.pid").read_text().splitlines()[0]

    def read() -> float:
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue  # it has ended
            # Time of processes that ended counts with their parent.
            if fields[1] == postmaster:
                ticks += int(fields[11]) + int(fields[12])
            elif stat.parent.name == postmaster:
                ticks += sum(map(int, fields[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    return read


def ask_at_once(
    url: str, home: Path, owners: int, questions: Sequence[str], clients: int, count: int
) -> dict[str, object]:
    """Ask random owners by several processes at once."""
    cpu_s = server_cpu_s(url)
    context = multiprocessing.get_context("spawn")
    ready, go = context.Barrier(clients + 1), context.Barrier(clients + 1)
    with context.Pool(clients, _share, (ready, go)) as pool:
        shares = [
            (url, home, owners, list(questions), count // clients, seed) for seed in range(clients)
        ]
        results = pool.starmap_async(_ask_some, shares)
        ready.wait()
        server, started = cpu_s(), time.perf_counter()
        go.wait()
        answers = results.get()
        took_s, server = time.perf_counter() - started, cpu_s() - server
    times = [one for spent, _ in answers for one in spent]
    return {
        **percentiles(times),
        "per_s": round(len(times) / took_s, 1),
        "client_cpu_ms": round(1000 * sum(cpu for _, cpu in answers) / len(times), 2),
        "server_cpu_ms": round(1000 * server / len(times), 2),
    }


_barriers: list[object] = []


def _share(*barriers: object) -> None:
    _barriers[:] = barriers


def _ask_some(
    url: str, home: Path, owners: int, questions: Sequence[str], count: int, seed: int
) -> tuple[list[float], float]:
    """Ask as one client; return the milliseconds of each answer and the processor time of all."""
    chance = random.Random(seed)
    names = chance.sample(range(owners), min(OPEN, owners))
    memories = [open_memory(home / str(seed) / str(name), url, str(name)) for name in names]
    for memory in memories:
        ask(memory, questions[:2])
    for barrier in _barriers:
        barrier.wait()  # type: ignore[attr-defined]
    cpu, spent = time.process_time(), []
    for _ in range(count):
        spent += ask(chance.choice(memories), [chance.choice(questions)])
    cpu = time.process_time() - cpu
    for memory in memories:
        memory.close()
    return spent, cpu


def percentiles(spent: Sequence[float]) -> dict[str, float]:
    """Return the median and the 95th percentile."""
    return {"p50_ms": round(median(spent), 1), "p95_ms": round(quantiles(spent, n=20)[-1], 1)}


def compare(
    file: Memory, first: Memory, url: str, questions: Sequence[str], rounds: int
) -> dict[str, object]:
    """Ask both engines in turn, round by round; return their times and what they cost."""
    cpu_s = server_cpu_s(url)
    spent: dict[str, list[float]] = {"sqlite": [], "postgres": []}
    cpu = {"sqlite": 0.0, "postgres": 0.0}
    for memory in (file, first):
        ask(memory, questions)  # fill the caches
    server = cpu_s()
    for _ in range(rounds):
        for name, memory in (("sqlite", file), ("postgres", first)):
            began = time.process_time()
            spent[name] += ask(memory, questions)
            cpu[name] += time.process_time() - began
    server = cpu_s() - server
    count = rounds * len(questions)
    figures: dict[str, object] = {
        name: {**percentiles(spent[name]), "client_cpu_ms": round(1000 * cpu[name] / count, 2)}
        for name in spent
    }
    ratio = median(spent["postgres"]) / median(spent["sqlite"])
    return {
        **figures,
        "server_cpu_ms": round(1000 * server / count, 2),
        "p50_to_sqlite": round(ratio, 2),
    }


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--owners", type=int, default=100)
    parser.add_argument("--fragments", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--together", type=int, default=1)
    parser.add_argument("--shared-buffers", default="128MB")
    args = parser.parse_args()
    texts = draw_texts(args.fragments, WORDS_OF_TEXT, 1)
    questions = draw_texts(QUESTIONS, WORDS_OF_QUESTION, 1)
    figures: dict[str, object] = {"owners": args.owners, "fragments": args.fragments}
    with tempfile.TemporaryDirectory(prefix="lore-bench-") as folder, run_server() as url:
        home = Path(folder)
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(f"ALTER SYSTEM SET shared_buffers = '{args.shared_buffers}'")
        with stopped_server(url):
            pass
        with open_memory(home / "file") as file, open_memory(home / "0", url, "0") as first:
            figures["stored_per_s"] = {
                "sqlite": round(fill(file, texts)),
                "postgres": round(fill(first, texts)),
            }
            figures |= copy_owners(url, args.owners, args.together)
            figures["same_hits"] = same_hits(file, first, questions)
            figures |= compare(file, first, url, questions, args.rounds)
            for clients in CLIENTS:
                figures[f"{clients} clients"] = ask_at_once(
                    url, home, args.owners, questions, clients, args.requests
                )
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
