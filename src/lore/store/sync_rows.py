"""What sync exchanges, read from the tables: records in parts that change on their own.

References name what they mean on every machine: a project by its remote or path, a session by its
agent and the agent's own name for it. Each record carries what is needed to create these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from lore import clock
from lore.store import native_rows, sync_task_rows
from lore.store.codec import pack_json, unpack_json, unpack_key, unpack_parts, unpack_role
from lore.store.sql_connection import Connection, Row, among, id_text, int_array
from lore.store.sync_shapes import (
    PROJECT_COLUMNS,
    SESSION_COLUMNS,
    SESSION_FROM,
    KindReader,
    StoredRecord,
    SyncKind,
    Values,
    make_project,
    make_references,
    make_session,
    message_identity,
    project_key,
    session_identity,
    session_key,
    text_digest,
)

_DAY_US = 86_400_000_000

_PAGE = 500


def _read(
    kind: KindReader, db: Connection, condition: str, params: Mapping[str, Any]
) -> Iterator[StoredRecord]:
    """Yield the records of a kind that meet an SQL condition with its parameters."""
    seen = set()
    for row in db.rows(f"{kind.select} {condition} {kind.order}", **params):
        record = kind.make(row)
        if record.key not in seen:
            seen.add(record.key)
            yield record


def _read_pages(
    kind: KindReader, db: Connection, condition: str, params: Mapping[str, Any]
) -> Iterator[StoredRecord]:
    """Yield the records of a kind that has too many for one list."""
    sql = f"{kind.select} {condition} AND {kind.number} > :after {kind.order} LIMIT {_PAGE}"
    after = 0
    while rows := db.rows(sql, after=after, **params):
        yield from map(kind.make, rows)
        after = rows[-1][0]


_SESSIONS = (
    f"SELECT s.n, s.title, s.files, s.branch, s.last_message_at, {SESSION_COLUMNS},"
    " q.id, q.agent, q.external_id, q.started_at, NULL, '', ''"
    f" FROM sessions s {SESSION_FROM} LEFT JOIN sessions q ON q.n = s.parent_n WHERE"
)


def _session_record(row: Row) -> StoredRecord:
    n, title, files, branch, last_at, *rest = row
    own, parent = make_session(rest[:7]), make_session(rest[7:])
    assert own is not None
    names = {"title": title, "files": files, "branch": branch}
    place = {"project": project_key(own.project), "parent": session_key(parent)}
    return StoredRecord(
        "session",
        own.id,
        n,
        {"names": (names, last_at), "place": (place, own.started_at)},
        make_references(session=own, parent=parent),
        session_identity(own.agent, own.external_id),
    )


_MESSAGES = (
    f"SELECT m.n, {id_text('i.id')}, m.ordinal, m.channel, m.key, m.role, m.speaker, m.parts,"
    f" m.origin, m.model, m.usage, i.created_at, {SESSION_COLUMNS} FROM messages m"
    f" JOIN items i ON i.n = m.n JOIN sessions s ON s.n = m.session_n {SESSION_FROM} WHERE"
)


def _message_record(row: Row) -> StoredRecord:
    n, id_, ordinal, channel, key, role, speaker, parts, origin, model, usage, at, *rest = row
    session = make_session(rest)
    value = {
        "session": session_key(session),
        "channel": channel,
        "key": unpack_key(key),
        "role": unpack_role(role),
        "speaker": speaker,
        "parts": [_part(part) for part in unpack_parts(parts)],
        "origin": origin,
        "model": model,
        "usage": unpack_json(usage) if usage else {},
        "created_at": at,
    }
    identity = message_identity(value["session"], channel, value["key"])
    references = make_references(session=session) | {"ordinal": ordinal}
    return StoredRecord("message", id_, n, {"self": (value, at)}, references, identity)


def _part(part: Any) -> dict[str, Any]:
    fields = {name: getattr(part, name) for name in ("name", "call_id", "origin", "failed")}
    filled = {name: value for name, value in fields.items() if value}
    return {"kind": part.kind, "text": part.text, **filled}


_DISTILLATIONS = (
    f"SELECT d.n, {id_text('i.id')}, d.generation, d.text, d.from_message, d.to_message,"
    f" d.source_tokens, d.sources, d.archived, i.created_at, {SESSION_COLUMNS} FROM distillations d"
    f" JOIN items i ON i.n = d.n JOIN sessions s ON s.n = d.session_n {SESSION_FROM} WHERE"
)


def _distillation_record(row: Row) -> StoredRecord:
    n, id_, generation, text, first, last, tokens, sources, archived, at, *rest = row
    session = make_session(rest)
    value = {
        "session": session_key(session),
        "generation": generation,
        "text": text,
        "from_message": first,
        "to_message": last,
        "source_tokens": tokens,
        "sources": unpack_json(sources),
        "created_at": at,
    }
    values: Values = {"self": (value, at), "archived": (bool(archived), at)}
    return StoredRecord("distillation", id_, n, values, make_references(session=session), id_)


_FRAGMENT_TEXT = ("content", "summary", "kind", "payload", "origin", "trust", "metadata")
_EVIDENCE = ("confidence", "importance", "source_messages", "updated_at")
_VALIDITY = ("superseded_by", "valid_from", "valid_to")
_SHOWN = ("deleted_at", "archived_at")
_FRAGMENT_COLUMNS = (*_FRAGMENT_TEXT, *_EVIDENCE, *_VALIDITY, *_SHOWN)
_PACKED = ("payload", "metadata", "source_messages")

FRAGMENT_REGISTERS: Mapping[str, tuple[str, ...]] = {
    "text": _FRAGMENT_TEXT,
    "evidence": _EVIDENCE,
    "validity": _VALIDITY,
    "shown": _SHOWN,
}
"""The registers of a fragment that are columns. Text and whose words it is change together: one
machine's words must not get another's origin."""

_FRAGMENTS = (
    f"SELECT f.n, {id_text('i.id')}, i.created_at, f.last_accessed,"
    f" {', '.join(f'f.{name}' for name in _FRAGMENT_COLUMNS)},"
    " o.path, o.remote, o.name, s.id, s.agent, s.external_id, s.started_at,"
    f" {PROJECT_COLUMNS} FROM fragments f JOIN items i ON i.n = f.n"
    " LEFT JOIN projects o ON o.n = i.project_n LEFT JOIN sessions s ON s.n = i.session_n"
    f" {SESSION_FROM} WHERE"
)


def _fragment_record(row: Row) -> StoredRecord:
    n, id_, created_at, accessed, *rest = row
    fields = dict(zip(_FRAGMENT_COLUMNS, rest, strict=False))
    for name in _PACKED:
        fields[name] = unpack_json(fields[name])
    # A note is in a file of one machine; elsewhere it is knowledge without a file.
    fields["metadata"] = native_rows.without_note(fields["metadata"])
    places = rest[len(_FRAGMENT_COLUMNS) :]
    project, session = make_project(*places[:3]), make_session(places[3:])
    at = {
        "text": fields["updated_at"],
        "evidence": fields["updated_at"],
        "validity": fields["valid_to"] or created_at,
        "shown": fields["deleted_at"] or fields["archived_at"] or created_at,
    }
    values: Values = {
        name: ({column: fields[column] for column in columns}, at[name])
        for name, columns in FRAGMENT_REGISTERS.items()
    }
    values["self"] = ({"created_at": created_at}, created_at)
    place = {"project": project_key(project), "session": session_key(session)}
    values["place"] = (place, created_at)
    values["use"] = ((accessed or 0) // _DAY_US, accessed or created_at)
    references = make_references(project=project, session=session)
    return StoredRecord("fragment", id_, n, values, references, id_)


_VERSIONS = (
    f"SELECT v.fragment_n, {id_text('i.id')}, v.content, v.summary, v.changed_at, v.reason"
    " FROM fragment_versions v JOIN items i ON i.n = v.fragment_n WHERE"
)


def _version_record(row: Row) -> StoredRecord:
    """Return a former text; one that was restored and replaced again has several rows."""
    n, id_, content, summary, changed_at, reason = row
    key = f"{id_}/{text_digest(content, summary)}"
    value = {"content": content, "summary": summary, "changed_at": changed_at, "reason": reason}
    return _single("version", key, n, value, changed_at)


def _single(
    kind: SyncKind, key: str, n: int | None, value: Any, at: int | None, **references: Any
) -> StoredRecord:
    """Return a record with one register, whose key is the same on all machines."""
    return StoredRecord(kind, key, n, {"self": (value, at)}, references, key)


_ENDS = "FROM edges e JOIN items a ON a.n = e.source_n JOIN items b ON b.n = e.target_n WHERE"

_PARENTS = (
    f"SELECT e.target_n, {id_text('b.id')}, {id_text('a.id')}, e.created_at {_ENDS}"
    " e.kind = 'hierarchical' AND"
)


def _parent_record(row: Row) -> StoredRecord:
    n, child, parent, at = row
    return _single("parent", child, n, parent, at)


_EDGES = (
    f"SELECT e.source_n, {id_text('a.id')}, {id_text('b.id')}, e.kind, e.weight, e.note,"
    f" e.created_at {_ENDS} e.kind <> 'hierarchical' AND"
)


def _edge_record(row: Row) -> StoredRecord:
    n, source, target, kind, weight, note, at = row
    value = {"note": note, "created_at": at}
    if kind != "associative":  # its weight decays on each machine
        value["weight"] = weight
    return _single("edge", f"{source}/{target}/{kind}", n, value, at, weight=weight)


_STATES = ("rejected", "suggested", "confirmed", "stands", "passing")

_FIRST_RANKS = {"confirmed": 1, "suggested": 2}
"""Of states that two machines derived of the same words, the more careful one is the later one."""

_INSTRUCTIONS = (
    f"SELECT s.item_n, {id_text('i.id')}, s.digest, m.channel, m.key, q.agent, q.external_id,"
    " s.state, s.text, s.created_at FROM standing s JOIN items i ON i.n = s.item_n"
    " LEFT JOIN messages m ON m.n = s.item_n LEFT JOIN sessions q ON q.n = m.session_n"
    " WHERE (s.state <> 'passing' OR m.n IS NOT NULL) AND"
)
_BY_STATE = " ".join(f"WHEN '{state}' THEN {place}" for place, state in enumerate(_STATES))


def _instruction_record(row: Row) -> StoredRecord:
    """Return the state of an instruction, and the rule if a message states it.

    Those of messages travel, since the machine that captured a message judged them in their
    context. Those of fragments are derived on each machine.
    """
    n, id_, digest, channel, message_key, agent, name, state, text, at = row
    first = at + _FIRST_RANKS.get(state, 0)
    item, rule = id_, None
    if channel is not None:
        item = message_identity(session_identity(agent, name), channel, unpack_key(message_key))
        rule = {"text": text, "created_at": at}
    values: Values = {"self": (state, first), "rule": (rule, at)}
    key = f"{id_}/{digest}"
    return StoredRecord("instruction", key, n, values, {}, f"{item}/{digest}")


_JUDGEMENTS = (
    f"SELECT j.a_n, {id_text('a.id')}, {id_text('b.id')}, j.verb, j.verdict, j.a_version,"
    " j.b_version, j.at, f.content, f.summary, g.content, g.summary"
    " FROM judgements j JOIN items a ON a.n = j.a_n JOIN items b ON b.n = j.b_n"
    " JOIN fragments f ON f.n = j.a_n JOIN fragments g ON g.n = j.b_n"
    " WHERE j.verb <> 'ask' AND j.a_version IN (0, f.version) AND j.b_version IN (0, g.version) AND"
)


def _judgement_record(row: Row) -> StoredRecord:
    """Return a decision on a pair that is about the present texts."""
    n, a, b, verb, verdict, a_version, b_version, at, *texts = row
    first = text_digest(*texts[:2]) if a_version else ""
    second = text_digest(*texts[2:]) if b_version else ""
    ends = [(a, first), (b, second)]
    if verb != "reflect":  # the first of a pair is the one with the lower number here
        ends.sort()
    key = "/".join((ends[0][0], ends[1][0], verb))
    value = {"verdict": verdict, "a_text": ends[0][1], "b_text": ends[1][1], "at": at}
    return _single("judgement", key, n, value, at)


def _tombstone_record(row: Row) -> StoredRecord:
    id_, at, source = row
    return _single("forget", id_, None, {"source": source}, at)


_TOMBSTONES = KindReader(
    "SELECT t.id, t.at, t.source FROM tombstones t WHERE", "ORDER BY t.seq", _tombstone_record, ""
)

_KINDS: Mapping[SyncKind, KindReader] = {
    "forget": _TOMBSTONES,
    "session": KindReader(_SESSIONS, "ORDER BY s.n", _session_record, "s.n"),
    "message": KindReader(_MESSAGES, "ORDER BY m.n", _message_record, "m.n"),
    "distillation": KindReader(_DISTILLATIONS, "ORDER BY d.n", _distillation_record, "d.n"),
    "fragment": KindReader(_FRAGMENTS, "ORDER BY f.n", _fragment_record, "f.n"),
    "version": KindReader(
        _VERSIONS, "ORDER BY v.fragment_n, v.version", _version_record, "v.fragment_n"
    ),
    "parent": KindReader(_PARENTS, "ORDER BY e.target_n, e.source_n", _parent_record, "e.target_n"),
    "edge": KindReader(
        _EDGES, "ORDER BY e.source_n, e.target_n, e.kind", _edge_record, "e.source_n"
    ),
    "instruction": KindReader(
        _INSTRUCTIONS,
        f"ORDER BY s.item_n, s.digest, CASE s.state {_BY_STATE} END, s.n",
        _instruction_record,
        "s.item_n",
    ),
    **sync_task_rows.READERS,
    "judgement": KindReader(
        _JUDGEMENTS, "ORDER BY j.a_n, j.b_n, j.verb", _judgement_record, "j.a_n"
    ),
}

KINDS: tuple[SyncKind, ...] = tuple(_KINDS)
"""In an order in which most records find what they refer to."""

MUTABLE: tuple[SyncKind, ...] = tuple(k for k in KINDS if k not in ("message", "forget"))
"""Kinds of which all records are compared with the change log."""


def read_all(db: Connection, kind: SyncKind) -> Iterator[StoredRecord]:
    """Yield all records of a kind."""
    return _select(kind, db, "1 = 1", {})


def read_numbers(db: Connection, kind: SyncKind, ns: Sequence[int]) -> Iterator[StoredRecord]:
    """Yield the records of a kind that belong to some numbers."""
    if not len(ns):
        return iter(())
    return _select(kind, db, among(_KINDS[kind].number, "ns"), {"ns": int_array(ns)})


def _select(
    kind: SyncKind, db: Connection, condition: str, params: Mapping[str, Any]
) -> Iterator[StoredRecord]:
    read = _read_pages if kind == "message" else _read
    return read(_KINDS[kind], db, condition, params)


def read_tombstones_after(db: Connection, seq: int) -> Iterator[StoredRecord]:
    """Yield the tombstones after a change number."""
    return _read(_TOMBSTONES, db, "t.seq > :seq", {"seq": seq})


def find_tombstone(db: Connection, id_: str) -> StoredRecord | None:
    """Return the tombstone with an id, or None."""
    return next(_read(_TOMBSTONES, db, "t.id = :id", {"id": id_}), None)


class KnownRecord(NamedTuple):
    """An entry of the change log."""

    kind: SyncKind
    key: str
    n: int | None
    seq: int
    state: str


_KNOWN = "SELECT kind, key, n, seq, state FROM sync_records"


def all_known(db: Connection, kind: SyncKind) -> dict[str, KnownRecord]:
    """Return the entries of a kind by key."""
    rows = db.rows(f"{_KNOWN} WHERE kind = :kind", kind=kind)
    return {row[1]: KnownRecord(*row) for row in rows}


def find_known(db: Connection, kind: SyncKind, key: str) -> KnownRecord | None:
    """Return the entry of a record, or None."""
    row = db.find(f"{_KNOWN} WHERE kind = :kind AND key = :key", kind=kind, key=key)
    return None if row is None else KnownRecord(*row)


def put_known(
    db: Connection, kind: SyncKind, key: str, *, n: int | None, state: str, via: str = ""
) -> None:
    """Record that a record changed, by a peer or here; it gets the next number."""
    row = {"kind": kind, "key": key, "n": n, "state": state, "via": via}
    # Counted apart from the rows: a number of a row that was deleted must not be given again.
    seq = db.value(
        "INSERT INTO meta (key, value) VALUES (:name, '1') ON CONFLICT (key)"
        " DO UPDATE SET value = CAST(meta.value AS INTEGER) + 1 RETURNING value",
        name=_SEQ,
    )
    db.upsert("sync_records", ("kind", "key"), seq=int(seq), **row)


def set_number(db: Connection, kind: SyncKind, key: str, n: int | None) -> None:
    """Store the row of a record that has waited for another."""
    db.run(
        "UPDATE sync_records SET n = :n WHERE kind = :kind AND key = :key"
        " AND n IS DISTINCT FROM :n",
        n=n,
        kind=kind,
        key=key,
    )


def newest_seq(db: Connection) -> int:
    """Return the number of the latest change."""
    return int(db.value("SELECT value FROM meta WHERE key = :key", key=_SEQ) or 0)


def remove_known(db: Connection, kind: SyncKind, key: str) -> None:
    """Drop an entry."""
    db.run("DELETE FROM sync_records WHERE kind = :kind AND key = :key", kind=kind, key=key)


def remove_known_about(db: Connection, ids: Sequence[str]) -> None:
    """Drop the entries and the waiting records of what was forgotten.

    Entries of edges to it are dropped when the change log is compared with the edges.
    """
    used = "SELECT 1 FROM sync_records UNION ALL SELECT 1 FROM sync_pending LIMIT 1"
    if db.find(used) is None:
        return  # this home was never synced
    for id_ in ids:
        for kind in KINDS:
            if kind != "forget":
                db.run(
                    "DELETE FROM sync_records WHERE kind = :kind"
                    " AND (key = :id OR (key > :low AND key < :high))",
                    kind=kind,
                    id=id_,
                    low=f"{id_}/",
                    high=f"{id_}0",
                )
        db.run(
            "DELETE FROM sync_pending WHERE waits_for = :id OR key = :id OR key LIKE :first"
            " OR key LIKE :inside OR (waits_for = :newer AND instr(body, :id) > 0)",
            id=id_,
            newer=_NEWER,
            first=f"{id_}/%",
            inside=f"%/{id_}/%",
        )


def changes_after(
    db: Connection, seq: int, *, without: str, limit: int
) -> list[tuple[KnownRecord, int]]:
    """Return entries after a number in order, except those that a peer brought, with their seq."""
    rows = db.rows(
        f"{_KNOWN} WHERE seq > :seq AND (:without = '' OR via <> :without)"
        " ORDER BY seq LIMIT :limit",
        seq=seq,
        without=without,
        limit=limit,
    )
    return [(KnownRecord(*row), row[3]) for row in rows]


def count_changes_after(db: Connection, seq: int, *, without: str) -> int:
    """Return how many entries there are after a number, except those that a peer brought."""
    return int(
        db.value(
            "SELECT count(*) FROM sync_records WHERE seq > :seq"
            " AND (:without = '' OR via <> :without)",
            seq=seq,
            without=without,
        )
    )


def put_pending(db: Connection, kind: SyncKind, key: str, *, waits_for: str, body: str) -> None:
    """Store a record until that arrives which it needs."""
    row = {"kind": kind, "key": key, "waits_for": waits_for, "body": body}
    db.upsert("sync_pending", ("kind", "key"), **row)


def remove_pending(db: Connection, kind: SyncKind, key: str) -> None:
    """Drop a waiting record."""
    db.run("DELETE FROM sync_pending WHERE kind = :kind AND key = :key", kind=kind, key=key)


def find_pending(db: Connection, kind: SyncKind, key: str) -> str | None:
    """Return a waiting record, or None."""
    sql = "SELECT body FROM sync_pending WHERE kind = :kind AND key = :key"
    body = db.value(sql, kind=kind, key=key)
    return None if body is None else str(body)


def pending_for(db: Connection, id_: str) -> list[str]:
    """Return the records that wait for an id."""
    sql = "SELECT body FROM sync_pending WHERE waits_for = :id ORDER BY kind, key"
    return db.column(sql, id=id_)


def pending_keys(db: Connection, kind: SyncKind) -> set[str]:
    """Return the keys of the waiting records of a kind."""
    return set(db.column("SELECT key FROM sync_pending WHERE kind = :kind", kind=kind))


_NEWER = "a newer Lore"
"""What records wait for that this version does not know."""


def keep_record(db: Connection, kind: str, key: str, body: str) -> None:
    """Store a record that this version does not know."""
    row = {"kind": f"newer {kind}", "key": key, "waits_for": _NEWER, "body": body}
    db.upsert("sync_pending", ("kind", "key"), **row)


def find_kept(db: Connection, kind: str, key: str) -> str | None:
    """Return a record that this version does not know, or None."""
    sql = "SELECT body FROM sync_pending WHERE kind = :kind AND key = :key"
    body = db.value(sql, kind=f"newer {kind}", key=key)
    return None if body is None else str(body)


def kept_records(db: Connection) -> list[str]:
    """Return the records that this version did not know when they arrived."""
    return pending_for(db, _NEWER)


def drop_kept(db: Connection, keys: Sequence[tuple[str, str]]) -> None:
    """Drop records that were applied by now."""
    for kind, key in keys:
        db.run(
            "DELETE FROM sync_pending WHERE kind = :kind AND key = :key",
            kind=f"newer {kind}",
            key=key,
        )


def count_pending(db: Connection) -> int:
    """Return how many records wait for others."""
    return int(db.value("SELECT count(*) FROM sync_pending"))


class PeerRow(NamedTuple):
    """How far this home and another one know each other's changes."""

    machine: str
    name: str = ""
    epoch: str = ""
    pulled: str = ""
    pushed: str = ""
    synced_at: int | None = None
    state_hash: str = ""
    problem: str = ""

    @property
    def is_known(self) -> bool:
        """Return whether the peer has ever said which machine it is."""
        return self.machine != self.name


