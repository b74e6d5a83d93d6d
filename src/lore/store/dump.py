"""Dump every record that is not derived as plain values, and load such records with their state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import orjson

from lore import clock
from lore.errors import InvalidInput
from lore.records import Distillation, Part, Spend, Watermark
from lore.store import (
    distillations,
    fragments,
    hard_delete,
    history,
    items,
    keywords,
    message_dedup,
    messages,
    project_rows,
    sessions,
    spend,
    watermarks,
)
from lore.store.codec import unpack_json, unpack_key, unpack_parts, unpack_role
from lore.store.project_rows import SharedRow
from lore.store.sqlite import Connection, id_text
from lore.text.entities import Mention

Line = dict[str, Any]

_PAGE = 1_000

FRAGMENT_STATE = (
    "access_count", "last_accessed", "last_reinforced", "relevance", "superseded_by",
    "valid_from", "valid_to", "updated_at", "version", "deleted_at", "boost", "boosted_at",
    "overview_at",
)  # fmt: skip


def dump_records(db: Connection) -> Iterator[Line]:
    """Yield all records in an order in which they can be loaded."""
    for id_, path, remote, name, at in db.rows(
        "SELECT id, path, remote, name, created_at FROM projects ORDER BY n"
    ):
        yield {"record": "project", "id": id_, "path": path, "remote": remote, "name": name,
               "created_at": at}  # fmt: skip
    yield from _dump_sessions(db)
    yield from _dump_messages(db)
    yield from _dump_distillations(db)
    yield from _dump_fragments(db)
    for record, (names, sql) in _RELATED_RECORDS.items():
        for row in db.rows(sql):
            line = {"record": record, **dict(zip(names, row, strict=True))}
            if record == "claim":
                line["key"] = unpack_key(line["key"])
            yield line


_RELATED_RECORDS = {
    "watermark": (
        ("source", "session_id", *watermarks.FIELDS),
        f"SELECT w.source, s.id, {', '.join(f'w.{name}' for name in watermarks.FIELDS)}"
        " FROM watermarks w LEFT JOIN sessions s ON s.n = w.session_n ORDER BY w.source",
    ),
    "claim": (
        ("session_id", "channel", "key", "message_id"),
        f"SELECT s.id, c.channel, c.key, {id_text('i.id')} FROM claims c"
        " JOIN sessions s ON s.n = c.session_n"
        " JOIN items i ON i.n = c.message_n ORDER BY c.message_n, c.channel, c.key",
    ),
    "staged_turn": (
        ("session_id", "key", "body", "created_at"),
        "SELECT s.id, t.key, t.body, t.created_at FROM staged_turns t"
        " JOIN sessions s ON s.n = t.session_n ORDER BY t.n",
    ),
    "session_state": (
        ("session_id", "name", "value", "updated_at"),
        "SELECT s.id, t.name, t.value, t.updated_at FROM session_states t"
        " JOIN sessions s ON s.n = t.session_n ORDER BY t.session_n, t.name",
    ),
    "curation": (
        ("session_id", "ordinal", "at"),
        "SELECT s.id, c.ordinal, c.at FROM curations c JOIN sessions s ON s.n = c.session_n"
        " ORDER BY c.session_n",
    ),
    "confirmation": (
        ("fragment_id", "project_id", "times", "at"),
        f"SELECT {id_text('i.id')}, p.id, c.times, c.at FROM confirmations c"
        " JOIN items i ON i.n = c.fragment_n JOIN projects p ON p.n = c.project_n"
        " ORDER BY c.fragment_n, c.project_n",
    ),
    "judgement": (
        ("a_id", "b_id", "verb", "verdict", "a_version", "b_version", "at"),
        f"SELECT {id_text('a.id')}, {id_text('b.id')}, j.verb, j.verdict, j.a_version,"
        " j.b_version, j.at FROM judgements j JOIN items a ON a.n = j.a_n"
        " JOIN items b ON b.n = j.b_n ORDER BY j.a_n, j.b_n, j.verb",
    ),
    "shared": (
        ("entry", "fragment_id", "digest", "left_out"),
        f"SELECT s.entry, {id_text('i.id')}, s.digest, s.left_out FROM shared s"
        " JOIN items i ON i.n = s.fragment_n ORDER BY s.entry",
    ),
    "spend": (
        (
            "key",
            "at",
            "session_id",
            "project_id",
            "purpose",
            "model",
            "usage",
            "usd",
            "layer",
            "busts",
            "delay_ms",
            "without_usd",
        ),
        "SELECT e.key, e.at, s.id, p.id, e.purpose, e.model, e.usage, e.usd,"
        " e.layer, e.busts, e.delay_ms, e.without_usd FROM spend e"
        " LEFT JOIN sessions s ON s.n = e.session_n LEFT JOIN projects p ON p.n = e.project_n"
        " ORDER BY e.n",
    ),
    "tombstone": (
        ("id", "at", "source"),
        "SELECT id, at, source FROM tombstones ORDER BY seq",
    ),
}
"""Records beside the items, in an order in which they can be loaded."""


def _dump_sessions(db: Connection) -> Iterator[Line]:
    names = ("id", "external_id", "project_id", "agent", "title", "files", "branch",
             "parent_id", "started_at", "last_message_at", "state")  # fmt: skip
    rows = db.rows(
        "SELECT s.id, s.external_id, p.id, s.agent, s.title, s.files, s.branch, parent.id,"
        " s.started_at, s.last_message_at, s.state FROM sessions s"
        " LEFT JOIN projects p ON p.n = s.project_n"
        " LEFT JOIN sessions parent ON parent.n = s.parent_n ORDER BY s.n"
    )
    for row in rows:
        yield {"record": "session", **dict(zip(names, row, strict=True))}


def _pages(db: Connection, sql: str) -> Iterator[tuple[Any, ...]]:
    """Read a long result in pages; the statement takes :after and :page and selects n first."""
    after = 0
    while rows := db.rows(sql, after=after, page=_PAGE):
        yield from rows
        after = rows[-1][0]


def _dump_messages(db: Connection) -> Iterator[Line]:
    for row in _pages(
        db,
        f"SELECT m.n, {id_text('i.id')}, s.id, m.ordinal, m.key, m.role, m.speaker,"
        " m.parts, m.origin, m.model, m.usage, i.created_at, m.channel FROM messages m"
        " JOIN items i ON i.n = m.n JOIN sessions s ON s.n = m.session_n"
        " WHERE m.n > :after ORDER BY m.n LIMIT :page",
    ):
        _, id_, session_id, ordinal, key, role, speaker, parts, origin, model, usage, at, way = row
        yield {
            "record": "message",
            "id": id_,
            "session_id": session_id,
            "ordinal": ordinal,
            "key": unpack_key(key),
            "role": unpack_role(role),
            "speaker": speaker,
            "parts": [_part_fields(part) for part in unpack_parts(parts)],
            "origin": origin,
            "model": model,
            "usage": unpack_json(usage) if usage else {},
            "created_at": at,
            "channel": way,
        }


def _part_fields(part: Part) -> Line:
    fields = asdict(part)
    return {name: value for name, value in fields.items() if value or name in ("kind", "text")}


def _dump_distillations(db: Connection) -> Iterator[Line]:
    names = ("id", "session_id", "generation", "text", "from_message", "to_message",
             "source_tokens", "archived", "created_at", "sources")  # fmt: skip
    for row in _pages(
        db,
        f"SELECT d.n, {id_text('i.id')}, s.id, d.generation, d.text, d.from_message, d.to_message,"
        " d.source_tokens, d.archived, i.created_at, d.sources FROM distillations d"
        " JOIN items i ON i.n = d.n JOIN sessions s ON s.n = d.session_n"
        " WHERE d.n > :after ORDER BY d.n LIMIT :page",
    ):
        line = dict(zip(names, row[1:], strict=True))
        yield {"record": "distillation", **line, "sources": unpack_json(line["sources"])}


def _dump_fragments(db: Connection) -> Iterator[Line]:
    names = ("id", "content", "summary", "depth", "kind", "payload", "importance", "confidence",
             "origin", "trust", "source_messages", "metadata", "project_id", "session_id",
             "created_at", *FRAGMENT_STATE)  # fmt: skip
    state = ", ".join(f"f.{name}" for name in FRAGMENT_STATE)
    for row in _pages(
        db,
        f"SELECT f.n, {id_text('i.id')}, f.content, f.summary, f.depth, f.kind, f.payload,"
        " f.importance, f.confidence, f.origin, f.trust, f.source_messages, f.metadata, p.id, s.id,"
        f" i.created_at, {state} FROM fragments f JOIN items i ON i.n = f.n"
        " LEFT JOIN projects p ON p.n = i.project_n LEFT JOIN sessions s ON s.n = i.session_n"
        " WHERE f.n > :after ORDER BY f.n LIMIT :page",
    ):
        line = {"record": "fragment", **dict(zip(names, row[1:], strict=True))}
        for name in ("payload", "source_messages", "metadata"):
            line[name] = unpack_json(line[name])
        yield line
    for id_, version, content, summary, at, reason in db.rows(
        f"SELECT {id_text('i.id')}, v.version, v.content, v.summary, v.changed_at, v.reason"
        " FROM fragment_versions v JOIN items i ON i.n = v.fragment_n ORDER BY v.fragment_n, 2"
    ):
        yield {"record": "version", "fragment_id": id_, "version": version, "content": content,
               "summary": summary, "changed_at": at, "reason": reason}  # fmt: skip
    for source, target, kind, weight, note, at in db.rows(
        f"SELECT {id_text('a.id')}, {id_text('b.id')}, e.kind, e.weight, e.note, e.created_at"
        " FROM edges e"
        " JOIN items a ON a.n = e.source_n JOIN items b ON b.n = e.target_n"
        " ORDER BY e.source_n, e.target_n, e.kind"
    ):
        yield {"record": "edge", "source": source, "target": target, "kind": kind,
               "weight": weight, "note": note, "created_at": at}  # fmt: skip


def has_item(db: Connection, id_: str) -> bool:
    """Return whether an item exists."""
    return items.find_number(db, id_) is not None


def known_numbers(db: Connection, ids: Sequence[str]) -> list[int]:
    """Return the numbers of the ids that exist."""
    numbers = (_number(db, "items", id_) for id_ in ids)
    return [n for n in numbers if n is not None]


def _number(db: Connection, table: str, id_: str | None) -> int | None:
    """Return the number of a referenced record; None if there is none or it was forgotten."""
    if id_ is None:
        return None
    if table == "items":
        n = items.find_number(db, id_)
    else:
        n = db.value(f"SELECT n FROM {table} WHERE id = :id", id=id_)
    if n is None and table in _ALIASED:
        n = db.value(f"SELECT {_ALIASED[table]} FROM aliases WHERE id = :id", id=id_)
    if n is None and not history.find_tombstones(db, [id_]):
        msg = f"'{id_}' is referenced, but is not in the import."
        raise InvalidInput(msg)
    return None if n is None else int(n)


_ALIASED = {"projects": "project_n", "sessions": "session_n"}


def get_session_number(db: Connection, id_: str) -> int:
    """Return the number of a session that was loaded before."""
    n = _number(db, "sessions", id_)
    if n is None:
        msg = f"Session '{id_}' was forgotten, but the import contains more of it."
        raise InvalidInput(msg)
    return n


def load_project(db: Connection, line: Line, _now: datetime) -> bool:
    """Load a project; one that exists under another id gets an alias."""
    existing = db.find(
        "SELECT n, id FROM projects WHERE id = :id OR path = :path ORDER BY id <> :id",
        **_fields(line, "id", "path"),
    )
    if existing:
        _add_alias(db, "project_n", line["id"], *existing)
        return False
    db.run(
        "INSERT INTO projects (id, path, remote, name, created_at)"
        " VALUES (:id, :path, :remote, :name, :created_at)",
        **_fields(line, "id", "path", "remote", "name", "created_at"),
    )
    return True


def load_session(db: Connection, line: Line, _now: datetime) -> bool:
    """Load a session; one that exists under another id gets an alias."""
    existing = db.find(
        "SELECT n, id FROM sessions WHERE id = :id"
        " OR (agent = :agent AND external_id = :external_id) ORDER BY id <> :id",
        **_fields(line, "id", "agent", "external_id"),
    )
    if existing:
        _add_alias(db, "session_n", line["id"], *existing)
        return False
    names = ("id", "external_id", "agent", "title", "files", "branch", "started_at",
             "last_message_at", "state")  # fmt: skip
    n = db.value(
        "INSERT INTO sessions (id, external_id, project_n, agent, title, files, branch,"
        " parent_n, started_at, last_message_at, state)"
        " VALUES (:id, :external_id, :project_n, :agent,"
        " :title, :files, :branch, :parent_n, :started_at, :last_message_at, :state)"
        " RETURNING n",
        project_n=_number(db, "projects", line["project_id"]),
        parent_n=_number(db, "sessions", line["parent_id"]),
        **_fields(line, *names),
    )
    keywords.index_session(db, n)
    return True


def _add_alias(db: Connection, column: str, id_: str, n: int, own_id: str) -> None:
    if id_ != own_id:
        db.run(
            f"INSERT INTO aliases (id, {column}) VALUES (:id, :n)"
            f" ON CONFLICT (id) DO UPDATE SET {column} = excluded.{column}",
            id=id_,
            n=n,
        )


def load_distillation(db: Connection, line: Line, now: datetime) -> bool:
    """Load a distillation, unless it exists."""
    if has_item(db, line["id"]):
        return False
    session_n = get_session_number(db, line["session_id"])
    record = Distillation(
        id=line["id"],
        session_id=line["session_id"],
        generation=line["generation"],
        text=line["text"],
        from_message=line["from_message"],
        to_message=line["to_message"],
        tokens=0,
        source_tokens=line["source_tokens"],
        archived=bool(line["archived"]),
        created_at=clock.from_us(line["created_at"]),
        sources=tuple(tuple(ordinals) for ordinals in line["sources"]),
    )
    distillations.add_distillation(db, session_n, record, now=now)
    return True


def load_fragment(db: Connection, line: Line, mentioned: Sequence[Mention], now: datetime) -> None:
    """Load a fragment with its state."""
    names = ("id", "content", "summary", "depth", "kind", "payload", "importance", "confidence",
             "origin", "trust", "metadata")  # fmt: skip
    n = fragments.add(
        db,
        fragments.NewFragment(
            **_fields(line, *names),
            created_at=clock.from_us(line["created_at"]),
            project_n=_number(db, "projects", line["project_id"]),
            session_n=_number(db, "sessions", line["session_id"]),
            source_messages=tuple(line["source_messages"]),
            mentions=tuple(mentioned),
        ),
        now=now,
    )
    state = _fields(line, *FRAGMENT_STATE)
    if state["superseded_by"] and history.find_tombstones(db, [state["superseded_by"]]):
        state |= {"superseded_by": None, "valid_to": None}
    assignments = ", ".join(f"{name} = :{name}" for name in FRAGMENT_STATE)
    db.run(
        f"UPDATE fragments SET {assignments} WHERE n = :n",
        n=n,
        **state,
    )
    fragments.reindex(db, n)


def load_version(db: Connection, line: Line, _now: datetime) -> bool:
    """Load a former version of a fragment, unless it exists or was forgotten."""
    n = _number(db, "items", line["fragment_id"])
    if n is None:
        return False
    return bool(
        db.run(
            "INSERT INTO fragment_versions (fragment_n, version, content, summary, changed_at,"
            " reason) VALUES (:n, :version, :content, :summary, :changed_at, :reason)"
            " ON CONFLICT DO NOTHING",
            n=n,
            **_fields(line, "version", "content", "summary", "changed_at", "reason"),
        )
    )


def load_edge(db: Connection, line: Line, _now: datetime) -> bool:
    """Load an edge, unless it exists or one of its ends was forgotten."""
    source_n = _number(db, "items", line["source"])
    target_n = _number(db, "items", line["target"])
    if source_n is None or target_n is None:
        return False
    return bool(
        db.run(
            "INSERT INTO edges (source_n, target_n, kind, weight, note, created_at)"
            " VALUES (:source_n, :target_n, :kind, :weight, :note, :created_at)"
            " ON CONFLICT DO NOTHING",
            source_n=source_n,
            target_n=target_n,
            **_fields(line, "kind", "weight", "note", "created_at"),
        )
    )


def load_watermark(db: Connection, line: Line, _now: datetime) -> bool:
    """Load a watermark, unless its source has one."""
    if watermarks.find(db, line["source"]):
        return False
    fields = _fields(line, *watermarks.FIELDS) | {"updated_at": clock.from_us(line["updated_at"])}
    watermarks.put(
        db,
        Watermark(line["source"], None, **fields),
        session_n=_number(db, "sessions", line["session_id"]),
    )
    return True


def load_claim(db: Connection, line: Line, _now: datetime) -> bool:
    """Load a dedup claim, unless it exists or its message does not."""
    message_n = _number(db, "items", line["message_id"])
    session_n = _number(db, "sessions", line["session_id"])
    if message_n is None or session_n is None:
        return False
    return message_dedup.put_claims(db, session_n, line["channel"], [(line["key"], message_n)])


def load_staged_turn(db: Connection, line: Line, _now: datetime) -> bool:
    """Load a staged turn, unless it exists or its session was forgotten."""
    n, key = _number(db, "sessions", line["session_id"]), line["key"]
    if n is None or any(turn.key == key for turn in messages.find_staged_turns(db, n)):
        return False
    messages.stage_turn(db, n, key, line["body"], now=clock.from_us(line["created_at"]))
    return True


def load_session_state(db: Connection, line: Line, _now: datetime) -> bool:
    """Load a state of a session, unless it exists or the session was forgotten."""
    n, name = _number(db, "sessions", line["session_id"]), line["name"]
    if n is None or sessions.find_session_state(db, n, name) is not None:
        return False
    at = clock.from_us(line["updated_at"])
    sessions.put_session_state(db, n, name, orjson.loads(line["value"]), now=at)
    return True


def load_curation(db: Connection, line: Line, _now: datetime) -> bool:
    """Load how far a session was curated, unless the stored mark is as far or it was forgotten."""
    n = _number(db, "sessions", line["session_id"])
    if n is None or distillations.curated_up_to(db, n) >= line["ordinal"]:
        return False
    distillations.mark_curated(db, n, line["ordinal"], now=clock.from_us(line["at"]))
    return True


def load_confirmation(db: Connection, line: Line, _now: datetime) -> bool:
    """Load the confirmations of a fragment in a project, unless they exist or one was forgotten."""
    n = _number(db, "items", line["fragment_id"])
    project_n = _number(db, "projects", line["project_id"])
    if n is None or project_n is None:
        return False
    return bool(
        db.run(
            "INSERT INTO confirmations (fragment_n, project_n, times, at)"
            " VALUES (:n, :project_n, :times, :at) ON CONFLICT DO NOTHING",
            n=n,
            project_n=project_n,
            **_fields(line, "times", "at"),
        )
    )


def load_judgement(db: Connection, line: Line, _now: datetime) -> bool:
    """Load a decision about two fragments, unless it exists or one was forgotten.

    The first of a pair is the one with the lower number here; a reflection keeps its order.
    """
    ends = [(_number(db, "items", line[f"{end}_id"]), line[f"{end}_version"]) for end in "ab"]
    if line["verb"] != "reflect":
        ends.sort(key=lambda end: end[0] or 0)
    (a_n, a_version), (b_n, b_version) = ends
    if a_n is None or b_n is None:
        return False
    return bool(
        db.run(
            "INSERT INTO judgements (a_n, b_n, verb, verdict, a_version, b_version, at)"
            " VALUES (:a_n, :b_n, :verb, :verdict, :a_version, :b_version, :at)"
            " ON CONFLICT DO NOTHING",
            a_n=a_n,
            b_n=b_n,
            a_version=a_version,
            b_version=b_version,
            **_fields(line, "verb", "verdict", "at"),
        )
    )


def load_shared(db: Connection, line: Line, _now: datetime) -> bool:
    """Load an entry of a project's shared page, unless it exists or its fragment is gone."""
    n = _number(db, "items", line["fragment_id"])
    if n is None or project_rows.find_shared_entry(db, line["entry"]) is not None:
        return False
    project_rows.put_shared_entries(
        db, [SharedRow(line["entry"], n, line["digest"], bool(line["left_out"]))]
    )
    return True


