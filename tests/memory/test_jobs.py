from __future__ import annotations

from pathlib import Path

from lore.embed.embedder import NoEmbedder
from lore.memory import Memory
from lore.records import Queues
from tests.fakes import FakeEmbedder
from tests.recall.talk import say


def test_what_waits_is_counted_and_without_an_embedder_nothing_waits_for_a_vector(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        say(memory, "s", "The harbour opens at dawn.")
        assert memory.digest.queue_episodes(quiet_s=0, limit=10) == 1
        assert memory.maintenance.queues() == Queues(0, 1, 0, budget_usd=1.0)
    with Memory.open(home=tmp_path, embedder=FakeEmbedder()) as memory:
        assert memory.maintenance.queues().waiting == 1
