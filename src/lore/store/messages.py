"""Messages: stored whole and in order, with turns, staged turns, and the trust of their origins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from lore import clock
from lore.records import (
    TRUST,
    UNASKED_TRUST,
    Channel,
    Message,
    NewMessage,
    Origin,
    PastTurns,
)
from lore.store import (
    forgotten_names,
    history,
    items,
    keywords,
    message_dedup,
    standing_instructions,
)
from lore.store.codec import (
    TRUSTED_ORIGINS,
    TRUSTED_SQL,
    may_have_other_origins,
    pack_json,
    pack_key,
    pack_parts,
    pack_role,
    unpack_json,
    unpack_parts,
    unpack_role,
    unpack_time,
)
from lore.store.items import MESSAGE_RANGE, NewItem
from lore.store.overview import is_known_empty
from lore.store.sql_connection import Connection, Row, among, id_text, int_array, text_array
from lore.text.instructions import TypedInstruction
from lore.text.message_features import lowest_origin

_COLUMNS = (
    f"{id_text('i.id')}, s.id, m.ordinal, m.role, m.parts, i.tokens, i.created_at, m.origin,"
    " m.speaker, m.model, m.usage"
)
_FROM = "FROM messages m JOIN items i ON i.n = m.n JOIN sessions s ON s.n = m.session_n"


class PreparedMessage(NamedTuple):
    """A message with everything derived from it, ready to be stored."""

    new: NewMessage
    id: str
    key: str
    tokens: int
    embeds: bool
    traits: int
    standing: tuple[TypedInstruction, ...]
    digest: int
    searchable: str


def add_messages(
    db: Connection,
    session_n: int,
    prepared: Sequence[PreparedMessage],
    *,
    now: datetime,
    ordinal: int = 0,
    channel: Channel = "push",
    unindexed: list[keywords.NewMessageText] | None = None,
) -> list[str]:
    """Append messages to a session, skipping duplicates; return the ids of all of them.

    A message that was forgotten is not stored again: its former id is returned. One that came
    through another channel is claimed. The first new one gets at least the ordinal `ordinal`. With
    a list `unindexed`, texts of new messages are appended to it instead of the keyword index; the
    caller indexes them in the same transaction.
    """
    if not prepared:
        return []
    project_n, agent, external_id, following = db.rows(
        "SELECT project_n, agent, external_id, (SELECT coalesce(max(ordinal) + 1, 0)"
        " FROM messages WHERE session_n = :n) FROM sessions WHERE n = :n",
        n=session_n,
    )[0]
    ordinal = max(ordinal, following)
    keys = [message.key for message in prepared]
    known_ids = message_dedup.find_seen(db, session_n, channel, keys) if following else {}
    known_ids |= _find_stored_or_forgotten(
        db,
        session_n,
        (agent, external_id),
        channel,
        _fresh(prepared, known_ids),
    )
    ids: list[str] = []
    added: list[PreparedMessage] = []
    for message in prepared:
        if message.key not in known_ids:
            known_ids[message.key] = message.id
            added.append(message)
        ids.append(known_ids[message.key])
    if added:
        place = _Place(session_n, project_n, ordinal, channel)
        moments = [clock.to_us(clamp_time(message.new.created_at, now)) for message in added]
        ns = _insert(db, place, added, moments)
        texts = _index(db, place, ns, added, moments)
        if unindexed is None:
            keywords.add_messages(db, texts)
        else:
            unindexed += texts
        history.log_change(db, "add", ns, now)
        db.run(
            "UPDATE sessions SET last_message_at = :at WHERE n = :n AND last_message_at < :at",
            at=max(moments),
            n=session_n,
        )
    return ids


def insert_at(
    db: Connection,
    session_n: int,
    message: PreparedMessage,
    *,
    ordinal: int,
    channel: Channel,
    now: datetime,
) -> int:
    """Store a message of another machine at its place in the session; return its number.

    If that is taken, because both machines went on with the session, it goes to the end.
    """
    project_n = db.number("SELECT project_n FROM sessions WHERE n = :n", n=session_n)
    place = _Place(session_n, project_n, free_ordinal(db, session_n, ordinal), channel)
    moments = [clock.to_us(message.new.created_at)]
    ns = _insert(db, place, [message], moments)
    keywords.add_messages(db, _index(db, place, ns, [message], moments))
    history.log_change(db, "add", ns, now)
    db.run(
        "UPDATE sessions SET last_message_at = :at WHERE n = :n AND last_message_at < :at",
        at=moments[0],
        n=session_n,
    )
    return ns[0]


def free_ordinal(db: Connection, session_n: int, ordinal: int) -> int:
    """Return an ordinal if no message of a session has it, else the one after the last."""
    sql = "SELECT 1 FROM messages WHERE session_n = :n AND ordinal = :ordinal"
    taken = db.find(sql, n=session_n, ordinal=ordinal) is not None
    return last_ordinal(db, session_n) + 1 if taken else ordinal


_CLOCK_ERROR_US = 86_400_000_000
"""A day: clocks are minutes off, and a time without its zone at most 14 hours."""


def clamp_time(at: datetime, now: datetime) -> datetime:
    """Return the time of a message: what is dated far ahead was said now.

    Otherwise a wrong date would make it the newest word on everything, for good.
    """
    return at if clock.to_us(at) <= clock.to_us(now) + _CLOCK_ERROR_US else now


class _Place(NamedTuple):
    """Where new messages are stored, and the channel they came through."""

    session_n: int
    project_n: int | None
    ordinal: int
    channel: Channel


def _fresh(prepared: Sequence[PreparedMessage], known_ids: dict[str, str]) -> list[PreparedMessage]:
    return [message for message in prepared if message.key not in known_ids]


def _find_stored_or_forgotten(
    db: Connection,
    session_n: int,
    place: tuple[str, str],
    channel: Channel,
    fresh: Sequence[PreparedMessage],
) -> dict[str, str]:
    """Return the ids of messages, by key, that are stored already or were forgotten."""
    if not history.has_source_tombstones(db):
        return message_dedup.claim_duplicates(
            db, session_n, channel, [(m.key, m.digest) for m in fresh]
        )
    known_ids = _forgotten(db, [place], {message.key: message.key for message in fresh})
    fresh = _fresh(fresh, known_ids)
    known_ids |= message_dedup.claim_duplicates(
        db, session_n, channel, [(m.key, m.digest) for m in fresh]
    )
    contents = {
        m.key: message_dedup.content_key(channel, m.digest) for m in _fresh(fresh, known_ids)
    }
    return known_ids | _forgotten(db, [place], contents)


def drop_forgotten(
    db: Connection, place: tuple[str, str], channel: Channel, prepared: Sequence[PreparedMessage]
) -> list[PreparedMessage]:
    """Return the messages that were not forgotten, of a session given by agent and name."""
    forgotten = find_forgotten(db, place, channel, prepared)
    return [message for message in prepared if message.key not in forgotten]


def find_forgotten(
    db: Connection, place: tuple[str, str], channel: Channel, prepared: Sequence[PreparedMessage]
) -> dict[str, str]:
    """Return the former ids of the messages that were forgotten, by key."""
    if not history.has_source_tombstones(db):
        return {}
    places = tuple({place, forgotten_names.stored_name(db, *place)})
    forgotten = _forgotten(db, places, {message.key: message.key for message in prepared})
    contents = {
        m.key: message_dedup.content_key(channel, m.digest) for m in _fresh(prepared, forgotten)
    }
    return forgotten | _forgotten(db, places, contents)


def _forgotten(
    db: Connection, places: Sequence[tuple[str, str]], source_keys: dict[str, str]
) -> dict[str, str]:
    """Return the former ids of forgotten messages by key; `source_keys` recognize them."""
    if not source_keys:
        return {}
    sources = {
        (key, place): history.source_digest(*place, name)
        for key, name in source_keys.items()
        for place in places
    }
    buried = history.find_tombstones_by_source(db, list(sources.values()))
    return {
        key: message_dedup.message_id_of(buried[source])
        for (key, _), source in sources.items()
        if source in buried
    }


_COLUMN_NAMES = (
    "n", "session_n", "ordinal", "channel", "digest", "key", "role", "speaker", "parts", "origin",
    "model", "usage", "traits",
)  # fmt: skip


def _insert(
    db: Connection, place: _Place, added: Sequence[PreparedMessage], moments: Sequence[int]
) -> list[int]:
    new_items = [
        NewItem(
            one.id, "message", place.project_n, place.session_n, at, one.tokens, embeds=one.embeds
        )
        for one, at in zip(added, moments, strict=True)
    ]
    ns = items.add_all(db, new_items)
    channel = message_dedup.channel_number(place.channel)
    rows = []
    for ordinal, (n, message) in enumerate(zip(ns, added, strict=True), place.ordinal):
        new = message.new
        key, usage = pack_key(message.key), pack_json(new.usage) if new.usage else ""
        rows.append((
            n, place.session_n, ordinal, channel, message.digest, key, pack_role(new.role),
            new.speaker, pack_parts(new.parts), new.origin, new.model, usage, message.traits,
        ))  # fmt: skip
    db.insert_many("messages", _COLUMN_NAMES, rows)
    return ns


def _index(
    db: Connection,
    place: _Place,
    ns: Sequence[int],
    added: Sequence[PreparedMessage],
    moments: Sequence[int],
) -> list[keywords.NewMessageText]:
    """Store speakers and standing instructions; return the texts for the keyword index."""
    for speaker in {message.new.speaker for message in added if message.new.speaker}:
        db.insert_unless_exists("speakers", name=speaker)
    new = []
    for n, message, at in zip(ns, added, moments, strict=True):
        text_fields = (message.new.role, message.new.speaker, message.searchable)
        new.append(keywords.NewMessageText(n, *text_fields, at))
        _add_instructions(db, n, place.project_n, at, message.standing)
    return new


def _add_instructions(
    db: Connection, n: int, project_n: int | None, at: int, typed: Sequence[TypedInstruction]
) -> None:
    for text, state, confirms in typed:
        standing_instructions.add(db, n, project_n, text, at, state, confirms=confirms)


def restore_instructions(
    db: Connection,
    ns: Sequence[int],
    judge: Callable[[Message], Sequence[TypedInstruction]],
) -> None:
    """Store the instructions of messages anew, as they are judged."""
    for n, message in get_messages(db, ns).items():
        project_n = db.number("SELECT project_n FROM items WHERE n = :n", n=n)
        _add_instructions(db, n, project_n, clock.to_us(message.created_at), judge(message))


def get_message(db: Connection, n: int) -> Message:
    """Return a message by number."""
    return get_messages(db, [n])[n]


def get_messages(db: Connection, ns: Sequence[int]) -> dict[int, Message]:
    """Return messages by number."""
    if not len(ns):
        return {}
    rows = db.rows(f"SELECT m.n, {_COLUMNS} {_FROM} WHERE {among('m.n', 'ns')}", ns=int_array(ns))
    return {row[0]: _message(row[1:]) for row in rows}


def messages_of_session(
    db: Connection,
    session_n: int,
    *,
    first: int = 0,
    last: int | None = None,
    limit: int = 10_000,
) -> list[Message]:
    """Return the messages of a session in order, from the ordinal `first` to `last`."""
    sql = (
        f"SELECT {_COLUMNS} {_FROM} WHERE m.session_n = :n AND m.ordinal >= :first"
        " AND (:last IS NULL OR m.ordinal <= :last) ORDER BY m.ordinal LIMIT :limit"
    )
    rows = db.rows(sql, n=session_n, first=first, last=last, limit=limit)
    return [_message(row) for row in rows]


def find_repeated(db: Connection, ns: Sequence[int], session_ns: Sequence[int]) -> set[int]:
    """Return those of the messages whose text also occurs in one of the sessions."""
    if not len(ns) or not len(session_ns):
        return set()
    digests = db.rows(f"SELECT n, digest FROM messages WHERE {among('n', 'ns')}", ns=int_array(ns))
    sql = (
        f"SELECT digest FROM messages WHERE {among('session_n', 'session_ns')}"
        f" AND {among('digest', 'digests')}"
    )
    wanted = int_array([digest for _, digest in digests])
    repeated = set(db.column(sql, session_ns=int_array(session_ns), digests=wanted))
    return {n for n, digest in digests if digest in repeated}


def last_ordinal(db: Connection, session_n: int) -> int:
    """Return the ordinal of a session's last message, or -1."""
    last = db.value("SELECT max(ordinal) FROM messages WHERE session_n = :n", n=session_n)
    return -1 if last is None else int(last)


