"""Heap limits for the daemon, so that freed memory goes back to the system.

glibc creates a heap for every thread that allocates at the same time as another, up to eight per
core, and none of them returns memory below a block that is still in use. A process that runs for
weeks with a dozen threads would keep the peak of each.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Numbers of these parameters in glibc's malloc.h."""

ARENAS = 2
"""Heaps for all threads. With 8 clients and busy tasks the daemon used 80 MB less with two."""

LARGE_BYTES = 4 << 20
"""Larger blocks get pages of their own, which are returned at once.

At 256 KB embedding took a quarter longer, because its buffers were allocated for every layer; at 4
MB it does not.
"""


def limit_heap() -> bool:
    """Limit the heap of this process; return False if the C library has no such parameters."""
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        return all(
            mallopt(name, value) == 1
            for name, value in (
                (_ARENA_MAX, ARENAS),
                (_MMAP_THRESHOLD, LARGE_BYTES),
                (_TRIM_THRESHOLD, LARGE_BYTES),
            )
        )
    return False


def trim() -> None:
    """Return freed memory to the system."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
