"""Claims: one conversation that comes in by several channels is stored once.

A key belongs to its channel. A message with a key that its channel has not brought yet takes
the first message of the session that says the same and that this channel has not claimed; if
there is none, it is new. So 'yes' said twice in one channel stays two messages.

A history that a client has cut or condensed says under new keys what was said before: what the
channel itself has brought is claimed then, too.
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict, deque
from collections.abc import Collection, Sequence

from lore.records import CHANNELS, Channel
from lore.store import changes
from lore.store.packing import pack_key, unpack_key
from lore.store.sqlite import Connection, among, id_text, numbers


def number_of(channel: Channel) -> int:
    """Return the number under which the store keeps a channel."""
    return CHANNELS.index(channel)


def known(db: Connection, session_n: int, channel: Channel, keys: Sequence[str]) -> dict[str, str]:
    """Return the ids of the messages that a channel has brought before, by key."""
    if not keys or not _has_any(db, session_n):
        return {}
    packed = {pack_key(key): key for key in keys}
    rows = db.rows(
        f"SELECT m.key, {id_text('i.id')} FROM messages m JOIN items i ON i.n = m.n"
        f" WHERE m.session_n = :session_n AND m.channel = :channel AND {among('m.key', 'keys')}"
        f" UNION ALL SELECT c.key, {id_text('i.id')} FROM claims c"
        " JOIN items i ON i.n = c.message_n WHERE c.session_n = :session_n"
        f" AND c.channel = :channel AND {among('c.key', 'keys')}",
        session_n=session_n,
        channel=number_of(channel),
        keys=numbers(list(packed)),
    )
    return {packed[key]: id_ for key, id_ in rows}


def ordinals(
    db: Connection, session_n: int, channel: Channel, keys: Sequence[str]
) -> dict[str, int]:
    """Return the places in the talk of the messages that a channel has brought, by key."""
    packed = {pack_key(key): key for key in keys}
    rows = db.rows(
        "SELECT key, ordinal FROM messages WHERE session_n = :session_n AND channel = :channel"
        f" AND {among('key', 'keys')} UNION ALL SELECT c.key, m.ordinal FROM claims c"
        " JOIN messages m ON m.n = c.message_n WHERE c.session_n = :session_n"
        f" AND c.channel = :channel AND {among('c.key', 'keys')}",
        session_n=session_n,
        channel=number_of(channel),
        keys=numbers(list(packed)),
    )
    return {packed[key]: ordinal for key, ordinal in rows}


def _has_any(db: Connection, session_n: int) -> bool:
    """Tell whether a session has messages, or meant those of another one."""
    return bool(
        db.value(
            "SELECT EXISTS (SELECT 1 FROM messages WHERE session_n = :n)"
            " OR EXISTS (SELECT 1 FROM claims WHERE session_n = :n)",
            n=session_n,
        )
    )


def claim(
    db: Connection, session_n: int, channel: Channel, fresh: Sequence[tuple[str, int]]
) -> dict[str, str]:
    """Claim for new keys, each with its digest, what other channels brought; return ids by key."""
    if not fresh or not _has_others(db, session_n, channel):
        return {}
    free = _unclaimed(db, session_n, channel)
    taken: dict[str, tuple[int, str]] = {}
    for key, digest in fresh:
        if key not in taken and free[digest]:
            taken[key] = free[digest].popleft()
    put(db, session_n, number_of(channel), [(key, n) for key, (n, _) in taken.items()])
    return {key: id_ for key, (_, id_) in taken.items()}


def recognise(
    db: Connection, session_n: int, channel: Channel, told: Sequence[tuple[str, int]]
) -> None:
    """Claim for new keys what their own channel brought under others, each with its digest.

    All of it was `told` before, in this order: so each is looked for behind the one before it.
    """
    places = ordinals(db, session_n, channel, [key for key, _ in told])
    wanted = {digest for key, digest in told if key not in places}
    if not wanted:
        return
    brought = _brought(db, session_n, channel, wanted)
    last, claimed = -1, list[tuple[str, int]]()
    for key, digest in told:
        place = places.get(key)
        if place is None:
            same = brought[digest]
            at = bisect(same, (last + 1,))
            if at == len(same):
                continue
            place, n = same[at]
            claimed.append((key, n))
        last = max(last, place)
    put(db, session_n, number_of(channel), claimed)


def put(db: Connection, session_n: int, channel: int, claimed: Sequence[tuple[str, int]]) -> bool:
    """Write down which messages a channel's keys mean; tell whether that was news."""
    news = 0
    for key, message_n in claimed:
        news += db.run(
            "INSERT INTO claims (session_n, channel, key, message_n)"
            " VALUES (:session_n, :channel, :key, :message_n) ON CONFLICT DO NOTHING",
            session_n=session_n,
            channel=channel,
            key=pack_key(key),
            message_n=message_n,
        )
    return bool(news)


