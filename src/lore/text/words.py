"""Words: tokenize text for search, and find texts that quote each other."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from lore.text.regex import compile_lazy

STOP_WORDS = frozenset(
    """a about above after again against all also am an and any are aren't as at be because been
    before being below between both but by can can't cannot could couldn't did didn't do
    does doesn't doing don't down during each few for from further get gets getting give
    given got had hadn't has hasn't have haven't having he he'd he'll he's her here here's
    hers herself him himself his how how's i i'd i'll i'm i've if in into is isn't it it's
    its itself just let let's me more most mustn't my myself no nor not of off on once only
    or other ought our ours ourselves out over own same shan't she she'd she'll she's should
    shouldn't so some such than that that's the their theirs them themselves then there
    there's these they they'd they'll they're they've this those through to too under until
    up us very was wasn't we we'd we'll we're we've were weren't what what's when when's
    where where's which while who who's whom whose why why's will with won't would wouldn't
    you you'd you'll you're you've your yours yourself yourselves""".split()
)
"""English function words: they cost most of the time of a keyword query and carry no answer."""

_MARKS = "\u0300-\u0304\u0306-\u030c\u030f\u0311\u031b\u0323-\u0328\u032d\u032e\u0330\u0331"
"""Combining accents that the keyword index drops."""

_DENSE_LETTERS = (
    "\u0e00-\u0e7f\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff"
)
"""Letters of scripts without spaces between words: Thai, kana, Han."""

_LETTERS = rf"[^\W_]+(?:[{_MARKS}][^\W_]*)*"
_WORD = compile_lazy(rf"{_LETTERS}(?:['’]{_LETTERS})*")
_MARK = compile_lazy(rf"[{_MARKS}]")
_SYMBOL = compile_lazy(rf"[^\w\x00-\x7f{_MARKS}]")
"""Emoji and signs; the keyword index treats those newer than 2012 as letters."""

_CASES = bytes(
    0xFF if byte >= 0x80 else
    0x20 if not chr(byte).isalnum() else
    0x41 if chr(byte).isupper() else 0x61
    for byte in range(256)
)  # fmt: skip
"""Maps ASCII to 'A' for capitals, 'a' for other letters and digits, and spaces;