def unknown_peer(name: str) -> PeerRow:
    """Return the row of a peer that has never answered: its name stands for the machine."""
    return PeerRow(name, name)


def get_peer(db: Connection, machine: str) -> PeerRow:
    """Return what is known of a peer; an empty row if that is nothing."""
    sql = f"SELECT {', '.join(PeerRow._fields)} FROM sync_peers WHERE machine = :machine"
    row = db.find(sql, machine=machine)
    return PeerRow(machine) if row is None else PeerRow(*row)


def all_peers(db: Connection) -> list[PeerRow]:
    """Return all peers, the one that was synced last first."""
    sql = f"SELECT {', '.join(PeerRow._fields)} FROM sync_peers ORDER BY synced_at DESC, machine"
    return [PeerRow(*row) for row in db.rows(sql)]


def clear_problem(db: Connection, name: str) -> None:
    """Note that the peer of a name answers again."""
    db.run("DELETE FROM sync_peers WHERE machine = :name", name=name)
    db.run("UPDATE sync_peers SET problem = '' WHERE name = :name", name=name)


def put_peer(db: Connection, peer: PeerRow) -> None:
    """Store what is known of a peer."""
    db.upsert("sync_peers", ("machine",), **peer._asdict())


_MACHINE, _SCANNED, _DELETED, _SEQ = "machine", "sync_scanned", "sync_deleted", "sync_seq"
_STALE_PAGES = "sync_stale_pages"


