from __future__ import annotations

from pathlib import Path

import pytest

from lore.embed.embedder import NoEmbedder
from lore.errors import InvalidInput
from lore.memory import Memory


def test_episodes_are_counted_from_one(tmp_path: Path):
    with Memory.open(home=tmp_path, embedder=NoEmbedder()) as memory:
        assert memory.sessions.episodes(limit=1) == []
        with pytest.raises(InvalidInput, match="at least 1"):
            memory.sessions.episodes(limit=0)
