from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

from lore.store.database import open_database
from tests.fakes import FixedClock

# The same examples each time, so that only a change makes a test fail, and no limit of time, since
# another's work on this machine is no failure. "search" tries examples that nobody tried before.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_configure() -> None:
    """Let programs that tests start be interrupted, though whoever started the tests cannot be."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as behind nohup
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """Return more processes than cores: many tests wait for processes of their own, and disks."""
    return 2 * (os.cpu_count() or 1)


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
