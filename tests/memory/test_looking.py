from __future__ import annotations

from pathlib import Path

from lore.embed.none import NoEmbedder
from lore.memory import Memory
from tests.recall.talk import say


def test_a_session_is_read_in_order(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        ids = say(memory, "s", "one", "two", "three")
        assert [m.id for m in memory.messages("s")] == ids
        assert [m.ordinal for m in memory.messages("s", first=1)] == [1, 2]
