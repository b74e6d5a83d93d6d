from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.memory import Memory
from tests.fakes import FakeEmbedder, FixedClock


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock) -> Iterator[Memory]:
    """A fresh memory with a fake embedder."""
    with Memory.open(home=tmp_path / "home", embedder=FakeEmbedder(), now=clock) as opened:
        yield opened
