from __future__ import annotations

import threading
from pathlib import Path

from lore.embed.embedder import NoEmbedder
from lore.errors import LoreError
from lore.memory import Memory
from tests.fakes import FakeEmbedder


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
