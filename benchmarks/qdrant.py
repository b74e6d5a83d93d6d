"""Does Qdrant find what the own index finds, and how long does it take?

The same vectors are stored in two SQLite memories: one is searched in its file, one in Qdrant. As
recall does, the nearest are scored again by the stored vectors. The first hits of both are compared
with those of an exact search. Vectors are drawn around topics, as a model
of sentences makes them. Without `--url` it is the Qdrant in the official client, which searches
exactly, in Python: its times are not those of a server.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from lore.clock import now
from lore.index.nearest_items import NearestItems, VectorServer
from lore.index.qdrant_points import IN_PROCESS, erase_owner
from lore.store import fragments, vectors
from lore.store.database import Database, open_database
from lore.store.sql_connection import Connection

TOPICS, QUERIES, K = 200, 50, 10
RESCORED = 48
"""As many as recall scores again."""

IDENTITY = "drawn"
Vectors = NDArray[np.float32]


def draw(count: int, dimension: int) -> Vectors:
    """Return vectors of length one around topics."""
    drawn = np.random.default_rng(7)
    topics = drawn.standard_normal((TOPICS, dimension))
    matrix = topics[drawn.integers(0, TOPICS, count)] + drawn.standard_normal((count, dimension))
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix.astype(np.float32)


def fill(database: Database, matrix: Vectors) -> int:
    """Store a vector for each of new fragments, numbered from 1; return the embedder's number."""

    def work(db: Connection) -> int:
        embedder_n = vectors.ensure_embedder(db, IDENTITY, matrix.shape[1])
        moment = now()
        ns = [
            fragments.add(
                db,
                fragments.NewFragment(
                    id=f"{i:08x}-0000-7000-8000-{i:012x}", content=f"fact {i}", kind="fact",
                    summary=f"fact {i}", created_at=moment,
                ),
                now=moment,
            )
            for i in range(len(matrix))
        ]  # fmt: skip
        vectors.put(db, embedder_n, ns, [matrix[i : i + 1] for i in range(len(ns))])
        return embedder_n

    return database.write(work)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that something takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure(name: str, database: Database, folder: Path, matrix: Vectors) -> list[list[int]]:
    """Fill an index, search it, print a line of figures, and return the hits."""
    dimension = matrix.shape[1]
    embedder_n = fill(database, matrix)
    index: NearestItems = database.open_index(folder, identity=IDENTITY, dimension=dimension)
    with database.read() as db:
        filled_s = timed(lambda: vectors.update_index(db, index, embedder_n, dimension))
    hits, took_s = [], []
    for query in draw(QUERIES, dimension) + 0.3 * matrix[:QUERIES]:
        exact = set((1 + np.argsort(-(matrix @ query))[:K]).tolist())
        started = time.perf_counter()
        near = index.search(query, RESCORED)[0]
        took_s.append(time.perf_counter() - started)
        with database.read() as db:
            scores = vectors.stored_cosines(db, embedder_n, query, near)
        ns = near[np.argsort(-scores, kind="stable")][:K].tolist()
        hits.append([*ns, len(exact & set(ns))])
    recall = sum(row[-1] for row in hits) / (K * QUERIES)
    print(
        f"| {name} | {dimension:,} | {len(matrix):,} | {recall:.1%} | {median(took_s) * 1e3:.1f}"
        f" | {len(matrix) / filled_s:,.0f} |"
    )
    index.close()
    return [row[:-1] for row in hits]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default=IN_PROCESS, help="address of a Qdrant server")
    parser.add_argument("--api-key", default="")
    parser.add_argument("--fragments", type=int, default=5_000)
    parser.add_argument("--dimensions", type=int, nargs="*", default=[384, 4_096])
    args = parser.parse_args()
    print(f"| index | dimensions | vectors | of the exact {K} | search ms | filled per s |")
    print("|---|---|---|---|---|---|")
    for dimension in args.dimensions:
        matrix = draw(args.fragments, dimension)
        found = []
        for name in ("file", "Qdrant"):
            with tempfile.TemporaryDirectory(prefix="lore-qdrant-") as scratch:
                folder = Path(scratch)
                database = open_database(folder / "memory.db", busy_timeout_s=30, backups=None)
                if name == "Qdrant":
                    database.vector_server = VectorServer(args.url, args.api_key, scratch)
                found.append(measure(name, database, folder / "v", matrix))
                if database.vector_server is not None:
                    erase_owner(database.vector_server)
                database.close()
        same = sum(set(a) == set(b) for a, b in zip(*found, strict=True))
        print(f"| the same {K} hits in both | {dimension:,} | | {same}/{QUERIES} | | |")


if __name__ == "__main__":
    main()
