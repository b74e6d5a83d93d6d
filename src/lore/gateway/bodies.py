"""Bodies: read within a limit, and freed of the encoding they came in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from lore.errors import InvalidInput
from lore.gateway.encodings import UNPACKERS, WRONG

PIECE_S = 60.0
"""A client that sends nothing more of a body for so long is not waited for."""

_THROWN_AWAY = 4
"""So many times the limit is read of a body before its client is cut off."""

MOST_UNPACKED_BYTES = 64_000_000
"""Of an answer that is unpacked while it comes; no model writes so much."""

_STEP_BYTES = 1_000_000
"""Handed on at once of a piece that holds more: others are served meanwhile."""


async def pieces(receive: Receive, most_bytes: int = 0) -> AsyncIterator[bytes]:
    """Yield a body as it comes; `most_bytes` 0 for any length."""
    taken = 0
    while True:
        try:
            async with asyncio.timeout(PIECE_S):
                message = await receive()
        except TimeoutError as error:
            raise HTTPException(408, "The body was not sent in time.") from error
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        piece = message.get("body", b"")
        taken += len(piece)
        if most_bytes and taken > most_bytes:
            raise _too_large(most_bytes)
        if piece:
            yield piece
        if not message.get("more_body", False):
            return


async def whole(receive: Receive, announced: str, most_bytes: int) -> bytes:
    """Return a body; refuse one that is announced or turns out too long.

    A client that is still sending would not read why, so some more of it is thrown away first.
    """
    taken, kept = 0, list[bytes]()
    too_long = announced.isdigit() and int(announced[:20]) > most_bytes
    async for piece in pieces(receive, _THROWN_AWAY * most_bytes):
        taken += len(piece)
        too_long = too_long or taken > most_bytes
        if too_long:
            kept.clear()
        else:
            kept.append(piece)
    if too_long:
        raise _too_large(most_bytes)
    return b"".join(kept)


def _too_large(most_bytes: int) -> HTTPException:
    told = f"The body is larger than {most_bytes:,} bytes (setting gateway.max_body_bytes)."
    return HTTPException(413, told)


def decoded(body: bytes, encodings: str, most_bytes: int) -> bytes:
    """Return a body without its encodings, the last of which is undone first."""
    unpacking = Unpacking(encodings, most_bytes)
    found = unpacking.feed(body)
    if body and not unpacking.is_whole:
        msg = "The body is cut off, or not in the encoding that it names."
        raise InvalidInput(msg)
    return found


def can_decode(encodings: str) -> bool:
    """Tell whether a body can be freed of all its encodings."""
    return all(name in UNPACKERS for name in _names(encodings))


class Unpacking:
    """Frees a body of its encodings while it comes, piece by piece."""

    def __init__(self, encodings: str, most_bytes: int = MOST_UNPACKED_BYTES) -> None:
        """Begin a body, or raise `InvalidInput` if it has an encoding that is not known."""
        if not can_decode(encodings):
            msg = "The body has an encoding that is not known here."
            raise InvalidInput(msg)
        self._unpackers = [UNPACKERS[name]() for name in _names(encodings)]
        self._most_bytes = most_bytes
        self._left_bytes = [most_bytes] * len(self._unpackers)
        """What each of them may still make, so that none hides much behind little."""

    @property
    def is_packed(self) -> bool:
        """Tell whether the body has an encoding at all."""
        return bool(self._unpackers)

    @property
    def is_whole(self) -> bool:
        """Tell whether what came so far has an end in all its encodings."""
        return all(unpacker.is_whole for unpacker in self._unpackers)

    def feed(self, piece: bytes) -> bytes:
        """Return what the next piece says, as far as that can be told; raise where it says none."""
        return b"".join(self.steps(piece))

    def steps(self, piece: bytes) -> Iterator[bytes]:
        """Yield what the next piece says, no more than a few megabytes at once."""
        found = bytearray()
        try:
            for step in self._undone(piece, range(len(self._unpackers))):
                found += step
                if len(found) >= _STEP_BYTES:
                    yield bytes(found)
                    found.clear()
        except WRONG as error:
            msg = "The body is not in the encoding that it names."
            raise InvalidInput(msg) from error
        if found:
            yield bytes(found)

    def _undone(self, piece: bytes, order: Sequence[int]) -> Iterator[bytes]:
        if not order:
            yield piece
            return
        for step in self._unpackers[order[0]].steps(piece):
            self._left_bytes[order[0]] -= len(step)
            if self._left_bytes[order[0]] < 0:
                raise _too_long(self._most_bytes)
            if step:
                yield from self._undone(step, order[1:])


def _names(encodings: str) -> list[str]:
    """Return encodings in the order in which they are undone."""
    named = [name.strip().lower() for name in encodings.split(",")]
    return [name for name in reversed(named) if name not in ("", "identity")]


def _too_long(most_bytes: int) -> InvalidInput:
    return InvalidInput(f"The body is larger than {most_bytes:,} bytes once it is decoded.")
