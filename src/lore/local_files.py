"""Whether the paths that callers name are files of this machine.

A server for many people gets paths of other machines. In its process nothing looks for, reads or
writes a file that a caller names: it would be the server's own file, or another person's.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_holders = 0
"""Of the whole process, and not of a thread or a request: a place that forgets to pass it on must
not open a file."""


def are_withheld() -> bool:
    """Return whether paths of callers are only names in this process."""
    return _holders > 0


@contextmanager
def withhold() -> Iterator[None]:
    """Treat paths of callers as names only, in the whole process, until the block ends."""
    global _holders  # noqa: PLW0603 - a property of the process, counted
    with _lock:
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
