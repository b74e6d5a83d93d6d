"""Write what another machine changed into the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from lore import clock
from lore.lazy_dataclass import dataclass
from lore.records import CHANNELS, Distillation, NewMessage, Part
from lore.store import (
    consolidation,
    distillations,
    forgotten_names,
    forgotten_texts,
    fragments,
    graph,
    hard_delete,
    history,
    items,
    jobs,
    keywords,
    messages,
    native_rows,
    project_rows,
    replacements,
    reversible_changes,
    sessions,
    standing_instructions,
    sync_rows,
    sync_task_rows,
    task_tables,
)
from lore.store.codec import pack_json, pack_key, pack_parts, pack_role, unpack_json
from lore.store.consolidation import Judgement
from lore.store.graph import EdgeState
from lore.store.history import Tombstone
from lore.store.messages import PreparedMessage
from lore.store.project_rows import ProjectLocation
from lore.store.sql_connection import Connection, id_text
from lore.store.sync_rows import FRAGMENT_REGISTERS
from lore.store.sync_shapes import (
    SyncKind,
    is_redacted_name,
    project_identity,
    session_identity,
    text_digest,
)
from lore.store.sync_task_rows import TASK_KINDS, TaskKind
from lore.text import entities, tokens

_JOB_EPISODE = "episode"


class Written(NamedTuple):
    """The result of a write: the number of the row, what it waits for, or that it was forgotten."""

    n: int | None = None
    waits_for: str = ""
    is_forgotten: bool = False


FORGOTTEN = Written(is_forgotten=True)


class Incoming(NamedTuple):
    """A record to be written: the values that change, and all it refers to.

    `n` is its row if it exists here; then values hold only the registers that changed.
    """

    key: str
    n: int | None
    values: Mapping[str, Any]
    references: Mapping[str, Any]


@dataclass(slots=True)
class WriteContext:
    """What all writes of a batch share; `touched` collects the sessions of other machines."""

    now: datetime
    via: str
    derive: Callable[[NewMessage, str], PreparedMessage]
    touched: set[int] = field(default_factory=set)
    parent_rank: Callable[[Connection, str], Any] = lambda _db, _child: None
    """Orders the children of a cycle: the lowest one becomes a root."""


def _is_forgotten(db: Connection, id_: str) -> bool:
    return bool(history.find_tombstones(db, [id_]))


def ensure_session(
    db: Connection, reference: Mapping[str, Any], context: WriteContext
) -> int | None:
    """Return the number of a session, created if it is new; None if it was forgotten."""
    id_ = reference["id"]
    if _is_forgotten(db, id_):
        return None
    n = find_session(db, id_)
    if n is None:
        if _is_forgotten_session(db, reference):
            return None
        n = _find_session_by_name(db, reference)
        if n is not None:
            db.upsert("aliases", ("id",), id=id_, session_n=n)
    if n is None:
        n = _add_session(db, reference, context)
    if sessions.find_session_state(db, n, "machine") is not None:
        context.touched.add(n)
    return n


def _is_forgotten_session(db: Connection, reference: Mapping[str, Any]) -> bool:
    """Return whether a session was forgotten under another id after it began."""
    at = forgotten_names.session_forgotten_at(db, reference["agent"], reference["external_id"])
    return at is not None and at >= int(reference["started_at"])


def find_session(db: Connection, id_: str) -> int | None:
    """Return the number of a session by its id, or by an id that it has elsewhere."""
    return db.number("SELECT n FROM sessions WHERE id = :id", id=id_) or db.number(
        "SELECT session_n FROM aliases WHERE id = :id AND session_n IS NOT NULL", id=id_
    )


def _add_session(db: Connection, reference: Mapping[str, Any], context: WriteContext) -> int:
    agent, name = forgotten_names.stored_name(db, reference["agent"], reference["external_id"])
    n = db.insert_numbered(
        "sessions",
        id=reference["id"],
        external_id=name,
        project_n=ensure_project(db, reference.get("project"), context),
        agent=agent,
        title="",
        files="",
        branch="",
        started_at=reference["started_at"],
        last_message_at=reference["started_at"],
        state="idle",
    )
    # The machine on which a conversation took place digests it, and the results arrive here.
    sessions.put_session_state(db, n, "machine", context.via, now=context.now)
    return n


def ensure_project(
    db: Connection, project: Mapping[str, str] | None, context: WriteContext
) -> int | None:
    """Return the number of a project, created if it is new."""
    if project is None:
        return None
    # The folder is one of another machine: it must not get the alias of a folder here.
    place = ProjectLocation(project["path"], project["remote"], project["name"], gone=True)
    if project_rows.find_project_at(db, place) is None:
        n = _find_project_by_identity(db, project_identity(project["remote"], project["path"]))
        if n is not None:
            return n
    return project_rows.ensure_project_at(db, place, now=context.now)


def _find_project_by_identity(db: Connection, identity: str) -> int | None:
    """Return the project with an identity: its names may hold a secret that does not travel."""
    rows = db.rows("SELECT n, remote, path FROM projects ORDER BY n")
    return next((n for n, *names in rows if project_identity(*names) == identity), None)


def _find_session_by_name(db: Connection, reference: Mapping[str, Any]) -> int | None:
    agent, name = reference["agent"], reference["external_id"]
    if not is_redacted_name(name):
        return sessions.find_session(db, name, agent=agent)
    identity = session_identity(agent, name)
    rows = db.rows("SELECT n, agent, external_id FROM sessions ORDER BY n")
    return next((n for n, *names in rows if session_identity(*names) == identity), None)


def _write_session(db: Connection, new: Incoming, context: WriteContext) -> Written:
    n = ensure_session(db, new.references["session"], context)
    if n is None:
        return FORGOTTEN
    if "place" in new.values:
        parent = new.references.get("parent")
        parent_n = ensure_session(db, parent, context) if parent else None
        project_n = ensure_project(db, new.references["session"].get("project"), context)
        db.update("sessions", n, project_n=project_n, parent_n=parent_n if parent_n != n else None)
        db.run(
            "UPDATE items SET project_n = :project_n WHERE session_n = :n AND type <> :fragment",
            project_n=project_n,
            n=n,
            fragment=items.type_number("fragment"),
        )
    if "names" in new.values:
        names = new.values["names"]
        agent, name = db.rows("SELECT agent, external_id FROM sessions WHERE n = :n", n=n)[0]
        visible = forgotten_names.visible(
            db, agent, name, title=names["title"], branch=names["branch"],
            files=tuple(filter(None, names["files"].split("\n"))),
        )  # fmt: skip
        listed = "\n".join(visible.files)
        db.update("sessions", n, title=visible.title, branch=visible.branch, files=listed)
        keywords.index_session(db, n)
    return Written(n)


def _write_message(db: Connection, new: Incoming, context: WriteContext) -> Written:
    value, reference = new.values["self"], new.references["session"]
    session_n = ensure_session(db, reference, context)
    if session_n is None:
        return FORGOTTEN
    # Its rules come as records of their own: here they would be judged out of context.
    prepared = context.derive(_new_message(value), new.key)._replace(standing=())
    channel = CHANNELS[value["channel"]]
    if new.n is not None:
        _update_message(db, new.n, session_n, prepared, new.references["ordinal"])
        return Written(new.n)
    place = (reference["agent"], reference["external_id"])
    if messages.find_forgotten(db, place, channel, [prepared]):
        history.add_tombstones(db, [new.key], context.now)
        return FORGOTTEN
    n = messages.insert_at(
        db, session_n, prepared, ordinal=new.references["ordinal"], channel=channel,
        now=context.now,
    )  # fmt: skip
    return Written(n)


def own_key(db: Connection, kind: SyncKind, new: Incoming) -> str:
    """Return the key that a record has here: both machines may have captured a message."""
    id_, slash, rest = new.key.partition("/")
    if kind in ("session", "working_state"):
        return _own_session_id(db, new)
    if kind not in ("message", "instruction") or items.find_number(db, id_) is not None:
        return new.key
    n = sync_rows.find_alias(db, id_)
    if n is None and kind == "message" and not _is_forgotten(db, id_):
        n = _find_same_message(db, new)
        if n is not None:
            sync_rows.add_alias(db, id_, n)
    own = items.ids_of(db, [n]).get(n) if n is not None else None
    return new.key if own is None else f"{own}{slash}{rest}"


def _own_session_id(db: Connection, new: Incoming) -> str:
    n = find_session(db, new.key)
    reference = new.references.get("session")
    is_gone = _is_forgotten(db, new.key)
    if n is None and reference and not is_gone and not _is_forgotten_session(db, reference):
        n = _find_session_by_name(db, reference)
        if n is not None:
            db.upsert("aliases", ("id",), id=new.key, session_n=n)
    own = None if n is None else db.value("SELECT id FROM sessions WHERE n = :n", n=n)
    return new.key if own is None else str(own)


def _find_same_message(db: Connection, new: Incoming) -> int | None:
    reference, value = new.references["session"], new.values["self"]
    session_n = find_session(db, reference["id"]) or _find_session_by_name(db, reference)
    return db.number(
        "SELECT n FROM messages WHERE session_n = :session_n AND channel = :channel AND key = :key",
        session_n=session_n,
        channel=value["channel"],
        key=pack_key(value["key"]),
    )


def _new_message(value: Mapping[str, Any]) -> NewMessage:
    return NewMessage(
        role=value["role"],
        parts=tuple(Part(**part) for part in value["parts"]),
        created_at=clock.from_us(value["created_at"]),
        key=value["key"],
        speaker=value["speaker"],
        origin=value["origin"],
        model=value["model"],
        usage=value["usage"],
    )


def _update_message(
    db: Connection, n: int, session_n: int, prepared: PreparedMessage, ordinal: int
) -> None:
    """Replace a message that was moved to another session, claimed, or redacted elsewhere."""
    new = prepared.new
    former = db.value("SELECT session_n FROM messages WHERE n = :n", n=n)
    if former != session_n:
        place = messages.free_ordinal(db, session_n, ordinal)
        db.update("messages", n, session_n=session_n, ordinal=place)
        db.run(
            "UPDATE items SET session_n = :session_n, project_n = (SELECT project_n FROM sessions"
            " WHERE n = :session_n) WHERE n = :n",
            session_n=session_n,
            n=n,
        )
    packed = pack_parts(new.parts)
    if packed != db.value("SELECT parts FROM messages WHERE n = :n", n=n):
        db.update("messages", n, parts=packed)
        db.update("items", n, tokens=prepared.tokens)
        db.run("DELETE FROM vectors WHERE n = :n", n=n)
        db.run("UPDATE items SET embedder_n = NULL WHERE n = :n AND embedder_n > 0", n=n)
    usage = pack_json(new.usage) if new.usage else ""
    names = {"origin": new.origin, "speaker": new.speaker, "model": new.model}
    db.update("messages", n, role=pack_role(new.role), usage=usage, **names)
    db.update("items", n, created_at=clock.to_us(new.created_at))
    keywords.index_messages(db, [n])


def _write_distillation(db: Connection, new: Incoming, context: WriteContext) -> Written:
    if new.n is not None:
        if "archived" in new.values:
            distillations.archive_distillations(db, [new.n], archived=new.values["archived"])
        return Written(new.n)
    value = new.values["self"]
    session_n = ensure_session(db, new.references["session"], context)
    ends = (value["from_message"], value["to_message"])
    if session_n is None or history.find_tombstones(db, ends):
        history.add_tombstones(db, [new.key], context.now)
        return FORGOTTEN
    session_id = new.references["session"]["id"]
    names = ("generation", "text", "from_message", "to_message", "source_tokens")
    record = Distillation(
        id=new.key,
        session_id=session_id,
        tokens=0,
        archived=new.values["archived"],
        created_at=clock.from_us(value["created_at"]),
        sources=tuple(tuple(ordinals) for ordinals in value["sources"]),
        **{name: value[name] for name in names},
    )
    return Written(distillations.add_distillation(db, session_n, record, now=context.now))


def _write_fragment(db: Connection, new: Incoming, context: WriteContext) -> Written:
    evidence = new.values.get("evidence")
    if evidence and history.find_tombstones(db, evidence["source_messages"]):
        # It was derived from what was forgotten here: it goes on all machines.
        at = history.forgotten_ids_at(db, evidence["source_messages"])
        gone = Tombstone("", clock.to_us(context.now) if at is None else at)
        hard_delete.apply_tombstones(db, {new.key: gone}, now=context.now)
        return FORGOTTEN
    n = new.n if new.n is not None else _add_fragment(db, new, context)
    _set_columns(db, n, new.values)
    if "place" in new.values and new.n is not None:
        project_n, session_n = _place(db, new, context)
        db.update("items", n, project_n=project_n, session_n=session_n)
    if "use" in new.values:
        at = sync_rows.day_start_us(new.values["use"])
        db.run(
            "UPDATE fragments SET last_accessed = :at WHERE n = :n AND :at > 0"
            " AND coalesce(last_accessed, 0) < :at",
            at=at,
            n=n,
        )
        db.run(
            "UPDATE fragments SET last_reinforced = :at WHERE n = :n AND last_reinforced < :at",
            at=at,
            n=n,
        )
    if "text" in new.values and new.n is not None:
        _index_text(db, n, new.values["text"])
    fragments.reindex(db, n)
    history.log_change(db, "change", [n], context.now)
    return Written(n)


def _place(db: Connection, new: Incoming, context: WriteContext) -> tuple[int | None, int | None]:
    session = new.references.get("session")
    session_n = ensure_session(db, session, context) if session else None
    return ensure_project(db, new.references.get("project"), context), session_n


def _add_fragment(db: Connection, new: Incoming, context: WriteContext) -> int:
    text, evidence = new.values["text"], new.values["evidence"]
    project_n, session_n = _place(db, new, context)
    return fragments.add(
        db,
        fragments.NewFragment(
            id=new.key,
            content=text["content"],
            summary=text["summary"],
            kind=text["kind"],
            created_at=clock.from_us(new.values["self"]["created_at"]),
            payload=text["payload"],
            importance=evidence["importance"],
            confidence=evidence["confidence"],
            origin=text["origin"],
            trust=text["trust"],
            project_n=project_n,
            session_n=session_n,
            source_messages=tuple(evidence["source_messages"]),
            mentions=tuple(entities.fragment_mentions(text["content"], text["summary"])),
            metadata=text["metadata"],
        ),
        now=context.now,
    )


def _set_columns(db: Connection, n: int, values: Mapping[str, Any]) -> None:
    row: dict[str, Any] = {}
    for name, columns in FRAGMENT_REGISTERS.items():
        row |= {column: values[name][column] for column in columns if name in values}
    if "metadata" in row:
        own = unpack_json(db.value("SELECT metadata FROM fragments WHERE n = :n", n=n))
        row["metadata"] = row["metadata"] | {
            name: value for name, value in own.items() if name not in native_rows.without_note(own)
        }
    for name in ("payload", "metadata", "source_messages"):
        if name in row:
            row[name] = pack_json(row[name])
    former = row.get("superseded_by")
    if former and _is_forgotten(db, former):
        row |= {"superseded_by": None, "valid_to": None}
    if row:
        db.update("fragments", n, **row)


def _index_text(db: Connection, n: int, text: Mapping[str, Any]) -> None:
    content, summary = text["content"], text["summary"]
    mentioned = entities.fragment_mentions(content, summary)
    db.run("UPDATE fragments SET version = version + 1 WHERE n = :n", n=n)
    db.update("items", n, tokens=tokens.count(content), embedder_n=None)
    db.run("DELETE FROM vectors WHERE n = :n", n=n)
    replacements.remove(db, [n])
    keywords.add_fragment(db, n, summary, content, text["kind"])
    graph.remove_mentions(db, [n])
    graph.add_mentions(db, n, mentioned)
    graph.link_titles(db, n, content, mentioned)


def _write_version(db: Connection, new: Incoming, _context: WriteContext) -> Written:
    id_, _, digest = new.key.partition("/")
    n = items.find_number(db, id_)
    if n is None:
        return Written(waits_for=id_)
    if new.values["self"] is None:
        for version in _versions_with(db, n, digest):
            sql = "DELETE FROM fragment_versions WHERE fragment_n = :n AND version = :version"
            db.run(sql, n=n, version=version)
    else:
        put_version(db, n, **new.values["self"])
    return Written(n)


def put_version(
    db: Connection, n: int, *, content: str, summary: str, changed_at: int, reason: str
) -> None:
    """Store a former text of a fragment; a text is stored once."""
    same = _versions_with(db, n, text_digest(content, summary))
    if same:
        db.run(
            "UPDATE fragment_versions SET changed_at = :changed_at, reason = :reason"
            " WHERE fragment_n = :n AND version = :version",
            n=n,
            version=same[0],
            changed_at=changed_at,
            reason=reason,
        )
        return
    db.insert(
        "fragment_versions", fragment_n=n, version=_free_version(db, n), content=content,
        summary=summary, changed_at=changed_at, reason=reason,
    )  # fmt: skip


def has_version(db: Connection, n: int, digest: str) -> bool:
    """Return whether a wording is a former one of a fragment."""
    return bool(_versions_with(db, n, digest))


def _versions_with(db: Connection, n: int, digest: str) -> list[int]:
    rows = db.rows(
        "SELECT version, content, summary FROM fragment_versions WHERE fragment_n = :n"
        " ORDER BY version",
        n=n,
    )
    return [version for version, *text in rows if text_digest(*text) == digest]


def _free_version(db: Connection, n: int) -> int:
    """Return the number of a fragment's present version, which gets the next one."""
    present = int(db.value("SELECT version FROM fragments WHERE n = :n", n=n))
    db.update("fragments", n, version=present + 1)
    for end in "ab":
        db.run(
            f"UPDATE judgements SET {end}_version = :to WHERE {end}_n = :n"
            f" AND {end}_version = :present",
            to=present + 1,
            n=n,
            present=present,
        )
    return present


