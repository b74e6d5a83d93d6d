"""Traits: cheap signs of a message that ranking uses, found once at capture."""

from __future__ import annotations

from lore.text.later import compile_later

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

_HEAD, _OPENING, _TAIL = 1_000, 400, 200
"""Characters: where times and numbers are looked for, whose text it is, and questions."""

_YEARS = (str(year).encode() for year in range(1900, 2100))
_TIMES = frozenset(
    b"""yesterday today tomorrow tonight last next ago week weekend month year morning
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday""".split()
).union(_YEARS)
_NUMBERS = frozenset(b"one two three four five six seven eight nine ten dozen twice once".split())
_FIRST_PERSONS = frozenset((b"i", b"my", b"we", b"our", b"me"))
_TELLING = _TIMES | _NUMBERS | _FIRST_PERSONS
_DIGIT = compile_later(r"\d")
_ASCII_DIGIT = compile_later(r"[0-9]")
"""Quicker where there is no other."""

_WORDS = bytes(
    ord(chr(byte).lower()) if byte < 0x80 and chr(byte).isalnum() else
    byte if chr(byte) == "_" or byte >= 0x80 else 0x20
    for byte in range(256)
)  # fmt: skip
"""Turns text into words with spaces between them, in lower case as far as it is ASCII."""


def _telling(text: str) -> frozenset[bytes]:
    """Return the words of a text that are a sign of something."""
    plain = text if text.isascii() else _SIGNS.sub(" ", text)
    words = plain.encode("utf-8", "surrogatepass").translate(_WORDS).split()
    return _TELLING.intersection(words)


_SIGNS = compile_later(r"[^\w\x00-\x7f]")
"""What is neither ASCII nor a letter stands between words."""


def traits_of(text: str, role: str, *, standing: bool = False) -> int:
    """Return the traits of a text as a sum of the constants of this module."""
    stripped = text.rstrip()
    head = text[:_HEAD]
    words = _telling(head)
    found = _ROLES.get(role, 0) | (STANDING if standing else 0)
    if not stripped:
        found |= EMPTY
    elif "?" in stripped[-_TAIL:]:
        found |= LEAVES_QUESTION | (ASKS if stripped.endswith("?") else 0)
    if (_ASCII_DIGIT if head.isascii() else _DIGIT).search(head):
        found |= HAS_NUMBER
    if words:
        found |= 0 if words.isdisjoint(_TIMES) else HAS_TIME
        found |= 0 if words.isdisjoint(_NUMBERS) else HAS_NUMBER
        speaks = not words.isdisjoint(_FIRST_PERSONS)
        if speaks and not _telling(text[:_OPENING]).isdisjoint(_FIRST_PERSONS):
            found |= FIRST_PERSON
    return found


_ROLES = {"user": FROM_USER, "assistant": FROM_ASSISTANT}
