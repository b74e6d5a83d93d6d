"""Dump: every record that is not derived, as plain values; `loading` brings them in again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from lore.records import Part
from lore.store import (
    watermarks,
)
from lore.store.packing import (
    unpack_json,
    unpack_key,
    unpack_parts,
    unpack_role,
)
from lore.store.sqlite import Connection, id_text

Line = dict[str, Any]

_PAGE = 1_000

FRAGMENT_STATE = (
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
