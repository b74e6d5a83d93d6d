"""Dump every record that is not derived as plain values, and load such records with their state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from lore import clock
from lore.errors import InvalidInput
from lore.records import Distillation, Part, Spend, Watermark
from lore.store import (
    distillations,
    forgotten_names,
    forgotten_texts,
    fragments,
    hard_delete,
    history,
    items,
    keywords,
    message_dedup,
    sessions,
    spend,
    standing_instructions,
    task_tables,
    watermarks,
)
from lore.store.codec import unpack_json, unpack_key, unpack_parts, unpack_role
from lore.store.sql_connection import Connection, id_text
from lore.text.entities import Mention

Line = dict[str, Any]

_PAGE = 1_000

FRAGMENT_STATE = (
    "access_count", "last_accessed", "last_reinforced", "relevance", "superseded_by",
    "valid_from", "valid_to", "updated_at", "version", "deleted_at", "boost", "boosted_at",
    "overview_at", "archived_at",
)  # fmt: skip


def dump_records(db: Connection) -> Iterator[Line]:
    """Yield all records in an order in which they can be loaded."""
    yield from _dump_rows(db, "project")
    yield from _dump_rows(db, "session")
    yield from _dump_messages(db)
    yield from _dump_distillations(db)
    yield from _dump_fragments(db)
    for record in _RECORDS:
        if record in ("project", "session"):
            continue
        for line in _dump_rows(db, record):
            if record == "claim":
                line["key"] = unpack_key(line["key"])
            yield line


def _dump_rows(db: Connection, record: str) -> Iterator[Line]:
    names, sql = _RECORDS[record]
    for row in db.rows(sql):
        yield {"record": record, **dict(zip(names, row, strict=True))}


_RECORDS: dict[str, tuple[tuple[str, ...], str]] = {
    "project": (
        ("id", "path", "remote", "name", "created_at"),
        "SELECT id, path, remote, name, created_at FROM projects ORDER BY n",
    ),
    "session": (
        (
            "id", "external_id", "project_id", "agent", "title", "files", "branch", "parent_id",
            "started_at", "last_message_at", "state",
        ),
        "SELECT s.id, s.external_id, p.id, s.agent, s.title, s.files, s.branch, parent.id,"
        " s.started_at, s.last_message_at, s.state FROM sessions s"
        " LEFT JOIN projects p ON p.n = s.project_n"
        " LEFT JOIN sessions parent ON parent.n = s.parent_n ORDER BY s.n",
    ),
    "version": (
        ("fragment_id", "version", "content", "summary", "changed_at", "reason"),
        f"SELECT {id_text('i.id')}, v.version, v.content, v.summary, v.changed_at, v.reason"
        " FROM fragment_versions v JOIN items i ON i.n = v.fragment_n ORDER BY v.fragment_n, 2",
    ),
    "edge": (
        ("source", "target", "kind", "weight", "note", "created_at"),
        f"SELECT {id_text('a.id')}, {id_text('b.id')}, e.kind, e.weight, e.note, e.created_at"
        " FROM edges e JOIN items a ON a.n = e.source_n JOIN items b ON b.n = e.target_n"
        " ORDER BY e.source_n, e.target_n, e.kind",
    ),
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
    "instruction": (
        ("item_id", "digest", "state"),
        f"SELECT {id_text('i.id')}, s.digest, s.state FROM standing s JOIN items i"
        " ON i.n = s.item_n WHERE s.state IN ('confirmed', 'rejected') ORDER BY s.item_n, s.n",
    ),
    "shared": (
        ("entry", "fragment_id", "digest", "left_out"),
        f"SELECT s.entry, {id_text('i.id')}, s.digest, s.left_out FROM shared s"
        " JOIN items i ON i.n = s.fragment_n ORDER BY s.entry",
    ),
    "spend": (
        (
            "key", "at", "session_id", "project_id", "purpose", "model", "usage", "usd", "layer",
            "busts", "delay_ms", "without_usd",
        ),
        "SELECT e.key, e.at, s.id, p.id, e.purpose, e.model, e.usage, e.usd,"
        " e.layer, e.busts, e.delay_ms, e.without_usd FROM spend e"
        " LEFT JOIN sessions s ON s.n = e.session_n LEFT JOIN projects p ON p.n = e.project_n"
        " ORDER BY e.n",
    ),
    **{record: task_tables.dump_query(record) for record in task_tables.TABLES},
    "tombstone": (
        ("id", "at", "source"),
        "SELECT id, at, source FROM tombstones ORDER BY seq",
    ),
}  # fmt: skip
"""The names and the query of records without further decoding, in the order of loading."""


def _pages(db: Connection, sql: str) -> Iterator[tuple[Any, ...]]:
    """Read a long result in pages; the statement takes :after and :page and selects n first."""
    after = 0
    while rows := db.rows(sql, after=after, page=_PAGE):
        yield from rows
        after = rows[-1][0]


def _dump_messages(db: Connection) -> Iterator[Line]:
    names = ("id", "session_id", "ordinal", "key", "role", "speaker", "parts", "origin", "model",
             "usage", "created_at", "channel")  # fmt: skip
    for row in _pages(
        db,
        f"SELECT m.n, {id_text('i.id')}, s.id, m.ordinal, m.key, m.role, m.speaker,"
        " m.parts, m.origin, m.model, m.usage, i.created_at, m.channel FROM messages m"
        " JOIN items i ON i.n = m.n JOIN sessions s ON s.n = m.session_n"
        " WHERE m.n > :after ORDER BY m.n LIMIT :page",
    ):
        line = {"record": "message", **dict(zip(names, row[1:], strict=True))}
        line["key"] = unpack_key(line["key"])
        line["role"] = unpack_role(line["role"])
        line["parts"] = [_part_fields(part) for part in unpack_parts(line["parts"])]
        line["usage"] = unpack_json(line["usage"]) if line["usage"] else {}
        yield line


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
    if table == "tasks":
        return None if n is None else int(n)  # a task goes with its session and has no tombstone
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
    db.insert("projects", **_fields(line, *_RECORDS["project"][0]))
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
    n = db.insert_numbered(
        "sessions",
        project_n=_number(db, "projects", line["project_id"]),
        parent_n=_number(db, "sessions", line["parent_id"]),
        **_fields(line, *names),
    )
    keywords.index_session(db, n)
    return True


def _add_alias(db: Connection, column: str, id_: str, n: int, own_id: str) -> None:
    if id_ != own_id:
        db.upsert("aliases", ("id",), id=id_, **{column: n})


def load_distillation(db: Connection, line: Line, now: datetime) -> bool:
    """Load a distillation, unless it exists."""
    if has_item(db, line["id"]):
        return False
    session_n = get_session_number(db, line["session_id"])
    names = ("id", "session_id", "generation", "text", "from_message", "to_message",
             "source_tokens")  # fmt: skip
    record = Distillation(
        **_fields(line, *names),
        tokens=0,
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
    state = {name: line.get(name) for name in FRAGMENT_STATE}
    if state["superseded_by"] and history.find_tombstones(db, [state["superseded_by"]]):
        state |= {"superseded_by": None, "valid_to": None}
    db.update("fragments", n, **state)
    fragments.reindex(db, n)


class _References(NamedTuple):
    """The table of a record, its columns that refer to others, and its other columns.

    Each reference has the table and the name of the id.
    """

    table: str
    references: dict[str, tuple[str, str]]
    columns: tuple[str, ...]


_REFERENCES = {
    "version": _References(
        "fragment_versions",
        {"fragment_n": ("items", "fragment_id")},
        ("version", "content", "summary", "changed_at", "reason"),
    ),
    "edge": _References(
        "edges",
        {"source_n": ("items", "source"), "target_n": ("items", "target")},
        ("kind", "weight", "note", "created_at"),
    ),
    "staged_turn": _References(
        "staged_turns", {"session_n": ("sessions", "session_id")}, ("key", "body", "created_at")
    ),
    "confirmation": _References(
        "confirmations",
        {"fragment_n": ("items", "fragment_id"), "project_n": ("projects", "project_id")},
        ("times", "at"),
    ),
    "shared": _References(
        "shared", {"fragment_n": ("items", "fragment_id")}, ("entry", "digest", "left_out")
    ),
}


def _load_referring(db: Connection, line: Line, _now: datetime) -> bool:
    """Load a record, unless it exists or one that it refers to was forgotten."""
    table, references, columns = _REFERENCES[line["record"]]
    ns = {column: _number(db, kind, line[name]) for column, (kind, name) in references.items()}
    if None in ns.values():
        return False
    return db.insert_unless_exists(table, **_fields(line, *columns), **ns)


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
    pair = {"a_n": a_n, "b_n": b_n, "a_version": a_version, "b_version": b_version}
    values = _fields(line, "verb", "verdict", "at") | pair
    return db.insert_unless_exists("judgements", **values)


def load_instruction(db: Connection, line: Line, _now: datetime) -> bool:
    """Load the decision on an instruction, unless that was forgotten or is decided here."""
    n = _number(db, "items", line["item_id"])
    if n is None:
        return False
    return standing_instructions.load_decision(db, n, line["digest"], line["state"])


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
    if forgotten_names.find(db, [entry.model]):
        entry = replace(entry, model="")
    session_n = _number(db, "sessions", line["session_id"])
    project_n = _number(db, "projects", line["project_id"])
    return spend.add(db, entry, session_n=session_n, project_n=project_n)


def _load_task_row(db: Connection, line: Line, _now: datetime) -> bool:
    """Load a record of task memory, unless it exists or one that it refers to was forgotten."""
    return task_tables.load_row(db, line, lambda table, id_: _number(db, table, id_))


def load_tombstone(db: Connection, line: Line, now: datetime) -> bool:
    """Forget what another memory forgot; return whether that is new."""
    id_ = line["id"]
    tombstones = {id_: history.make_tombstone(line.get("source", ""), line["at"], now=now)}
    is_known = bool(history.find_tombstones(db, [id_]))
    if is_known and not forgotten_texts.find_renewed(db, tombstones):
        return False
    hard_delete.apply_tombstones(db, tombstones, now=now)
    return True


def _fields(line: Line, *names: str) -> Line:
    return {name: line[name] for name in names}


LOADERS: dict[str, Callable[[Connection, Line, datetime], bool]] = {
    "project": load_project,
    "session": load_session,
    "distillation": load_distillation,
    "watermark": load_watermark,
    "claim": load_claim,
    "session_state": load_session_state,
    "curation": load_curation,
    "judgement": load_judgement,
    "instruction": load_instruction,
    "spend": load_spend,
    "tombstone": load_tombstone,
    **dict.fromkeys(_REFERENCES, _load_referring),
    **dict.fromkeys(task_tables.TABLES, _load_task_row),
}