def _write_parent(db: Connection, new: Incoming, context: WriteContext) -> Written:
    child = items.find_number(db, new.key)
    parent_id = new.values["self"]
    if child is None:
        return Written(waits_for=new.key)
    if parent_id is not None and _is_forgotten(db, parent_id):
        parent_id = None
    parent = None if parent_id is None else items.find_number(db, parent_id)
    if parent_id is not None and parent is None:
        return Written(waits_for=parent_id)
    if parent is not None and child in (parent, *graph.ancestors(db, parent)):
        child, parent = _lowest_of_cycle(db, child, parent, context)
    reversible_changes.reparent(db, child, parent, now=context.now)
    return Written(child)


def _lowest_of_cycle(
    db: Connection, child: int, parent: int, context: WriteContext
) -> tuple[int, int | None]:
    """Return which fragment gets which parent, so that no fragment is below itself.

    Two machines moved fragments below each other. The one that was moved first becomes a root.
    """
    if child == parent:
        return child, None
    above = [parent, *reversed(graph.ancestors(db, parent))]
    inside = [child, *above[: above.index(child)]]
    ids = items.ids_of(db, inside)
    lowest = min(inside, key=lambda n: (context.parent_rank(db, ids[n]), ids[n]))
    if lowest == child:
        return child, None
    reversible_changes.reparent(db, lowest, None, now=context.now)
    return child, parent


