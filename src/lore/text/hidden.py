"""What a reader does not see in a text: invisible characters, comments, markup that hides."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from lore.text.later import compile_later

_BLANK_LETTERS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
"""Letters and marks that show nothing, though Unicode does not call them format characters."""

_CHARACTERS = compile_later(
    f"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    f"\ufe00-\ufe0e\ufeff\ufff0-\ufffb\ue000-\uf8ff{_BLANK_LETTERS}\ud800-\udfff"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
_PICTURES = "\u2600-\u27bf\U0001f000-\U0001faff"
_JOINED = compile_later(f"(?<=[{_PICTURES}\ufe0f])\u200d(?=[{_PICTURES}])")
"""The joiner between two pictures makes one of them: seen, not hidden."""

_EITHER = compile_later(f"({_JOINED.pattern})|{_CHARACTERS.pattern}")

_MARKUP = compile_later(
    r"""<!--.*?(?:-->|\Z) | ^\s*\[[^\]\n]*\]:\s*(?:\#|<>|about:) .*?$
      | <(?:script|style|template|noscript|details|iframe|object|embed)\b[^>]*>
      | <[a-z][^>]*\b(?:hidden|display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0
          |opacity\s*:\s*0)\b[^>]*>""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL | re.MULTILINE,
)


class Hidden(NamedTuple):
    """Something that a reader does not see: its line, from 1, and what it is."""

    line: int
    what: str


def find_hidden(text: str) -> list[Hidden]:
    """Return what is hidden in a text, in order; the same thing in one line once."""
    found = [(place.start(), _named(place[0])) for place in _CHARACTERS.finditer(_shown(text))]
    found += [(place.start(), "markup that is not shown") for place in _MARKUP.finditer(text)]
    told = [Hidden(text.count("\n", 0, at) + 1, what) for at, what in sorted(found)]
    return list(dict.fromkeys(told))


def without_hidden(text: str) -> str:
    """Return a text of ordinary lines without its hidden characters; markup stays, and is seen."""
    plain = "\n".join(text.splitlines())
    return plain if plain.isascii() and plain.isprintable() else _EITHER.sub(_kept, plain)


def _kept(place: re.Match[str]) -> str:
    return place[1] or ""


def _shown(text: str) -> str:
    return _JOINED.sub(" ", text)


def _named(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, 'without a name')}"