def find_speakers(db: Connection, names: Iterable[str]) -> list[str]:
    """Return those of the names that are speakers of messages."""
    unique = list(dict.fromkeys(names))
    if not unique or is_known_empty(db, "messages"):
        return []
    sql = f"SELECT name FROM speakers WHERE {among('name', 'names')}"
    known = set(db.column(sql, names=text_array(unique)))
    return [name for name in unique if name in known]


def _message(row: Row) -> Message:
    id_, session_id, ordinal, role, parts, tokens, at, origin, speaker, model, usage = row
    return Message(
        id_, session_id, ordinal, unpack_role(role), unpack_parts(parts), tokens, unpack_time(at),
        origin, speaker, model, unpack_json(usage) if usage else {},
    )  # fmt: skip


_MAX_ANSWERS = 8
"""The text of a turn is near its end, after many tool calls."""

_MAX_TURN_MESSAGES = 2_000
"""A turn without a next user message is searched this far."""


def find_answers(db: Connection, id_: str) -> list[Message]:
    """Return the last assistant messages of the turn that a message began, last first."""
    place = db.find(
        "SELECT session_n, ordinal FROM messages WHERE n = :n", n=items.find_number(db, id_)
    )
    if place is None:
        return []
    session_n, ordinal = place
    ns = db.column(
        "SELECT n FROM messages WHERE session_n = :session_n AND role = :role"
        " AND ordinal > :ordinal AND ordinal < coalesce((SELECT min(ordinal) FROM messages"
        " WHERE session_n = :session_n AND ordinal > :ordinal AND role = :asked), :ordinal + :far)"
        " ORDER BY ordinal DESC LIMIT :most",
        session_n=session_n,
        ordinal=ordinal,
        role=pack_role("assistant"),
        asked=pack_role("user"),
        far=_MAX_TURN_MESSAGES,
        most=_MAX_ANSWERS,
    )
    answers = get_messages(db, ns)
    return [answers[n] for n in ns if n in answers]


