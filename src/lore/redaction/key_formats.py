"""Key formats: vendor keys and PEM private keys that are recognised by their own shape."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise
from typing import NamedTuple

from lore.redaction import RULES_FOLDER
from lore.text.re2_helpers import compile_re2


class KeyFormat(NamedTuple):
    """The format of one vendor's key; `before` must precede it and stays in the text.

    Ordinary names can match a `weak` format, so a match must also look random. A `mixed` format
    covers vendors that are not listed: it must stand alone, be no id, and mix upper case, lower
    case and digits.
    """

    kind: str
    pattern: str
    before: str = ""
    weak: bool = False
    mixed: bool = False


_SHORTHANDS = {
    "<url>": r"[A-Za-z0-9_\-]",
    "<uuid>": r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
}


def _read_formats() -> Iterator[KeyFormat]:
    table = (RULES_FOLDER / "key_formats.tsv").read_text("utf-8")
    for shorthand, pattern in _SHORTHANDS.items():
        table = table.replace(shorthand, pattern)
    for row in table.splitlines()[1:]:
        kind, flags, before, pattern = row.split("\t")
        yield KeyFormat(kind, pattern, before, weak="weak" in flags, mixed="mixed" in flags)


KEY_FORMATS = tuple(_read_formats())
"""More specific formats come first; the caller adds the left boundary."""


_BEGIN = compile_re2(
    r"-----? ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-----?|Private-Lines: \d{1,3}"
)
_END = compile_re2(r"-----? ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-----?")
_RUN = compile_re2(r"[A-Za-z0-9+/=]{16,}")
_TRUNCATED = compile_re2(
    r"(?:(?:Proc-Type|DEK-Info|Version|Comment|Charset): ?[^\n\\]*"
    r"|[\s\"'+,|>]|\\+[nrt\"]|\d{1,5}(?:\xe2\x86\x92|:|\|)|[A-Za-z0-9+/]{24,}={0,2}"
    r"|[A-Za-z0-9+/]+={1,2}(?:=[A-Za-z0-9+/]{4})?)*"
)
_TAIL = compile_re2(r"(?:[nrt\"]\\+|[\s\"'+,|>])*")
"""What follows a truncated key, matched backwards: forwards it would restart at every space."""

_LARGEST_KEY = 40_000
"""Bytes: a key of 16,384 bits is a third of this, with escaped and numbered lines."""

_SHORTEST, _FEWEST_DISTINCT = 40, 12
"""Base64 characters, and distinct ones among them; a sample in documentation has fewer."""


def find_pem(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Yield the private keys in a text, each from its first line to its last."""
    if b"PRIVATE KEY" not in data and b"Private-Lines" not in data:
        return
    for (start, at), (following, _) in pairwise(
        chain(_find_begins(data), [(len(data), len(data))])
    ):
        limit = min(following, at + _LARGEST_KEY)
        # This check is cheap and rejects text that repeats first lines only.
        if limit - at < _SHORTEST or not _is_key(data[at:limit]):
            continue
        end = _end(data, at, limit)
        if _is_key(data[at:end]):
            yield start, end, "private-key"


def _find_begins(data: bytes) -> Iterator[tuple[int, int]]:
    return (begin.span() for begin in _BEGIN.finditer(data))


def _is_key(between: bytes) -> bool:
    body = b"".join(_RUN.findall(between))
    return len(body) >= _SHORTEST and len(set(body)) >= _FEWEST_DISTINCT


def _end(data: bytes, at: int, limit: int) -> int:
    end = _END.search(data, at, limit)
    if end:
        return int(end.end())
    truncated = _TRUNCATED.match(data, at, limit).group()
    return at + len(truncated) - int(_TAIL.match(truncated[::-1]).end())