def _write_edge(db: Connection, new: Incoming, _context: WriteContext) -> Written:
    source_id, target_id, kind = new.key.split("/")
    ends = [items.find_number(db, id_) for id_ in (source_id, target_id)]
    if history.find_tombstones(db, (source_id, target_id)):
        return FORGOTTEN
    for n, id_ in zip(ends, (source_id, target_id), strict=True):
        if n is None:
            return Written(waits_for=id_)
    source, target = (n or 0 for n in ends)
    value = new.values["self"]
    if value is None:
        graph.remove_edge(db, source, target, kind)  # type: ignore[arg-type]  # its form was checked
        return Written(source)
    former = graph.find_edge(db, source, target, kind)  # type: ignore[arg-type]
    own = former or EdgeState(new.references.get("weight", 1.0), "")
    row = {"source_n": source, "target_n": target, "kind": kind, "note": value["note"]}
    db.upsert(
        "edges", ("source_n", "target_n", "kind"), weight=value.get("weight", own.weight),
        created_at=value["created_at"], **row,
    )  # fmt: skip
    return Written(source)


def _write_instruction(db: Connection, new: Incoming, _context: WriteContext) -> Written:
    id_, _, digest = new.key.partition("/")
    n = find_row(db, "instruction", id_)
    if n is None:
        return Written(waits_for=id_)
    standing_instructions.put_state(
        db, n, digest, new.values.get("self"), new.values.get("rule"), is_gone=_is_gone(new.values)
    )
    return Written(n)


