"""A store that another process really holds locked, as a backup or a stuck program does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOLDING = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Keep every other process from writing to a database until the block ends."""
    holding = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holding.stdin is not None
    assert holding.stdout is not None
    with holding:
        try:
            assert holding.stdout.readline() == "held\n"
            yield
        finally:
            holding.stdin.close()
            holding.wait(30)
