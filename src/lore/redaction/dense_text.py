"""Dense text: bound the work on text that repeats itself or holds candidates without end."""

from __future__ import annotations

from collections.abc import Iterator

from lore.redaction.password_shapes import is_named_password
from lore.redaction.value_reader import Span
from lore.text.regex import compile_lazy

DENSE_COUNT = 512
"""Candidates after which the density of the text is checked."""

_DENSE_SPACING = 48
"""Bytes per candidate below which text is dense; real settings files reach this only briefly."""

DENSE_BYTES = 65_536
"""Bytes of dense text that are scanned word by word."""

OVERLAP_BYTES = 512
"""Bytes at the end of such a scan to scan again: a name there may have its value after it."""

_WORD = compile_lazy(rb"[!#-&*-+\-./0-9:=?@A-Z^_a-z~]{7,256}")
_CONSPICUOUS = compile_lazy(rb"[0-9!#$%^&*?~+]")
_NAME = compile_lazy(rb"^[\w.\-]{1,40}[=:]+(?=.)")


def is_dense(places: int, size: int) -> bool:
    """Return whether a text has too many candidates for its size to judge them one by one."""
    return places >= DENSE_COUNT and size < places * _DENSE_SPACING


def find_in_dense_text(data: bytes, at: int) -> Iterator[Span]:
    """Yield the words that could be secrets, whatever precedes them."""
    for word in _WORD.finditer(data, at, at + DENSE_BYTES):
        if not _CONSPICUOUS.search(word.group()):
            continue
        name = _NAME.match(word.group())
        start = word.start() + (name.end() if name else 0)
        if is_named_password(data[start : word.end()].decode("latin-1")):
            yield start, word.end(), "secret"


IDLE_LIMIT = 64
"""Candidates without a secret after which a check for repetition pays off."""

_LOOKBACK = 512
"""Bytes that a rule looks back at most."""

_LOOKAHEAD = 2_560
"""Bytes that a rule looks ahead at most: the longest value and its surroundings."""

_TAILS = ((64, 256), (1_024, 4_096))
"""How much of the text must repeat, and within how much of the text before it: words, or lines."""

_STEP = 4_096


def skip_repeats(data: bytes, at: int, clean_since: int) -> int:
    """Return the offset in the last repetition that is equivalent to `at`.

    No secret was found since `clean_since`; where the text repeats from there, as far as any rule
    looks, none would be found either.
    """
    for tail, window in _TAILS:
        before = data.rfind(data[max(0, at - tail) : at], max(0, at - window), at - 1)
        period = at - tail - before
        checked = _LOOKBACK + period
        if before < 0 or at - period < clean_since or at - checked - period < 0:
            continue
        if data[at - checked : at] == data[at - checked - period : at - period]:
            distance = _end_of_repeats(data, at, period) - _LOOKAHEAD - at
            if distance >= period:
                return at + distance // period * period
    return at


def _end_of_repeats(data: bytes, at: int, period: int) -> int:
    while at < len(data):
        here, before = data[at : at + _STEP], data[at - period : at - period + _STEP]
        if here != before[: len(here)]:
            break
        at += len(here)
    return at
