"""Embedding what waits for its vector: in batches, resumable, visible as a job."""

from __future__ import annotations

import time
from collections.abc import Callable

from lore.embed import Embedder
from lore.store import jobs, vectors
from lore.store.db import Connection, Database
from lore.store.vector_index import VectorIndex

BATCH = 64
"""Items of one transaction: a kill loses at most so many vectors, which are made again."""

Progress = Callable[[int, int], None]


def embed_waiting(
    database: Database,
    embedder: Embedder,
    index: VectorIndex,
    *,
    within_s: float | None = None,
    progress: Progress | None = None,
) -> int:
    """Give vectors to the items that wait for one, until done or out of time; count them."""
    if not embedder.dimension:
        return 0
    with database.read() as db:
        total = vectors.count_waiting(db)
    if not total:
        return 0
    started = time.monotonic()
    embedder_n = database.write(
        lambda db: vectors.ensure_embedder(db, embedder.identity, embedder.dimension)
    )
    job = database.write(
        lambda db: jobs.start(db, "embed", embedder.identity, total=total, now=database.now())
    )
    done = 0
    while True:
        taken = _embed_batch(database, embedder, embedder_n)
        done += taken
        if progress:
            progress(done, max(total, done))
        if not taken or (within_s is not None and time.monotonic() - started > within_s):
            break
        database.submit(
            lambda db, done=done: jobs.advance(db, job.id, progress=done, now=database.now())
        )
    if not taken or done >= total:
        database.write(lambda db: jobs.finish(db, job.id, now=database.now()))
    with database.read() as db:
        vectors.feed(db, index, embedder_n, embedder.dimension)
    return done


def _embed_batch(database: Database, embedder: Embedder, embedder_n: int) -> int:
    with database.read() as db:
        waiting = vectors.waiting(db, limit=BATCH)
    if not waiting:
        return 0
    matrix = embedder.embed([item.text for item in waiting])
    ns = [item.n for item in waiting]
    database.write(lambda db: vectors.put(db, embedder_n, ns, matrix))
    return len(waiting)


def adopt_embedder(database: Database, embedder: Embedder) -> int:
    """Queue the vectors of another embedder to be made anew; return how many wait."""
    if not embedder.dimension or database.read_only:
        return 0
    with database.read() as db:
        if vectors.find_adopted(db) == embedder.identity:
            return 0

    def work(db: Connection) -> int:
        waiting = vectors.adopt(db, embedder.identity, embedder.dimension)
        if waiting:
            jobs.start(db, "embed", embedder.identity, total=waiting, now=database.now())
        return waiting

    return database.write(work)
