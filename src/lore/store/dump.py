"""Dump: every record that is not derived, as plain values, out and in again."""

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
    changes,
    claims,
    curation,
    distillations,
    forgetting,
    fragments,
    items,
    keywords,
    session_states,
    spend,
    staged_turns,
    watermarks,
)
from lore.store.packing import (
    unpack_json,
    unpack_key,
    unpack_parts,
    unpack_role,
)
from lore.store.sqlite import Connection, id_text
from lore.text.entities import Mention

Line = dict[str, Any]

_PAGE = 1_000

_FRAGMENT_STATE = (
    "access_count", "last_accessed", "last_reinforced", "relevance", "superseded_by",
    "valid_from", "valid_to", "updated_at", "version", "deleted_at", "boost", "boosted_at",
    "overview_at",
)  # fmt: skip


def everything(db: Connection) -> Iterator[Line]:
    """Yield all records in an order in which they can be read back."""
    for id_, path, remote, name, at in db.rows(
        "SELECT id, path, remote, name, created_at FROM projects ORDER BY n"
    ):
        yield {"record": "project", "id": id_, "path": path, "remote": remote, "name": name,
               "created_at": at}  # fmt: skip
    yield from _sessions(db)
    yield from _messages(db)
    yield from _distillations(db)
    yield from _fragments(db)
    for record, (names, sql) in _BESIDE.items():
        for row in db.rows(sql):
            line = {"record": record, **dict(zip(names, row, strict=True))}
            if record == "claim":
                line["key"] = unpack_key(line["key"])
            yield line


_BESIDE = {
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
    "spend": (
        ("key", "at", "session_id", "project_id", "purpose", "model", "usage", "usd"),
        "SELECT e.key, e.at, s.id, p.id, e.purpose, e.model, e.usage, e.usd FROM spend e"
        " LEFT JOIN sessions s ON s.n = e.session_n LEFT JOIN projects p ON p.n = e.project_n"
        " ORDER BY e.n",
    ),
    "tombstone": (
        ("id", "at", "source"),
        "SELECT id, at, source FROM tombstones ORDER BY seq",
    ),
}
"""What is kept beside the items, in an order in which it can be read back."""


def _sessions(db: Connection) -> Iterator[Line]:
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
    """Read a long result by pages; the statement takes :after and :page, and begins with n."""
    after = 0
    while rows := db.rows(sql, after=after, page=_PAGE):
        yield from rows
        after = rows[-1][0]


def _messages(db: Connection) -> Iterator[Line]:
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
            "parts": [_part(part) for part in unpack_parts(parts)],
            "origin": origin,
            "model": model,
            "usage": unpack_json(usage) if usage else {},
            "created_at": at,
            "channel": way,
        }


def _part(part: Part) -> Line:
    named = asdict(part)
    return {name: value for name, value in named.items() if value or name in ("kind", "text")}


def _distillations(db: Connection) -> Iterator[Line]:
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


def _fragments(db: Connection) -> Iterator[Line]:
    names = ("id", "content", "summary", "depth", "kind", "payload", "importance", "confidence",
             "origin", "trust", "source_messages", "metadata", "project_id", "session_id",
             "created_at", *_FRAGMENT_STATE)  # fmt: skip
    state = ", ".join(f"f.{name}" for name in _FRAGMENT_STATE)
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
    """Tell whether an item is here already."""
    return items.find_number(db, id_) is not None


def numbers_of(db: Connection, ids: Sequence[str]) -> list[int]:
    """Return the numbers of those of the ids that are here."""
    found = (_number(db, "items", id_) for id_ in ids)
    return [n for n in found if n is not None]


def _number(db: Connection, table: str, id_: str | None) -> int | None:
    """Return the number of what an import refers to; None if there is none or no more."""
    if id_ is None:
        return None
    if table == "items":
        n = items.find_number(db, id_)
    else:
        n = db.value(f"SELECT n FROM {table} WHERE id = :id", id=id_)
    if n is None and table in _ALIASED:
        n = db.value(f"SELECT {_ALIASED[table]} FROM aliases WHERE id = :id", id=id_)
    if n is None and not changes.buried(db, [id_]):
        msg = f"'{id_}' is referred to, but the import has not brought it."
        raise InvalidInput(msg)
    return None if n is None else int(n)


_ALIASED = {"projects": "project_n", "sessions": "session_n"}


def session_number(db: Connection, id_: str) -> int:
    """Return the number of a session that was imported before."""
    n = _number(db, "sessions", id_)
    if n is None:
        msg = f"Session '{id_}' was forgotten, but the import has more of it."
        raise InvalidInput(msg)
    return n


def add_project(db: Connection, line: Line, _now: datetime) -> bool:
    """Bring a project in; one that is here under another id takes what belongs to it."""
    known = db.find(
        "SELECT n, id FROM projects WHERE id = :id OR path = :path ORDER BY id <> :id",
        **_fields(line, "id", "path"),
    )
    if known:
        _alias(db, "project_n", line["id"], *known)
        return False
    db.run(
        "INSERT INTO projects (id, path, remote, name, created_at)"
        " VALUES (:id, :path, :remote, :name, :created_at)",
        **_fields(line, "id", "path", "remote", "name", "created_at"),
    )
    return True


def add_session(db: Connection, line: Line, _now: datetime) -> bool:
    """Bring a session in; one that is here under another id takes what belongs to it."""
    known = db.find(
        "SELECT n, id FROM sessions WHERE id = :id"
        " OR (agent = :agent AND external_id = :external_id) ORDER BY id <> :id",
        **_fields(line, "id", "agent", "external_id"),
    )
    if known:
        _alias(db, "session_n", line["id"], *known)
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


