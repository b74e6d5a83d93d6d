from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from lore.capture import embedding_queue
from lore.capture.embedding_queue import BATCH, adopt_embedder, embed_waiting
from lore.digest import fragment_edits
from lore.embed.embedder import NoEmbedder
from lore.embed.embedders import Embedders
from lore.errors import EmbedderError
from lore.index.vector_index import VectorIndex
from lore.records import Draft
from lore.settings import Settings
from lore.store import items, jobs, maintenance, vectors
from tests.fakes import FakeEmbedder
from tests.store.samples import count_vectors

OVER_TWO_BATCHES = 2 * BATCH + 10


@pytest.fixture
def index_of(database, tmp_path):
    opened: list[VectorIndex] = []

    def open_index(embedder) -> VectorIndex:
        with database.read() as db:
            epoch = maintenance.get_epoch(db)
        index = VectorIndex.open(
            tmp_path / "vectors",
            identity=embedder.identity,
            dimension=embedder.dimension,
            epoch=epoch,
        )
        opened.append(index)
        return index

    yield open_index
    for index in opened:
        index.close()


@pytest.fixture
def filled(database):
    drafts = (Draft(f"note number {i}") for i in range(OVER_TWO_BATCHES))
    return fragment_edits.store_all(database, drafts)


def waiting(database) -> int:
    with database.read() as db:
        return vectors.count_pending(db)


def adopt(database, embedder) -> int:
    serving = adopt_embedder(database, Embedders(embedder, Settings(), owns_wanted=False))
    assert serving.embedder.identity == embedder.identity
    return waiting(database)


def open_jobs(database) -> list[tuple[str, str, int, int]]:
    database.write(lambda db: None)  # what was submitted before is done after this
    with database.read() as db:
        return [(job.kind, job.subject, job.progress, job.total) for job in jobs.open_jobs(db)]


class StoppedError(Exception):
    """What a test raises to stop in the middle."""


def stop_after(batches: int, error: Exception):
    calls = iter(range(batches))

    def check(_texts: Sequence[str]) -> None:
        if next(calls, None) is None:
            raise error

    return check


def test_everything_that_waits_gets_its_vector(database, index_of, filled):
    embedder = FakeEmbedder()
    adopt(database, embedder)
    index = index_of(embedder)
    seen: list[tuple[int, int]] = []
    done = embed_waiting(database, embedder, index, progress=lambda *now: seen.append(now))
    assert done == OVER_TWO_BATCHES
    assert sorted(embedder.asked) == sorted(f"note number {i}" for i in range(OVER_TWO_BATCHES))
    assert seen == [(64, 138), (128, 138), (138, 138)]
    assert waiting(database) == 0
    assert open_jobs(database) == []


def test_embedded_item_is_found_by_its_vector(database, index_of, filled):
    embedder = FakeEmbedder()
    adopt(database, embedder)
    index = index_of(embedder)
    embed_waiting(database, embedder, index)
    found, scores = index.search(embedder.embed(["note number 7"])[0], 1)
    with database.read() as db:
        assert items.ids_of(db, found) == {int(found[0]): filled[7]}
    assert scores[0] == pytest.approx(1, abs=0.02)


def test_embedding_again_does_not_call_the_embedder(database, index_of, filled):
    embedder = FakeEmbedder()
    embed_waiting(database, embedder, index_of(embedder))
    again = FakeEmbedder()
    assert embed_waiting(database, again, index_of(again)) == 0
    assert again.asked == []


def test_adopting_starts_a_visible_job(database, filled):
    assert adopt(database, FakeEmbedder()) == OVER_TWO_BATCHES
    assert open_jobs(database) == [("embed", "fake", 0, OVER_TWO_BATCHES)]


def test_time_limit_stops_after_a_batch_and_the_job_shows_progress(database, index_of, filled):
    embedder = FakeEmbedder()
    adopt(database, embedder)
    assert embed_waiting(database, embedder, index_of(embedder), within_s=0) == BATCH
    assert open_jobs(database) == [("embed", "fake", BATCH, OVER_TWO_BATCHES)]


def test_a_stopped_run_goes_on_where_it_stopped(database, index_of, filled):
    stopped = FakeEmbedder(before=stop_after(1, StoppedError()))
    adopt(database, stopped)
    with pytest.raises(StoppedError):
        embed_waiting(database, stopped, index_of(stopped))
    assert waiting(database) == OVER_TWO_BATCHES - BATCH
    assert open_jobs(database) == [("embed", "fake", BATCH, OVER_TWO_BATCHES)]

    resumed = FakeEmbedder()
    assert embed_waiting(database, resumed, index_of(resumed), within_s=0) == BATCH
    assert open_jobs(database) == [("embed", "fake", 2 * BATCH, OVER_TWO_BATCHES)]
    assert embed_waiting(database, resumed, index_of(resumed)) == OVER_TWO_BATCHES - 2 * BATCH
    assert not set(stopped.asked) & set(resumed.asked)
    assert len(stopped.asked) + len(resumed.asked) == OVER_TWO_BATCHES
    assert open_jobs(database) == []


def test_an_embedder_that_fails_leaves_its_reason_at_the_job(database, index_of, filled):
    embedder = FakeEmbedder(before=stop_after(0, EmbedderError("no such model")))
    adopt(database, embedder)
    with pytest.raises(EmbedderError):
        embed_waiting(database, embedder, index_of(embedder))
    with database.read() as db:
        (job,) = jobs.open_jobs(db)
    assert (job.state, job.attempts, job.last_error) == ("pending", 1, "no such model")


