"""Revoke: hide everything that was derived from a source that is no longer trusted."""

from __future__ import annotations

from dataclasses import dataclass

from lore.digest.fragment_edits import hide_undoably
from lore.errors import InvalidInput
from lore.records import Part, Revocation, Title
from lore.store import (
    distillations,
    fragments,
    graph,
    hard_delete,
    native_rows,
    project_rows,
    replacements,
    sessions,
    standing_instructions,
    watermarks,
)
from lore.store.database import Connection, Database
from lore.store.hard_delete import ForgetSelection
from lore.store.history import UndoSnapshot
from lore.text import call_text, message_features, tokens
from lore.validation import check_origin


@dataclass(frozen=True, slots=True)
class RevocationTarget:
    """What to revoke: a session, an origin or a file, in one project or in all."""

    session: str = ""
    origin: str = ""
    file: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True)
class _Affected:
    """The numbers of the items to hide, and of the messages that they came from."""

    messages: frozenset[int]
    fragments: tuple[int, ...]
    distillations: tuple[int, ...]


def preview_revocation(database: Database, suspect: RevocationTarget) -> Revocation:
    """Return what a revocation would hide, without hiding it."""
    with database.read() as db:
        return _describe(db, _find_affected(db, suspect))


def revoke(database: Database, suspect: RevocationTarget) -> Revocation:
    """Hide every fragment that came from the target, and drop its distillations and instructions.

    The messages stay. 'undo' restores fragments and instructions together; distillations are made
    again from the messages.
    """
    now = database.now()

    def work(db: Connection) -> Revocation:
        reach = _find_affected(db, suspect)
        revocation = _describe(db, reach)
        removed = tuple(standing_instructions.remove(db, sorted(reach.messages)))
        replacements.remove(db, sorted(reach.messages))
        for n in reach.fragments:
            before = UndoSnapshot(batch="revocation", removed_instructions=removed)
            hide_undoably(db, n, before, now=now)
            removed = ()
        distillations.remove_distillations(db, reach.distillations, now=now)
        return revocation

    return database.write(work)


def _describe(db: Connection, reach: _Affected) -> Revocation:
    by_number = fragments.by_number(db, reach.fragments)
    condensed = distillations.get_distillations(db, reach.distillations)
    return Revocation(
        messages=len(reach.messages),
        fragments=tuple(
            Title(f.id, f.summary, f.kind, f.depth, tokens.count(f.content))
            for f in by_number.values()
        ),
        distillations=tuple(d.id for d in condensed.values()),
        standing=tuple(standing_instructions.texts_of_items(db, sorted(reach.messages))),
    )


def _find_affected(db: Connection, suspect: RevocationTarget) -> _Affected:
    """Follow what was derived from a target, directly and through other fragments."""
    messages, own = _direct_matches(db, suspect)
    doomed = hard_delete.with_derived(db, ForgetSelection((*messages, *own)))
    affected = set(doomed.item_ns)
    while further := _derived_items(db, affected):
        affected = set(hard_delete.with_derived(db, ForgetSelection((*affected, *further))).item_ns)
    living = hard_delete.live_fragments(db, sorted(affected - messages))
    condensed = distillations.get_distillations(db, sorted(affected - messages))
    return _Affected(frozenset(messages), tuple(living), tuple(condensed))


def _derived_items(db: Connection, affected: set[int]) -> set[int]:
    edges = graph.edges_among(db, sorted(affected), ("derived_from",))
    return {edge.source_n for edge in edges if edge.target_n in affected} - affected


def _direct_matches(db: Connection, suspect: RevocationTarget) -> tuple[set[int], set[int]]:
    """Return the messages of a target, and the fragments that name it themselves."""
    values = [suspect.session, suspect.origin, suspect.file]
    if sum(bool(value.strip()) for value in values) != 1:
        msg = "Give exactly one of these: a session, an origin or a file."
        raise InvalidInput(msg)
    project_n = project_rows.get_project(db, suspect.project) if suspect.project else None
    if suspect.session:
        session_n = sessions.get_session_number(db, suspect.session)
        return hard_delete.contents_of_session(db, session_n)
    if suspect.origin:
        return _match_origin(db, suspect.origin, project_n)
    return _match_file(db, suspect.file.strip(), project_n)


def _match_origin(db: Connection, origin: str, project_n: int | None) -> tuple[set[int], set[int]]:
    check_origin(origin)
    messages = {
        n
        for n, whole, parts in hard_delete.messages_with_origin(db, origin, project_n=project_n)
        if origin in {whole, *(message_features.part_origin(part, whole) for part in parts)}
    }
    return messages, hard_delete.fragments_by_origin(db, origin, project_n=project_n)


def _match_file(db: Connection, file: str, project_n: int | None) -> tuple[set[int], set[int]]:
    """Return what comes from a file: messages of a tool or a transcript, and an agent's notes."""
    own = native_rows.fragments_of_file(db, file, project_n=project_n)
    watermark = watermarks.find(db, file)
    if watermark and watermark.session_id:
        session_n = sessions.get_session_number(db, watermark.session_id)
        messages, made = hard_delete.contents_of_session(db, session_n)
        return messages, made | own
    name = file.rstrip("/").rsplit("/", 1)[-1]
    call_ids: set[tuple[int, str]] = set()
    messages = set()
    for n, session_n, parts in hard_delete.tool_call_messages(db, name, project_n=project_n):
        for part in parts:
            if part.kind == "tool_call" and part.call_id and _concerns(part, file):
                messages.add(n)
                call_ids.add((session_n, part.call_id))
    for n, session_n, parts in hard_delete.tool_result_messages(db, {s for s, _ in call_ids}):
        if any(p.kind == "tool_result" and (session_n, p.call_id) in call_ids for p in parts):
            messages.add(n)
    return messages, own


def _concerns(part: Part, file: str) -> bool:
    call = call_text.read_call(part.name, part.text)
    if call.command:
        return file in call.command
    tail = "/" + file.lstrip("/")
    return any(f"/{name.lstrip('/')}".endswith(tail) for name in (*call.read, *call.changed))
