"""Fragments: knowledge with versions; an update keeps the former text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any

from lore import clock
from lore.errors import NotFound
from lore.lazy_dataclass import dataclass
from lore.records import TRUST, UNASKED_TRUST, Fragment, FragmentKind, FragmentVersion, Origin
from lore.relevance import (
    BELIEVED,
    NEIGHBOUR_BOOST,
    USED_DAYS,
    VISIBLE,
    decay_rate,
    relevance,
)
from lore.store import graph, history, items, keywords, replacements, standing_instructions
from lore.store.codec import pack_json, unpack_json, unpack_record
from lore.store.items import NewItem
from lore.store.sql_connection import Connection, Row, among, id_text, int_array, json_field
from lore.text import instructions, tokens, words
from lore.text.entities import Mention

_COLUMNS = (
    f"{id_text('i.id')}, f.content, f.summary, f.depth, f.kind, f.payload, f.importance,"
    " CASE WHEN f.confidence > f.doubt THEN f.confidence - f.doubt ELSE 0.0 END,"
    " f.decay_rate, f.access_count, f.last_accessed, f.last_reinforced,"
    " f.relevance, f.origin, f.trust, p.id, s.id, f.source_messages, f.superseded_by,"
    " f.valid_from, f.valid_to, i.created_at, f.updated_at, f.version,"
    f" {id_text('parent.id')}, f.metadata"
)
_FROM = (
    "FROM fragments f JOIN items i ON i.n = f.n"
    " LEFT JOIN projects p ON p.n = i.project_n"
    " LEFT JOIN sessions s ON s.n = i.session_n"
    " LEFT JOIN edges e ON e.target_n = f.n AND e.kind = 'hierarchical'"
    " LEFT JOIN items parent ON parent.n = e.source_n"
)

LIVING_FRAGMENT = "f.deleted_at IS NULL AND f.superseded_by IS NULL"
"""What holds: neither superseded nor deleted."""

CURRENT_FRAGMENT = f"{LIVING_FRAGMENT} AND f.archived_at IS NULL"
"""What holds and is not archived, however faded or doubted it is."""

VISIBLE_FRAGMENT = (
    f"{CURRENT_FRAGMENT} AND f.relevance >= {VISIBLE} AND f.confidence - f.doubt > {BELIEVED}"
)
"""What search and recall may show: not superseded, deleted, archived, faded or doubted."""


_MAX_STANDING_CHARS = 600
"""A longer preference is represented by its summary."""


@dataclass(frozen=True, slots=True)
class FragmentFilter:
    """The conditions that a fragment must meet to be shown."""

    kind: str = ""
    origin: str = ""
    since_us: int | None = None
    project_n: int | None = None
    subtree: frozenset[int] | None = None
    until_us: int | None = None
    agent: str = ""
    """A part of the name of the agent whose conversation it comes from, in lower case."""

    @property
    def is_narrow(self) -> bool:
        """Whether it excludes any visible fragment."""
        return self != FragmentFilter()


@dataclass(frozen=True, slots=True)
class NewFragment:
    """A fragment to be stored."""

    id: str
    content: str
    summary: str
    kind: FragmentKind
    created_at: datetime
    depth: int = 0
    payload: Mapping[str, Any] = field(default_factory=dict)
    importance: float = 0.5
    confidence: float = 0.7
    origin: Origin = "user"
    trust: int | None = None
    project_n: int | None = None
    session_n: int | None = None
    source_messages: tuple[str, ...] = ()
    mentions: tuple[Mention, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


def add(db: Connection, new: NewFragment, *, now: datetime) -> int:
    """Store a fragment, index it, and return its number."""
    at = clock.to_us(new.created_at)
    size = tokens.count(new.content)
    n = items.add(
        db, NewItem(new.id, "fragment", new.project_n, new.session_n, at, size, embeds=True)
    )
    db.insert(
        "fragments",
        n=n,
        content=new.content,
        summary=new.summary,
        depth=new.depth,
        kind=new.kind,
        payload=pack_json(new.payload),
        importance=new.importance,
        confidence=new.confidence,
        decay_rate=decay_rate(new.importance),
        access_count=0,
        # It is learned now, however old its session is: an import must not fade at once.
        last_reinforced=max(at, clock.to_us(now)),
        relevance=relevance(new.importance, 0, 0.0),
        origin=new.origin,
        trust=TRUST[new.origin] if new.trust is None else new.trust,
        source_messages=pack_json(new.source_messages),
        updated_at=at,
        version=1,
        metadata=pack_json(new.metadata),
    )
    keywords.add_fragment(db, n, new.summary, new.content, new.kind)
    graph.add_mentions(db, n, new.mentions)
    graph.link_titles(db, n, new.content, new.mentions)
    history.log_change(db, "add", [n], now)
    if new.kind == "preference":
        _sync_standing(db, n)
    return n


def _sync_standing(db: Connection, n: int) -> None:
    """Make a preference a standing instruction if it is the user's, or remove it as one.

    That is: the user stored it, approved it on a shared page, or promoted it. One that was
    extracted from messages counts if it is a lasting rule. It confirms another one only if a
    message says it in the person's own voice: they may have pasted both.
    """
    row = db.find(
        "SELECT i.project_n, f.content, f.summary, i.created_at, f.source_messages,"
        " f.origin = 'user'"
        f" AND {json_field('f.metadata', 'promoted_from')} IS NULL AND f.source_messages <> '[]'"
        " FROM fragments f"
        " JOIN items i ON i.n = f.n WHERE f.n = :n AND f.kind = 'preference'"
        f" AND f.trust >= {UNASKED_TRUST} AND ((f.origin = 'user' AND f.trust = {TRUST['user']})"
        f" OR f.origin = 'repo' OR {json_field('f.metadata', 'promoted_from')} IS NOT NULL)"
        f" AND {LIVING_FRAGMENT}",
        n=n,
    )
    if not row:
        standing_instructions.remove(db, [n])
        return
    project_n, content, summary, created_at, sources, is_extracted = row
    text = content if len(content) <= _MAX_STANDING_CHARS else summary
    state = instructions.judge_sentence(text) if is_extracted else "stands"
    is_own = not is_extracted or _is_own_rule(db, unpack_json(sources), text)
    if state == "stands" and not is_own:
        state = "suggested"
    if state == "passing" and not instructions.find_withdrawal(text):
        standing_instructions.remove(db, [n])
        return
    standing_instructions.replace(db, n, project_n, text, created_at, state, confirms=is_own)


def _is_own_rule(db: Connection, source_messages: Sequence[str], text: str) -> bool:
    """Return whether a source message states a rule that stands, in the person's own voice."""
    ns = sorted(items.numbers_of(db, source_messages).values())
    own = " ".join(words.split(text))
    return any(
        state in standing_instructions.SHOWN
        and (" ".join(words.split(rule)) in own or instructions.is_same_rule(rule, text))
        for rule, state in standing_instructions.states_of_items(db, ns)
    )


