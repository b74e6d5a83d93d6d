from __future__ import annotations

from pathlib import Path

from lore.memory import Memory, restore_backup
from tests.fakes import FakeEmbedder


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


def test_what_was_forgotten_stays_forgotten_after_a_restore(tmp_path: Path):
    home = tmp_path / "home"
    with Memory.open(home=home, embedder=FakeEmbedder()) as memory:
        memory.store("The secret word is xylophonist")
        copy = memory.maintenance.backup(tmp_path / "copy.db")
        assert memory.forget(match="XYLOPHONIST")
    restore_backup(copy, home=home)
    with Memory.open(home=home, embedder=FakeEmbedder()) as memory:
        assert memory.maintenance.stats().fragments == 0
