"""Fixtures of the digest tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.memory import Memory
from lore.store.database import Database
from tests.digest.world import World
from tests.fakes import FakeEmbedder, FixedClock


@pytest.fixture
def world(database: Database, clock: FixedClock, tmp_path: Path) -> Iterator[World]:
    """A database with a fake embedder and its vector index."""
    made = World(database, clock, tmp_path / "home")
    yield made
    made.sources.close()


@pytest.fixture
def memory(new_home: Path, clock: FixedClock) -> Iterator[Memory]:
    """A fresh memory with a fake embedder."""
    with Memory.open(home=new_home, embedder=FakeEmbedder(), now=clock) as opened:
        yield opened