def messages_before(db: Connection, n: int, *, most: int) -> list[Message]:
    """Return the messages just before one in its session, last first."""
    ns = db.column(
        "SELECT b.n FROM messages m JOIN messages b ON b.session_n = m.session_n"
        " AND b.ordinal < m.ordinal AND b.ordinal >= m.ordinal - :most WHERE m.n = :n"
        " ORDER BY b.ordinal DESC",
        n=n,
        most=most,
    )
    earlier = get_messages(db, ns)
    return [earlier[n] for n in ns if n in earlier]


def is_last_answer(db: Connection, n: int) -> bool:
    """Return whether no assistant said more after a message before a person spoke again."""
    role: int | None = db.value(
        "SELECT b.role FROM messages m JOIN messages b ON b.session_n = m.session_n"
        " AND b.ordinal > m.ordinal AND b.role IN (:user, :assistant) WHERE m.n = :n"
        " ORDER BY b.ordinal LIMIT 1",
        n=n,
        user=pack_role("user"),
        assistant=pack_role("assistant"),
    )
    return role != pack_role("assistant")


_RECENT_SESSIONS = 30
"""Only the latest sessions count: habits change."""

_MAX_ROWS = 20_000

_US = 1_000_000


def past_turns(db: Connection, project_n: int | None, *, before: datetime) -> PastTurns:
    """Return the turns of the latest sessions that were idle since a moment.

    A turn begins where the assistant speaks after anybody else.
    """
    rows = db.rows(
        "SELECT m.session_n, m.role, i.created_at FROM messages m JOIN items i ON i.n = m.n"
        " WHERE m.session_n IN (SELECT n FROM sessions WHERE last_message_at < :before"
        " AND (:project_n IS NULL OR project_n = :project_n)"
        " ORDER BY last_message_at DESC LIMIT :sessions)"
        " ORDER BY m.session_n DESC, m.ordinal LIMIT :rows",
        before=clock.to_us(before),
        project_n=project_n,
        sessions=_RECENT_SESSIONS,
        rows=_MAX_ROWS,
    )
    times: dict[int, list[int]] = {}
    assistant = pack_role("assistant")
    previous = (0, assistant)
    for session_n, role, at in rows:
        begins = role == assistant and previous != (session_n, assistant)
        previous = (session_n, role)
        if begins:
            times.setdefault(session_n, []).append(at)
    pairs = (pair for starts in times.values() for pair in pairwise(starts))
    gaps = tuple(max(0, later - earlier) / _US for earlier, later in pairs)
    return PastTurns(tuple(len(starts) for starts in times.values()), gaps)


