"""TODO."""

from __future__ import annotations

import threading
from pathlib import Path

from lore.embed.embedder import NoEmbedder
from lore.memory import Memory
from lore.memory.context import LATE, GatewayStats
from tests.fakes import FakeEmbedder


def test_without_an_embedder_nothing_waits(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        memory.store("The tea is green")
        assert memory.maintenance.embed_waiting() == 0


def test_one_thread_embeds_and_another_does_not_wait_for_longer_than_it_may(tmp_path: Path):
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


def test_requests_are_counted_with_why_they_went_without_memory():
    passing = GatewayStats()
    for why in ("", LATE, LATE, "StoreBusy"):
        passing.count(why)
    assert passing.requests == 4
    assert passing.degraded() == {LATE: 2, "StoreBusy": 1}
