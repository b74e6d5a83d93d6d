"""The change log, tombstones of forgotten records, and the undo log of user actions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from lore import clock
from lore.lazy_dataclass import dataclass
from lore.records import EdgeKind, FragmentKind, Origin
from lore.store.codec import pack_json, pack_key, unpack_json, unpack_key, unpack_record
from lore.store.graph import EdgeState
from lore.store.sql_connection import Connection, Row, among, int_array, text_array

ChangeAction = Literal["add", "change", "delete", "forget"]


def log_change(db: Connection, action: ChangeAction, ns: Sequence[int], at: datetime) -> None:
    """Log that items were added or changed; consecutive numbers share an entry."""
    us = clock.to_us(at)
    rows = [(us, action, run[0], run[-1]) for run in _number_runs(ns)]
    db.insert_many("changes", ("at", "action", "first_n", "last_n"), rows)


def newest_change(db: Connection) -> int:
    """Return the number of the latest change."""
    return int(db.value("SELECT coalesce(max(seq), 0) FROM changes"))


def _number_runs(ns: Sequence[int]) -> Iterator[list[int]]:
    run: list[int] = []
    for n in ns:
        if run and n != run[-1] + 1:
            yield run
            run = []
        run.append(n)
    if run:
        yield run


def add_tombstones(
    db: Connection,
    ids: Sequence[str],
    at: datetime,
    *,
    sources: Mapping[str, str] | None = None,
) -> int:
    """Add a tombstone for each id, so that nothing restores it; count the new ones.

    `sources` holds the source digest of an id, which recognizes it when it is captured again.
    """
    us = clock.to_us(at)
    fresh = [id_ for id_ in dict.fromkeys(ids) if id_ not in find_tombstones(db, [id_])]
    if not fresh:
        return 0
    # Inserting with RETURNING one by one gets slower with every entry of a large transaction.
    last = db.value("SELECT coalesce(max(seq), 0) FROM changes")
    columns = ("at", "action", "first_n", "last_n")
    db.insert_many("changes", columns, [(us, "forget", 0, 0)] * len(fresh))
    seqs = db.column("SELECT seq FROM changes WHERE seq > :last ORDER BY seq", last=last)
    db.insert_many(
        "tombstones",
        ("id", "at", "seq", "source"),
        [
            (id_, us, seq, (sources or {}).get(id_, ""))
            for id_, seq in zip(fresh, seqs, strict=True)
        ],
    )
    return len(fresh)


def source_digest(agent: str, external_id: str, key: str) -> str:
    """Return the digest that recognizes a message after it was forgotten."""
    stored_key = unpack_key(pack_key(key))
    return hashlib.sha256(f"{agent}\0{external_id}\0{stored_key}".encode()).hexdigest()[:32]


def has_source_tombstones(db: Connection) -> bool:
    """Return whether any tombstone has a source digest."""
    return db.find("SELECT 1 FROM tombstones WHERE source <> '' LIMIT 1") is not None


def find_tombstones_by_source(
    db: Connection, sources: Sequence[str], *, since_us: int = 0
) -> dict[str, str]:
    """Return those of the source digests that have tombstones since a time, with their ids."""
    if not sources:
        return {}
    rows = db.rows(
        "SELECT source, id FROM tombstones WHERE source <> '' AND at >= :since"
        f" AND {among('source', 'sources')}",
        sources=text_array(sources),
        since=since_us,
    )
    return dict(rows)


def forgotten_at(db: Connection, sources: Sequence[str]) -> int | None:
    """Return when any of what source digests recognize was forgotten last, or None."""
    return db.number(
        f"SELECT max(at) FROM tombstones WHERE source <> '' AND {among('source', 'sources')}",
        sources=text_array(sources),
    )


def forgotten_ids_at(db: Connection, ids: Sequence[str]) -> int | None:
    """Return when any of some ids was forgotten first, or None."""
    return db.number(
        f"SELECT min(at) FROM tombstones WHERE {among('id', 'ids')}", ids=text_array(ids)
    )


def find_tombstones(db: Connection, ids: Sequence[str]) -> set[str]:
    """Return those of the ids that were forgotten."""
    return {id_ for id_ in ids if db.find("SELECT 1 FROM tombstones WHERE id = :id", id=id_)}


class Tombstone(NamedTuple):
    """The source digest of what was forgotten, or '', and when it was forgotten last."""

    source: str
    us: int


_MOST_AHEAD_US = 24 * 3_600_000_000
"""A clock that is further ahead than a day is wrong: what it stamped counts as of now."""


def make_tombstone(source: str, us: int, *, now: datetime) -> Tombstone:
    """Return a tombstone of another memory with its own time, though its clock may be ahead.

    What goes on elsewhere is later than that time, and would be older than one of the clock here.
    """
    now_us = clock.to_us(now)
    return Tombstone(source, us if us <= now_us + _MOST_AHEAD_US else now_us)


def all_tombstones(db: Connection) -> dict[str, Tombstone]:
    """Return all tombstones by id."""
    rows = db.rows("SELECT id, source, at FROM tombstones")
    return {id_: Tombstone(source, us) for id_, source, us in rows}


def put_tombstones(db: Connection, tombstones: Mapping[str, Tombstone]) -> None:
    """Add tombstones with their own times, unless they exist."""
    by_time: dict[int, dict[str, str]] = {}
    for id_, one in tombstones.items():
        by_time.setdefault(one.us, {})[id_] = one.source
    for us, sources in by_time.items():
        add_tombstones(db, list(sources), clock.from_us(us), sources=sources)


def raise_sources(db: Connection, sources: Mapping[str, str]) -> int:
    """Store the source digests of tombstones that have lesser ones; count these."""
    sql = "UPDATE tombstones SET source = :source WHERE id = :id AND source < :source"
    return sum(db.run(sql, id=id_, source=source) for id_, source in sources.items())


def find_older_tombstones(db: Connection, times: Mapping[str, int]) -> set[str]:
    """Return those of the ids that were forgotten before their times, but not since."""
    sql = "SELECT 1 FROM tombstones WHERE id = :id AND at < :us"
    return {id_ for id_, us in times.items() if db.find(sql, id=id_, us=us)}


def renew_tombstones(db: Connection, times: Mapping[str, int]) -> None:
    """Give older tombstones the time at which the same was forgotten again."""
    for id_ in sorted(find_older_tombstones(db, times)):
        us = times[id_]
        db.insert("changes", at=us, action="forget", first_n=0, last_n=0)
        seq = newest_change(db)
        sql = "UPDATE tombstones SET at = :us, seq = :seq WHERE id = :id"
        db.run(sql, us=us, seq=seq, id=id_)


class Attribution(NamedTuple):
    """The origin, trust and kind of a fragment."""

    origin: Origin
    trust: int
    kind: FragmentKind


class RecordFields(NamedTuple):
    """The payload and the metadata of a fragment."""

    payload: Mapping[str, Any]
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wording:
    """The text of a fragment, and its attribution and its fields if those changed with it."""

    content: str
    summary: str
    attribution: Attribution | None = None
    fields: RecordFields | None = None


@dataclass(frozen=True, slots=True)
class LinkSnapshot:
    """The other end of an edge, the edge before the change, and a child's former parent."""

    target: int
    kind: EdgeKind
    edge: EdgeState | None = None
    parent: int | None = None


