"""Revoking: taking back everything that was derived from what is no longer believed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from lore.checking import check_origin
from lore.curate.fragments import hide
from lore.errors import InvalidInput
from lore.records import Origin, Part, Revocation, Title
from lore.store import (
    distillations,
    edges,
    forgetting,
    fragments,
    revocations,
    sessions,
    standing,
    watermarks,
)
from lore.store.befores import Before
from lore.store.db import Connection, Database
from lore.store.forgetting import Doomed
from lore.text import calls, parts, tokens


@dataclass(frozen=True, slots=True)
class Suspect:
    """What is no longer believed: a session, an origin or a file, in one project or in all."""

    session: str = ""
    origin: str = ""
    file: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True)
class _Reach:
    """The numbers of what goes, and of the messages that it came from."""

    messages: frozenset[int]
    fragments: tuple[int, ...]
    distillations: tuple[int, ...]


def preview(database: Database, suspect: Suspect) -> Revocation:
    """Return what a revocation would take, without taking it."""
    with database.read() as db:
        return _told(db, _reach(db, suspect))


def revoke(database: Database, suspect: Suspect) -> Revocation:
    """Hide every fragment that came from a suspect, and drop distillations and instructions.

    The messages stay: they are what was said. 'undo' brings fragments and instructions back
    together; distillations are made anew from the messages.
    """
    return database.write(partial(_revoke, database, suspect))


def _revoke(database: Database, suspect: Suspect, db: Connection) -> Revocation:
    now = database.now()
    reach = _reach(db, suspect)
    told = _told(db, reach)
    removed = standing.remove(db, sorted(reach.messages))
    for place, n in enumerate(reach.fragments):
        taken_out = () if place else tuple(removed)
        hide(db, n, Before(together="revocation", standing=taken_out), now=now)
    distillations.remove(db, reach.distillations, now=now)
    return told


def _told(db: Connection, reach: _Reach) -> Revocation:
    found = fragments.by_number(db, reach.fragments)
    condensed = distillations.by_number(db, reach.distillations)
    return Revocation(
        messages=len(reach.messages),
        fragments=tuple(
            Title(f.id, f.summary, f.kind, f.depth, tokens.count(f.content)) for f in found.values()
        ),
        distillations=tuple(d.id for d in condensed.values()),
        standing=tuple(standing.texts(db, sorted(reach.messages))),
    )


def _reach(db: Connection, suspect: Suspect) -> _Reach:
    """Follow what was derived from a suspect, directly and through other fragments."""
    messages, own = _beginning(db, suspect)
    doomed = forgetting.with_derived(db, Doomed((*messages, *own)))
    known = set(doomed.item_ns)
    while further := _derived(db, known):
        known = set(forgetting.with_derived(db, Doomed((*known, *further))).item_ns)
    living = revocations.living(db, sorted(known - messages))
    condensed = distillations.by_number(db, sorted(known - messages))
    return _Reach(frozenset(messages), tuple(living), tuple(condensed))


def _derived(db: Connection, known: set[int]) -> set[int]:
    found = edges.among_fragments(db, sorted(known), ("derived_from",))
    return {edge.source_n for edge in found if edge.target_n in known} - known


def _beginning(db: Connection, suspect: Suspect) -> tuple[set[int], set[int]]:
    """Return the messages of a suspect, and the fragments that name it themselves."""
    given = [suspect.session, suspect.origin, suspect.file]
    if sum(bool(value.strip()) for value in given) != 1:
        msg = "Say what to revoke by one of these: a session, an origin or a file."
        raise InvalidInput(msg)
    project_n = sessions.get_project(db, suspect.project) if suspect.project else None
    if suspect.session:
        return _of_session(db, sessions.get_number(db, suspect.session))
    if suspect.origin:
        return _of_origin(db, suspect.origin, project_n)
    return _of_file(db, suspect.file.strip(), project_n)


def _of_session(db: Connection, session_n: int) -> tuple[set[int], set[int]]:
    family = forgetting.of_session(db, session_n)
    messages = revocations.messages_of(db, family.session_ns)
    return messages, revocations.fragments_of(db, family.session_ns)


def _of_origin(db: Connection, origin: str, project_n: int | None) -> tuple[set[int], set[int]]:
    check_origin(origin)
    messages = {
        n
        for n, of_message, said in revocations.mixed_messages(db, origin, project_n=project_n)
        if origin in _voices(said, of_message)
    }
    return messages, revocations.fragments_by(db, origin, project_n=project_n)


def _voices(said: tuple[Part, ...], of_message: Origin) -> set[Origin]:
    return {of_message, *(parts.origin_of(part, of_message) for part in said)}


def _of_file(db: Connection, file: str, project_n: int | None) -> tuple[set[int], set[int]]:
    """Return what was read from a file: by a tool, or as a transcript."""
    watermark = watermarks.find(db, file)
    if watermark and watermark.session_id:
        return _of_session(db, sessions.get_number(db, watermark.session_id))
    name = file.rstrip("/").rsplit("/", 1)[-1]
    call_ids: set[tuple[int, str]] = set()
    messages: set[int] = set()
    for n, session_n, said in revocations.messages_naming(db, name, project_n=project_n):
        for part in _calls_on(said, file):
            messages.add(n)
            call_ids.add((session_n, part.call_id))
    for n, session_n, said in revocations.results_of(db, {s for s, _ in call_ids}):
        if any(p.kind == "tool_result" and (session_n, p.call_id) in call_ids for p in said):
            messages.add(n)
    return messages, set()


def _calls_on(said: tuple[Part, ...], file: str) -> Iterator[Part]:
    for part in said:
        if part.kind == "tool_call" and part.call_id and _concerns(part, file):
            yield part


def _concerns(part: Part, file: str) -> bool:
    call = calls.read_call(part.name, part.text)
    if call.command:
        return file in call.command
    tail = "/" + file.lstrip("/")
    return any(f"/{name.lstrip('/')}".endswith(tail) for name in (*call.read, *call.changed))