def _has_others(db: Connection, session_n: int, channel: Channel) -> bool:
    """Tell whether a session was seen by another channel; note that it is seen by this one."""
    own = 1 << number_of(channel)
    before = int(db.value("SELECT channels FROM sessions WHERE n = :n", n=session_n))
    if not before & own:
        db.run("UPDATE sessions SET channels = channels | :own WHERE n = :n", own=own, n=session_n)
    return bool(before & ~own)


def _unclaimed(
    db: Connection, session_n: int, channel: Channel
) -> defaultdict[int, deque[tuple[int, str]]]:
    """Return what this channel has neither brought nor claimed, by digest and in order."""
    rows = db.rows(
        f"SELECT m.digest, m.n, {id_text('i.id')} FROM messages m JOIN items i ON i.n = m.n"
        " WHERE m.session_n = :session_n AND m.channel <> :channel AND m.n NOT IN"
        " (SELECT message_n FROM claims WHERE session_n = :session_n AND channel = :channel)"
        " ORDER BY m.ordinal",
        session_n=session_n,
        channel=number_of(channel),
    )
    free: defaultdict[int, deque[tuple[int, str]]] = defaultdict(deque)
    for digest, n, id_ in rows:
        free[digest].append((n, id_))
    return free


def _brought(
    db: Connection, session_n: int, channel: Channel, wanted: Collection[int]
) -> defaultdict[int, list[tuple[int, int]]]:
    """Return places and numbers of what this channel has brought or claimed, by digest."""
    rows = db.rows(
        "SELECT digest, ordinal, n FROM messages WHERE session_n = :session_n"
        f" AND {among('digest', 'wanted')} AND (channel = :channel OR n IN (SELECT message_n"
        " FROM claims WHERE session_n = :session_n AND channel = :channel)) ORDER BY ordinal",
        session_n=session_n,
        wanted=numbers(list(wanted)),
        channel=number_of(channel),
    )
    brought: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for digest, ordinal, n in rows:
        brought[digest].append((ordinal, n))
    return brought


def content_key(channel: Channel, digest: int) -> str:
    """Return the key of a forgotten message for a channel that had not brought it."""
    return f"\0{channel}\0{digest}"


def own_id(id_: str) -> str:
    """Return the id of a message for one of those that `sources_elsewhere` made of it."""
    return id_.partition("/")[0]


def sources_elsewhere(db: Connection, ns: Sequence[int]) -> dict[str, str]:
    """Return sources by which messages are known if another channel brings them once more.

    For a channel that claimed the message those are its keys there, else what it says; the ids
    are made of the message's own and the channel.
    """
    rows = db.rows(
        f"SELECT m.n, {id_text('i.id')}, s.agent, s.external_id, m.channel, m.digest"
        " FROM messages m"
        " JOIN items i ON i.n = m.n JOIN sessions s ON s.n = m.session_n"
        f" WHERE {among('m.n', 'ns')}",
        ns=numbers(ns),
    )
    claimed: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for n, channel, key in db.rows(
        f"SELECT message_n, channel, key FROM claims WHERE {among('message_n', 'ns')}",
        ns=numbers(ns),
    ):
        claimed[n, channel].append(unpack_key(key))
    found = {}
    for n, id_, agent, external_id, own, digest in rows:
        for number, channel in enumerate(CHANNELS):
            keys = claimed[n, number]
            if not keys and number != own:
                keys = [content_key(channel, digest)]
            for at, key in enumerate(keys):
                name = f"{id_}/{channel}/{at}" if at else f"{id_}/{channel}"
                found[name] = changes.source_of(agent, external_id, key)
    return found
