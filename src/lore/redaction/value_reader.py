"""Value reader: find where a value ends, in quotes or bare."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from lore.redaction import compile_bytes, load_pattern
from lore.text.regex import compile_lazy

LONGEST_VALUE = 2_048
"""Bytes to search for the end of a value, so that nested quotes cost linear time."""

JUDGED_BYTES = 256
"""Bytes of a value that the checks look at."""

QUOTE = load_pattern("quote")

ANSI_COLOUR = load_pattern("ansi_colour")

GAP = load_pattern("gap")

_OPENING = compile_lazy(
    rb"[bfruNL@$]{0,2}\\*(?:\"\"\"|''\'|[\"'`])|r#{1,3}\"|&quot;|&#3[49];|%2[27]|\\+u002[27]"
)
_PREFIXES = b"bfruNL@$#"
_BARE = compile_lazy(rb"(?:[^\x00\x1b\s\"'`\\<>|,;&]|\\[^nrt\"'`\\u])+")
_WHOLE_LINE = compile_lazy(rb"(?:[^\x00\x1b\s\"'`\\]|\\[^nrt\"'`\\])+")
_ADDRESS = compile_lazy(rb"[^\x00\s\"'`\\<>]+")
_STOP = compile_lazy(rb"\xef\xbc[\x8c\x9b\x89]|\xe3\x80|\xe2\x80[\x98-\x9f]")
"""Non-ASCII punctuation that ends a value in prose."""

_HOST = compile_lazy(rb"[A-Za-z0-9\[$%{_.\-]")
_PORT = compile_lazy(rb"\d{1,5}(?:[/?#,]|$)")


_APP_PASSWORD = compile_bytes("app_password")
_PRONOUNCEABLE = compile_lazy(rb"^.(?:[aeiouy]|.[aeiouy])")


Span = tuple[int, int, str]
"""Where a secret starts and ends, in bytes, and its kind."""

Judge = Callable[[bytes, Any, int], Iterator[Span]]
"""Yield the secrets at a match, given the data, the match and the end of its named group.

A rule is a place where a secret may stand: a pattern of `rules/patterns.txt` with a group of the
rule's name that ends where the value starts, and a judge that decides about the value.
"""


class Value(NamedTuple):
    """A value, its offsets in bytes, and whether it is quoted."""

    start: int
    end: int
    text: str
    quoted: bool = False


def read_value(data: bytes, at: int, *, whole_line: bool = False, prose: bool = False) -> Value:
    """Return the value that starts at an offset."""
    start = skip_quote(data, at)
    if start > at:
        inner = skip_quote(data, start)
        if data[start : start + 1] == b"\\" and inner > start:
            at, start = start, inner
        end = _closing(data, data[at:start].lstrip(_PREFIXES), start)
        if end >= 0:
            return _value(data, start, end, quoted=True)
        at = start
    match = (_WHOLE_LINE if whole_line else _BARE).match(data, at, at + JUDGED_BYTES)
    if match is None:
        return Value(at, at, "")
    text = match.group()
    if prose and (stop := _STOP.search(text)):
        text = text[: stop.start()]
    trimmed = text if whole_line else text.rstrip(b")]},:" + (b".!?*" if prose else b""))
    return _value(data, at, at + len(trimmed), quoted=False)


def skip_quote(data: bytes, at: int) -> int:
    """Return the offset after an opening quote, or the same offset if there is none."""
    opening = _OPENING.match(data, at)
    return opening.end() if opening else at


def _value(data: bytes, start: int, end: int, *, quoted: bool) -> Value:
    return Value(
        start, end, data[start : min(end, start + JUDGED_BYTES)].decode("utf-8", "replace"), quoted
    )


def match_app_password(data: bytes, at: int) -> re.Match[bytes] | None:
    """Match an app password: groups of four letters, as mail providers issue them."""
    match = _APP_PASSWORD.match(data, at, at + 30)
    if match is None or all(map(_PRONOUNCEABLE.match, re.split(rb"[ \-]", match.group()))):
        return None
    return match


def full_end(data: bytes, start: int, end: int) -> int:
    """Return the end of a secret that is longer than the bytes that were checked."""
    if end - start < JUDGED_BYTES:
        return end
    rest = _WHOLE_LINE.match(data, end)
    return rest.end() if rest else end


def _closing(data: bytes, quote: bytes, start: int) -> int:
    """Return where the quote closes on the same line, or -1."""
    line = data.find(b"\n", start, start + LONGEST_VALUE)
    limit = line if line >= 0 else min(len(data), start + LONGEST_VALUE)
    at = start
    while (end := data.find(quote, at, limit)) >= 0:
        slashes = end
        while slashes > start and data[slashes - 1] == 0x5C:
            slashes -= 1
        if (end - slashes) % 2 == 0:
            return end
        at = end + 1
    return -1


def read_url_password(data: bytes, at: int) -> Value | None:
    """Return the password in a URL, between the colon after the user and the @ before the host."""
    match = _ADDRESS.match(data, at, at + LONGEST_VALUE)
    if match is None or _PORT.match(match.group()):
        return None
    run = match.group()
    cut = next((i for i, byte in enumerate(run) if byte in b"/?#"), len(run))
    end = run.rfind(b"@", 0, cut)
    if end < 0:
        end = run.find(b"@")
    if end < 1 or not _HOST.match(run, end + 1):
        return None
    return _value(data, at, at + end, quoted=False)
