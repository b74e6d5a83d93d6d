"""Forks: a session that begins with copies of another one keeps what is its own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

from lore.store import claims, copies, messages
from lore.store.db import Connection
from lore.store.keywords import NewMessageText
from lore.store.messages import PreparedMessage


def add(
    db: Connection,
    session_n: int,
    prepared: Sequence[PreparedMessage],
    unindexed: list[NewMessageText],
    *,
    now: datetime,
) -> int:
    """Store what is a session's own, link it to where it was forked, and count what was new.

    What a fork brought before the session in which it was said moves there, in its order.
    """
    keys = [message.key for message in prepared]
    known = claims.known(db, session_n, "file", keys)
    fresh = [message for message in prepared if message.key not in known]
    copies.adopt_forks(db, session_n, fresh)
    held = copies.find(db, session_n, fresh)
    gone = copies.forgotten(db, session_n, (one for one in fresh if one.key not in held))
    if not held and not gone:
        return _add_own(db, session_n, prepared, unindexed, now=now)
    forks = copies.below(db, session_n) if held else set()
    origins = [one.session_n for key in keys if (one := held.get(key))]
    origins = [origin for origin in origins if origin not in forks]
    if origins:
        copies.link(db, session_n, origins[-1])

    def place(message: PreparedMessage) -> str:
        if message.key in held:
            return "fork" if held[message.key].session_n in forks else "origin"
        return "nowhere" if message.key in gone else "own"

    added = 0
    for where, group in groupby(prepared, key=place):
        run = list(group)
        if where == "own":
            added += _add_own(db, session_n, run, unindexed, now=now)
        elif where == "fork":
            brought = dict.fromkeys(held[message.key].n for message in run)
            copies.take_back(db, session_n, list(brought), now=now)
    return added


def _add_own(
    db: Connection,
    session_n: int,
    prepared: Sequence[PreparedMessage],
    unindexed: list[NewMessageText],
    *,
    now: datetime,
) -> int:
    ids = messages.add(db, session_n, prepared, now=now, channel="file", unindexed=unindexed)
    return sum(id_ == message.id for id_, message in zip(ids, prepared, strict=True))