def update(  # noqa: PLR0913 - what a change has, and how it is written
    db: Connection,
    n: int,
    *,
    content: str,
    summary: str,
    mentioned: Sequence[Mention],
    now: datetime,
    reason: str,
    reinforces: bool = True,
) -> int:
    """Replace a fragment's text, keep the former one as a version, and return the new version."""
    old = get(db, n)
    at = clock.to_us(now)
    db.insert(
        "fragment_versions",
        fragment_n=n,
        version=old.version,
        content=old.content,
        summary=old.summary,
        changed_at=at,
        reason=reason,
    )
    values = {"content": content, "summary": summary, "version": old.version + 1, "updated_at": at}
    db.update("fragments", n, **values, **({"last_reinforced": at} if reinforces else {}))
    db.update("items", n, tokens=tokens.count(content), embedder_n=None)
    db.run("DELETE FROM vectors WHERE n = :n", n=n)
    replacements.remove(db, [n])
    keywords.add_fragment(db, n, summary, content, old.kind)
    graph.remove_mentions(db, [n])
    graph.add_mentions(db, n, mentioned)
    graph.link_titles(db, n, content, mentioned)
    history.log_change(db, "change", [n], now)
    if old.kind == "preference":
        _sync_standing(db, n)
    return old.version + 1


