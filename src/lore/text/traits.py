"""Traits: cheap signs of a message that ranking uses, found once at capture."""

from __future__ import annotations

import re

EMPTY = 1
ASKS = 2
"""The message ends in a question."""
LEAVES_QUESTION = 4
"""There is a question near its end: what follows may answer it."""
HAS_TIME = 8
HAS_NUMBER = 16
FIRST_PERSON = 32
STANDING = 64
FROM_USER = 128
FROM_ASSISTANT = 256

_HEAD = 1_000
_TIMES = frozenset(
    b"""yesterday today tomorrow tonight last next ago week weekend month year morning
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday""".split()
)
_NUMBERS = frozenset(b"one two three four five six seven eight nine ten dozen twice once".split())
_FIRST_PERSONS = frozenset((b"i", b"my", b"we", b"our", b"me"))
_DIGIT = re.compile(r"\d")

_WORDS = bytes(
    ord(chr(byte).lower()) if byte < 0x80 and chr(byte).isalnum() else
    byte if chr(byte) == "_" or byte >= 0x80 else 0x20
    for byte in range(256)
)  # fmt: skip
"""Turns text into words with spaces between them, in lower case as far as it is ASCII."""


def _words(text: str) -> set[bytes]:
    plain = text if text.isascii() else _SIGNS.sub(" ", text)
    return set(plain.encode("utf-8", "surrogatepass").translate(_WORDS).split())


_SIGNS = re.compile(r"[^\w\x00-\x7f]")
"""What is neither ASCII nor a letter stands between words."""


def _has_time(words: set[bytes]) -> bool:
    if not words.isdisjoint(_TIMES):
        return True
    return any(len(w) == 4 and w[:2] in (b"19", b"20") and w.isdigit() for w in words)


def traits_of(text: str, role: str, *, standing: bool = False) -> int:
    """Return the traits of a text as a sum of the constants of this module."""
    stripped = text.strip()
    head = text[:_HEAD]
    words = _words(head)
    found = (
        (EMPTY, not stripped),
        (ASKS, stripped.endswith("?")),
        (LEAVES_QUESTION, "?" in stripped[-200:]),
        (HAS_TIME, _has_time(words)),
        (HAS_NUMBER, _DIGIT.search(head) or not words.isdisjoint(_NUMBERS)),
        (FIRST_PERSON, not _words(text[:400]).isdisjoint(_FIRST_PERSONS)),
        (STANDING, standing),
        (FROM_USER, role == "user"),
        (FROM_ASSISTANT, role == "assistant"),
    )
    return sum(trait for trait, has in found if has)
