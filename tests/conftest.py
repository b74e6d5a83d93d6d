from __future__ import annotations

import pytest

from lore.store.db import open_database
from tests.fakes import FixedClock


@pytest.fixture
def clock():
    return FixedClock()


@pytest.fixture
def database(tmp_path, clock):
    opened = open_database(
        tmp_path / "memory.db", busy_timeout_s=5, backups=tmp_path / "backups", now=clock
    )
    yield opened
    opened.close()