def get(db: Connection, n: int) -> Fragment:
    """Return a fragment by number, deleted or not."""
    fragments_by_n = by_number(db, [n])
    if n not in fragments_by_n:
        msg = "This fragment no longer exists."
        raise NotFound(msg)
    return fragments_by_n[n]


def by_number(db: Connection, ns: Sequence[int]) -> dict[int, Fragment]:
    """Return fragments by number."""
    if not len(ns):
        return {}
    rows = db.rows(f"SELECT f.n, {_COLUMNS} {_FROM} WHERE {among('f.n', 'ns')}", ns=int_array(ns))
    return {row[0]: _fragment(row[1:]) for row in rows}


def has_knowledge_from(db: Connection, session_n: int) -> bool:
    """Return whether a session produced fragments besides its episode."""
    sql = (
        "SELECT 1 FROM fragments f JOIN items i ON i.n = f.n WHERE i.session_n = :n"
        " AND f.kind <> 'episode' AND f.deleted_at IS NULL LIMIT 1"
    )
    return db.find(sql, n=session_n) is not None


def recent_decisions(db: Connection, at_us: int, *, project_n: int) -> list[int]:
    """Return the visible decisions and preferences of a project after a time, newest first.

    Those that are standing instructions or too little trusted are left out.
    """
    return db.column(
        # Items other than messages have a partial index by time.
        "SELECT f.n FROM items i JOIN fragments f ON f.n = i.n WHERE i.type <> 1"
        f" AND i.created_at > :at AND {VISIBLE_FRAGMENT}"
        " AND f.kind IN ('decision', 'preference') AND f.trust >= :unasked"
        # coalesce() keeps SQLite off the project index: a project has more items than a few days.
        f" AND {items.applies_sql('i')}"
        " AND NOT EXISTS (SELECT 1 FROM standing s WHERE s.item_n = f.n)"
        " ORDER BY i.created_at DESC, f.n DESC",
        at=at_us,
        unasked=UNASKED_TRUST,
        project_n=project_n,
    )


def filter_visible(
    db: Connection, criteria: FragmentFilter, ns: Sequence[int] | None = None
) -> set[int]:
    """Return the fragments, of all or of `ns`, that are visible and pass a filter."""
    if ns is not None and not len(ns):
        return set()
    rows = db.rows(
        f"SELECT f.n FROM fragments f JOIN items i ON i.n = f.n WHERE {VISIBLE_FRAGMENT}"
        " AND (:kind = '' OR f.kind = :kind) AND (:origin = '' OR f.origin = :origin)"
        " AND (:since IS NULL OR i.created_at >= :since)"
        " AND (:until IS NULL OR i.created_at < :until)"
        " AND (:agent = '' OR i.session_n IN (SELECT n FROM sessions"
        " WHERE instr(lower(agent), :agent) > 0))"
        f" AND {items.applies_sql('i')}" + ("" if ns is None else f" AND {among('f.n', 'ns')}"),
        kind=criteria.kind,
        origin=criteria.origin,
        since=criteria.since_us,
        until=criteria.until_us,
        agent=criteria.agent,
        project_n=criteria.project_n,
        **({} if ns is None else {"ns": int_array(ns)}),
    )
    visible = {row[0] for row in rows}
    return visible if criteria.subtree is None else visible & criteria.subtree


def count_visible_at_most(db: Connection, project_n: int | None, most: int) -> int:
    """Return the number of visible fragments of a project, counted up to `most`."""
    return int(
        db.value(
            "SELECT count(*) FROM (SELECT 1 FROM fragments f JOIN items i ON i.n = f.n"
            f" WHERE {VISIBLE_FRAGMENT} AND {items.applies_sql('i')} LIMIT :most)",
            project_n=project_n,
            most=most,
        )
    )


def visible_tokens(db: Connection, project_n: int | None) -> int:
    """Return the tokens of all visible fragments of a project."""
    return int(
        db.value(
            "SELECT coalesce(sum(i.tokens), 0) FROM fragments f JOIN items i ON i.n = f.n"
            f" WHERE {VISIBLE_FRAGMENT} AND {items.applies_sql('i')}",
            project_n=project_n,
        )
    )


