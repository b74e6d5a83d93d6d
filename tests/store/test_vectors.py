from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lore.index.vector_index import VectorIndex, VectorRow
from lore.store import distillations, fragments, vectors
from lore.store.sql_connection import Connection
from tests.store.samples import (
    NOON,
    HashEmbedder,
    add_fragment,
    add_messages,
    count_vectors,
    new_distillation,
    new_session,
)

EMBEDDER = HashEmbedder()


def embed(db: Connection, embedder_n: int) -> list[int]:
    waiting = vectors.pending_items(db, limit=100)
    matrices = [EMBEDDER.embed(w.texts) for w in waiting]
    vectors.put(db, embedder_n, [w.n for w in waiting], matrices)
    return [w.n for w in waiting]


def test_pending_items_come_newest_first_with_their_texts(db: Connection) -> None:
    session_n = new_session(db)
    add_messages(db, session_n, "a message")
    distillations.add_distillation(db, session_n, new_distillation(9, "distilled"), now=NOON)
    add_fragment(db, 1, "the content of it", summary="the content…")
    add_fragment(db, 2, "content", summary="Another title")
    texts = [w.texts for w in vectors.pending_items(db, limit=9)]
    assert texts == [
        ["Another title\ncontent"],
        ["the content of it"],
        ["distilled"],
        ["a message"],
    ]
    assert vectors.count_pending(db) == 4


def test_vectors_are_stored_with_their_embedder(db: Connection) -> None:
    n = vectors.ensure_embedder(db, "one", 64)
    assert vectors.ensure_embedder(db, "one", 64) == n == vectors.find_embedder(db, "one")
    assert vectors.find_embedder(db, "two") is None
    item = add_fragment(db, 1)
    embed(db, n)
    assert (count_vectors(db, n), vectors.count_pending(db)) == (1, 0)
    loaded = vectors.load(db, n, np.array([item, 99]), 64)
    assert np.allclose(loaded[0], EMBEDDER.embed(["a plain fact"])[0], atol=4e-3)
    assert not loaded[1].any()
    assert vectors.load(db, n, np.array([], np.int64), 64).shape == (0, 64)
    assert not vectors.load(db, n + 1, np.array([item]), 64).any()


def test_a_vector_of_a_missing_item_is_not_stored(db: Connection) -> None:
    n = vectors.ensure_embedder(db, "one", 64)
    vectors.put(db, n, [77], EMBEDDER.embed(["x"]))
    assert count_vectors(db, n) == 0


def test_a_new_embedder_makes_all_items_pending(db: Connection) -> None:
    add_fragment(db, 1)
    assert vectors.find_active_identity(db) is None
    vectors.set_active_embedder(db, "one", 64)
    embed(db, vectors.ensure_embedder(db, "one", 64))
    assert vectors.set_active_embedder(db, "one", 64) == 0
    assert vectors.set_active_embedder(db, "two", 64) == 1
    assert vectors.find_active_identity(db) == "two"


def test_update_index_appends_only_new_vectors(db: Connection, tmp_path: Path) -> None:
    n = vectors.ensure_embedder(db, "one", 64)
    index = VectorIndex.open(tmp_path / "v", identity="one", dimension=64, epoch="e")
    first = add_fragment(db, 1, "first")
    embed(db, n)
    assert vectors.update_index(db, index, n, 64) == 1
    assert vectors.update_index(db, index, n, 64) == 0
    second = add_fragment(db, 2, "second")
    embed(db, n)
    assert vectors.update_index(db, index, n, 64) == 1
    found, _ = index.search(EMBEDDER.embed(["second"])[0], 2)
    assert found.tolist() == [second, first]
    index.close()