@dataclass(frozen=True, slots=True)
class SuccessorSnapshot:
    """What superseded a fragment, and what had superseded it before."""

    newer: int
    former: str | None = None


@dataclass(frozen=True, slots=True)
class UndoSnapshot:
    """What undoing an action needs: by its verb one of wording, link and successor.

    `batch` names actions done together. `removed_instructions` are the messages whose standing
    instructions were removed. `after` is what redoing needs, once it was undone.
    """

    wording: Wording | None = None
    link: LinkSnapshot | None = None
    successor: SuccessorSnapshot | None = None
    batch: str = ""
    removed_instructions: tuple[int, ...] = ()
    after: Wording | EdgeState | None = None


EMPTY_SNAPSHOT = UndoSnapshot()


def pack_snapshot(before: UndoSnapshot) -> str:
    """Return a snapshot as stored JSON."""
    table: dict[str, Any] = {}
    if before.wording is not None:
        table |= _wording_fields(before.wording)
    if (link := before.link) is not None:
        edge = None if link.edge is None else list(link.edge)
        table |= {"target": link.target, "kind": link.kind, "edge": edge}
        table |= {} if link.parent is None else {"parent": link.parent}
    if (successor := before.successor) is not None:
        table |= {"newer": successor.newer, "former": successor.former}
    if before.batch:
        table["together"] = before.batch
    if before.removed_instructions:
        table["standing"] = before.removed_instructions
    if before.after is not None:
        after = before.after
        table["after"] = _wording_fields(after) if isinstance(after, Wording) else list(after)
    return pack_json(table)