def kinds_of(
    db: Connection, ns: Sequence[int], *, without: Sequence[int] = ()
) -> dict[int, FragmentKind]:
    """Return the kinds of fragments, leaving out those of the sessions `without`."""
    return dict(
        db.rows(
            "SELECT f.n, f.kind FROM fragments f JOIN items i ON i.n = f.n"
            f" WHERE {among('f.n', 'ns')}"
            f" AND (i.session_n IS NULL OR NOT {among('i.session_n', 'without')}) ORDER BY f.n",
            ns=int_array(ns),
            without=int_array(without),
        )
    )


def _days_since(column: str) -> str:
    """Return the SQL expression for the days since a time, at least 0."""
    return f"((CASE WHEN :now > {column} THEN :now - {column} ELSE 0 END) / 8.64e10)"


_CURVE = (
    "(importance * (CASE WHEN access_count > 105 THEN 1.0 ELSE 0.3 + 0.15 * ln(1 + access_count)"
    f" END) * exp(-decay_rate * {_days_since('last_reinforced')}) + 0.3 * importance *"
    f" (CASE WHEN importance >= 0.5 THEN 1.0 ELSE exp(-decay_rate *"
    f" {_days_since('last_reinforced')} / 3) END))"
)
_BOOST = f"(boost * exp(-decay_rate * {_days_since('boosted_at')}))"
_LEAST = (
    f"(CASE WHEN {_days_since('coalesce(last_accessed, 0)')} < {USED_DAYS}"
    f" THEN {VISIBLE} ELSE 0.0 END)"
)
"""`relevance.relevance` in SQL at the time `now`: the curve, the boost by neighbours, and the least
value of what was used lately.
"""


def decay_relevance(db: Connection, *, now: datetime) -> int:
    """Decay the relevance of every fragment to its present value; count them."""
    return db.run(
        "UPDATE fragments SET relevance = (SELECT CASE WHEN strong > 1 THEN 1.0"
        " WHEN strong < least THEN least ELSE strong END FROM"
        f" (SELECT {_CURVE} + {_BOOST} AS strong, {_LEAST} AS least))",
        now=clock.to_us(now),
    )


def is_deleted(db: Connection, n: int) -> bool:
    """Return whether a fragment is deleted; it can be restored."""
    return n in deletion_times(db, [n])


def archived_of(db: Connection, ns: Sequence[int]) -> set[int]:
    """Return those of the fragments that are shown on request only."""
    sql = f"SELECT n FROM fragments WHERE archived_at IS NOT NULL AND {among('n', 'ns')}"
    return set(db.column(sql, ns=int_array(ns)))


def current_of(db: Connection, ns: Iterable[int]) -> list[int]:
    """Return those of the fragments that are not deleted, superseded or archived."""
    sql = f"SELECT f.n FROM fragments f WHERE {among('f.n', 'ns')} AND {CURRENT_FRAGMENT}"
    return db.column(f"{sql} ORDER BY f.n", ns=int_array(sorted(ns)))


def deletion_times(db: Connection, ns: Sequence[int]) -> dict[int, int]:
    """Return those of the fragments that are deleted, with the stored times of their deletion."""
    sql = f"SELECT n, deleted_at FROM fragments WHERE deleted_at IS NOT NULL AND {among('n', 'ns')}"
    return dict(db.rows(sql, ns=int_array(ns)))


def boost_and_doubt(db: Connection, n: int) -> tuple[float, int, float]:
    """Return the boost from neighbours and its time, and the doubt from missing files."""
    row: tuple[float, int, float]
    (row,) = db.rows("SELECT boost, boosted_at, doubt FROM fragments WHERE n = :n", n=n)
    return row


def get_versions(db: Connection, n: int) -> list[FragmentVersion]:
    """Return the former versions of a fragment, oldest first."""
    sql = (
        f"SELECT {id_text('i.id')}, v.version, v.content, v.summary, v.changed_at, v.reason"
        " FROM fragment_versions v JOIN items i ON i.n = v.fragment_n"
        " WHERE v.fragment_n = :n ORDER BY v.version"
    )
    return [unpack_record(FragmentVersion, row) for row in db.rows(sql, n=n)]


