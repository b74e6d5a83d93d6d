"""Echoes: what was forgotten and comes once more, in a history under another session's name.

Clients send all that was said with every request, and a fork sends it under a name of its own. A
message is known there by what it says and by what stood before it, which make up its key in the
gateway. What many talks say alike is forgotten only in a row with something that they do not.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby

from lore.records import Part
from lore.store import changes, claims
from lore.store.messages import PreparedMessage
from lore.store.packing import pack_key, unpack_key, unpack_parts
from lore.store.sqlite import Connection, among, id_text, numbers

_OWN_CHARS = 40
"""Of a session that goes as a whole: no two talks say that much alike, after the same words."""

_FIRST_CHARS = 24
"""Of a first message that somebody chose to forget: 'Hello there' begins many talks."""

_ID_CHARS = 16
"""Ids of calls that providers make up; small models count them."""

_IN_A_ROW = 4
"""So many brief messages in the same order are a history."""

_CHANNEL = claims.number_of("gateway")


def sources(db: Connection, ns: Sequence[int], session_ns: Collection[int]) -> dict[str, str]:
    """Return sources by which messages that go are known in other histories.

    The ids are made of the message's own, as those of copies are.
    """
    rows = db.rows(
        f"SELECT {id_text('i.id')}, k.key, m.session_n, m.ordinal, m.parts FROM"
        f" (SELECT n, key FROM messages WHERE channel = :channel AND {among('n', 'ns')}"
        " UNION ALL SELECT message_n, key FROM claims"
        f" WHERE channel = :channel AND {among('message_n', 'ns')}) k"
        " JOIN messages m ON m.n = k.n JOIN items i ON i.n = k.n",
        channel=_CHANNEL,
        ns=numbers(ns),
    )
    found = {}
    for at, (id_, key, session_n, ordinal, packed) in enumerate(rows):
        parts = unpack_parts(packed)
        chosen = session_n not in session_ns
        if any(len(part.call_id) >= _ID_CHARS for part in parts):
            is_rare = True
        elif ordinal == 0:
            is_rare = chosen and _chars(parts) >= _FIRST_CHARS
        else:
            is_rare = chosen or _chars(parts) >= _OWN_CHARS
        found[f"{id_}/echo/{at}"] = _source(key, is_rare=is_rare)
    return found


def unforgotten(db: Connection, prepared: Sequence[PreparedMessage]) -> list[PreparedMessage]:
    """Return the messages of a history that nobody had forgotten in another session."""
    if not changes.are_any_buried(db):
        return list(prepared)
    keys = [pack_key(message.key) for message in prepared]
    rare = [_source(key, is_rare=True) for key in keys]
    common = [_source(key, is_rare=False) for key in keys]
    buried = changes.buried_sources(db, [*rare, *common])
    known = [one in buried or other in buried for one, other in zip(rare, common, strict=True)]
    kept: list[PreparedMessage] = []
    for is_known, row in groupby(range(len(keys)), key=known.__getitem__):
        places = list(row)
        is_history = len(places) >= _IN_A_ROW or any(rare[n] in buried for n in places)
        if not (is_known and is_history):
            kept += [prepared[n] for n in places]
    return kept


def _chars(parts: Sequence[Part]) -> int:
    return sum(len(part.text) for part in parts)


def _source(key: int, *, is_rare: bool) -> str:
    return changes.source_of("", "", f"\0echo\0{is_rare}\0{unpack_key(key)}")