def test_another_embedder_embeds_everything_anew_and_vectors_never_mix(database, index_of, filled):
    first, second = FakeEmbedder("first"), FakeEmbedder("second", 16)
    adopt(database, first)
    embed_waiting(database, first, index_of(first))
    assert adopt(database, second) == OVER_TWO_BATCHES
    assert open_jobs(database) == [("embed", "second", 0, OVER_TWO_BATCHES)]
    index = index_of(second)
    embed_waiting(database, second, index, within_s=0)
    found, _ = index.search(second.embed(["note"])[0], OVER_TWO_BATCHES)
    assert len(found) == BATCH
    embed_waiting(database, second, index)
    embedding_queue.delete_retired(database)
    with database.read() as db:
        made = {
            name: count_vectors(db, vectors.find_embedder(db, name) or 0)
            for name in ("first", "second")
        }
    assert made == {"first": 0, "second": OVER_TWO_BATCHES}


def test_the_job_of_an_embedder_that_is_replaced_is_over(database, index_of, filled):
    first = FakeEmbedder("first")
    adopt(database, first)
    embed_waiting(database, first, index_of(first), within_s=0)
    adopt(database, FakeEmbedder("second"))
    assert [job[1] for job in open_jobs(database)] == ["second"]


def test_an_embedder_that_is_replaced_meanwhile_stores_nothing_more(database, index_of, filled):
    second = FakeEmbedder("second")
    first = FakeEmbedder("first", before=lambda _texts: adopt(database, second))
    adopt(database, first)
    assert embed_waiting(database, first, index_of(first)) == 0
    assert waiting(database) == OVER_TWO_BATCHES
    assert [job[1] for job in open_jobs(database)] == ["second"]
    assert embed_waiting(database, second, index_of(second)) == OVER_TWO_BATCHES


def test_a_fragment_that_changes_while_it_is_embedded_is_embedded_again(database, index_of):
    id_ = fragment_edits.store(database, Draft("old words"))
    changes = iter([None])

    def change(_texts: Sequence[str]) -> None:
        if next(changes, 0) is None:
            fragment_edits.update(database, id_, "new words")

    embedder = FakeEmbedder(before=change)
    adopt(database, embedder)
    index = index_of(embedder)
    embed_waiting(database, embedder, index)
    assert embedder.asked == ["old words", "new words"]
    with database.read() as db:
        ns = np.array([items.resolve(db, id_).n])
        embedder_n = vectors.find_embedder(db, embedder.identity)
        kept = vectors.load(db, embedder_n, ns, embedder.dimension)
    assert kept @ embedder.embed(["new words"])[0] == pytest.approx(1, abs=0.01)


def test_a_fragment_that_is_added_meanwhile_is_embedded_in_the_same_run(database, index_of):
    fragment_edits.store(database, Draft("first"))
    additions = iter(["second"])

    def add(_texts: Sequence[str]) -> None:
        for text in additions:
            fragment_edits.store(database, Draft(text))

    embedder = FakeEmbedder(before=add)
    adopt(database, embedder)
    assert embed_waiting(database, embedder, index_of(embedder)) == 2
    assert embedder.asked == ["first", "second"]
    assert open_jobs(database) == []


def test_without_an_embedder_nothing_is_done(database, index_of, filled):
    none = NoEmbedder()
    assert adopt(database, none) == OVER_TWO_BATCHES
    assert open_jobs(database) == []
    assert embed_waiting(database, none, index_of(FakeEmbedder())) == 0
    assert waiting(database) == OVER_TWO_BATCHES


def test_the_newest_are_embedded_first(database, index_of, filled):
    embedder = FakeEmbedder()
    embed_waiting(database, embedder, index_of(embedder), within_s=0)
    assert embedder.asked[0] == f"note number {OVER_TWO_BATCHES - 1}"
    assert len(embedder.asked) == embedding_queue.BATCH


def test_failed_job_is_not_retried_before_its_delay_ends(database, index_of, filled):
    away = FakeEmbedder(before=stop_after(0, EmbedderError("the service is away")))
    with pytest.raises(EmbedderError):
        embed_waiting(database, away, index_of(away), within_s=5)
    back = FakeEmbedder()
    assert embed_waiting(database, back, index_of(back), within_s=5) == 0
    database.write(lambda db: jobs.retry(db, None, now=database.now()))
    assert embed_waiting(database, back, index_of(back), within_s=60) == OVER_TWO_BATCHES


def test_embedding_on_request_retries_a_parked_job(database, index_of, filled):
    away = FakeEmbedder(before=stop_after(0, EmbedderError("the service is away")))
    for _ in range(jobs.MAX_ATTEMPTS):
        with pytest.raises(EmbedderError):
            embed_waiting(database, away, index_of(away))
    with database.read() as db:
        assert [job.state for job in jobs.open_jobs(db)] == ["parked"]
    back = FakeEmbedder()
    assert embed_waiting(database, back, index_of(back), within_s=60) == 0
    assert embed_waiting(database, back, index_of(back)) == OVER_TWO_BATCHES
    with database.read() as db:
        assert jobs.open_jobs(db) == []


def test_a_batch_of_long_texts_is_small_so_that_it_ends_soon(database, index_of):
    fragment_edits.store_all(database, (Draft(f"{i} " + "many words " * 400) for i in range(20)))
    sizes: list[int] = []
    embedder = FakeEmbedder(before=lambda texts: sizes.append(len(texts)))
    embed_waiting(database, embedder, index_of(embedder))
    assert sizes == [8, 8, 4]