def lowest_trust_origin(db: Connection, origin: Origin, source_ns: Sequence[int]) -> Origin:
    """Return the least trusted of an origin and of all origins in the messages."""
    sources = get_messages(db, source_ns).values()
    origins = [origin, *(lowest_origin(m.parts, m.origin) for m in sources)]
    return min(origins, key=TRUST.__getitem__)


def claim(db: Connection, session_n: int, ids: Iterable[str]) -> list[int]:
    """Give messages that a repository said to the person and their agent; return their numbers.

    The session is curated again.
    """
    ns = sorted(items.numbers_of(db, list(ids)).values())
    claimed = []
    for role in ("user", "assistant"):
        claimed += db.column(
            f"UPDATE messages SET origin = :role WHERE {among('n', 'ns')} AND origin = 'repo'"
            " AND session_n = :session_n AND role = :packed RETURNING n",
            role=role,
            packed=pack_role(role),
            ns=int_array(ns),
            session_n=session_n,
        )
    if claimed:
        db.run("DELETE FROM curations WHERE session_n = :n", n=session_n)
    return sorted(claimed)


def trusted_items(db: Connection, ns: Sequence[int]) -> set[int]:
    """Return those of the items that may be put into a prompt unasked."""
    if not len(ns):
        return set()
    sql = (
        "SELECT i.n FROM items i LEFT JOIN messages m ON m.n = i.n"
        f" LEFT JOIN fragments f ON f.n = i.n WHERE {among('i.n', 'ns')}"
        f" AND coalesce(m.origin, 'assistant') IN ({TRUSTED_SQL})"
        f" AND coalesce(f.trust, {UNASKED_TRUST}) >= {UNASKED_TRUST}"
    )
    trusted = set(db.column(sql, ns=int_array(ns)))
    return trusted - untrusted_mixtures(db, sorted(trusted))