def load_spend(db: Connection, line: Line, _now: datetime) -> bool:
    """Load an entry of the spend ledger, unless it exists."""
    entry = Spend(
        at=clock.from_us(line["at"]),
        usage=orjson.loads(line["usage"]),
        **_fields(line, "key", "purpose", "model", "usd"),
        layer=line.get("layer"),
        busts=bool(line.get("busts", 0)),
        delay_ms=line.get("delay_ms", 0),
        without_usd=line.get("without_usd", 0.0),
    )
    session_n = _number(db, "sessions", line["session_id"])
    project_n = _number(db, "projects", line["project_id"])
    return spend.add(db, entry, session_n=session_n, project_n=project_n)


def load_tombstone(db: Connection, line: Line, now: datetime) -> bool:
    """Forget what another memory forgot; return whether that is new."""
    id_ = line["id"]
    if history.find_tombstones(db, [id_]):
        return False
    hard_delete.apply_tombstones(db, {id_: line.get("source", "")}, now=now)
    return True


def _fields(line: Line, *names: str) -> Line:
    return {name: line[name] for name in names}


LOADERS: dict[str, Callable[[Connection, Line, datetime], bool]] = {
    "project": load_project,
    "session": load_session,
    "distillation": load_distillation,
    "version": load_version,
    "edge": load_edge,
    "watermark": load_watermark,
    "claim": load_claim,
    "staged_turn": load_staged_turn,
    "session_state": load_session_state,
    "curation": load_curation,
    "confirmation": load_confirmation,
    "judgement": load_judgement,
    "shared": load_shared,
    "spend": load_spend,
    "tombstone": load_tombstone,
}
"""The loader of each kind of record, except those that need more than the store."""
