"""Fragments: knowledge with versions; a change keeps what was said before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from lore import clock
from lore.errors import NotFound
from lore.records import TRUST, UNASKED_TRUST, Fragment, FragmentKind, FragmentVersion, Origin
from lore.relevance import BELIEVED, MOST_BOOST, NEIGHBOUR_BOOST, VISIBLE, decay_rate, relevance
from lore.store import changes, items, keywords, mentions, standing
from lore.store.items import NewItem
from lore.store.packing import moment, unpack_json
from lore.store.sqlite import Connection, Row, among, field_of, id_text, numbers
from lore.text import tokens
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

VISIBLE_FRAGMENT = (
    f"{LIVING_FRAGMENT} AND f.relevance >= {VISIBLE} AND f.confidence - f.doubt > {BELIEVED}"
)
"""What search and recall may show: superseded, deleted, faded and doubted ones stay out."""


_LONGEST_STANDING = 600
"""A preference of more characters stands by its summary, as no longer sentence is one."""


@dataclass(frozen=True, slots=True)
class FragmentFilter:
    """What a fragment must be to be shown."""

    kind: str = ""
    origin: str = ""
    since_us: int | None = None
    project_n: int | None = None
    subtree: frozenset[int] | None = None

    @property
    def is_narrow(self) -> bool:
        """Tell whether it leaves any visible fragment out."""
        return self != FragmentFilter()


@dataclass(frozen=True, slots=True)
class NewFragment:
    """A fragment on its way into the store."""

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
    """Store a fragment, make it findable, and return its number."""
    at = clock.to_us(new.created_at)
    size = tokens.count(new.content)
    n = items.add(
        db, NewItem(new.id, "fragment", new.project_n, new.session_n, at, size, embeds=True)
    )
    db.run(
        "INSERT INTO fragments (n, content, summary, depth, kind, payload, importance,"
        " confidence, decay_rate, access_count, last_reinforced, relevance, origin, trust,"
        " source_messages, updated_at, version, metadata) VALUES (:n, :content, :summary,"
        " :depth, :kind, :payload, :importance, :confidence, :decay_rate, 0, :at, :relevance,"
        " :origin,"
        " :trust, :source_messages, :at, 1, :metadata)",
        n=n,
        content=new.content,
        summary=new.summary,
        depth=new.depth,
        kind=new.kind,
        payload=_json(new.payload),
        importance=new.importance,
        confidence=new.confidence,
        decay_rate=decay_rate(new.importance),
        at=at,
        relevance=relevance(new.importance, 0, 0.0),
        origin=new.origin,
        trust=TRUST[new.origin] if new.trust is None else new.trust,
        source_messages=_json(list(new.source_messages)),
        metadata=_json(new.metadata),
    )
    keywords.add_fragment(db, n, new.summary, new.content, new.kind)
    mentions.add(db, n, new.mentions)
    mentions.link_titles(db, n, new.content, new.mentions)
    changes.log(db, "add", [n], now)
    if new.kind == "preference":
        _keep_standing(db, n)
    return n


def _keep_standing(db: Connection, n: int) -> None:
    """Let a preference stand beside the person's instructions if it is theirs.

    That is: said by them, approved by them on a shared page, or promoted by them.
    """
    standing.remove(db, [n])
    row = db.find(
        "SELECT i.project_n, f.content, f.summary, i.created_at FROM fragments f"
        " JOIN items i ON i.n = f.n WHERE f.n = :n AND f.kind = 'preference'"
        " AND f.trust >= :unasked AND ((f.origin = 'user' AND f.trust = :person)"
        f" OR f.origin = 'repo' OR {field_of('f.metadata', 'promoted_from')} IS NOT NULL)"
        " AND f.deleted_at IS NULL AND f.superseded_by IS NULL",
        n=n,
        unasked=UNASKED_TRUST,
        person=TRUST["user"],
    )
    if row:
        project_n, content, summary, created_at = row
        said = content if len(content) <= _LONGEST_STANDING else summary
        standing.add(db, n, project_n, said, created_at)


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
    """Give a fragment new words, keep the former ones as a version, return its new version."""
    old = get(db, n)
    at = clock.to_us(now)
    db.run(
        "INSERT INTO fragment_versions"
        " (fragment_n, version, content, summary, changed_at, reason)"
        " VALUES (:n, :version, :content, :summary, :at, :reason)",
        n=n,
        version=old.version,
        content=old.content,
        summary=old.summary,
        at=at,
        reason=reason,
    )
    db.run(
        "UPDATE fragments SET content = :content, summary = :summary, version = version + 1,"
        " updated_at = :at, last_reinforced = CASE WHEN :reinforces = 1 THEN :at"
        " ELSE last_reinforced END WHERE n = :n",
        content=content,
        summary=summary,
        at=at,
        reinforces=int(reinforces),
        n=n,
    )
    db.run(
        "UPDATE items SET tokens = :tokens, embedder_n = NULL WHERE n = :n",
        tokens=tokens.count(content),
        n=n,
    )
    db.run("DELETE FROM vectors WHERE n = :n", n=n)
    keywords.add_fragment(db, n, summary, content, old.kind)
    mentions.remove(db, [n])
    mentions.add(db, n, mentioned)
    mentions.link_titles(db, n, content, mentioned)
    changes.log(db, "change", [n], now)
    if old.kind == "preference":
        _keep_standing(db, n)
    return old.version + 1


def get(db: Connection, n: int) -> Fragment:
    """Return a fragment by number, deleted or not."""
    found = by_number(db, [n])
    if n not in found:
        msg = "That fragment is gone."
        raise NotFound(msg)
    return found[n]


def by_number(db: Connection, ns: Sequence[int]) -> dict[int, Fragment]:
    """Return fragments by number."""
    if not len(ns):
        return {}
    rows = db.rows(f"SELECT f.n, {_COLUMNS} {_FROM} WHERE {among('f.n', 'ns')}", ns=numbers(ns))
    return {row[0]: _fragment(row[1:]) for row in rows}


def learned_from(db: Connection, session_n: int) -> bool:
    """Tell whether a session left knowledge behind, beside the episode that tells it."""
    rows = db.rows(
        f"SELECT 1 {_FROM} WHERE i.session_n = :n AND f.kind <> 'episode'"
        " AND f.deleted_at IS NULL LIMIT 1",
        n=session_n,
    )
    return bool(list(rows))


def decided_since(db: Connection, at_us: int, *, project_n: int) -> list[int]:
    """Return the decisions and preferences that hold in a project and are newer, newest first.

    Without those that stand as instructions, and those that no prompt is told unasked.
    """
    rows = db.rows(
        # What is no message has an index of its own by time.
        "SELECT f.n FROM items i JOIN fragments f ON f.n = i.n WHERE i.type <> 1"
        f" AND i.created_at > :at AND {VISIBLE_FRAGMENT}"
        " AND f.kind IN ('decision', 'preference') AND f.trust >= :unasked"
        # A whole project has far more items than a few days.
        " AND coalesce(i.project_n, :project_n) = :project_n"
        " AND NOT EXISTS (SELECT 1 FROM standing s WHERE s.item_n = f.n)"
        " ORDER BY i.created_at DESC, f.n DESC",
        at=at_us,
        unasked=UNASKED_TRUST,
        project_n=project_n,
    )
    return [n for (n,) in rows]


def visible(db: Connection, wanted: FragmentFilter, ns: Sequence[int] | None = None) -> set[int]:
    """Return the fragments, of all or of some, that may be shown and pass a filter."""
    if ns is not None and not len(ns):
        return set()
    rows = db.rows(
        f"SELECT f.n FROM fragments f JOIN items i ON i.n = f.n WHERE {VISIBLE_FRAGMENT}"
        " AND (:kind = '' OR f.kind = :kind) AND (:origin = '' OR f.origin = :origin)"
        " AND (:since IS NULL OR i.created_at >= :since)"
        " AND (:project_n IS NULL OR i.project_n IS NULL OR i.project_n = :project_n)"
        + ("" if ns is None else f" AND {among('f.n', 'ns')}"),
        kind=wanted.kind,
        origin=wanted.origin,
        since=wanted.since_us,
        project_n=wanted.project_n,
        **({} if ns is None else {"ns": numbers(ns)}),
    )
    found = {row[0] for row in rows}
    return found if wanted.subtree is None else found & wanted.subtree


def rescore(db: Connection, *, now: datetime) -> int:
    """Let every fragment fade to the strength that it has now; count them.

    This is `relevance.relevance` for all of them at once.
    """
    return db.run(
        "UPDATE fragments SET relevance = (SELECT CASE WHEN strong > 1 THEN 1.0 ELSE strong END"
        " FROM (SELECT importance * (CASE WHEN access_count > 105 THEN 1.0"
        " ELSE 0.3 + 0.15 * ln(1 + access_count) END) * exp(-decay_rate * days)"
        " + 0.3 * importance * (CASE WHEN importance >= 0.5 THEN 1.0"
        " ELSE exp(-decay_rate * days / 3) END)"
        " + boost * exp(-decay_rate * boosted_days) AS strong"
        f" FROM (SELECT {_days_since('last_reinforced')} AS days,"
        f" {_days_since('boosted_at')} AS boosted_days)))",
        now=clock.to_us(now),
    )


def _days_since(column: str) -> str:
    """Return the expression for the days from a moment until :now, none before it."""
    return f"(CASE WHEN :now > {column} THEN :now - {column} ELSE 0 END) / 8.64e10"


def is_deleted(db: Connection, n: int) -> bool:
    """Tell whether a fragment was deleted and can be brought back."""
    return db.value("SELECT deleted_at FROM fragments WHERE n = :n", n=n) is not None


def find_deleted_at(db: Connection, n: int) -> int | None:
    """Return when a fragment was deleted, as the store keeps it; None if it stands."""
    found = db.value("SELECT deleted_at FROM fragments WHERE n = :n", n=n)
    return None if found is None else int(found)


def boost_and_doubt(db: Connection, n: int) -> tuple[float, int, float]:
    """Return what reading neighbours gave a fragment and when, and what lost files take."""
    boost, at, doubt = db.rows("SELECT boost, boosted_at, doubt FROM fragments WHERE n = :n", n=n)[
        0
    ]
    return boost, at, doubt


def deleted_among(db: Connection, ns: Sequence[int]) -> set[int]:
    """Return which of some fragments were deleted and can be brought back."""
    rows = db.rows(
        f"SELECT n FROM fragments WHERE deleted_at IS NOT NULL AND {among('n', 'ns')}",
        ns=numbers(ns),
    )
    return {row[0] for row in rows}


def versions(db: Connection, n: int) -> list[FragmentVersion]:
    """Return what a fragment said before, oldest first."""
    rows = db.rows(
        f"SELECT {id_text('i.id')}, v.version, v.content, v.summary, v.changed_at, v.reason"
        " FROM fragment_versions v JOIN items i ON i.n = v.fragment_n"
        " WHERE v.fragment_n = :n ORDER BY v.version",
        n=n,
    )
    return [
        FragmentVersion(id_, version, content, summary, moment(at), reason)
        for id_, version, content, summary, at, reason in rows
    ]


def roots(db: Connection, *, project_n: int | None, limit: int) -> list[tuple[int, int]]:
    """Return the numbers of the roots with how many children each has, strongest first."""
    rows = db.rows(
        "SELECT f.n, (SELECT count(*) FROM edges e WHERE e.source_n = f.n"
        " AND e.kind = 'hierarchical') FROM fragments f JOIN items i ON i.n = f.n"
        f" WHERE f.depth = 0 AND {VISIBLE_FRAGMENT}"
        " AND (:project_n IS NULL OR i.project_n IS NULL OR i.project_n = :project_n)"
        " ORDER BY f.relevance DESC, f.n DESC LIMIT :limit",
        project_n=project_n,
        limit=limit,
    )
    return [(n, children) for n, children in rows]


def reinforce_all(db: Connection, ids: Sequence[str], *, now: datetime) -> None:
    """Strengthen fragments because they were read."""
    for id_ in ids:
        reinforce(db, items.resolve(db, id_, type="fragment").n, now=now)


def reinforce(db: Connection, n: int, *, now: datetime) -> None:
    """Strengthen a fragment because it was read, and its neighbours a little."""
    at = clock.to_us(now)
    row = db.find(
        "UPDATE fragments SET access_count = access_count + 1, last_accessed = :at,"
        " last_reinforced = :at WHERE n = :n RETURNING importance, access_count, boost,"
        f" {_days_since('boosted_at').replace(':now', ':at')}",
        at=at,
        n=n,
    )
    if row is None:
        return
    importance, access_count, boost, boosted_days = row
    db.run(
        "UPDATE fragments SET relevance = :relevance WHERE n = :n AND relevance < :relevance",
        relevance=relevance(importance, access_count, 0.0, boost, boosted_days),
        n=n,
    )
    left = (
        f"boost * exp(-decay_rate * {_days_since('boosted_at')}) + {NEIGHBOUR_BOOST} * near.weight"
    )
    gained = f"relevance + {NEIGHBOUR_BOOST} * near.weight"
    db.run(
        f"UPDATE fragments SET relevance = CASE WHEN {gained} > 1.0 THEN 1.0 ELSE {gained} END,"
        f" boost = CASE WHEN {left} > {MOST_BOOST} THEN {MOST_BOOST} ELSE {left} END,"
        " boosted_at = :now FROM (SELECT ends.n, max(ends.weight) AS weight"
        " FROM (SELECT target_n AS n, weight FROM edges WHERE source_n = :n"
        " UNION ALL SELECT source_n, weight FROM edges WHERE target_n = :n) AS ends"
        " GROUP BY ends.n) AS near WHERE fragments.n = near.n",
        n=n,
        now=at,
    )


def set_deleted(db: Connection, n: int, deleted_at: datetime | None, *, now: datetime) -> None:
    """Hide a fragment, or bring it back."""
    db.run(
        "UPDATE fragments SET deleted_at = :at WHERE n = :n",
        at=clock.to_us(deleted_at) if deleted_at else None,
        n=n,
    )
    reindex(db, n)
    _let_stand_again(db, n, replaced=deleted_at is None, now=now)
    changes.log(db, "delete" if deleted_at else "change", [n], now)


def _let_stand_again(db: Connection, n: int, *, replaced: bool, now: datetime) -> None:
    """Let what a fragment superseded stand while it is deleted, and step back after that."""
    newer = items.ids_of(db, [n])[n]
    older = db.rows("SELECT target_n FROM edges WHERE source_n = :n AND kind = 'supersedes'", n=n)
    for (older_n,) in older:
        holder = db.value("SELECT superseded_by FROM fragments WHERE n = :n", n=older_n)
        if holder in (None, newer):
            set_superseded(db, older_n, newer if replaced else None, now=now)


def set_superseded(db: Connection, n: int, newer_id: str | None, *, now: datetime) -> None:
    """Mark a fragment as replaced by a newer one, or as standing again."""
    db.run(
        "UPDATE fragments SET superseded_by = :newer, valid_to = :at WHERE n = :n",
        newer=newer_id,
        at=clock.to_us(now) if newer_id else None,
        n=n,
    )
    reindex(db, n)
    changes.log(db, "change", [n], now)


def reindex(db: Connection, n: int) -> None:
    """Keep a fragment in the indexes if it may be shown, and out of them if it is hidden."""
    _keep_standing(db, n)
    row = db.find(
        "SELECT summary, content, kind FROM fragments"
        " WHERE n = :n AND deleted_at IS NULL AND superseded_by IS NULL",
        n=n,
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
    db.run("UPDATE items SET embedder_n = :never WHERE n = :n", never=items.NEVER_EMBEDDED, n=n)


def attribute(db: Connection, n: int, origin: Origin, trust: int, kind: FragmentKind) -> None:
    """Say whose words a fragment has from now on, and of what kind it is."""
    db.run(
        "UPDATE fragments SET origin = :origin, trust = :trust, kind = :kind WHERE n = :n",
        origin=origin,
        trust=trust,
        kind=kind,
        n=n,
    )


def set_depth(db: Connection, n: int, depth: int) -> None:
    """Move a fragment to another level of abstraction."""
    db.run("UPDATE fragments SET depth = :depth WHERE n = :n", depth=depth, n=n)


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _moment(us: int | None) -> datetime | None:
    return None if us is None else moment(us)


def _fragment(row: Row) -> Fragment:
    names = Fragment.__dataclass_fields__
    values = dict(zip(names, row, strict=True))
    for name in ("payload", "metadata"):
        values[name] = unpack_json(values[name])
    values["source_messages"] = tuple(unpack_json(values["source_messages"]))
    for name in ("last_accessed", "valid_from", "valid_to"):
        values[name] = _moment(values[name])
    for name in ("last_reinforced", "created_at", "updated_at"):
        values[name] = moment(values[name])
    return Fragment(**values)
