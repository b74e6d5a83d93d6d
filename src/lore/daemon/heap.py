"""The heap of the daemon: what was freed by one thread is used by the next, or given back.

glibc makes a heap for every thread that asks at the same time as another, up to eight for each
core, and none of them gives back what it freed below something that is still in use. A process
that lives for weeks, with a dozen threads that each work now and then, keeps the largest need of
each.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Numbers of these parameters in malloc.h of glibc."""

ARENAS = 2
"""Heaps for all threads. With 8 clients beside the chores the daemon held 80 MB less with two."""

LARGE_BYTES = 4 << 20
"""What is larger has pages of its own, which go back at once. At 256 KB embedding took a quarter
more time, for its buffers were made anew for every layer; at 4 MB it takes none."""


def bound() -> bool:
    """Keep the heap of this process small; False where the C library has no such parameters."""
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


def give_back() -> None:
    """Give what was freed back to the system, also from below what is still in use."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