other letters belong to the word beside them.
"""

_HUMPED = compile_lazy(rb"A(?:(?<=aA)|(?=Aa))[^ ]*")
"""The part of a camel-case word from its first change of case: 'userName', 'HTTPServer'."""

_RECENT_NAMES = 4_096
"""Names repeat: most names of a session occurred before."""

_CAMEL = compile_lazy(rb"[A-Za-z]*[a-z0-9][A-Z]|[A-Z]{2,}[a-z]")
_HUMP = compile_lazy(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_IDENTIFIER = compile_lazy(
    r"""(?<![\w/.\-])(?:
        [\w.\-]*(?:/[\w.\-]+)+          # a path
      | \w+(?:[.:\-]{1,2}\w+)+\(?       # dotted, dashed, namespaced
      | \w*_\w+                         # snake case
      | [A-Za-z]*[a-z0-9][A-Z]\w*       # camel case
      | [A-Z][A-Z0-9]{3,}(?:[a-z]\w+)?  # a constant, an error code, an acronym in a name
    )""",
    re.VERBOSE,
)
_DENSE = compile_lazy(rf"[{_DENSE_LETTERS}]+")
_DENSE_OR_NOT = compile_lazy(rf"[{_DENSE_LETTERS}]+|[^{_DENSE_LETTERS}]+")
_BESIDE_DENSE = compile_lazy(
    rf"(?<![^\W_])[^\W_{_DENSE_LETTERS}]+(?=[{_DENSE_LETTERS}])"
    rf"|(?<=[{_DENSE_LETTERS}])[^\W_{_DENSE_LETTERS}]+"
)
_QUOTED = compile_lazy(r'"([^"]{2,200})"|“([^”]{2,200})”|`([^`]{2,200})`')
_NOT_TEXT = compile_lazy(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")
_BEHIND_JOINT = compile_lazy(r"(?<=[=:\"'`])[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]+")
"""Between a name and its value nothing may replace what cannot be stored."""

_ESCAPE = compile_lazy(
    r"\x1b[\]PX^_][^\x07\x1b\x9c\n]{0,2048}(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b\[[0-?]*|\x9b[0-?]+)[ -/]*([@-~])?|\x9b[HJKm]?"
    r"|\x1b(?:[#%()*+][0-9AB@]|[78=>\\cDEHMNOZ])?"
)
"""Terminal escape sequences: links and titles, colours and cursor moves, short ones."""

_MOVES = frozenset("ABCDEFGHIZadefs`")
"""Final letters of sequences that move the cursor: what follows is separate text."""

_ASCII = bytes(range(0x80))
_FEW_LETTERS = 40
"""Up to this many characters are replaced one by one, which is faster than a pass."""

_CONTROLS = bytes(byte for byte in range(0x20) if byte not in b"\t\n\r")

_ESCAPE_BYTES = "\x9b".encode()
"""A character that starts an escape sequence, in UTF-8."""

MAX_QUERY_CHARS = 8_192
"""A longer question is cut: no answer depends on its tail."""


def clean(text: str) -> str:
    """Return text that every store can hold: no escapes, control characters or lone surrogates."""
    if is_clean(text):
        return text
    return _NOT_TEXT.sub(" ", _BEHIND_JOINT.sub("", _ESCAPE.sub(_shown, text)))


def is_clean(text: str) -> bool:
    """Return whether a text, or several joined, can be stored as it is."""
    if text.isprintable():
        return True
    if "\x9b" in text:
        return False
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return False
    return len(data.translate(None, _CONTROLS)) == len(data)


def are_clean(texts: Iterable[str]) -> bool:
    """Return whether all of many texts can be stored as they are."""
    try:
        data = b"\n".join([text.encode() for text in texts])
    except UnicodeEncodeError:
        return False
    return _ESCAPE_BYTES not in data and len(data.translate(None, _CONTROLS)) == len(data)


def _shown(escape: re.Match[str]) -> str:
    return " " if escape[1] in _MOVES else ""


def searchable_form(text: str) -> str:
    """Return the text with the parts of its identifiers and of dense scripts appended."""
    text = text if text.isascii() else _without_symbols(text)
    extra = [parts for run in _humped(text) if (parts := _camel_parts(run))]
    if not text.isascii() and _DENSE.search(text):
        extra += [char_pairs(run) for run in _DENSE.findall(text)]
        extra += _BESIDE_DENSE.findall(text)
    return f"{text}\n{' '.join(extra)}" if extra else text


def _without_symbols(text: str) -> str:
    """Return the text with spaces in place of emoji and signs."""
    return replace_letters(text, _SYMBOL)


def replace_letters(text: str, letters: re.Pattern[str]) -> str:
    """Return the text with spaces in place of letters outside ASCII that match a pattern."""
    data = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    others = set(data.decode("utf-8", "surrogatepass"))
    if len(others) > _FEW_LETTERS:
        return letters.sub(" ", text)
    for letter in others:
        if letters.match(letter):
            text = text.replace(letter, " ")
    return text


def _humped(text: str) -> dict[bytes, None]:
    """Return the words of a text that may be camel case, without duplicates, in order."""
    data = text.encode("utf-8", "surrogatepass")
    cases = data.translate(_CASES)
    runs: dict[bytes, None] = {}
    for match in _HUMPED.finditer(cases):
        hump, end = match.span()
        runs[data[cases.rfind(b" ", 0, hump) + 1 : end]] = None
    return runs


@lru_cache(maxsize=_RECENT_NAMES)
def _camel_parts(run: bytes) -> str:
    """Return the parts of a camel-case word, and nothing for another."""
    return split_camel_case(run.decode()) if run.isascii() and _CAMEL.match(run) else ""


def split_camel_case(word: str) -> str:
    """Return the parts of a camel-case word separated by spaces."""
    return " ".join(_HUMP.findall(word))


def char_pairs(run: str) -> str:
    """Return overlapping pairs of the characters of a text without spaces."""
    if len(run) < 2:
        return run
    return " ".join(run[i : i + 2] for i in range(len(run) - 1))


def split(text: str) -> list[str]:
    """Tokenize a text into lower-case words without accents."""
    if text.isascii():
        return _WORD.findall(text.lower())
    spelled: list[str] = _WORD.findall(text)
    joined = "\n".join(spelled)
    if joined.isascii():  # only signs beside the words are not, such as quotes and dashes
        return joined.lower().split("\n") if spelled else spelled
    return [word.lower() if word.isascii() else fold(word) for word in spelled]


_ENDINGS = ("ing", "ed", "es", "s")
_SHORTEST_STEM = 3


def stem(word: str) -> str:
    """Return a word without its commonest endings, so that 'caches' and 'caching' are equal."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)].rstrip("e")
    return word.rstrip("e") if len(word) > _SHORTEST_STEM else word


def raw_words(text: str) -> list[str]:
    """Return the words of a text as written."""
    return _WORD.findall(text)


def fold(word: str) -> str:
    """Return a word in lower case without accents, as the keyword index stores it.

    Only Latin letters lose their accents: й is another letter than и, and が than か.
    """
    if word.isascii():
        return word.lower()
    return "".join(map(_folded, _MARK.sub("", word.replace("’", "'")))).lower()


def _folded(letter: str) -> str:
    base = unicodedata.normalize("NFD", letter)[0]
    return base if base.isascii() else letter


def identifiers(text: str) -> list[str]:
    """Return the code identifiers and paths in a text, without duplicates, in order."""
    matches = (match.group(0).strip(".:-(") for match in _IDENTIFIER.finditer(text))
    return list(dict.fromkeys(word for word in matches if len(word) > 2))


def quoted_phrases(text: str) -> list[str]:
    """Return the phrases that a text has in quotation marks."""
    return [next(filter(None, groups)) for groups in _QUOTED.findall(text)]


def search_terms(text: str, *, most: int = 48) -> list[str]:
    """Return the words worth searching for, without duplicates: no stop words unless all are."""
    text = text[:MAX_QUERY_CHARS]
    words: list[str] = []
    for word in split(text):
        words += [word] if word.isascii() else _dense_pairs(word)
    for identifier in identifiers(text):
        words += (
            split(split_camel_case(identifier))
            if any(map(_camel_parts, _humped(identifier)))
            else []
        )
    unique = list(dict.fromkeys(words))
    telling = [word for word in unique if word not in STOP_WORDS and not _lone_letter(word)]
    return (telling or unique)[:most]


def _dense_pairs(word: str) -> list[str]:
    """Return a word with its runs of a dense script split into pairs."""
    parts: list[str] = []
    for run in _DENSE_OR_NOT.findall(word):
        parts += char_pairs(run).split() if _DENSE.match(run) else [run.strip("'")]
    return parts


def _lone_letter(word: str) -> bool:
    return len(word) == 1 and word.isascii() and not word.isdigit()


def match_any(words: list[str], phrases: list[str] = []) -> str:  # noqa: B006 - never changed
    """Return a keyword query that any of the words or phrases satisfies, all quoted."""
    quoted_terms = [f'"{word}"' for word in words]
    for phrase in phrases:
        parts = split(phrase)
        if len(parts) > 1:
            quoted_terms.append('"' + " ".join(parts) + '"')
    return " OR ".join(dict.fromkeys(quoted_terms))


QUOTE_CHARS = 40
"""This many equal characters in a row, some eight words, are a quote and no accident."""

_BLOCK_CHARS = 24
_STRIDE_CHARS = QUOTE_CHARS - _BLOCK_CHARS + 1
"""A quote holds at least one whole block that starts at a multiple of this."""

_MOST_BLOCKS = 500_000
"""Blocks in memory at a time, some 50 MB."""


def find_quoting(shorts: Mapping[int, str], longs: Iterable[str]) -> set[int]:
    """Return the keys of the short texts that quote one of the long ones.

    Every such text is returned; one that shares a little less may be returned too.
    """
    quoting: set[int] = set()
    remaining = {key: text for key, text in shorts.items() if len(text) >= _BLOCK_CHARS}
    if not remaining:
        return quoting
    for blocks in _batches(longs):
        new = {key for key, text in remaining.items() if _has_one_of(blocks, text)}
        quoting |= new
        remaining = {key: text for key, text in remaining.items() if key not in new}
    return quoting


def _batches(longs: Iterable[str]) -> Iterator[set[str]]:
    blocks: set[str] = set()
    for text in longs:
        starts = range(0, len(text) - _BLOCK_CHARS + 1, _STRIDE_CHARS)
        blocks.update(text[start : start + _BLOCK_CHARS] for start in starts)
        if len(blocks) >= _MOST_BLOCKS:
            yield blocks
            blocks = set()
    if blocks:
        yield blocks


def _has_one_of(blocks: set[str], text: str) -> bool:
    starts = range(len(text) - _BLOCK_CHARS + 1)
    return any(text[start : start + _BLOCK_CHARS] in blocks for start in starts)
