"""Entry keys: digests that identify an entry, in whatever form a client sends it again."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from lore.gateway.apis.json_values import Json
from lore.records.gateway import Block, Dialogue, Entry, Voice

_DIGEST_BYTES = 12
"""96 bits: keys are stored as long as sessions are, and must be unique among all of them."""

_HASHED_NAMES = {
    name: name.encode() for name in "user assistant system text call result reasoning other".split()
}
"""Voices and kinds as they are hashed."""

_REMINDER_START, _REMINDER_END = "<system-reminder>", "</system-reminder>"


class KeyedBlock(NamedTuple):
    """A block, and its text in the key of the entry; '' if clients may drop the block."""

    block: Block
    key_text: str


def strip_reminders(text: str) -> str:
    """Return a text without system reminders, which clients add, remove and move."""
    if _REMINDER_START not in text:
        return text.strip()
    pieces, at = [], 0
    while (start := text.find(_REMINDER_START, at)) >= 0:
        end = text.find(_REMINDER_END, start)
        if end < 0:
            break
        pieces.append(text[at:start])
        at = end + len(_REMINDER_END)
    pieces.append(text[at:])
    return "".join(pieces).strip()


def entry_spans(
    sides: Sequence[object], joined: Collection[object], head: int = 0
) -> tuple[tuple[int, int], ...]:
    """Return the item range of each entry after the head.

    Consecutive items of a side in `joined` are one entry.
    """
    spans: list[tuple[int, int]] = []
    for at in range(head, len(sides)):
        if spans and sides[at] in joined and sides[at] == sides[at - 1]:
            spans[-1] = (spans[-1][0], at + 1)
        else:
            spans.append((at, at + 1))
    return tuple(spans)


def make_entry(voice: Voice, pieces: Sequence[KeyedBlock]) -> Entry:
    """Return an entry of these blocks, with its key.

    Results are hashed by their call ids alone and in any order: clients clear old results, and send
    those of parallel calls as they finish.
    """
    hashed = hashlib.blake2b(_HASHED_NAMES[voice], digest_size=_DIGEST_BYTES)
    results: list[str] = []
    is_known = False
    for piece in pieces:
        kind = piece.block.kind
        if kind == "result":
            results.append(piece.key_text)
        elif piece.key_text and kind != "reasoning":
            _hash_part(hashed, kind, piece.key_text)
            is_known = True
    for mark in sorted(results):
        _hash_part(hashed, "result", mark)
    if not is_known and not results:
        for piece in pieces:
            _hash_part(hashed, piece.block.kind, piece.key_text)
    return Entry(voice, tuple([piece.block for piece in pieces]), hashed.hexdigest())


def _hash_part(hashed: hashlib.blake2b, kind: str, key_text: str) -> None:
    encoded = key_text.encode(errors="surrogatepass")
    hashed.update(b"%b%d:" % (_HASHED_NAMES[kind], len(encoded)))
    hashed.update(encoded)


def digest(*texts: str) -> str:
    """Return a digest of texts in their order."""
    hashed = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for text in texts:
        encoded = text.encode(errors="surrogatepass")
        hashed.update(len(encoded).to_bytes(8, "big"))
        hashed.update(encoded)
    return hashed.hexdigest()


def number_duplicates(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return entries with unique keys: duplicates get a number suffix."""
    all_entries = tuple(entries)
    if len({one.key for one in all_entries}) == len(all_entries):
        return all_entries
    met: Counter[str] = Counter()
    unique: list[Entry] = []
    for one in all_entries:
        met[one.key] += 1
        again = met[one.key]
        unique.append(one if again == 1 else replace(one, key=f"{one.key}#{again}"))
    return tuple(unique)


def make_dialogue(
    model: str,
    items: list[Json],
    spans: Iterable[tuple[int, int]],
    parse: Callable[[list[Json]], Entry],
    fixed: Iterable[str],
) -> Dialogue:
    """Return the dialogue of a request; `fixed` are its texts before the first entry."""
    entries = number_duplicates(parse(items[at:end]) for at, end in spans)
    return Dialogue(model, entries, fixed_chars=sum(map(len, fixed)))


def with_next_key(entries: Sequence[Entry], reply: Entry) -> Entry:
    """Return a reply with the key that it will have after these entries."""
    key = reply.key.partition("#")[0]
    again = 1 + sum(one.key.partition("#")[0] == key for one in entries if one.key.startswith(key))
    if all(_fallback_number(block) is None for block in reply.blocks):
        return replace(reply, key=key if again == 1 else f"{key}#{again}")
    met = Counter(
        block.tool for one in entries for block in one.blocks if _fallback_number(block) is not None
    )
    blocks = tuple([
        block if (number := _fallback_number(block)) is None
        else replace(block, call_id=fallback_call_id(block.tool, met[block.tool] + number))
        for block in reply.blocks
    ])  # fmt: skip
    return replace(reply, key=key if again == 1 else f"{key}#{again}", blocks=blocks)


def fallback_call_id(tool: str, number: int) -> str:
    """Return an id for a call without one: the tool name and a running number."""
    return f"{tool}#{number}"


def _fallback_number(block: Block) -> int | None:
    """Return the running number of a call that had no id."""
    tool, _, number = block.call_id.rpartition("#")
    is_numbered = block.kind == "call" and tool == block.tool and number.isdecimal()
    return int(number) if is_numbered else None
