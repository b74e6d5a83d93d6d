"""Ending: leaving a process in which threads are still at work."""

from __future__ import annotations

import os
import sys
import threading


def leave_threads() -> None:
    """End the process at once if it has threads besides this one; nothing stored is lost by that.

    An ordinary end of the interpreter cuts daemon threads off wherever they are. Within the model's
    native code that aborts the process: 'terminate called without an active exception'.
    """
    if threading.active_count() > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