def untrusted_mixtures(db: Connection, ns: Sequence[int]) -> set[int]:
    """Return the messages with parts of untrusted origins, and distillations of such messages."""
    if not len(ns):
        return set()
    mixed = db.rows(
        f"SELECT m.n, m.origin, m.parts FROM messages m WHERE {among('m.n', 'ns')}"
        f" AND {may_have_other_origins('m.parts')}",
        ns=int_array(ns),
    )
    untrusted = {n for n, origin, parts in mixed if _is_untrusted(origin, parts)}
    covered = db.rows(
        f"SELECT d.n, m.origin, m.parts FROM distillations d {MESSAGE_RANGE}"
        " JOIN messages m ON m.session_n = d.session_n"
        " AND m.ordinal BETWEEN first.ordinal AND last.ordinal"
        f" WHERE {among('d.n', 'ns')}"
        f" AND (m.origin NOT IN ({TRUSTED_SQL}) OR {may_have_other_origins('m.parts')})",
        ns=int_array(ns),
    )
    return untrusted | {n for n, origin, parts in covered if _is_untrusted(origin, parts)}


def _is_untrusted(origin: str, packed: str) -> bool:
    if origin not in TRUSTED_ORIGINS:
        return True
    return lowest_origin(unpack_parts(packed), origin) not in TRUSTED_ORIGINS