def _is_gone(values: Mapping[str, Any]) -> bool:
    return "self" in values and values["self"] is None


def _write_judgement(db: Connection, new: Incoming, _context: WriteContext) -> Written:
    first, second, verb = new.key.split("/")
    value = new.values["self"]
    ends = []
    for id_, name in ((first, "a_text"), (second, "b_text")):
        n = items.find_number(db, id_)
        if n is None:
            return Written(waits_for=id_)
        version = 0
        if value is not None and value[name]:
            fragment = fragments.get(db, n)
            if text_digest(fragment.content, fragment.summary) != value[name]:
                return Written(waits_for=id_)
            version = fragment.version
        ends.append((n, version))
    if verb != "reflect":
        ends.sort()
    (a_n, a_version), (b_n, b_version) = ends
    if value is None:
        consolidation.remove_judgements(db, [(a_n, b_n, verb)])  # type: ignore[list-item]
    else:
        judged = Judgement(a_n, b_n, verb, value["verdict"], a_version, b_version)  # type: ignore[arg-type]
        consolidation.put_judgements(db, [judged], now=clock.from_us(value["at"]))
    return Written(a_n)


def _write_task_record(
    db: Connection, new: Incoming, context: WriteContext, *, kind: TaskKind
) -> Written:
    value = new.values["self"]
    if value is None:
        if new.n is not None:
            sync_task_rows.remove_row(db, kind, new.n)
        return Written(new.n)
    row: dict[str, Any] = {name: value[name] for name in sync_task_rows.columns(kind)}
    for reference in task_tables.TABLES[kind].references:
        n = _task_reference(db, reference.column, new, context)
        if isinstance(n, Written):
            return n
        row[reference.column] = n
    texts = {
        name: pack_json(row[name]) if name == "body" else row[name]
        for name in task_tables.TABLES[kind].texts
        if name != "id"
    }
    session = new.references.get("session")
    since_us = task_tables.made_at(kind, value, session and session["started_at"])
    is_forgotten = forgotten_texts.find(db, texts.values(), since_us=since_us)
    left, cut = task_tables.cut_row(kind, {"id": new.key, **texts}, is_forgotten)
    if left is None:
        return _forget_task_record(db, new, context, kind=kind)
    if cut:
        row["body"] = unpack_json(left["body"])
    return Written(sync_task_rows.put_row(db, kind, new.key, new.n, row))