def _alias(db: Connection, column: str, id_: str, n: int, own_id: str) -> None:
    """Remember that another memory has a record of ours under another id."""
    if id_ != own_id:
        db.run(
            f"INSERT INTO aliases (id, {column}) VALUES (:id, :n)"
            f" ON CONFLICT (id) DO UPDATE SET {column} = excluded.{column}",
            id=id_,
            n=n,
        )


def add_distillation(db: Connection, line: Line, now: datetime) -> bool:
    """Bring a distillation in, unless it is here."""
    if has_item(db, line["id"]):
        return False
    session_n = session_number(db, line["session_id"])
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
        sources=tuple(tuple(told) for told in line["sources"]),
    )
    distillations.add(db, session_n, record, now=now)
    return True


def add_fragment(db: Connection, line: Line, mentioned: Sequence[Mention], now: datetime) -> None:
    """Bring a fragment in with the state it had."""
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
    state = _fields(line, *_FRAGMENT_STATE)
    if state["superseded_by"] and changes.buried(db, [state["superseded_by"]]):
        state |= {"superseded_by": None, "valid_to": None}
    assignments = ", ".join(f"{name} = :{name}" for name in _FRAGMENT_STATE)
    db.run(
        f"UPDATE fragments SET {assignments} WHERE n = :n",
        n=n,
        **state,
    )
    fragments.reindex(db, n)


def add_version(db: Connection, line: Line, _now: datetime) -> bool:
    """Bring a former version of a fragment in, unless it is here or was forgotten."""
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


def add_edge(db: Connection, line: Line, _now: datetime) -> bool:
    """Bring an edge in, unless it is here or one of its ends was forgotten."""
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


def add_watermark(db: Connection, line: Line, _now: datetime) -> bool:
    """Bring a watermark in, unless the source is known here."""
    if watermarks.find(db, line["source"]):
        return False
    fields = _fields(line, *watermarks.FIELDS) | {"updated_at": clock.from_us(line["updated_at"])}
    watermarks.put_file(
        db,
        Watermark(line["source"], None, **fields),
        session_n=_number(db, "sessions", line["session_id"]),
    )
    return True


def add_claim(db: Connection, line: Line, _now: datetime) -> bool:
    """Bring a claim in, unless it is here or its message is not."""
    message_n = _number(db, "items", line["message_id"])
    session_n = _number(db, "sessions", line["session_id"])
    if message_n is None or session_n is None:
        return False
    return claims.put(db, session_n, line["channel"], [(line["key"], message_n)])


def add_staged_turn(db: Connection, line: Line, _now: datetime) -> bool:
    """Bring a staged turn in, unless it is here or its session was forgotten."""
    n, key = _number(db, "sessions", line["session_id"]), line["key"]
    if n is None or any(turn.key == key for turn in staged_turns.of_session(db, n)):
        return False
    staged_turns.put(db, n, key, line["body"], now=clock.from_us(line["created_at"]))
    return True


def add_session_state(db: Connection, line: Line, _now: datetime) -> bool:
    """Bring a value of a session in, unless it has one or was forgotten."""
    n, name = _number(db, "sessions", line["session_id"]), line["name"]
    if n is None or session_states.find(db, n, name) is not None:
        return False
    at = clock.from_us(line["updated_at"])
    session_states.put(db, n, name, orjson.loads(line["value"]), now=at)
    return True


def add_curation(db: Connection, line: Line, _now: datetime) -> bool:
    """Bring in how far a session was curated, unless that is known or it was forgotten."""
    n = _number(db, "sessions", line["session_id"])
    if n is None or curation.find_mark(db, n) >= line["ordinal"]:
        return False
    curation.advance(db, n, line["ordinal"], now=clock.from_us(line["at"]))
    return True


def add_confirmation(db: Connection, line: Line, _now: datetime) -> bool:
    """Bring in that a fragment holds in a project, unless that is known or one was forgotten."""
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


def add_spend(db: Connection, line: Line, _now: datetime) -> bool:
    """Bring an entry of the spend ledger in, unless it is here."""
    entry = Spend(
        at=clock.from_us(line["at"]),
        usage=orjson.loads(line["usage"]),
        **_fields(line, "key", "purpose", "model", "usd"),
    )
    session_n = _number(db, "sessions", line["session_id"])
    project_n = _number(db, "projects", line["project_id"])
    return spend.add(db, entry, session_n=session_n, project_n=project_n)


def add_tombstone(db: Connection, line: Line, now: datetime) -> bool:
    """Forget here what was forgotten elsewhere; tell whether that was news."""
    id_ = line["id"]
    if changes.buried(db, [id_]):
        return False
    forgetting.apply_tombstones(db, {id_: line.get("source", "")}, now=now)
    return True


def _fields(line: Line, *names: str) -> Line:
    return {name: line[name] for name in names}


ADDERS: dict[str, Callable[[Connection, Line, datetime], bool]] = {
    "project": add_project,
    "session": add_session,
    "distillation": add_distillation,
    "version": add_version,
    "edge": add_edge,
    "watermark": add_watermark,
    "claim": add_claim,
    "staged_turn": add_staged_turn,
    "session_state": add_session_state,
    "curation": add_curation,
    "confirmation": add_confirmation,
    "spend": add_spend,
    "tombstone": add_tombstone,
}
"""How each kind of record is brought in, but for those that need more than the store."""
