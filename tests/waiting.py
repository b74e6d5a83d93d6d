"""Waiting for what comes to pass in its own time; a test that waits in vain fails here."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 60.0
"""Far more than anything takes, also on a machine that does much else."""


def eventually(what: Callable[[], T], *, every_s: float = 0.05) -> T:
    """Ask again and again until the answer is true, and return it."""
    until = time.monotonic() + PATIENCE_S
    while not (found := what()):
        assert time.monotonic() < until, "it did not come to pass"
        time.sleep(every_s)
    return found