def _task_reference(
    db: Connection, column: str, new: Incoming, context: WriteContext
) -> int | Written | None:
    """Return the number of what a record of task memory refers to, or why it is not written."""
    value, references = new.values["self"], new.references
    if column == "project_n":
        return ensure_project(db, references.get("project"), context)
    if column == "session_n":
        session = references.get("session")
        return None if session is None else ensure_session(db, session, context) or FORGOTTEN
    episode = value["episode"]
    if episode is None:
        return None
    if _is_forgotten(db, episode):
        return FORGOTTEN
    n = items.find_number(db, episode)
    if n is None:
        return Written(waits_for=episode)
    return db.number("SELECT n FROM fragments WHERE n = :n", n=n)  # None: an item of another kind


def _forget_task_record(
    db: Connection, new: Incoming, context: WriteContext, *, kind: TaskKind
) -> Written:
    """Leave out a record with a text that was forgotten here: it goes on all machines."""
    if new.n is not None:
        sync_task_rows.remove_row(db, kind, new.n)
    if kind == "working_state":  # its key is that of its session
        return Written()  # the next scan finds it missing, and says so
    history.add_tombstones(db, [new.key], context.now)
    return FORGOTTEN


_WRITERS: Mapping[SyncKind, Callable[[Connection, Incoming, WriteContext], Written]] = {
    "session": _write_session,
    "message": _write_message,
    "distillation": _write_distillation,
    "fragment": _write_fragment,
    "version": _write_version,
    "parent": _write_parent,
    "edge": _write_edge,
    "instruction": _write_instruction,
    "judgement": _write_judgement,
    **{kind: partial(_write_task_record, kind=kind) for kind in TASK_KINDS},
}


