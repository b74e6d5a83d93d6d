"""Loading: records as plain values, brought in with the state that they had."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import orjson

from lore import clock
from lore.errors import InvalidInput
from lore.records import Distillation, Spend, Watermark
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
    shared,
    spend,
    staged_turns,
    watermarks,
)
from lore.store.dump import FRAGMENT_STATE, Line
from lore.store.shared import Shared
from lore.store.sqlite import Connection
from lore.text.entities import Mention


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
    state = _fields(line, *FRAGMENT_STATE)
    if state["superseded_by"] and changes.buried(db, [state["superseded_by"]]):
        state |= {"superseded_by": None, "valid_to": None}
    assignments = ", ".join(f"{name} = :{name}" for name in FRAGMENT_STATE)
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


def add_judgement(db: Connection, line: Line, _now: datetime) -> bool:
    """Bring in what was decided of two fragments, unless that is known or one was forgotten.

    The first of a pair is the one that came in first here; of a cluster it stands for all.
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


def add_shared(db: Connection, line: Line, _now: datetime) -> bool:
    """Bring in that a fragment stands on a project's page, unless that is known or it is gone."""
    n = _number(db, "items", line["fragment_id"])
    if n is None or shared.find(db, line["entry"]) is not None:
        return False
    shared.put(db, [Shared(line["entry"], n, line["digest"], bool(line["left_out"]))])
    return True


def add_spend(db: Connection, line: Line, _now: datetime) -> bool:
    """Bring an entry of the spend ledger in, unless it is here."""
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
    "judgement": add_judgement,
    "shared": add_shared,
    "spend": add_spend,
    "tombstone": add_tombstone,
}
"""How each kind of record is brought in, but for those that need more than the store."""
