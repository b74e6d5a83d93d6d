"""Quotes: text that repeats untrusted text of its session.

An assistant's quote keeps the trust of what it quotes. A person's rule that repeats a page or the
output of a tool is only suggested.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from lore.records import TRUST, UNASKED_TRUST, Message, Origin, Part
from lore.store import messages, sessions
from lore.store.database import Connection
from lore.store.messages import PreparedMessage
from lore.text import instructions
from lore.text.instructions import TypedInstruction
from lore.text.message_features import is_dialogue_part, part_origin

_LETTERS = bytes(ord(chr(byte).lower()) if byte < 0x80 else byte for byte in range(256))
_OTHERS = bytes(byte for byte in range(0x80) if not chr(byte).isalnum())
"""Text is compared by its letters and digits: line breaks, quotes and markup do not matter."""

_PROBE_BYTES = 24
"""Letters that are searched for at once, some five words; a shorter text is no quote."""

_BLOCK_BYTES = _PROBE_BYTES // 2
"""Untrusted text is indexed in blocks of this size; a probe that occurs in it holds a whole one."""

_MAX_PROBES = 32
_QUOTED_SHARE = 0.5
"""A text is a quote if at least this share of its probes is found."""

_PIECE_BYTES, _PIECE_STEP = 16, 4
"""Letters of a person's rule that are searched for at once, and their distance."""

_MAX_READ_CHARS = 60_000
MAX_LETTERS = 1 << 16
"""Letters of untrusted text that are remembered: an agent repeats a page soon, or not verbatim."""

_MAX_BLOCKS = 4 * MAX_LETTERS // _BLOCK_BYTES
"""Blocks in the index, with those of dropped text, before it is built anew."""

_MAX_MESSAGES = 40
"""Stored messages that are read for a session that continues."""


def mark_quotes(
    db: Connection, session_n: int, prepared: Sequence[PreparedMessage]
) -> list[PreparedMessage]:
    """Return messages in which an assistant's quotes have the origin of what they quote.

    Rules that a person repeats from untrusted text are suggested.
    """
    marked = list(prepared)
    if not any(_may_quote(message) for message in marked):
        return marked
    untrusted = UntrustedText()
    first = messages.last_ordinal(db, session_n) - _MAX_MESSAGES
    for stored in messages.messages_of_session(db, session_n, first=first):
        untrusted.add(stored.parts, stored.origin)
    for place, message in enumerate(marked):
        new = message.new
        if message.standing and untrusted:
            standing = untrusted.weigh(message.standing)
            marked[place] = message._replace(standing=standing)
        elif _may_quote(message) and untrusted:
            parts = tuple([untrusted.mark(part) for part in new.parts])
            if parts != new.parts:
                marked[place] = message._replace(new=replace(new, parts=parts))
        untrusted.add(new.parts, new.origin or "tool")
    return marked


_UNESCAPED = frozenset({"specstory"})
"""Agents whose transcripts do not tell output from turns for certain."""


def typed_instructions(db: Connection, message: Message) -> tuple[TypedInstruction, ...]:
    """Return the rules of a stored message; those that repeat untrusted text are suggested.

    So are all of a history in Markdown, where a tool's output can imitate a person's turn.
    """
    typed = instructions.typed_instructions(message)
    if not typed:
        return ()
    session_n = sessions.get_session_number(db, message.session_id)
    if sessions.get_session(db, session_n).agent in _UNESCAPED:
        typed = tuple(
            one._replace(state="suggested") if one.state == "stands" else one for one in typed
        )
    untrusted = UntrustedText()
    first = max(0, message.ordinal - _MAX_MESSAGES)
    for stored in messages.messages_of_session(
        db, session_n, first=first, limit=message.ordinal - first
    ):
        untrusted.add(stored.parts, stored.origin)
    return untrusted.weigh(typed)


def _may_quote(message: PreparedMessage) -> bool:
    if message.standing:
        return True
    return message.new.role == "assistant" and any(map(_is_own_text, message.new.parts))


