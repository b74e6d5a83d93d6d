"""Names that were forgotten: of sessions, files, transcripts, agents, models and keys.

An agent's files still contain names that a user forgot here, and so do older copies of the
database. A digest of a name recognizes it without storing it: bound to its session if the session
or a message was forgotten, and everywhere if a text was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from lore.store import history
from lore.store.sql_connection import Connection

NameKind = Literal["title", "branch", "session", "file"]

_EVERYWHERE = "name/"
"""How the ids of tombstones begin that hold for a name wherever it is."""

_FORGOTTEN_PREFIX = "forgotten:"


class SessionName(NamedTuple):
    """A session's id, its agent, and the agent's own name for it."""

    id: str
    agent: str
    name: str


class VisibleNames(NamedTuple):
    """The names of a session that were not forgotten."""

    title: str = ""
    branch: str = ""
    files: tuple[str, ...] = ()


def add_of_session(
    db: Connection, session: SessionName, kind: NameKind, names: Iterable[str], *, now: datetime
) -> None:
    """Forget names of a session, in this session."""
    sources = {}
    for name in filter(None, names):
        source = _session_source(session.agent, session.name, kind, name)
        sources[f"{session.id}/{kind}/{source[:8]}"] = source
    history.add_tombstones(db, list(sources), now, sources=sources)


def add_everywhere(db: Connection, names: Iterable[str], *, now: datetime) -> None:
    """Forget names wherever they are."""
    sources = {f"{_EVERYWHERE}{_source(name)}": _source(name) for name in names if name}
    history.add_tombstones(db, list(sources), now, sources=sources)


def find(db: Connection, names: Iterable[str]) -> set[str]:
    """Return those of the names that were forgotten wherever they are."""
    by_source = {_source(name): name for name in names if name}
    if not by_source or not history.has_source_tombstones(db):
        return set()
    return {by_source[s] for s in history.find_tombstones_by_source(db, list(by_source))}


def visible(
    db: Connection,
    agent: str,
    name: str,
    *,
    title: str = "",
    branch: str = "",
    files: Sequence[str] = (),
) -> VisibleNames:
    """Return the names of a session without those that were forgotten."""
    if not history.has_source_tombstones(db):
        return VisibleNames(title, branch, tuple(files))
    places = dict.fromkeys(((agent, name), stored_name(db, agent, name)))
    kinds: dict[NameKind, Sequence[str]] = {"title": (title,), "branch": (branch,), "file": files}
    sources: dict[tuple[NameKind, str], set[str]] = {
        (kind, text): {_source(text), *(_session_source(*place, kind, text) for place in places)}
        for kind, texts in kinds.items()
        for text in texts
        if text
    }
    tombstones = history.find_tombstones_by_source(db, list(set().union(*sources.values())))
    forgotten = {name for name, own in sources.items() if not own.isdisjoint(tombstones)}
    return VisibleNames(
        "" if ("title", title) in forgotten else title,
        "" if ("branch", branch) in forgotten else branch,
        tuple(file for file in files if ("file", file) not in forgotten),
    )


def stored_name(db: Connection, agent: str, name: str) -> tuple[str, str]:
    """Return the agent and the name under which a session is stored.

    A session whose name was forgotten has its id for a name; a forgotten agent has none.
    """
    if not history.has_source_tombstones(db):
        return agent, name
    renamed = _session_source(agent, name, "session", name)
    tombstones = history.find_tombstones_by_source(db, [renamed, _source(agent)])
    id_, _, _ = tombstones.get(renamed, "").partition("/")
    return "" if _source(agent) in tombstones else agent, id_ or name


def session_digest(agent: str, name: str) -> str:
    """Return the digest that recognizes a session after all of it was forgotten."""
    return history.source_digest(agent, name, "\0whole\0")


def session_forgotten_at(db: Connection, agent: str, name: str) -> int | None:
    """Return when a session was forgotten, under whatever id; None if it never was."""
    if not history.has_source_tombstones(db):
        return None
    places = {(agent, name), stored_name(db, agent, name)}
    return history.forgotten_at(db, [session_digest(*place) for place in places])


def forgotten_at(db: Connection, names: Iterable[str]) -> int | None:
    """Return when any of the names was forgotten last, wherever it is; None if none was."""
    sources = [_source(name) for name in names if name]
    if not sources or not history.has_source_tombstones(db):
        return None
    return history.forgotten_at(db, sources)


def make_forgotten_name(name: str) -> str:
    """Return what stands for a forgotten name where a row needs one; the same for that itself."""
    return name if name.startswith(_FORGOTTEN_PREFIX) else f"{_FORGOTTEN_PREFIX}{_source(name)}"


def has_any(ids: Iterable[str]) -> bool:
    """Return whether any of the tombstone ids is of a name."""
    kinds = ("/title/", "/branch/", "/session/", "/file/")
    return any(id_.startswith(_EVERYWHERE) or any(kind in id_ for kind in kinds) for id_ in ids)


def _session_source(agent: str, name: str, kind: NameKind, text: str) -> str:
    return history.source_digest(agent, name, f"\0{kind}\0{text}")


def _source(name: str) -> str:
    return history.source_digest("", "", f"\0name\0{name}")