def unpack_snapshot(packed: str) -> UndoSnapshot:
    """Return the snapshot that `pack_snapshot` encoded."""
    table = unpack_json(packed)
    successor = None
    if "newer" in table:
        successor = SuccessorSnapshot(table["newer"], table.get("former"))
    return UndoSnapshot(
        wording=_unpack_wording(table) if "content" in table else None,
        link=_unpack_link(table) if "target" in table else None,
        successor=successor,
        batch=table.get("together", ""),
        removed_instructions=tuple(table.get("standing", ())),
        after=_unpack_after(table.get("after")),
    )


def _wording_fields(wording: Wording) -> dict[str, Any]:
    attribution = {} if wording.attribution is None else wording.attribution._asdict()
    fields = {} if wording.fields is None else {"fields": wording.fields._asdict()}
    return {"content": wording.content, "summary": wording.summary, **attribution, **fields}


def _unpack_wording(table: Mapping[str, Any]) -> Wording:
    attribution = None
    if "origin" in table:
        attribution = Attribution(table["origin"], table["trust"], table["kind"])
    fields = RecordFields(**table["fields"]) if "fields" in table else None
    return Wording(table["content"], table["summary"], attribution, fields)


def _unpack_link(table: Mapping[str, Any]) -> LinkSnapshot:
    edge = EdgeState(*table["edge"]) if table.get("edge") else None
    return LinkSnapshot(table["target"], table["kind"], edge, table.get("parent"))


def _unpack_after(value: Any) -> Wording | EdgeState | None:
    if not value:
        return None
    return _unpack_wording(value) if isinstance(value, dict) else EdgeState(*value)


_FINAL = 1
"""0 marks an action in effect, 1 one that was undone for good;

higher values are redoable and count up in the order of undoing.
"""

_STANDS, _UNDONE = "undone = 0", f"undone > {_FINAL}"

ActionVerb = Literal["store", "update", "delete", "link", "supersede"]


class Action(NamedTuple):
    """One action of a user, with its undo snapshot."""

    n: int
    at: datetime
    verb: ActionVerb
    fragment_n: int
    before: UndoSnapshot


def record_action(
    db: Connection,
    verb: ActionVerb,
    fragment_n: int,
    before: UndoSnapshot = EMPTY_SNAPSHOT,
    *,
    now: datetime,
) -> None:
    """Record an action; actions undone before it can no longer be redone."""
    record_actions(db, [(verb, fragment_n, before)], now=now)


def record_actions(
    db: Connection, actions: Sequence[tuple[ActionVerb, int, UndoSnapshot]], *, now: datetime
) -> None:
    """Record actions done together; those undone before them can no longer be redone."""
    if actions:
        db.run("UPDATE actions SET undone = :final WHERE undone > :final", final=_FINAL)
    at = clock.to_us(now)
    for verb, fragment_n, before in actions:
        packed = pack_snapshot(before)
        db.insert("actions", at=at, verb=verb, fragment_n=fragment_n, before=packed, undone=0)


def find_last_action(
    db: Connection, *, fragment_n: int | None = None, undone: bool = False
) -> Action | None:
    """Return the last action in effect, or the redoable one undone last, maybe of one fragment."""
    row = db.find(
        f"SELECT n, at, verb, fragment_n, before FROM actions"
        f" WHERE {_UNDONE if undone else _STANDS}"
        " AND (:fragment_n IS NULL OR fragment_n = :fragment_n)"
        f" ORDER BY {'undone' if undone else 'n'} DESC LIMIT 1",
        fragment_n=fragment_n,
    )
    return None if row is None else _action(row)