def add_deleted(db: Connection, ns: Sequence[int], now: datetime) -> None:
    """Note that items were deleted whose bytes are still in files: indexes, backups, logs."""
    db.upsert("meta", ("key",), key=_DELETED, value=pack_json(sorted({*get_deleted(db), *ns})))
    # Other processes clear their caches by this.
    db.upsert("meta", ("key",), key="forgotten_at", value=str(clock.to_us(now)))


def get_deleted(db: Connection) -> list[int]:
    """Return the items whose bytes are still to be erased from files."""
    packed = db.value("SELECT value FROM meta WHERE key = :key", key=_DELETED)
    return list(unpack_json(packed or "[]"))


def set_stale_pages(db: Connection, folders: Sequence[str]) -> None:
    """Note folders whose pages may still show what was forgotten."""
    if not folders:
        return
    known = sorted({*get_stale_pages(db), *folders})
    db.upsert("meta", ("key",), key=_STALE_PAGES, value=pack_json(known))


def get_stale_pages(db: Connection) -> list[str]:
    """Return the folders whose pages are to be written again."""
    packed = db.value("SELECT value FROM meta WHERE key = :key", key=_STALE_PAGES)
    return list(unpack_json(packed or "[]"))


def clear_stale_pages(db: Connection) -> None:
    """Note that all pages are written again."""
    db.run("DELETE FROM meta WHERE key = :key", key=_STALE_PAGES)


