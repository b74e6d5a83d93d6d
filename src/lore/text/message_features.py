"""Message features: the text, fingerprint and ranking features of a message."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from lore.records import TRUST, Origin, Part, PartKind
from lore.text import call_text, words
from lore.text.regex import compile_lazy

EMPTY = 1
ENDS_IN_QUESTION = 2
"""The message ends in a question."""
HAS_OPEN_QUESTION = 4
"""There is a question near its end, which the next message may answer."""
HAS_TIME = 8
HAS_NUMBER = 16
FIRST_PERSON = 32
STANDING = 64
FROM_USER = 128
FROM_ASSISTANT = 256

_HEAD, _OPENING, _TAIL = 1_000, 400, 200
"""Characters read for times and numbers, for the speaker, and for questions."""

_YEARS = (str(year).encode() for year in range(1900, 2100))
_TIMES = frozenset(
    b"""yesterday today tomorrow tonight last next ago week weekend month year morning
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday""".split()
).union(_YEARS)
_NUMBERS = frozenset(b"one two three four five six seven eight nine ten dozen twice once".split())
_FIRST_PERSONS = frozenset((b"i", b"my", b"we", b"our", b"me"))
_TELLING = _TIMES | _NUMBERS | _FIRST_PERSONS
_DIGIT = compile_lazy(r"\d")
_ASCII_DIGIT = compile_lazy(r"[0-9]")
"""Faster where the text is ASCII."""

_WORDS = bytes(
    ord(chr(byte).lower()) if byte < 0x80 and chr(byte).isalnum() else
    byte if chr(byte) == "_" or byte >= 0x80 else 0x20
    for byte in range(256)
)  # fmt: skip
"""Maps text to lower-case ASCII words separated by spaces."""


def _signal_words(text: str) -> frozenset[bytes]:
    plain = text if text.isascii() else words.replace_letters(text, _SIGNS)
    tokens = plain.encode("utf-8", "surrogatepass").translate(_WORDS).split()
    return _TELLING.intersection(tokens)


_SIGNS = compile_lazy(r"[^\w\x00-\x7f]")
"""Characters that are neither ASCII nor letters separate words."""


def compute_features(text: str, role: str, *, standing: bool = False) -> int:
    """Return the features of a text as a sum of the constants of this module."""
    stripped = text.rstrip()
    head = text[:_HEAD]
    words = _signal_words(head)
    features = _ROLES.get(role, 0) | (STANDING if standing else 0)
    if not stripped:
        features |= EMPTY
    elif "?" in stripped[-_TAIL:]:
        features |= HAS_OPEN_QUESTION | (ENDS_IN_QUESTION if stripped.endswith("?") else 0)
    if (_ASCII_DIGIT if head.isascii() else _DIGIT).search(head):
        features |= HAS_NUMBER
    if words:
        features |= 0 if words.isdisjoint(_TIMES) else HAS_TIME
        features |= 0 if words.isdisjoint(_NUMBERS) else HAS_NUMBER
        speaks = not words.isdisjoint(_FIRST_PERSONS)
        if speaks and not _signal_words(text[:_OPENING]).isdisjoint(_FIRST_PERSONS):
            features |= FIRST_PERSON
    return features


_ROLES = {"user": FROM_USER, "assistant": FROM_ASSISTANT}


SPOKEN_KINDS: tuple[PartKind, ...] = ("text", "image", "document")
"""Kinds of parts that hold spoken text."""

_UNSEARCHED = ("reasoning", "aside", "opaque")
_BESIDE = ("aside", "opaque")
_SEARCHED_CHARS = 60_000
"""Characters of one part that are searchable; the whole is stored."""


def is_spoken_part(part: Part) -> bool:
    """Return whether a part is spoken text."""
    return part.kind in SPOKEN_KINDS


def is_dialogue_part(part: Part) -> bool:
    """Return whether a part belongs to the dialogue: text, reasoning, calls and results."""
    return part.kind not in _BESIDE


def part_origin(part: Part, of_message: Origin) -> Origin:
    """Return the origin of a part, which is never more trusted than its message.

    A tool result has the origin of a tool, in whoever's message it stands.
    """
    own = part.origin or ("tool" if part.kind == "tool_result" else of_message)
    return min(own, of_message, key=TRUST.__getitem__)


def lowest_origin(parts: Iterable[Part], of_message: Origin) -> Origin:
    """Return the least trusted origin in a message, without injected text."""
    origins = (part_origin(part, of_message) for part in parts if is_dialogue_part(part))
    return min(origins, key=TRUST.__getitem__, default=of_message)


def spoken_text(parts: Iterable[Part]) -> str:
    """Return the spoken text of a message, without tool traffic and reasoning."""
    return "\n".join(part.text for part in parts if part.kind in SPOKEN_KINDS and part.text)


def has_spoken_text(parts: Iterable[Part]) -> bool:
    """Return whether a message has any spoken text."""
    return any(
        part.kind in SPOKEN_KINDS and part.text and not part.text.isspace() for part in parts
    )


def searchable_text(parts: Iterable[Part]) -> str:
    """Return the text for keyword search: words, calls and results, without injected text.

    Calls of Lore's own tools would only echo what is found anyway, so they are left out.
    """
    lines = [
        f"{part.name} {part.text[:_SEARCHED_CHARS]}" if part.name else part.text[:_SEARCHED_CHARS]
        for part in parts
        if part.text and part.kind not in _UNSEARCHED and not call_text.is_lore_tool(part.name)
    ]
    return "\n".join(lines)


def full_text(parts: Iterable[Part]) -> str:
    """Return a message with everything in it, for its token count."""
    return "\n".join([_marked(part, part.text) for part in parts if part.text])


def readable_text(parts: Iterable[Part], *, brief: bool = False) -> str:
    """Return a message for a person or an agent to read, tool traffic marked as such.

    In brief output, edits and written files are cut to their first lines.
    """
    lines = []
    for part in parts:
        if part.kind == "tool_call":
            lines.append(call_text.format_call(part.name, part.text, brief=brief))
        elif part.text:
            lines.append(_marked(part, part.text))
    return "\n".join(lines)


def _marked(part: Part, text: str) -> str:
    if part.kind == "tool_call":
        return f"[{part.name or 'tool'}] {text}"
    return f"[{part.kind}] {text}" if part.kind in _UNSEARCHED else text


_BYTES = 6
"""48 bits: two of a session's 10,000 messages collide in 1 of 5 million sessions."""


_TEXT_BYTES = 8
"""As large as an integer of the database; there are many more texts than messages of a session."""


def text_fingerprint(text: str) -> int:
    """Return a hash of a text that any change alters."""
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=_TEXT_BYTES).digest()
    return int.from_bytes(digest, "big", signed=True)


def word_fingerprint(text: str) -> int:
    """Return a hash that texts with the same words share."""
    return text_fingerprint(" ".join(words.split(text)))


def message_fingerprint(role: str, parts: Sequence[Part]) -> int:
    """Return a hash of a message that is the same for every way it is captured.

    Calls and results are identified by the call's id, because clients truncate results and reorder
    arguments. Other parts are identified by their words.
    """
    # Only some capture paths report text outside the dialogue.
    dialogue = [part for part in parts if is_dialogue_part(part)] or parts
    hashed = hashlib.blake2b(role.encode(), digest_size=_BYTES)
    for part in dialogue:
        what = part.call_id or " ".join(part.text.split())
        hashed.update(f"\0{part.kind}\0{bool(part.call_id)}\0{what}".encode())
    return int.from_bytes(hashed.digest(), "big")
