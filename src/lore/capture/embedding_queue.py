"""Embed the items in the embedding queue: in batches, resumable, visible as a job."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from functools import partial

import numpy as np

from lore.embed import Embedder, OpenedEmbedder
from lore.embed.embedders import Embedders
from lore.errors import LoreError
from lore.index.nearest_items import NearestItems
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
    index: NearestItems | None,
    *,
    following: bool = False,
    within_s: float | None = None,
    progress: Progress | None = None,
) -> int:
    """Embed pending items until none is left or the time is up; return how many were embedded.

    With `following`, items get their vectors of the embedder that will be searched next; it is
    searched once all have one. Both kinds of vectors are stored in the database; those that are
    searched are also appended to the index.
    """
    if not embedder.dimension:
        return 0
    with database.read() as db:
        total = vectors.count_pending(db, following=following)
        is_next = vectors.find_next_identity(db) == embedder.identity
        is_running = jobs.is_held(db, "embed", embedder.identity, now=database.now())
    has_work = is_next if following else bool(total)
    if not has_work or (is_running and within_s is not None):
        return 0
    started = time.monotonic()
    embedder_n = database.write(
        lambda db: vectors.ensure_embedder(db, embedder.identity, embedder.dimension)
    )
    job = database.write(
        partial(_start_job, subject=embedder.identity, total=total, now=database.now())
    )
    done = 0
    embed_batch = partial(_embed_batch, database, embedder, embedder_n, job, following=following)
    while (embedded := embed_batch()) is not None:
        done += embedded
        database.submit(
            partial(jobs.advance, job_n=job.id, progress=job.progress + done, now=database.now())
        )
        if progress:
            progress(done, max(total, done))
        if within_s is not None and time.monotonic() - started > within_s:
            break
    with database.read() as db:
        remaining = vectors.count_pending(db, following=following)
        if index is not None:
            vectors.update_index(db, index, embedder_n, embedder.dimension)
    if not remaining:
        database.write(partial(_finish_job, job=job, following=following, now=database.now()))
    return done


def _finish_job(db: Connection, job: Job, *, following: bool, now: datetime) -> None:
    if not following:
        jobs.finish(db, job.id, now=now)
    elif vectors.find_next_identity(db) == job.subject and vectors.switch_embedder(db):
        _finish_other_jobs(db, (), now)


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


def _embed_batch(
    database: Database, embedder: Embedder, embedder_n: int, job: Job, *, following: bool
) -> int | None:
    """Embed a batch of pending items and return its size; None if nothing is pending."""
    with database.read() as db:
        waiting = _limit_batch(vectors.pending_items(db, limit=BATCH, following=following))
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
        active = vectors.find_active_identity(db) or embedder.identity
        if embedder.identity != (vectors.find_next_identity(db) if following else active):
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


def adopt_embedder(database: Database, embedders: Embedders) -> OpenedEmbedder:
    """Return the embedder whose vectors are searched: the wanted one, or the former for now.

    The former vectors serve while items are embedded again, if they cover most of the items and
    their model is at hand. Otherwise those of the wanted embedder serve from the start.
    """
    wanted, notice = embedders.wanted, ""
    if not wanted.dimension:
        return OpenedEmbedder(wanted, notice)
    with database.read() as db:
        active, following = vectors.find_active_identity(db), vectors.find_next_identity(db)
        if active == wanted.identity and following is None:
            return OpenedEmbedder(wanted, notice)
        former = None
        if active is not None and active != wanted.identity and vectors.covers_most(db, active):
            former = embedders.find(active)
            notice = "" if former else _NOT_AT_HAND.format(active)
    if not database.read_only and (former is None or following != wanted.identity):
        database.write(partial(_adopt, wanted=wanted, former=former, now=database.now()))
    return OpenedEmbedder(former or wanted, notice)


_NOT_AT_HAND = (
    "The vectors are of '{}', which is not at hand: all is embedded again, and keywords find "
    "what is not embedded yet."
)


def _adopt(db: Connection, *, wanted: Embedder, former: Embedder | None, now: datetime) -> None:
    active, following = vectors.find_active_identity(db), vectors.find_next_identity(db)
    if former is None or active != former.identity:
        waiting = vectors.set_active_embedder(db, wanted.identity, wanted.dimension)
    elif following != wanted.identity:
        waiting = vectors.set_next_embedder(db, wanted.identity, wanted.dimension)
    else:
        return  # another process was quicker
    _finish_other_jobs(db, {wanted.identity, former.identity if former else ""}, now)
    if waiting:
        jobs.ensure(db, "embed", wanted.identity, total=waiting, now=now)


def _finish_other_jobs(db: Connection, identities: Collection[str], now: datetime) -> None:
    for job in jobs.open_jobs(db):
        if job.kind == "embed" and job.subject not in identities:
            jobs.finish(db, job.id, now=now)


_RETIRED_ROWS = 512
"""Vectors that are deleted in one transaction: about half a megabyte."""


def delete_retired(database: Database, *, within_s: float | None = None) -> None:
    """Delete the vectors of embedders that are no longer used, until the time is up."""
    with database.read() as db:
        if not vectors.has_retired(db):
            return
    started = time.monotonic()
    while database.write(partial(vectors.delete_retired, limit=_RETIRED_ROWS)):
        if within_s is not None and time.monotonic() - started > within_s:
            return
    database.checkpoint()
