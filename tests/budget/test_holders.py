"""Whose money is set aside, and what becomes of it."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta

import pytest

from lore.budget.holders import HELD_FOR, settle_dead, this_process
from lore.store import spend
from tests.fakes import NOON


def gone() -> str:
    """Return a process that was there."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return f"{process.pid}.before"


@pytest.mark.parametrize(
    ("process", "left", "entered"),
    [
        (this_process, ["k"], []),
        (lambda: f"{os.getppid()}.other", ["k"], []),
        # In a container the next daemon has the number of the one that was killed.
        (lambda: f"{os.getpid()}.before", [], [0.25]),
        (gone, [], [0.25]),
        # As it was written before processes were named.
        (lambda: "", ["k"], []),
    ],
)
def test_what_was_set_aside_is_settled_once_its_process_is_gone(database, process, left, entered):
    held = spend.Holding("k", NOON, "request:turn", 1.0, process(), "m", 0.25)
    database.write(lambda db: spend.reserve(db, held))
    database.write(lambda db: settle_dead(db, NOON))
    with database.read() as db:
        assert [one.key for one in spend.holdings(db)] == left
        assert [entry.usd for entry in spend.newest(db)] == entered


@pytest.mark.parametrize("away", [HELD_FOR, -HELD_FOR])
def test_what_is_set_aside_for_longer_than_any_call_takes_is_given_back(database, away):
    held = spend.Holding("k", NOON, "request:turn", 1.0, this_process(), "m", 0.25)
    database.write(lambda db: spend.reserve(db, held))
    later = NOON + away + (away / abs(away)) * timedelta(seconds=1)
    database.write(lambda db: settle_dead(db, later))
    with database.read() as db:
        assert spend.holdings(db) == []
        assert spend.newest(db) == []