def _is_own_text(part: Part) -> bool:
    return part.kind == "text" and part.origin is None and len(part.text) >= _PROBE_BYTES


def _letters(text: str) -> bytes:
    return text[:_MAX_READ_CHARS].encode("utf-8", "replace").translate(_LETTERS, _OTHERS)


class UntrustedText:
    """The newest untrusted text of a session, as letters.

    Most probes occur nowhere: a set of the text's blocks shows it without reading all of the text.
    """

    def __init__(self) -> None:
        self._texts: deque[tuple[Origin, bytes]] = deque()
        self._size = 0
        self._blocks: set[bytes] = set()
        self._unindexed = 0

    def __bool__(self) -> bool:
        return bool(self._texts)

    def add(self, parts: Sequence[Part], origin: Origin) -> None:
        """Add the untrusted parts of a message, and drop the oldest text beyond the limit."""
        for part in parts:
            whose = part_origin(part, origin)
            if TRUST[whose] < UNASKED_TRUST and is_dialogue_part(part):
                letters = _letters(part.text)
                self._texts.append((whose, letters))
                self._unindexed += 1
                self._size += len(letters)
        while self._size > MAX_LETTERS and len(self._texts) > 1:
            self._size -= len(self._texts.popleft()[1])

    def weigh(self, typed: Sequence[TypedInstruction]) -> tuple[TypedInstruction, ...]:
        """Return a person's rules; those that repeat untrusted text are suggested.

        A withdrawal that repeats such text is none.
        """
        weighed = []
        for one in typed:
            if not self.repeats(one.text):
                weighed.append(one)
            elif one.state != "passing" and not instructions.find_withdrawal(one.text):
                weighed.append(one._replace(state="suggested", confirms=False))
        return tuple(weighed)

    def repeats(self, text: str) -> bool:
        """Return whether untrusted text says this, nearly verbatim.

        A sentence may have a word before, behind or changed: it is searched for in small pieces.
        """
        letters = _letters(text)
        last = max(0, len(letters) - _PIECE_BYTES)
        pieces = [letters[at : at + _PIECE_BYTES] for at in range(0, last + 1, _PIECE_STEP)]
        repeated = sum(any(piece in known for _, known in self._texts) for piece in pieces)
        return repeated >= _QUOTED_SHARE * len(pieces)

    def mark(self, part: Part) -> Part:
        """Return a part with the origin of the text that it repeats."""
        if not _is_own_text(part):
            return part
        origin = self._find_quoted(_letters(part.text))
        return replace(part, origin=origin) if origin else part

    def _find_quoted(self, letters: bytes) -> Origin | None:
        last = len(letters) - _PROBE_BYTES
        if last < 0:
            return None
        count = max(1, min(_MAX_PROBES, len(letters) // _PROBE_BYTES))
        probes = [
            letters[at : at + _PROBE_BYTES]
            for at in (last * place // max(1, count - 1) for place in range(count))
        ]
        self._index()
        # Most texts quote nothing: three probes show it.
        if not any(map(self._find, (probes[count // 2], probes[count // 4], probes[-1]))):
            return None
        origins = [origin for probe in probes if (origin := self._find(probe))]
        if len(origins) < _QUOTED_SHARE * len(probes):
            return None
        return min(origins, key=TRUST.__getitem__)

    def _index(self) -> None:
        if len(self._blocks) > _MAX_BLOCKS:
            self._blocks.clear()
            self._unindexed = len(self._texts)
        for _, letters in islice(reversed(self._texts), self._unindexed):
            count = len(letters) // _BLOCK_BYTES
            self._blocks.update(np.frombuffer(letters, f"S{_BLOCK_BYTES}", count).tolist())
        self._unindexed = 0

    def _find(self, probe: bytes) -> Origin | None:
        windows = [probe[at : at + _BLOCK_BYTES] for at in range(_BLOCK_BYTES)]
        if self._blocks.isdisjoint(windows):
            return None
        return next((origin for origin, letters in self._texts if probe in letters), None)
