"""How quick is a memory among many on PostgreSQL, against the same memory in a SQLite file?

One owner's fragments are stored through the library on both engines; on the server they are then
copied to the other owners. The same questions are asked of both in turn, and of several owners at
once. Vectors are drawn from the hash of a text, so that no model is measured. The server is the
one that tests start, with its usual settings.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles

import numpy as np
import psycopg
from numpy.typing import NDArray
from tests.engines import run_server

from lore.memory import Memory
from lore.records import Draft
from lore.settings import Settings
from lore.store.postgres.owner_connection import owner_of

WORDS, WORDS_OF_TEXT, WORDS_OF_QUESTION = 8_000, 30, 5
QUESTIONS = 40
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


def copy_owner(admin: psycopg.Connection[tuple[object, ...]], source: str, target: str) -> None:
    """Copy the rows of an owner to another."""
    old, new = owner_of(source), owner_of(target)
    for table in COPIED:
        columns = admin.execute(
            "SELECT string_agg(column_name, ', ') FROM information_schema.columns"
            f" WHERE table_schema = 'lore' AND table_name = '{table}'"
            " AND column_name NOT IN ('owner', 'seq')"
        ).fetchone()
        names = str(columns[0]) if columns else ""
        admin.execute(
            f"INSERT INTO lore.{table} (owner, {names}) SELECT '{new}', {names}"
            f" FROM lore.{table} WHERE owner = '{old}'"
        )
    admin.execute(
        "INSERT INTO lore.fragment_words (owner, n, words, length) SELECT"
        f" '{new}', n, replace(words::text, '''{str(old)[:6]}', '''{str(new)[:6]}')::tsvector,"
        f" length FROM lore.fragment_words WHERE owner = '{old}'"
    )


def ask(memory: Memory, questions: Sequence[str]) -> list[float]:
    """Return how many milliseconds each answer took."""
    spent = []
    for question in questions:
        started = time.perf_counter()
        memory.recall(question, log=False)
        spent.append(1000 * (time.perf_counter() - started))
    return spent


def ask_at_once(memories: Sequence[Memory], questions: Sequence[str]) -> float:
    """Ask all memories at once; return how many answers came in a second."""
    threads = [threading.Thread(target=ask, args=(memory, questions)) for memory in memories]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(memories) * len(questions) / (time.perf_counter() - started)


def percentiles(spent: Sequence[float]) -> dict[str, float]:
    """Return the median and the 95th percentile."""
    return {"p50_ms": round(median(spent), 1), "p95_ms": round(quantiles(spent, n=20)[-1], 1)}


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--owners", type=int, default=100)
    parser.add_argument("--fragments", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    texts = draw_texts(args.fragments, WORDS_OF_TEXT, 1)
    questions = draw_texts(QUESTIONS, WORDS_OF_QUESTION, 1)
    figures: dict[str, object] = {"owners": args.owners, "fragments": args.fragments}
    with tempfile.TemporaryDirectory(prefix="lore-bench-") as folder, run_server() as url:
        home = Path(folder)
        with open_memory(home / "file") as file, open_memory(home / "0", url, "0") as first:
            figures["stored_per_s"] = {
                "sqlite": round(fill(file, texts)),
                "postgres": round(fill(first, texts)),
            }
            with psycopg.connect(url, autocommit=True) as admin:
                started = time.perf_counter()
                for i in range(1, args.owners):
                    copy_owner(admin, "0", str(i))
                admin.execute("VACUUM ANALYZE")
                figures["copied_s"] = round(time.perf_counter() - started, 1)
            spent: dict[str, list[float]] = {"sqlite": [], "postgres": []}
            others = [open_memory(home / "0", url, str(i)) for i in range(1, min(args.owners, 5))]
            for memory in (file, first, *others):
                ask(memory, questions)  # fill the caches
            for _ in range(args.rounds):
                spent["sqlite"] += ask(file, questions)
                spent["postgres"] += ask(first, questions)
            figures |= {name: percentiles(values) for name, values in spent.items()}
            figures["recalls_per_s"] = round(ask_at_once(others, questions), 1)
            for memory in others:
                memory.close()
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
