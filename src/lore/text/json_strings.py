"""JSON strings: find where a string ends without parsing it."""

from __future__ import annotations

import re

_QUOTE = re.compile(rb'(?<!\\)\\*+"')
"""A quote with the backslashes before it; an even number of them escapes only each other."""


def find_string_end(data: bytes | bytearray, start: int) -> int:
    """Return where the JSON string ends whose content starts at `start`, or -1 if it is cut off."""
    # The content may start with a backslash, but the quote before it is none.
    quote = _QUOTE.search(data, start)
    while quote is not None:
        if (quote.end() - quote.start()) % 2:
            return quote.end()
        quote = _QUOTE.search(data, quote.end())
    return -1
