from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.memory import Memory
from tests.engines import engine as engine
from tests.engines import postgres_url as postgres_url
from tests.engines import pytest_generate_tests as pytest_generate_tests
from tests.fakes import FakeEmbedder, FixedClock


@pytest.fixture
def clock() -> FixedClock:
    """A clock that stands at noon of a Wednesday."""
    return FixedClock()


@pytest.fixture
def memory(new_home: Path, engine: str, clock: FixedClock) -> Iterator[Memory]:
    """A fresh memory with a fake embedder."""
    with Memory.open(home=new_home, embedder=FakeEmbedder(), now=clock) as opened:
        yield opened