def test_a_long_message_is_found_by_each_of_its_passages(db: Connection, tmp_path: Path) -> None:
    n = vectors.ensure_embedder(db, "one", 64)
    index = VectorIndex.open(tmp_path / "v", identity="one", dimension=64, epoch="e")
    long = " ".join(f"word{i}" for i in range(400))
    add_messages(db, new_session(db), "a short one", long)
    waiting = {item.n: item.texts for item in vectors.pending_items(db, limit=9)}
    embed(db, n)
    ((long_n, cut),) = [(number, texts) for number, texts in waiting.items() if len(texts) > 1]
    assert vectors.update_index(db, index, n, 64) == len(cut) + 1
    for passage in cut:
        query = EMBEDDER.embed([passage])[0]
        found, scores = index.search(query, 2)
        assert found.tolist().count(long_n) == 1
        assert found[0] == long_n
        assert scores[0] > 0.99
        assert index.cosines(query, np.array([long_n]))[0] > 0.99
    rows = vectors.load_passages(db, n, np.array([long_n]), 64)[long_n]
    assert rows.shape == (len(cut), 64)
    assert np.isclose(np.linalg.norm(vectors.load(db, n, np.array([long_n]), 64)[0]), 1, atol=1e-3)


def test_passages_that_are_replaced_leave_the_index_together(
    db: Connection, tmp_path: Path
) -> None:
    n = vectors.ensure_embedder(db, "one", 64)
    index = VectorIndex.open(tmp_path / "v", identity="one", dimension=64, epoch="e")
    add_messages(db, new_session(db), " ".join(f"word{i}" for i in range(400)))
    (item,) = embed(db, n)
    vectors.update_index(db, index, n, 64)
    vectors.put(db, n, [item], [EMBEDDER.embed(["now one passage"])])
    vectors.update_index(db, index, n, 64)
    assert len(index) == 1
    assert index.search(EMBEDDER.embed(["now one passage"])[0], 5)[0].tolist() == [item]


def test_vectors_of_another_embedder_and_damaged_ones_are_not_loaded(
    db: Connection, tmp_path: Path
) -> None:
    old = vectors.ensure_embedder(db, "old", 64)
    item = add_fragment(db, 1)
    embed(db, old)
    vectors.set_active_embedder(db, "new", 64)
    new = vectors.ensure_embedder(db, "new", 64)
    assert vectors.load_passages(db, new, np.array([item]), 64) == {}
    embed(db, new)
    assert vectors.load_passages(db, new, np.array([item]), 64).keys() == {item}
    db.run("UPDATE vectors SET vector = :damaged WHERE n = :n", damaged=bytes(2), n=item)
    assert vectors.load_passages(db, new, np.array([item]), 64) == {}
    index = VectorIndex.open(tmp_path / "v", identity="new", dimension=64, epoch="e")
    assert vectors.update_index(db, index, new, 64) == 0


def test_many_passages_of_one_text_do_not_hide_other_items(db: Connection, tmp_path: Path) -> None:
    n = vectors.ensure_embedder(db, "one", 64)
    index = VectorIndex.open(tmp_path / "v", identity="one", dimension=64, epoch="e")
    items_ = [add_fragment(db, i, f"text {i}") for i in range(1, 9)]
    same = EMBEDDER.embed(["the question"])
    others = [EMBEDDER.embed([f"other {i}"]) for i in range(7)]
    vectors.put(db, n, items_, [np.repeat(same, 60, axis=0), *others])
    vectors.update_index(db, index, n, 64)
    found, _ = index.search(same[0], 5)
    assert len(found) == 5
    assert found[0] == items_[0]


