from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.memory import Memory
from tests.fakes import FixedClock
from tests.tasks.sessions import open_tasks


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock) -> Iterator[Memory]:
    with open_tasks(tmp_path, clock) as opened:
        yield opened
