"""Message deduplication: a conversation that arrives through several channels is stored once.

A key belongs to its channel. A message whose key is new to its channel claims the first message of
the session with the same digest that this channel has not claimed yet; if there is none, it is new.
So 'yes' said twice in one channel stays two messages.

A history that a client truncated or compacted repeats messages under new keys; these claim what the
channel itself brought before.
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict, deque
from collections.abc import Collection, Sequence
from typing import Any

from lore.records import CHANNELS, Channel
from lore.store import history
from lore.store.codec import pack_key, unpack_key
from lore.store.sql_connection import Connection, among, id_text, int_array


def channel_number(channel: Channel) -> int:
    """Return the stored number of a channel."""
    return CHANNELS.index(channel)


def find_seen(
    db: Connection, session_n: int, channel: Channel, keys: Sequence[str]
) -> dict[str, str]:
    """Return the ids of the messages that a channel brought before, by key."""
    if not keys or not _has_messages(db, session_n):
        return {}
    return _find_by_key(db, session_n, channel, keys, id_text("i.id"))


def find_ordinals(
    db: Connection, session_n: int, channel: Channel, keys: Sequence[str]
) -> dict[str, int]:
    """Return the ordinals of the messages that a channel brought before, by key."""
    return _find_by_key(db, session_n, channel, keys, "m.ordinal")


def _find_by_key(
    db: Connection, session_n: int, channel: Channel, keys: Sequence[str], column: str
) -> dict[str, Any]:
    packed = {pack_key(key): key for key in keys}
    rows = db.rows(
        f"SELECT m.key, {column} FROM messages m JOIN items i ON i.n = m.n"
        f" WHERE m.session_n = :session_n AND m.channel = :channel AND {among('m.key', 'keys')}"
        f" UNION ALL SELECT c.key, {column} FROM claims c JOIN messages m ON m.n = c.message_n"
        " JOIN items i ON i.n = m.n WHERE c.session_n = :session_n"
        f" AND c.channel = :channel AND {among('c.key', 'keys')}",
        session_n=session_n,
        channel=channel_number(channel),
        keys=int_array(list(packed)),
    )
    return {packed[key]: value for key, value in rows}


def _has_messages(db: Connection, session_n: int) -> bool:
    sql = (
        "SELECT EXISTS (SELECT 1 FROM messages WHERE session_n = :n)"
        " OR EXISTS (SELECT 1 FROM claims WHERE session_n = :n)"
    )
    return bool(db.value(sql, n=session_n))


def claim_duplicates(
    db: Connection, session_n: int, channel: Channel, fresh: Sequence[tuple[str, int]]
) -> dict[str, str]:
    """Claim duplicates of new keys, given with digests, from other channels; return ids by key."""
    if not fresh or not _was_seen_elsewhere(db, session_n, channel):
        return {}
    unclaimed = _unclaimed(db, session_n, channel)
    claimed: dict[str, tuple[int, str]] = {}
    for key, digest in fresh:
        if key not in claimed and unclaimed[digest]:
            claimed[key] = unclaimed[digest].popleft()
    put_claims(
        db, session_n, channel_number(channel), [(key, n) for key, (n, _) in claimed.items()]
    )
    return {key: id_ for key, (_, id_) in claimed.items()}


def claim_repeated(
    db: Connection, session_n: int, channel: Channel, repeated: Sequence[tuple[str, int]]
) -> None:
    """Claim messages that the same channel brought before under other keys.

    The keys come with digests in conversation order, so each match is searched after the last.
    """
    places = find_ordinals(db, session_n, channel, [key for key, _ in repeated])
    wanted = {digest for key, digest in repeated if key not in places}
    if not wanted:
        return
    seen = _seen_by_digest(db, session_n, channel, wanted)
    last, claimed = -1, list[tuple[str, int]]()
    for key, digest in repeated:
        place = places.get(key)
        if place is None:
            same = seen[digest]
            at = bisect(same, (last + 1,))
            if at == len(same):
                continue
            place, n = same[at]
            claimed.append((key, n))
        last = max(last, place)
    put_claims(db, session_n, channel_number(channel), claimed)


def put_claims(
    db: Connection, session_n: int, channel: int, claimed: Sequence[tuple[str, int]]
) -> bool:
    """Store which messages the keys of a channel stand for; return whether any was new."""
    place = {"session_n": session_n, "channel": channel}
    new = 0
    for key, n in claimed:
        new += db.insert_unless_exists("claims", key=pack_key(key), message_n=n, **place)
    return bool(new)


def _was_seen_elsewhere(db: Connection, session_n: int, channel: Channel) -> bool:
    """Return whether another channel brought this session; record that this one does."""
    own = 1 << channel_number(channel)
    before = int(db.value("SELECT channels FROM sessions WHERE n = :n", n=session_n))
    if not before & own:
        db.run("UPDATE sessions SET channels = channels | :own WHERE n = :n", own=own, n=session_n)
    return bool(before & ~own)


def _unclaimed(
    db: Connection, session_n: int, channel: Channel
) -> defaultdict[int, deque[tuple[int, str]]]:
    """Return the messages that this channel neither brought nor claimed, by digest, in order."""
    sql = (
        f"SELECT m.digest, m.n, {id_text('i.id')} FROM messages m JOIN items i ON i.n = m.n"
        " WHERE m.session_n = :session_n AND m.channel <> :channel AND m.n NOT IN"
        " (SELECT message_n FROM claims WHERE session_n = :session_n AND channel = :channel)"
        " ORDER BY m.ordinal"
    )
    rows = db.rows(sql, session_n=session_n, channel=channel_number(channel))
    free: defaultdict[int, deque[tuple[int, str]]] = defaultdict(deque)
    for digest, n, id_ in rows:
        free[digest].append((n, id_))
    return free


def _seen_by_digest(
    db: Connection, session_n: int, channel: Channel, digests: Collection[int]
) -> defaultdict[int, list[tuple[int, int]]]:
    """Return ordinals and numbers of what this channel brought or claimed, by digest."""
    rows = db.rows(
        "SELECT digest, ordinal, n FROM messages WHERE session_n = :session_n"
        f" AND {among('digest', 'wanted')} AND (channel = :channel OR n IN (SELECT message_n"
        " FROM claims WHERE session_n = :session_n AND channel = :channel)) ORDER BY ordinal",
        session_n=session_n,
        wanted=int_array(list(digests)),
        channel=channel_number(channel),
    )
    seen: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for digest, ordinal, n in rows:
        seen[digest].append((ordinal, n))
    return seen


def content_key(channel: Channel, digest: int) -> str:
    """Return the key of a forgotten message in a channel that had not brought it."""
    return f"\0{channel}\0{digest}"


def message_id_of(id_: str) -> str:
    """Return the message id of a tombstone id from `sources_in_other_channels`."""
    return id_.partition("/")[0]


def sources_in_other_channels(db: Connection, ns: Sequence[int]) -> dict[str, str]:
    """Return the source digests that recognize messages when another channel brings them.

    They use the message's keys in channels that claimed it, otherwise its content. Their tombstone
    ids are made of the message id and the channel.
    """
    rows = db.rows(
        f"SELECT m.n, {id_text('i.id')}, s.agent, s.external_id, m.channel, m.digest"
        " FROM messages m"
        " JOIN items i ON i.n = m.n JOIN sessions s ON s.n = m.session_n"
        f" WHERE {among('m.n', 'ns')}",
        ns=int_array(ns),
    )
    claimed: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for n, channel, key in db.rows(
        f"SELECT message_n, channel, key FROM claims WHERE {among('message_n', 'ns')}",
        ns=int_array(ns),
    ):
        claimed[n, channel].append(unpack_key(key))
    sources = {}
    for n, id_, agent, external_id, own, digest in rows:
        for number, channel in enumerate(CHANNELS):
            keys = claimed[n, number]
            if not keys and number != own:
                keys = [content_key(channel, digest)]
            for at, key in enumerate(keys):
                name = f"{id_}/{channel}/{at}" if at else f"{id_}/{channel}"
                sources[name] = history.source_digest(agent, external_id, key)
    return sources
