"""Embed the items in the embedding queue: in batches, resumable, visible as a job."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

import numpy as np

from lore.embed import Embedder
from lore.errors import LoreError
from lore.index.vector_index import VectorIndex
from lore.records import Job
from lore.store import fragments, jobs, vectors
from lore.store.database import Connection, Database
from lore.store.vectors import PendingItem

BATCH = 64
"""Items of one transaction: a kill loses at most this many vectors, which are computed again."""

BATCH_CHARS, LONGEST_CHARS = 8_192, 1_024
"""A batch is shorter where texts are long, so that it takes about half a second of a core; a model
reads no more than the beginning of a text."""

Progress = Callable[[int, int], None]


def embed_waiting(
    database: Database,
    embedder: Embedder,
    index: VectorIndex,
    *,
    within_s: float | None = None,
    progress: Progress | None = None,
) -> int:
    """Embed pending items until none is left or the time is up; return how many were embedded."""
    if not embedder.dimension:
        return 0
    with database.read() as db:
        total = vectors.count_pending(db)
        is_running = jobs.is_held(db, "embed", embedder.identity, now=database.now())
    if not total or (is_running and within_s is not None):
        return 0
    started = time.monotonic()
    embedder_n = database.write(
        lambda db: vectors.ensure_embedder(db, embedder.identity, embedder.dimension)
    )
    job = database.write(
        partial(_start_job, subject=embedder.identity, total=total, now=database.now())
    )
    done = 0
    while (embedded := _embed_batch(database, embedder, embedder_n, job)) is not None:
        done += embedded
        database.submit(
            partial(jobs.advance, job_n=job.id, progress=job.progress + done, now=database.now())
        )
        if progress:
            progress(done, max(total, done))
        if within_s is not None and time.monotonic() - started > within_s:
            break
    with database.read() as db:
        remaining = vectors.count_pending(db)
        vectors.update_index(db, index, embedder_n, embedder.dimension)
    if not remaining:
        database.write(lambda db: jobs.finish(db, job.id, now=database.now()))
    return done


def _start_job(db: Connection, *, subject: str, total: int, now: datetime) -> Job:
    """Start or resume the job: completed items stay part of its total.

    A parked job is retried on request.
    """
    job = jobs.ensure(db, "embed", subject, total=total, now=now)
    if job.state == "parked":
        jobs.retry(db, job.id, now=now)
    if not job.progress:
        return job
    return jobs.ensure(db, "embed", subject, total=job.progress + total, now=now)


def _embed_batch(database: Database, embedder: Embedder, embedder_n: int, job: Job) -> int | None:
    """Embed a batch of pending items and return its size; None if nothing is pending."""
    with database.read() as db:
        waiting = _limit_batch(vectors.pending_items(db, limit=BATCH))
        versions = _versions(db, waiting)
    if not waiting:
        return None
    try:
        matrix = embedder.embed([text for item in waiting for text in item.texts])
    except LoreError as error:
        reason = str(error)
        database.write(lambda db: jobs.fail(db, job.id, reason, now=database.now()))
        raise

    def store_vectors(db: Connection) -> int | None:
        if vectors.find_active_identity(db) not in (None, embedder.identity):
            return None
        current = _versions(db, waiting)
        unchanged = [
            i for i, item in enumerate(waiting) if current.get(item.n) == versions.get(item.n)
        ]
        ends = np.cumsum([len(item.texts) for item in waiting])
        rows = np.split(matrix, ends[:-1])
        vectors.put(db, embedder_n, [waiting[i].n for i in unchanged], [rows[i] for i in unchanged])
        return len(unchanged)

    return database.write(store_vectors)


def _limit_batch(waiting: Sequence[PendingItem]) -> Sequence[PendingItem]:
    chars = 0
    for place, item in enumerate(waiting):
        chars += sum(min(len(text), LONGEST_CHARS) for text in item.texts)
        if chars > BATCH_CHARS and place:
            return waiting[:place]
    return waiting


def _versions(db: Connection, waiting: Sequence[PendingItem]) -> dict[int, int]:
    """Return the versions of fragments: one changed meanwhile stays pending."""
    by_n = fragments.by_number(db, [item.n for item in waiting])
    return {n: fragment.version for n, fragment in by_n.items()}


def adopt_embedder(database: Database, embedder: Embedder) -> int:
    """Queue all items for a new embedder; return how many are pending."""
    if not embedder.dimension or database.read_only:
        return 0
    with database.read() as db:
        if vectors.find_active_identity(db) == embedder.identity:
            return 0

    def work(db: Connection) -> int:
        waiting = vectors.set_active_embedder(db, embedder.identity, embedder.dimension)
        for job in jobs.open_jobs(db):
            if job.kind == "embed" and job.subject != embedder.identity:
                jobs.finish(db, job.id, now=database.now())
        if waiting:
            jobs.ensure(db, "embed", embedder.identity, total=waiting, now=database.now())
        return waiting

    return database.write(work)
