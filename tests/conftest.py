from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from lore.store.database import open_database
from tests.fakes import FixedClock
from tests.homes import shared_folder

# The same examples each time, so that only a change makes a test fail, and no limit of time, since
# another's work on this machine is no failure. "search" tries examples that nobody tried before.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_configure() -> None:
    """Let programs that tests start be interrupted, though whoever started the tests cannot be."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as behind nohup
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Take the collected tests, which all stay, out of each search for garbage."""
    gc.freeze()


def pytest_xdist_auto_num_workers() -> int:
    """Return more processes than cores: many tests wait for processes of their own, and disks."""
    return 2 * (os.cpu_count() or 1)


@pytest.fixture
def clock():
    return FixedClock()


@pytest.fixture
def new_home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with the converted models of this test run, or a place for them.

    Converting a model takes a fifth of a second, and 60 MB on the disk.
    """
    models = shared_folder(tmp_path_factory) / "models"
    models.mkdir(exist_ok=True)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "models").symlink_to(models)
    return home


@pytest.fixture
def database(tmp_path, clock):
    opened = open_database(
        tmp_path / "memory.db", busy_timeout_s=5, backups=tmp_path / "backups", now=clock
    )
    yield opened
    opened.close()
