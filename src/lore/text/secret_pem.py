"""Secret keys in PEM: over many lines, escaped in JSON, or cut off before their end."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
_LARGEST = 40_000
"""Bytes: a key of 16,384 bits is a third of this, escaped and numbered lines included."""

_SHORTEST = 40
"""Characters of Base64: what has fewer is a sample in a text about keys."""


def find_pem(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Yield the private keys of a text, each from its first line to its last."""
    if b"PRIVATE KEY" not in data and b"Private-Lines" not in data:
        return
    at = 0
    while (begin := _BEGIN.search(data, at)) is not None:
        at = begin.end()
        end = _end(data, at)
        body = b"".join(_RUN.findall(data[at:end]))
        if len(body) >= _SHORTEST and len(set(body)) >= 12:
            yield begin.start(), end, "private-key"
            at = end


def _end(data: bytes, at: int) -> int:
    limit = min(len(data), at + _LARGEST)
    following = _BEGIN.search(data, at, limit)
    limit = following.start() if following else limit
    end = _END.search(data, at, limit)
    if end:
        return int(end.end())
    truncated = _TRUNCATED.match(data, at, limit)
    return at + len(re.sub(rb"(?:[\s\"'+,|>]|\\+[nrt\"])+\Z", b"", truncated.group()))