def newest_action(db: Connection) -> int:
    """Return the number of the latest action, or 0."""
    return int(db.value("SELECT coalesce(max(n), 0) FROM actions"))


class ActionKey(NamedTuple):
    """What names an action for ever: its number alone is given again once it is gone."""

    n: int
    fragment_n: int


def actions_after(db: Connection, n: int) -> list[ActionKey]:
    """Return the actions after one, in order."""
    sql = "SELECT n, fragment_n FROM actions WHERE n > :n ORDER BY n"
    return [ActionKey(*row) for row in db.rows(sql, n=n)]


def load_actions(db: Connection, ns: Sequence[int], *, undone: bool = False) -> list[Action]:
    """Return those of the actions that are in effect, or that can be redone, in order."""
    rows = db.rows(
        "SELECT n, at, verb, fragment_n, before FROM actions"
        f" WHERE {_UNDONE if undone else _STANDS} AND {among('n', 'ns')} ORDER BY n",
        ns=int_array(ns),
    )
    return [_action(row) for row in rows]


def action_keys(db: Connection, ns: Sequence[int]) -> list[ActionKey]:
    """Return the actions that have some numbers now."""
    sql = f"SELECT n, fragment_n FROM actions WHERE {among('n', 'ns')} ORDER BY n"
    return [ActionKey(*row) for row in db.rows(sql, ns=int_array(ns))]


def has_later_action(db: Connection, action: Action, *, without: Sequence[int] = ()) -> bool:
    """Return whether a later action on the same fragment is in effect, other than some."""
    sql = (
        f"SELECT 1 FROM actions WHERE fragment_n = :fragment_n AND n > :n AND {_STANDS}"
        f" AND NOT {among('n', 'without')} LIMIT 1"
    )
    row = {"fragment_n": action.fragment_n, "n": action.n, "without": int_array(without)}
    return db.find(sql, **row) is not None


class PastAction(NamedTuple):
    """One past action on a fragment, undone or not."""

    at: datetime
    verb: ActionVerb
    undone: bool


def actions_of_fragment(db: Connection, fragment_n: int) -> list[PastAction]:
    """Return the actions on a fragment, oldest first."""
    sql = "SELECT at, verb, undone FROM actions WHERE fragment_n = :n ORDER BY n"
    return [unpack_record(PastAction, row) for row in db.rows(sql, n=fragment_n)]


def actions_of_same_batch(db: Connection, action: Action, *, undone: bool = False) -> list[Action]:
    """Return the actions of the same time and batch that are in effect, or undone, in order."""
    sql = (
        "SELECT n, at, verb, fragment_n, before FROM actions"
        f" WHERE {_UNDONE if undone else _STANDS} AND at = :at ORDER BY n"
    )
    same_time = map(_action, db.rows(sql, at=clock.to_us(action.at)))
    return [one for one in same_time if one.before.batch == action.before.batch]


def _action(row: Row) -> Action:
    return unpack_record(Action, row, before=unpack_snapshot)


def mark_actions_undone(db: Connection, actions: Iterable[tuple[int, UndoSnapshot]]) -> None:
    """Record that actions were undone, one after the other, with what redoing them needs."""
    sql = "SELECT coalesce(max(undone), :final) FROM actions WHERE undone > :final"
    last = int(db.value(sql, final=_FINAL))
    for place, (n, before) in enumerate(actions, last + 1):
        db.update("actions", n, before=pack_snapshot(before), undone=place)
    _count_undo(db)


def mark_action_redone(db: Connection, n: int) -> None:
    """Record that an action is in effect again."""
    db.update("actions", n, undone=0)
    _count_undo(db)


def _count_undo(db: Connection) -> None:
    """Count an undo or a redo: no number or time in the table shows it without reading all rows."""
    db.run(
        "INSERT INTO meta (key, value) VALUES ('undo_changes', '1')"
        " ON CONFLICT (key) DO UPDATE SET value = CAST(meta.value AS INTEGER) + 1"
    )
