"""The parts of a memory: sessions, search, knowledge, digest and maintenance."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lore import settings
from lore.embed.embedder import NoEmbedder
from lore.errors import InvalidInput, LoreError, NotFound
from lore.memory import Memory, restore_backup
from lore.records import Queues
from tests.digest.conversations import capture_messages
from tests.fakes import FakeEmbedder
from tests.recall.talk import say


def test_episodes_are_counted_from_one(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        assert memory.sessions.episodes(limit=1) == []
        with pytest.raises(InvalidInput, match="at least 1"):
            memory.sessions.episodes(limit=0)


def test_without_a_model_the_notice_comes_once_with_each_answer(tmp_path: Path):
    config = settings.load({"LORE_EMBED_MODEL": "no-such-model"}, home=tmp_path).settings
    with Memory.open(config=config) as memory:
        memory.store("Deploys are blue green")
        answer = memory.recall("deploy")
    assert "keywords only" in answer.notice
    assert len(answer.hits) == 1


def test_a_session_is_read_in_order(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        ids = say(memory, "s", "one", "two", "three")
        assert [m.id for m in memory.sessions.messages("s")] == ids
        assert [m.ordinal for m in memory.sessions.messages("s", first=1)] == [1, 2]


def test_the_same_key_stores_once_also_after_a_restart(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        first = memory.store("x marks the spot", key="k")
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        assert memory.store("x marks the spot", key="k") == first
        assert memory.maintenance.stats().fragments == 1


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
        assert memory.maintenance.stats().fragments == 60


@pytest.fixture
def memory(new_home: Path):
    with Memory.open(home=new_home, embedder=NoEmbedder()) as opened:
        yield opened


def test_a_session_is_distilled_once(memory: Memory):
    capture_messages(memory, 40)
    assert memory.distill("talk")
    assert memory.distill("talk") == []


def test_unknown_session_raises_not_found(memory: Memory):
    with pytest.raises(NotFound):
        memory.distill("none")


def test_nothing_was_spent_and_no_cycle_ran_in_a_new_memory(memory: Memory):
    assert memory.budget.spent_today().spent_usd == 0
    assert memory.digest.cycles() == []
    assert memory.knowledge.conflicts() == []


def test_unknown_phase_is_refused(memory: Memory):
    with pytest.raises(InvalidInput):
        memory.digest.consolidate(phases=["nonsense"])


@pytest.mark.only_sqlite("copies of a file")
def test_backup_and_restore_bring_everything_back(tmp_path: Path):
    home = tmp_path / "home"
    with Memory.open(home=home, embedder=FakeEmbedder()) as memory:
        kept = memory.store("The tea is green")
        copy = memory.maintenance.backup(tmp_path / "copy.db")
        memory.store("The lamp is red")
    former = restore_backup(copy, home=home)
    assert former is not None
    with Memory.open(home=home, embedder=FakeEmbedder()) as memory:
        assert [hit.id for hit in memory.search("tea lamp")] == [kept]


@pytest.mark.only_sqlite("copies of a file")
def test_restore_does_not_bring_back_forgotten_data(tmp_path: Path):
    home = tmp_path / "home"
    with Memory.open(home=home, embedder=FakeEmbedder()) as memory:
        memory.store("The secret word is xylophonist")
        copy = memory.maintenance.backup(tmp_path / "copy.db")
        assert memory.forget(match="XYLOPHONIST")
    restore_backup(copy, home=home)
    with Memory.open(home=home, embedder=FakeEmbedder()) as memory:
        assert memory.maintenance.stats().fragments == 0


def test_queues_count_waiting_items(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        say(memory, "s", "The harbour opens at dawn.")
        assert memory.digest.queue_episodes(quiet_s=0, limit=10) == 1
        assert memory.maintenance.queues() == Queues(
            0, 1, 0, budget_usd=1.0, digester="offline", calls_per_day=200
        )
    with Memory.open(home=tmp_path, embedder=FakeEmbedder()) as memory:
        assert memory.maintenance.queues().waiting == 1