def test_an_item_has_vectors_of_two_embedders_until_the_next_one_serves(db: Connection) -> None:
    old, new = (vectors.ensure_embedder(db, name, 64) for name in ("old", "new"))
    vectors.set_active_embedder(db, "old", 64)
    first, second = add_fragment(db, 1, "first"), add_fragment(db, 2, "second")
    embed(db, old)
    assert vectors.set_next_embedder(db, "new", 64) == 2
    assert [item.n for item in vectors.pending_items(db, limit=9, following=True)] == [
        second,
        first,
    ]
    vectors.put(db, new, [second], [EMBEDDER.embed(["second"])])
    assert not vectors.switch_embedder(db)
    third = add_fragment(db, 3, "third")
    embed(db, old)
    assert vectors.count_pending(db, following=True) == 2
    vectors.put(db, new, [first, third], [EMBEDDER.embed(["x"]), EMBEDDER.embed(["y"])])
    assert (count_vectors(db, old), count_vectors(db, new)) == (3, 3)
    assert vectors.switch_embedder(db)
    assert (vectors.find_active_identity(db), vectors.find_next_identity(db)) == ("new", None)
    assert (vectors.count_active(db), vectors.count_pending(db)) == (3, 0)
    assert [vectors.delete_retired(db, limit=2) for _ in range(3)] == [2, 1, 0]
    assert not vectors.has_retired(db)
    assert (count_vectors(db, old), count_vectors(db, new)) == (0, 3)


def test_a_hidden_fragment_gets_no_vector_and_does_not_hold_up_the_switch(db: Connection) -> None:
    old, new = (vectors.ensure_embedder(db, name, 64) for name in ("old", "new"))
    vectors.set_active_embedder(db, "old", 64)
    hidden = add_fragment(db, 1, "hidden")
    embed(db, old)
    vectors.set_next_embedder(db, "new", 64)
    db.run("UPDATE fragments SET deleted_at = 1 WHERE n = :n", n=hidden)
    fragments.reindex(db, hidden)
    assert vectors.count_pending(db, following=True) == 0
    vectors.put(db, new, [hidden], [EMBEDDER.embed(["hidden"])])
    assert count_vectors(db, new) == 0
    assert vectors.switch_embedder(db)


def test_no_vector_is_retired_before_an_embedder_is_active(db: Connection) -> None:
    add_fragment(db, 1)
    embed(db, vectors.ensure_embedder(db, "one", 64))
    assert not vectors.has_retired(db)


def test_vectors_of_the_next_embedder_do_not_enter_the_index(
    db: Connection, tmp_path: Path
) -> None:
    old, new = (vectors.ensure_embedder(db, name, 64) for name in ("old", "new"))
    vectors.set_active_embedder(db, "old", 64)
    item = add_fragment(db, 1)
    embed(db, old)
    vectors.set_next_embedder(db, "new", 64)
    index = VectorIndex.open(tmp_path / "v", identity="old", dimension=64, epoch="e")
    vectors.put(db, new, [item], [EMBEDDER.embed(["other"])])
    assert vectors.update_index(db, index, old, 64) == 1
    assert vectors.update_index(db, index, old, 64) == 0
    assert len(index) == 1


@pytest.mark.only_sqlite("its query plan")
def test_the_vectors_of_an_embedder_are_read_by_their_index(db: Connection) -> None:
    plan = db.rows(
        "EXPLAIN QUERY PLAN SELECT v.seq FROM vectors v JOIN items i ON i.n = v.n"
        " WHERE v.seq > 5 AND v.embedder_n = 1 ORDER BY v.seq LIMIT 9"
    )
    assert any("vectors_embedder" in row[-1] for row in plan)


def test_a_forgotten_vector_that_another_process_has_read_is_refused(
    db: Connection, tmp_path: Path
) -> None:
    n = vectors.ensure_embedder(db, "one", 64)
    item = add_fragment(db, 1)
    embed(db, n)
    index = VectorIndex.open(tmp_path / "v", identity="one", dimension=64, epoch="e")
    [(seq,)] = db.rows("SELECT seq FROM vectors")
    db.run("DELETE FROM items WHERE n = :n", n=item)
    index.remove([item], through_seq=vectors.newest_seq(db))
    index.append([VectorRow(seq, item, 0, 1, 1)], EMBEDDER.embed(["a plain fact"]), after_seq=0)
    assert len(index) == 0
