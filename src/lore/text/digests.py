"""Digests: a small number for what is said, by which it is known in another guise."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from lore.records import Part
from lore.text import words
from lore.text.parts import is_spoken

_BYTES = 6
"""48 bits: two of a session's 10,000 messages share one by chance in 1 of 5 million sessions."""


_TEXT_BYTES = 8
"""As large as a number of the database; texts are many more than a session's messages."""


def of_text(text: str) -> int:
    """Return a number for a text to the letter."""
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=_TEXT_BYTES).digest()
    return int.from_bytes(digest, "big", signed=True)


def of_words(text: str) -> int:
    """Return a number that is the same for texts of the same words."""
    return of_text(" ".join(words.split(text)))


def digest_of(role: str, parts: Sequence[Part]) -> int:
    """Return a number that is the same however a message came in.

    A call and its result are known by the call's id: programs cut results and write the
    arguments of a call in another order. Other parts are known by their words.
    """
    # What stands beside the talk is told by some ways in only.
    told = [part for part in parts if is_spoken(part)] or parts
    hashed = hashlib.blake2b(role.encode(), digest_size=_BYTES)
    for part in told:
        what = part.call_id or " ".join(part.text.split())
        hashed.update(f"\0{part.kind}\0{bool(part.call_id)}\0{what}".encode())
    return int.from_bytes(hashed.digest(), "big")
