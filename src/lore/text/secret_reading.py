"""Secret reading: where the value ends that starts at a place, in quotes or bare."""

from __future__ import annotations

import re
from typing import NamedTuple

from lore.text.later import compile_later

__all__ = [
    "COLOUR",
    "GAP",
    "QUOTE",
    "Value",
    "match_four_by_four",
    "read_address",
    "read_value",
    "skip_quote",
    "whole_end",
]

LONGEST = 2_048
"""So far the end of a value is looked for, so that nested ones cost no more than linear time."""

JUDGED = 256
"""Bytes of a value by which it is told from an example or code."""

QUOTE = r"(?:\\*[\"'`]|&quot;|&#3[49];|%2[27]|\\+u002[27])"
"""A quote in a pattern, also as it stands in JSON, HTML and addresses."""

COLOUR = r"(?:\x1b|\\+(?:u001[bB]|x1[bB]|0?33|[eE]))\[[0-9;?]*[A-Za-z]"
"""What colours the text of a terminal, as it is or written out in code and JSON."""

GAP = r"(?:\s|\\+[nrt]|[ +\-]{0,6}\d{1,6}\xe2\x86\x92)*"
"""Space between two lines that belong together, also where lines are numbered."""

_OPENING = compile_later(
    rb"[bfruNL@$]{0,2}\\*(?:\"\"\"|''\'|[\"'`])|r#{1,3}\"|&quot;|&#3[49];|%2[27]|\\+u002[27]"
)
_PREFIXES = b"bfruNL@$#"
_BARE = compile_later(rb"(?:[^\x00\x1b\s\"'`\\<>|,;&]|\\[^nrt\"'`\\u])+")
_WHOLE_LINE = compile_later(rb"(?:[^\x00\x1b\s\"'`\\]|\\[^nrt\"'`\\])+")
_ADDRESS = compile_later(rb"[^\x00\s\"'`\\<>]+")
_STOP = compile_later(rb"\xef\xbc[\x8c\x9b\x89]|\xe3\x80|\xe2\x80[\x98-\x9f]")
"""Commas, stops and quotes that are no ASCII: sentences go on behind them."""

_HOST = compile_later(rb"[A-Za-z0-9\[$%{_.\-]")
_PORT = compile_later(rb"\d{1,5}(?:[/?#,]|$)")


_FOUR_BY_FOUR = compile_later(
    rb"[a-z]{4}(?:-[a-z]{4}){3}(?![\w\-])|[a-z]{4}(?:[ ][a-z]{4}){3}(?![\w\-]|[ ][a-z])"
    rb"|[A-Za-z0-9]{4}(?:[ ][A-Za-z0-9]{4}){5}(?![\w\-])"
)
_SPOKEN = compile_later(rb"^.(?:[aeiouy]|.[aeiouy])")


class Value(NamedTuple):
    """A value, where it stands in bytes, and whether it stands in quotes."""

    start: int
    end: int
    text: str
    quoted: bool = False


def read_value(data: bytes, at: int, *, whole_line: bool = False, prose: bool = False) -> Value:
    """Return the value that starts at a place."""
    start = skip_quote(data, at)
    if start > at:
        inner = skip_quote(data, start)
        if data[start : start + 1] == b"\\" and inner > start:
            at, start = start, inner
        end = _closing(data, data[at:start].lstrip(_PREFIXES), start)
        if end >= 0:
            return _value(data, start, end, quoted=True)
        at = start
    found = (_WHOLE_LINE if whole_line else _BARE).match(data, at, at + JUDGED)
    if found is None:
        return Value(at, at, "")
    text = found.group()
    if prose and (stop := _STOP.search(text)):
        text = text[: stop.start()]
    kept = text if whole_line else text.rstrip(b")]},:" + (b".!?*" if prose else b""))
    return _value(data, at, at + len(kept), quoted=False)


def skip_quote(data: bytes, at: int) -> int:
    """Return the place behind an opening quote, or the same place if there is none."""
    opening = _OPENING.match(data, at)
    return opening.end() if opening else at


def _value(data: bytes, start: int, end: int, *, quoted: bool) -> Value:
    return Value(
        start, end, data[start : min(end, start + JUDGED)].decode("utf-8", "replace"), quoted
    )


def match_four_by_four(data: bytes, at: int) -> re.Match[bytes] | None:
    """Return the letters in groups of four that start at a place, as mail providers give them."""
    found = _FOUR_BY_FOUR.match(data, at, at + 30)
    if found is None or all(map(_SPOKEN.match, re.split(rb"[ \-]", found.group()))):
        return None
    return found


def whole_end(data: bytes, start: int, end: int) -> int:
    """Return the end of a secret that is longer than what was judged of it."""
    if end - start < JUDGED:
        return end
    rest = _WHOLE_LINE.match(data, end)
    return rest.end() if rest else end


def _closing(data: bytes, quote: bytes, start: int) -> int:
    """Return where the quote closes on the same line, or -1."""
    line = data.find(b"\n", start, start + LONGEST)
    limit = line if line >= 0 else min(len(data), start + LONGEST)
    at = start
    while (end := data.find(quote, at, limit)) >= 0:
        slashes = end
        while slashes > start and data[slashes - 1] == 0x5C:
            slashes -= 1
        if (end - slashes) % 2 == 0:
            return end
        at = end + 1
    return -1


def read_address(data: bytes, at: int) -> Value | None:
    """Return the password of an address, from behind the user's colon to the host's at sign."""
    found = _ADDRESS.match(data, at, at + LONGEST)
    if found is None or _PORT.match(found.group()):
        return None
    run = found.group()
    cut = next((i for i, byte in enumerate(run) if byte in b"/?#"), len(run))
    end = run.rfind(b"@", 0, cut)
    if end < 0:
        end = run.find(b"@")
    if end < 1 or not _HOST.match(run, end + 1):
        return None
    return _value(data, at, at + end, quoted=False)
