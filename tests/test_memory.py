from __future__ import annotations

import threading
from pathlib import Path

import pytest

import lore
from lore import settings
from lore.embed.none import NoEmbedder
from lore.errors import InvalidInput, LoreError, NotFound, StoreError
from lore.memory import Memory, examine, restore_backup
from lore.records import Queues
from tests.fakes import FakeEmbedder
from tests.recall.talk import say


def test_the_library_works_as_the_readme_says(tmp_path: Path):
    with lore.Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        memory.store("Deploys go through the blue/green script in ops/deploy.sh")
        hits = list(memory.recall("how do we deploy?"))
    assert hits[0].text == "Deploys go through the blue/green script in ops/deploy.sh"
    assert hits[0].why


def test_a_home_that_is_not_there_is_not_made_for_reading(tmp_path: Path):
    with pytest.raises(NotFound, match="no memory"):
        Memory.open(home=tmp_path / "none", embedder=NoEmbedder(), create=False)
    assert not (tmp_path / "none").exists()


def test_a_closed_memory_says_so(tmp_path: Path):
    memory = Memory.open(home=tmp_path, embedder=NoEmbedder())
    memory.close()
    with pytest.raises(StoreError, match="closed"):
        memory.store("x")


def test_an_embedder_that_the_caller_brought_stays_open(tmp_path: Path):
    embedder = FakeEmbedder()
    with Memory.open(home=tmp_path, embedder=embedder):
        pass
    assert not embedder.closed


def test_without_a_model_the_notice_comes_once_with_each_answer(tmp_path: Path):
    config = settings.load({"LORE_EMBED_MODEL": "no-such-model"}, home=tmp_path).settings
    with Memory.open(config=config) as memory:
        memory.store("Deploys are blue green")
        answer = memory.recall("deploy")
    assert "keywords only" in answer.notice
    assert len(answer.hits) == 1


def test_the_same_key_stores_once_also_after_a_restart(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        first = memory.store("x marks the spot", key="k")
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        assert memory.store("x marks the spot", key="k") == first
        assert memory.stats().fragments == 1


def test_many_threads_store_and_recall_at_once(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=FakeEmbedder()) as memory:
        errors: list[LoreError] = []

        def work(name: int) -> None:
            try:
                for i in range(10):
                    memory.store(f"thread {name} says {i}")
                    memory.recall(f"thread {name}")
            except LoreError as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert memory.stats().fragments == 60


def test_backup_and_restore_bring_everything_back(tmp_path: Path):
    home = tmp_path / "home"
    with Memory.open(home=home, embedder=FakeEmbedder()) as memory:
        kept = memory.store("The tea is green")
        copy = memory.backup(tmp_path / "copy.db")
        memory.store("The lamp is red")
    former = restore_backup(copy, home=home)
    assert former is not None
    with Memory.open(home=home, embedder=FakeEmbedder()) as memory:
        assert [hit.id for hit in memory.search("tea lamp")] == [kept]


def test_what_was_forgotten_stays_forgotten_after_a_restore(tmp_path: Path):
    home = tmp_path / "home"
    with Memory.open(home=home, embedder=FakeEmbedder()) as memory:
        memory.store("The secret word is xylophonist")
        copy = memory.backup(tmp_path / "copy.db")
        assert memory.forget(match="XYLOPHONIST")
    restore_backup(copy, home=home)
    with Memory.open(home=home, embedder=FakeEmbedder()) as memory:
        assert memory.stats().fragments == 0


def test_a_session_is_read_in_order(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        ids = say(memory, "s", "one", "two", "three")
        assert [m.id for m in memory.messages("s")] == ids
        assert [m.ordinal for m in memory.messages("s", first=1)] == [1, 2]


def test_doctor_looks_at_everything_and_names_what_is_missing(tmp_path: Path):
    checks = {check.name: check for check in examine(home=tmp_path / "none")}
    assert checks["database"].state == "degraded"
    with Memory.open(home=tmp_path, embedder=NoEmbedder()):
        pass
    names = [check.name for check in examine(home=tmp_path)]
    assert names == [
        "versions", "home", "disk", "files", "database", "keywords", "vectors", "embedder",
        "sessions", "jobs",
    ]  # fmt: skip


def test_what_waits_is_counted_and_without_an_embedder_nothing_waits_for_a_vector(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        say(memory, "s", "The harbour opens at dawn.")
        assert memory.queue_episodes(quiet_s=0, limit=10) == 1
        assert memory.queues() == Queues(0, 1, 0, budget_usd=1.0)
    with Memory.open(home=tmp_path, embedder=FakeEmbedder()) as memory:
        assert memory.queues().waiting == 1


def test_episodes_are_counted_from_one(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        assert memory.episodes(limit=1) == []
        with pytest.raises(InvalidInput, match="at least 1"):
            memory.episodes(limit=0)
