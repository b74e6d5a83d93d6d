"""What the parts of a memory share."""

from __future__ import annotations

import threading
from pathlib import Path

from lore.embed.embedder import NoEmbedder
from lore.memory import Memory
from lore.records.gateway import LATE, GatewayStats
from tests.fakes import FakeEmbedder


def test_no_item_waits_without_an_embedder(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        memory.store("The tea is green")
        assert memory.maintenance.embed_waiting() == 0


def test_second_embedding_thread_waits_at_most_its_deadline(tmp_path: Path):
    begun, go_on = threading.Event(), threading.Event()

    def hold(_texts: object) -> None:
        begun.set()
        assert go_on.wait(30)

    with Memory.open(home=tmp_path, embedder=FakeEmbedder(before=hold)) as memory:
        memory.store("The tea is green")
        counted: list[int] = []
        working = threading.Thread(
            target=lambda: counted.append(memory.maintenance.embed_waiting())
        )
        working.start()
        assert begun.wait(30)
        assert memory.maintenance.embed_waiting(within_s=0.0) == 0
        go_on.set()
        working.join(30)
    assert counted == [1]


def test_degraded_requests_are_counted_by_reason():
    passing = GatewayStats()
    for why in ("", LATE, LATE, "StoreBusy"):
        passing.count(why)
    assert passing.requests == 4
    assert passing.degraded() == {LATE: 2, "StoreBusy": 1}
