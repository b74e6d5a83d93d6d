"""Secret repeats: text that repeats what was judged already needs no second judgement."""

from __future__ import annotations

__all__ = ["CROWD", "behind_repeats"]

CROWD = 64
"""After so many places without a secret, a look for repetition costs little beside them."""

_BACK = 512
"""So far back a judge looks at most: the line before a flag, and a bit."""

_AHEAD = 2_560
"""So far ahead a judge looks at most: the longest value, and what stands around it."""

_TAILS = ((64, 256), (1_024, 4_096))
"""How much of the text must return, and within how much of what precedes it: words, or lines."""

_STEP = 4_096


def behind_repeats(data: bytes, at: int, quiet_since: int) -> int:
    """Return the place from which to go on: the same as `at`, in the last of its repetitions.

    Nothing was found since another place; where a text goes on as it did since then, as far as
    any judge sees, nothing would be found either.
    """
    for tail, window in _TAILS:
        before = data.rfind(data[max(0, at - tail) : at], max(0, at - window), at - 1)
        period = at - tail - before
        known = _BACK + period
        if before < 0 or at - period < quiet_since or at - known - period < 0:
            continue
        if data[at - known : at] == data[at - known - period : at - period]:
            left = _end(data, at, period) - _AHEAD - at
            if left >= period:
                return at + left // period * period
    return at


def _end(data: bytes, at: int, period: int) -> int:
    """Return where a text ceases to repeat itself."""
    while at < len(data):
        here, before = data[at : at + _STEP], data[at - period : at - period + _STEP]
        if here != before[: len(here)]:
            break
        at += len(here)
    return at
