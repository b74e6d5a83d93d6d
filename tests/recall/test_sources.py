"""The vector index and the caches that recall reads from."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.embed.embedder import NoEmbedder
from lore.errors import EmbedderError
from lore.memory import Memory
from lore.recall.sources import Texts, plain
from tests.fakes import FakeEmbedder
from tests.recall.talk import say


def test_recent_questions_are_embedded_once(tmp_path: Path):
    embedder = FakeEmbedder()
    with Memory.open(home=tmp_path, embedder=embedder) as memory:
        memory.sources.embed_query("deploy")
        memory.sources.embed_query("deploy")
    assert embedder.asked.count("deploy") == 1


def test_forget_clears_cached_texts(tmp_path: Path):
    embedder = FakeEmbedder()
    with Memory.open(home=tmp_path, embedder=embedder) as memory:
        (one, _) = say(memory, "s", "The harbour opens at dawn.", "The gate is blue.")
        memory.recall("when does the harbour open?")
        assert "harbour" in str(memory.sources.texts._cache)
        assert "harbour" in str(memory.sources._uses)
        memory.forget(id=one)
        assert "harbour" not in str(memory.sources.texts._cache)
        assert not memory.sources._uses
        memory.recall("when does the harbour open?")
    assert embedder.asked.count("when does the harbour open?") == 2


def test_without_messages_the_fragments_tell_how_rare_a_word_is(memory: Memory):
    for number in range(12):
        memory.remember(f"Ferry {number} leaves from quay {number}.")
    memory.remember("The ferry to Aarhus has an otter as its mascot.")
    with memory.database.read() as db:
        assert memory.sources.count_uses(db, ("ferry", "otter", "ferry"), 13) == [13, 1, 13]
    say(memory, "s", "An otter swam past.", "Otters do that.")
    with memory.database.read() as db:
        assert memory.sources.count_uses(db, ("ferry", "otter"), 15) == [0, 2]


@pytest.mark.only_sqlite("the file of vectors")
def test_missing_vector_index_is_rebuilt(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=FakeEmbedder()) as memory:
        ids = say(memory, "s", "one boat", "two lamps", "three doors")
        memory.maintenance.embed_waiting()
        folder = memory.sources.index_folder
    for file in folder.iterdir():
        file.unlink()
    with Memory.open(home=tmp_path, embedder=FakeEmbedder()) as memory:
        assert memory.recall("boat").hits[0].id == ids[0]
        assert len(memory.sources.vector_index()) == 3


@pytest.mark.only_sqlite("the file of vectors")
def test_damaged_vector_index_is_rebuilt(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=FakeEmbedder()) as memory:
        say(memory, "s", "one boat", "two lamps", "three doors")
        memory.maintenance.embed_waiting()
        folder = memory.sources.index_folder
    for file in folder.iterdir():
        file.write_bytes(b"\xff" * max(64, file.stat().st_size))
    with Memory.open(home=tmp_path, embedder=FakeEmbedder()) as memory:
        memory.recall("boat")
        assert len(memory.sources.vector_index()) == 3


def test_new_embedder_recomputes_vectors_while_keywords_work(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=FakeEmbedder("one", 16)) as memory:
        ids = say(memory, "s", "one boat", "two lamps")
        memory.maintenance.embed_waiting()
    with Memory.open(home=tmp_path, embedder=FakeEmbedder("two", 24)) as memory:
        stats = memory.maintenance.stats()
        assert (stats.waiting, [job.kind for job in stats.jobs]) == (2, ["embed"])
        ns, _ = memory.sources.nearest(memory.sources.embed_query("boat"), 5)
        assert len(ns) == 0
        assert memory.recall("boat").hits[0].id == ids[0]
        assert memory.maintenance.stats().waiting == 0


def test_cosines_of_items_without_a_vector_are_zero(memory: Memory):
    say(memory, "s", "one boat")
    memory.maintenance.embed_waiting()
    query = memory.sources.embed_query("boat")
    found = memory.sources.cosines(query, np.array([1, 0, 99], np.int64))
    assert found[0] > 0.3
    assert found[1:].tolist() == [0.0, 0.0]


@pytest.mark.only_sqlite("the file of vectors")
def test_symlinked_vector_index_is_not_followed(tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "vectors.index").write_bytes(b"of somebody else")
    home = tmp_path / "home"
    with Memory.open(home=home, embedder=NoEmbedder()) as memory:
        folder = memory.sources.index_folder
        id_ = memory.store("one boat")
        folder.symlink_to(elsewhere)
    with Memory.open(home=home, embedder=FakeEmbedder()) as memory:
        assert memory.recall("boat").hits[0].id == id_
        assert not folder.is_symlink()
    assert (elsewhere / "vectors.index").read_bytes() == b"of somebody else"
    with Memory.open(home=home, embedder=NoEmbedder()) as memory:
        shutil.rmtree(folder)
        folder.symlink_to(elsewhere)
        memory.forget(id=id_)
        assert not folder.exists()
    assert [file.name for file in elsewhere.iterdir()] == ["vectors.index"]


def test_a_model_that_cannot_be_loaded_leaves_keywords_and_a_notice(tmp_path: Path):
    def fail(_texts: object) -> None:
        msg = "The local model cannot be read: File too large."
        raise EmbedderError(msg)

    with Memory.open(home=tmp_path, embedder=FakeEmbedder()) as memory:
        [said] = say(memory, "s", "one boat")
        fragment = memory.store("The boat is green.")
        memory.maintenance.embed_waiting()
    with Memory.open(home=tmp_path, embedder=FakeEmbedder(before=fail)) as memory:
        say(memory, "s", "two lamps")
        answer = memory.recall("boat")
        assert said in {hit.id for hit in answer.hits}
        assert "keywords only" in answer.notice
        assert [hit.id for hit in memory.search("boat")] == [fragment]
        assert [hit.id for hit in memory.search("boat", deep=True)] == [fragment]
        assert memory.search.find_sessions("boat")
        assert memory.search.roots(query="boat")


NONE = np.empty(0, np.int64)


@given(st.text())
def test_a_plain_text_has_only_letters_digits_and_blanks(text: str):
    found = plain(text)
    assert all(c.isalnum() or c == " " for c in found)
    assert found[0] == found[-1] == " "


def test_letters_of_other_scripts_are_kept():
    assert "桟橋" in plain("桟橋の予約")


def test_texts_are_cached(memory: Memory):
    say(memory, "s", "The harbour opens at dawn.")
    held = Texts(100)
    with memory.database.read() as db:
        first = held.of(db, np.array([1]), NONE)
    with memory.database.read() as db:
        db.rows("SELECT 1")
        again = held.of(db, np.array([1, 99]), NONE)
    assert again == first == {1: " the harbour opens at dawn  "}


def test_mutable_texts_are_not_cached(memory: Memory):
    id_ = memory.store("The gate is blue.")
    held = Texts(100)
    with memory.database.read() as db:
        assert "blue" in held.of(db, np.array([1]), np.array([1]))[1]
    memory.knowledge.update(id_, "The gate is green.")
    with memory.database.read() as db:
        assert "green" in held.of(db, np.array([1]), np.array([1]))[1]


def test_cache_size_is_limited(memory: Memory):
    say(memory, "s", "first " * 5, "second " * 5, "third " * 5)
    held = Texts(100, cache_chars=50)
    with memory.database.read() as db:
        held.of(db, np.array([1, 2, 3]), NONE)
    assert sum(map(len, held._cache.values())) <= 50


def test_an_idle_memory_releases_cached_texts(memory: Memory):
    say(memory, "s", "The harbour opens at dawn.")
    memory.recall("when does the harbour open?")
    memory.maintenance.release_memory()
    assert memory.sources.texts._cache
    memory.maintenance.release_memory()
    assert not memory.sources.texts._cache
    assert memory.recall("when does the harbour open?").hits