def roots(db: Connection, *, project_n: int | None, limit: int) -> list[tuple[int, int]]:
    """Return the roots, each with its number of children, strongest first."""
    sql = (
        "SELECT f.n, (SELECT count(*) FROM edges e WHERE e.source_n = f.n"
        " AND e.kind = 'hierarchical') FROM fragments f JOIN items i ON i.n = f.n"
        f" WHERE f.depth = 0 AND {VISIBLE_FRAGMENT}"
        f" AND {items.applies_sql('i')}"
        " ORDER BY f.relevance DESC, f.n DESC LIMIT :limit"
    )
    return [(n, children) for n, children in db.rows(sql, project_n=project_n, limit=limit)]


def latest(db: Connection, *, project_n: int | None, limit: int, least_trust: int) -> list[int]:
    """Return the visible fragments that were said last, without episodes, newest first."""
    sql = (
        "SELECT f.n FROM fragments f JOIN items i ON i.n = f.n"
        f" WHERE {VISIBLE_FRAGMENT} AND f.kind <> 'episode' AND f.trust >= :least_trust"
        f" AND {items.applies_sql('i')} ORDER BY i.created_at DESC, f.n DESC LIMIT :limit"
    )
    return db.column(sql, project_n=project_n, limit=limit, least_trust=least_trust)


def reinforce_all(db: Connection, ids: Sequence[str], *, now: datetime) -> None:
    """Reinforce fragments because they were read."""
    for id_ in ids:
        reinforce(db, items.resolve(db, id_, type="fragment").n, now=now)


def reinforce(db: Connection, n: int, *, now: datetime) -> None:
    """Reinforce a fragment because it was read, and its neighbours a little.

    A neighbour is never lifted above the fragment that was read.
    """
    at = clock.to_us(now)
    row = db.find(
        "UPDATE fragments SET access_count = access_count + 1, last_accessed = :now,"
        " last_reinforced = :now WHERE n = :n RETURNING importance, access_count, boost,"
        f" {_days_since('boosted_at')}",
        now=at,
        n=n,
    )
    if row is None:
        return
    importance, access_count, boost, boosted_days = row
    strongest = relevance(importance, access_count, 0.0, boost, boosted_days, 0.0)
    db.run("UPDATE fragments SET relevance = :strongest WHERE n = :n", strongest=strongest, n=n)
    _boost_neighbours(db, n, strongest, at)


def _boost_neighbours(db: Connection, n: int, strongest: float, at: int) -> None:
    room = f"(:strongest - {_CURVE} - {_BOOST})"
    gain = f"{NEIGHBOUR_BOOST} * near.weight"
    boosted = f"{_BOOST} + CASE WHEN {gain} > {room} THEN {room} ELSE {gain} END"
    db.run(
        f"UPDATE fragments SET boost = {boosted}, boosted_at = :now,"
        f" relevance = {_CURVE} + {boosted} FROM (SELECT ends.n, max(ends.weight) AS weight"
        " FROM (SELECT target_n AS n, weight FROM edges WHERE source_n = :n"
        " UNION ALL SELECT source_n, weight FROM edges WHERE target_n = :n) AS ends"
        f" GROUP BY ends.n) AS near WHERE fragments.n = near.n AND {room} > 0",
        n=n,
        strongest=strongest,
        now=at,
    )


def mark_used(db: Connection, ns: Sequence[int], *, now: datetime) -> None:
    """Restart the forgetting of fragments that were recalled or injected; they count as used.

    Only reading one counts as an access and reaches its neighbours.
    """
    db.run(
        "UPDATE fragments SET last_accessed = :now, last_reinforced = :now"
        f" WHERE {among('n', 'ns')} AND last_reinforced < :now",
        now=clock.to_us(now),
        ns=int_array(ns),
    )


def set_deleted(db: Connection, n: int, deleted_at: datetime | None, *, now: datetime) -> None:
    """Delete a fragment reversibly, or restore it."""
    db.update("fragments", n, deleted_at=clock.to_us(deleted_at) if deleted_at else None)
    reindex(db, n)
    _restore_superseded(db, n, replaced=deleted_at is None, now=now)
    history.log_change(db, "delete" if deleted_at else "change", [n], now)


