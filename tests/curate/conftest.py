from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.store.db import Database
from tests.curate.world import World
from tests.fakes import FixedClock


@pytest.fixture
def world(database: Database, clock: FixedClock, tmp_path: Path) -> Iterator[World]:
    """A database with a fake embedder and its vector index."""
    made = World(database, clock, tmp_path / "home")
    yield made
    made.sources.close()
