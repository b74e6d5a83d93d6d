"""Secret keys in PEM: over many lines, escaped in JSON, or cut off before their end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise

from lore.text.linear import compile_linear

__all__ = ["find_pem"]

_BEGIN = compile_linear(
    r"-----? ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-----?|Private-Lines: \d{1,3}"
)
_END = compile_linear(r"-----? ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-----?")
_RUN = compile_linear(r"[A-Za-z0-9+/=]{16,}")
_TRUNCATED = compile_linear(
    r"(?:(?:Proc-Type|DEK-Info|Version|Comment|Charset): ?[^\n\\]*"
    r"|[\s\"'+,|>]|\\+[nrt\"]|\d{1,5}(?:\xe2\x86\x92|:|\|)|[A-Za-z0-9+/]{24,}={0,2}"
    r"|[A-Za-z0-9+/]+={1,2}(?:=[A-Za-z0-9+/]{4})?)*"
)
_TAIL = compile_linear(r"(?:[nrt\"]\\+|[\s\"'+,|>])*")
"""What follows a key that is cut off, read from its end: a search for it from the front would begin
at every space anew."""

_LARGEST = 40_000
"""Bytes: a key of 16,384 bits is a third of this, escaped and numbered lines included."""

_SHORTEST, _VARIED = 40, 12
"""Characters of Base64, and different ones among them: what has fewer is a sample in a text about
keys."""


def find_pem(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Yield the private keys of a text, each from its first line to its last."""
    if b"PRIVATE KEY" not in data and b"Private-Lines" not in data:
        return
    for (start, at), (following, _) in pairwise(chain(_begins(data), [(len(data), len(data))])):
        limit = min(following, at + _LARGEST)
        # Most of the work is saved by a look at what a text of first lines alone has between them.
        if limit - at < _SHORTEST or not _is_key(data[at:limit]):
            continue
        end = _end(data, at, limit)
        if _is_key(data[at:end]):
            yield start, end, "private-key"


def _begins(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where first lines of keys start and end; all are found in one pass."""
    return (begin.span() for begin in _BEGIN.finditer(data))


def _is_key(between: bytes) -> bool:
    """Tell whether there is enough of a key between two places."""
    body = b"".join(_RUN.findall(between))
    return len(body) >= _SHORTEST and len(set(body)) >= _VARIED


def _end(data: bytes, at: int, limit: int) -> int:
    end = _END.search(data, at, limit)
    if end:
        return int(end.end())
    truncated = _TRUNCATED.match(data, at, limit).group()
    return at + len(truncated) - int(_TAIL.match(truncated[::-1]).end())
