"""Count the calls of a function while it does its work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def count_calls(function: Callable[..., object]) -> Iterator[list[str]]:
    """Give a list that gets an entry for each call of a function in this thread."""
    calls: list[str] = []
    code = function.__code__

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code is code:
            calls.append(event)

    former = sys.getprofile()
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(former)