def _restore_superseded(db: Connection, n: int, *, replaced: bool, now: datetime) -> None:
    """Restore what a fragment superseded while it is deleted, and supersede it again after that."""
    newer = items.ids_of(db, [n])[n]
    older = db.rows("SELECT target_n FROM edges WHERE source_n = :n AND kind = 'supersedes'", n=n)
    for (older_n,) in older:
        holder = db.value("SELECT superseded_by FROM fragments WHERE n = :n", n=older_n)
        if holder in (None, newer):
            set_superseded(db, older_n, newer if replaced else None, now=now)


def set_superseded(db: Connection, n: int, newer_id: str | None, *, now: datetime) -> None:
    """Mark a fragment as superseded by a newer one, or as live again."""
    valid_to = clock.to_us(now) if newer_id else None
    db.update("fragments", n, superseded_by=newer_id, valid_to=valid_to)
    reindex(db, n)
    history.log_change(db, "change", [n], now)


def reindex(db: Connection, n: int) -> None:
    """Index a fragment if it is live, and remove it from the indexes if not."""
    _sync_standing(db, n)
    replacements.count_change_of(db, n)
    row = db.find(
        f"SELECT summary, content, kind FROM fragments f WHERE n = :n AND {LIVING_FRAGMENT}", n=n
    )
    if row:
        keywords.add_fragment(db, n, *row)
        db.run(
            "UPDATE items SET embedder_n = NULL WHERE n = :n"
            " AND n NOT IN (SELECT v.n FROM vectors v)",
            n=n,
        )
        return
    keywords.remove(db, [n], type="fragment")
    db.run("DELETE FROM vectors WHERE n = :n", n=n)
    db.update("items", n, embedder_n=items.NEVER_EMBEDDED)


def set_attribution(db: Connection, n: int, origin: Origin, trust: int, kind: FragmentKind) -> None:
    """Set the origin, trust and kind of a fragment."""
    db.update("fragments", n, origin=origin, trust=trust, kind=kind)


def _fragment(row: Row) -> Fragment:
    return unpack_record(
        Fragment,
        row,
        payload=unpack_json,
        metadata=unpack_json,
        source_messages=lambda packed: tuple(unpack_json(packed)),
    )


def outdated_messages(db: Connection, ns: Sequence[int], session_ns: Sequence[int]) -> set[int]:
    """Return the messages of these sessions all of whose fragments were superseded."""
    # The sign keeps SQLite off the items of the sessions: there are fewer superseded fragments.
    out_of_date = _source_messages(db, session_ns, "f.superseded_by IS NOT NULL", sign="+")
    if not out_of_date:
        return set()
    ids = {id_: n for n, id_ in items.ids_of(db, ns).items()}
    candidates = out_of_date & ids.keys()
    if candidates:
        candidates -= _source_messages(
            db, session_ns, "f.superseded_by IS NULL AND f.kind <> 'episode'"
        )
    return {ids[id_] for id_ in candidates}


def _source_messages(
    db: Connection, session_ns: Sequence[int], condition: str, sign: str = ""
) -> set[str]:
    of_them = among(f"{sign}i.session_n", "sessions")
    rows = db.rows(
        "SELECT f.source_messages FROM fragments f JOIN items i ON i.n = f.n"
        f" WHERE {condition} AND f.deleted_at IS NULL AND {of_them}",
        sessions=int_array(session_ns),
    )
    return {id_ for (packed,) in rows for id_ in unpack_json(packed)}


def find_successor(db: Connection, message_id: str) -> Fragment | None:
    """Return the visible fragment that superseded what was derived from a message, or None."""
    message_n = items.find_number(db, message_id)
    rows = db.rows(
        "SELECT f.superseded_by, f.source_messages FROM fragments f JOIN items i ON i.n = f.n"
        " WHERE f.superseded_by IS NOT NULL AND f.deleted_at IS NULL"
        " AND i.session_n = (SELECT m.session_n FROM items m WHERE m.n = :message_n)",
        message_n=message_n,
    )
    newer_ids = [newer for newer, packed in rows if message_id in unpack_json(packed)]
    visited: set[str] = set()
    while newer_ids:
        id_ = newer_ids.pop()
        n = items.find_number(db, id_)
        if n is None or id_ in visited:
            continue
        visited.add(id_)
        newer = get(db, n)
        if newer.superseded_by:
            newer_ids.append(newer.superseded_by)
        elif filter_visible(db, FragmentFilter(), [n]):
            return newer
    return None
