"""One cycle at a time, whichever process runs it, and none is kept off by a killed one."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lore.digest.consolidation import lock
from lore.digest.consolidation.cycle import run_cycle
from lore.digest.consolidation.undoing import undo_cycle
from lore.errors import CycleRunning
from lore.store.db import Database
from tests.digest.consolidation.samples import OFFLINE

HOLDER = """
import sys, time
from pathlib import Path
from lore.digest.consolidation import lock
with lock.hold(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def holder(database: Path) -> subprocess.Popen[str]:
    started = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(database)], stdout=subprocess.PIPE, text=True
    )
    assert started.stdout
    assert started.stdout.readline() == "held\n"
    return started


def test_a_second_cycle_says_who_runs_one_and_begins_nothing(database: Database):
    with holder(database.path) as other:
        try:
            with pytest.raises(CycleRunning, match=rf"\(pid {other.pid}\)"):
                run_cycle(database, OFFLINE)
            with pytest.raises(CycleRunning):
                undo_cycle(database)
        finally:
            other.kill()
    assert run_cycle(database, OFFLINE).ended_at


def test_a_killed_process_keeps_no_one_off(database: Database):
    with holder(database.path) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert run_cycle(database, OFFLINE).ended_at


def test_a_dry_run_needs_no_lock(database: Database):
    with lock.hold(database.path):
        assert run_cycle(database, OFFLINE, dry_run=True).ended_at


def test_the_lock_is_free_again_behind_its_holder(database: Database):
    for _ in range(2):
        with lock.hold(database.path), pytest.raises(CycleRunning), lock.hold(database.path):
            pass