def write(db: Connection, kind: SyncKind, new: Incoming, context: WriteContext) -> Written:
    """Write a record, unless it was forgotten or has to wait for another."""
    owner = new.key.partition("/")[0]
    if _is_forgotten(db, owner):
        return FORGOTTEN
    return _WRITERS[kind](db, new, context)


def find_row(db: Connection, kind: SyncKind, key: str) -> int | None:
    """Return the number of the row by which a record is read, or None."""
    owner = key.partition("/")[0]
    if kind in ("session", "working_state"):
        return find_session(db, owner)
    if kind in ("task", "handoff"):
        return sync_task_rows.find_row(db, kind, owner)
    return items.find_number(db, owner)


def mark_digested(db: Connection, session_ns: Sequence[int], *, now: datetime) -> None:
    """Record that nothing is to be digested here in sessions of other machines.

    A session that went on here is digested here from then on.
    """
    for n in session_ns:
        extent = distillations.get_extent(db, n)
        if extent.last < 0 or _has_own_messages(db, n):
            continue
        distillations.mark_curated(db, n, extent.last, now=now)
        distillations.mark_distilled(db, n, extent, now=now)
        id_ = str(db.value("SELECT id FROM sessions WHERE n = :n", n=n))
        job = jobs.ensure(db, _JOB_EPISODE, id_, total=extent.last + 1, now=now)
        jobs.finish(db, job.id, now=now)


def _has_own_messages(db: Connection, session_n: int) -> bool:
    sql = (
        "SELECT 1 FROM messages m JOIN items i ON i.n = m.n WHERE m.session_n = :n"
        " AND NOT EXISTS (SELECT 1 FROM sync_records r WHERE r.kind = 'message'"
        f" AND r.key = {id_text('i.id')} AND r.via <> '') LIMIT 1"
    )
    return db.find(sql, n=session_n) is not None
