"""Embedding what waits for its vector: in batches, resumable, visible as a job."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from lore.embed import Embedder
from lore.errors import LoreError
from lore.records import Job
from lore.store import fragments, jobs, vectors
from lore.store.db import Connection, Database
from lore.store.vector_index import VectorIndex
from lore.store.vectors import Waiting

BATCH = 64
"""Items of one transaction: a kill loses at most so many vectors, which are made again."""

BATCH_CHARS, LONGEST_CHARS = 8_192, 1_024
"""A batch ends sooner where texts are long, so that one takes about half a second of a core;
a model reads no more than the beginning of a text."""

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
        held = jobs.is_held(db, "embed", embedder.identity, now=database.now())
    if not total or (held and within_s is not None):
        return 0
    started = time.monotonic()
    embedder_n = database.write(
        lambda db: vectors.ensure_embedder(db, embedder.identity, embedder.dimension)
    )
    job = database.write(
        partial(_begin, subject=embedder.identity, total=total, now=database.now())
    )
    done = 0
    while (taken := _embed_batch(database, embedder, embedder_n, job)) is not None:
        done += taken
        database.submit(
            partial(jobs.advance, job_n=job.id, progress=job.progress + done, now=database.now())
        )
        if progress:
            progress(done, max(total, done))
        if within_s is not None and time.monotonic() - started > within_s:
            break
    with database.read() as db:
        left = vectors.count_waiting(db)
        vectors.feed(db, index, embedder_n, embedder.dimension)
    if not left:
        database.write(lambda db: jobs.finish(db, job.id, now=database.now()))
    return done


def _begin(db: Connection, *, subject: str, total: int, now: datetime) -> Job:
    """Begin the job, or go on where it was stopped: what is done stays part of its total.

    Whoever embeds on request tries a parked one again.
    """
    job = jobs.ensure(db, "embed", subject, total=total, now=now)
    if job.state == "parked":
        jobs.retry(db, job.id, now=now)
    if not job.progress:
        return job
    return jobs.ensure(db, "embed", subject, total=job.progress + total, now=now)


def _embed_batch(database: Database, embedder: Embedder, embedder_n: int, job: Job) -> int | None:
    """Embed some of what waits and count it; None if nothing waits for this embedder."""
    with database.read() as db:
        waiting = _bounded(vectors.waiting(db, limit=BATCH))
        versions = _versions(db, waiting)
    if not waiting:
        return None
    try:
        matrix = embedder.embed([item.text for item in waiting])
    except LoreError as error:
        reason = str(error)
        database.write(lambda db: jobs.fail(db, job.id, reason, now=database.now()))
        raise

    def keep(db: Connection) -> int | None:
        if vectors.find_adopted(db) not in (None, embedder.identity):
            return None
        now = _versions(db, waiting)
        same = [i for i, item in enumerate(waiting) if now.get(item.n) == versions.get(item.n)]
        vectors.put(db, embedder_n, [waiting[i].n for i in same], matrix[same])
        return len(same)

    return database.write(keep)


def _bounded(waiting: Sequence[Waiting]) -> Sequence[Waiting]:
    """Return as much of what waits as makes one batch, and at least one item."""
    chars = 0
    for place, item in enumerate(waiting):
        chars += min(len(item.text), LONGEST_CHARS)
        if chars > BATCH_CHARS and place:
            return waiting[:place]
    return waiting


def _versions(db: Connection, waiting: Sequence[Waiting]) -> dict[int, int]:
    """Return the versions of fragments: one changed meanwhile still waits for its vector."""
    found = fragments.by_number(db, [item.n for item in waiting])
    return {n: fragment.version for n, fragment in found.items()}


def adopt_embedder(database: Database, embedder: Embedder) -> int:
    """Queue the vectors of another embedder to be made anew; return how many wait."""
    if not embedder.dimension or database.read_only:
        return 0
    with database.read() as db:
        if vectors.find_adopted(db) == embedder.identity:
            return 0

    def work(db: Connection) -> int:
        waiting = vectors.adopt(db, embedder.identity, embedder.dimension)
        for job in jobs.open_jobs(db):
            if job.kind == "embed" and job.subject != embedder.identity:
                jobs.finish(db, job.id, now=database.now())
        if waiting:
            jobs.ensure(db, "embed", embedder.identity, total=waiting, now=database.now())
        return waiting

    return database.write(work)
