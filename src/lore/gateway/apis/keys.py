"""Keys: digests by which an entry is known again, in whatever form a client sends it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from lore.records.dialogues import Block, Entry, Voice

_BYTES = 12
"""96 bits: keys are kept for as long as sessions are, and for all of them."""

_KINDS = {
    name: name.encode() for name in "user assistant system text call result reasoning other".split()
}
"""Voices and kinds as they go into a digest."""

_OPENING, _CLOSING = "<system-reminder>", "</system-reminder>"


class Piece(NamedTuple):
    """A block, and what an entry is known by because of it; '' if it comes and goes."""

    block: Block
    mark: str


def without_reminders(text: str) -> str:
    """Return a text without the reminders that clients put into it, take out and move."""
    if _OPENING not in text:
        return text.strip()
    kept, at = [], 0
    while (start := text.find(_OPENING, at)) >= 0:
        end = text.find(_CLOSING, start)
        if end < 0:
            break
        kept.append(text[at:start])
        at = end + len(_CLOSING)
    kept.append(text[at:])
    return "".join(kept).strip()


def places(
    sides: Sequence[object], joined: Collection[object], head: int = 0
) -> tuple[tuple[int, int], ...]:
    """Return where each entry stands behind the head, by whose each item is.

    What one of `joined` says in a row is one entry.
    """
    found: list[tuple[int, int]] = []
    for at in range(head, len(sides)):
        if found and sides[at] in joined and sides[at] == sides[at - 1]:
            found[-1] = (found[-1][0], at + 1)
        else:
            found.append((at, at + 1))
    return tuple(found)


def entry(voice: Voice, pieces: Sequence[Piece]) -> Entry:
    """Return an entry of these pieces, with the key of what they say.

    Results go by the ids of their calls alone, in any order: clients clear old ones, and give
    those of parallel calls as they come in.
    """
    hashed = hashlib.blake2b(_KINDS[voice], digest_size=_BYTES)
    results: list[str] = []
    is_known = False
    for piece in pieces:
        kind = piece.block.kind
        if kind == "result":
            results.append(piece.mark)
        elif piece.mark and kind != "reasoning":
            _add(hashed, kind, piece.mark)
            is_known = True
    for mark in sorted(results):
        _add(hashed, "result", mark)
    if not is_known and not results:
        for piece in pieces:
            _add(hashed, piece.block.kind, piece.mark)
    return Entry(voice, tuple([piece.block for piece in pieces]), hashed.hexdigest())


def _add(hashed: hashlib.blake2b, kind: str, mark: str) -> None:
    said = mark.encode(errors="surrogatepass")
    hashed.update(b"%b%d:" % (_KINDS[kind], len(said)))
    hashed.update(said)


def digest(*texts: str) -> str:
    """Return a digest of texts in their order."""
    hashed = hashlib.blake2b(digest_size=_BYTES)
    for text in texts:
        said = text.encode(errors="surrogatepass")
        hashed.update(len(said).to_bytes(8, "big"))
        hashed.update(said)
    return hashed.hexdigest()


def numbered(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return entries with keys of their own: who says the same again has its number behind it."""
    told = tuple(entries)
    if len({one.key for one in told}) == len(told):
        return told
    met: Counter[str] = Counter()
    unique: list[Entry] = []
    for one in told:
        met[one.key] += 1
        again = met[one.key]
        unique.append(one if again == 1 else replace(one, key=f"{one.key}#{again}"))
    return tuple(unique)


def following(entries: Sequence[Entry], reply: Entry) -> Entry:
    """Return a reply with the key that it will have behind these entries."""
    key = reply.key.partition("#")[0]
    again = 1 + sum(one.key.partition("#")[0] == key for one in entries)
    met = Counter(
        block.tool for one in entries for block in one.blocks if _number_of(block) is not None
    )
    blocks = tuple([
        block if (number := _number_of(block)) is None
        else replace(block, call_id=numbered_call(block.tool, met[block.tool] + number))
        for block in reply.blocks
    ])  # fmt: skip
    return replace(reply, key=key if again == 1 else f"{key}#{again}", blocks=blocks)


def numbered_call(tool: str, number: int) -> str:
    """Return an id for a call that has none: the nth of a tool."""
    return f"{tool}#{number}"


def _number_of(block: Block) -> int | None:
    """Return the number of a call that had no id."""
    tool, _, number = block.call_id.rpartition("#")
    is_numbered = block.kind == "call" and tool == block.tool and number.isdecimal()
    return int(number) if is_numbered else None