def clear_unfinished_forgets(db: Connection) -> None:
    """Note that nothing of what was forgotten is left in any file."""
    clear_deleted(db)
    clear_stale_pages(db)


def clear_deleted(db: Connection) -> None:
    """Note that the bytes of all deleted items are erased."""
    db.run("DELETE FROM meta WHERE key = :key", key=_DELETED)


def get_machine(db: Connection) -> tuple[str, str]:
    """Return the machine id of this database and the place of the file that got it, or ''."""
    value = db.value("SELECT value FROM meta WHERE key = :key", key=_MACHINE) or ""
    machine, _, place = str(value).partition(" ")
    return machine, place


def set_machine(db: Connection, machine: str, place: str) -> None:
    """Store the machine id."""
    db.upsert("meta", ("key",), key=_MACHINE, value=f"{machine} {place}")


def get_scanned(db: Connection) -> int:
    """Return up to which change of items the change log of sync is complete."""
    return int(db.value("SELECT value FROM meta WHERE key = :key", key=_SCANNED) or 0)


def set_scanned(db: Connection, seq: int) -> None:
    """Store up to which change of items the change log of sync is complete."""
    db.upsert("meta", ("key",), key=_SCANNED, value=str(seq))


def add_alias(db: Connection, id_: str, n: int) -> None:
    """Record the id that a message captured here has on another machine."""
    row = {"kind": "message", "key": id_, "n": n, "seq": 0, "via": "", "state": "{}"}
    db.insert_unless_exists("sync_records", **row)


def find_alias(db: Connection, id_: str) -> int | None:
    """Return the number of the message that has an id on another machine only."""
    sql = "SELECT n FROM sync_records WHERE kind = 'message' AND key = :id AND state = '{}'"
    return db.number(sql, id=id_)


def changed_messages(db: Connection, seq: int) -> list[int]:
    """Return the messages that were added or changed after a change of items."""
    return db.column(
        "SELECT DISTINCT m.n FROM changes c JOIN messages m ON m.n BETWEEN c.first_n AND c.last_n"
        " WHERE c.seq > :seq AND c.action <> 'forget' ORDER BY m.n",
        seq=seq,
    )


def day_start_us(day: int) -> int:
    """Return the first moment of a day that a register of use holds."""
    return day * _DAY_US
