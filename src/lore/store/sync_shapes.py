"""The form of the records that sync exchanges, and the names that all machines have for them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from lore.store.sql_connection import Row
from lore.text.remotes import without_user

SyncKind = Literal[
    "session", "message", "distillation", "fragment", "version", "parent", "edge", "instruction",
    "judgement", "task", "handoff", "working_state", "forget",
]  # fmt: skip

Values = dict[str, tuple[Any, int | None]]
"""The values of a record's registers, each with the time of its change if that is stored."""


class StoredRecord(NamedTuple):
    """A record as it is stored: its key, its number, its values, and what it refers to.

    `identity` is the same on all machines; the key may not be, for what two of them captured.
    """

    kind: SyncKind
    key: str
    n: int | None
    values: Values
    references: Mapping[str, Any]
    identity: str


class SessionReference(NamedTuple):
    """What finds or creates a session on another machine."""

    id: str
    agent: str
    external_id: str
    started_at: int
    project: Mapping[str, str] | None


def text_digest(content: str, summary: str) -> str:
    """Return what names a wording of a fragment."""
    return digest_name("\0".join((content, summary)))


_REDACTED_NAME = re.compile(r"hidden:([0-9a-f]{24})")


def make_redacted_name(identity: str) -> str:
    """Return what stands for a name that holds a secret: it has the same identity."""
    return f"hidden:{identity}"


def is_redacted_name(name: str) -> bool:
    """Return whether a name stands for one that holds a secret."""
    return _REDACTED_NAME.fullmatch(name) is not None


def project_identity(remote: str, path: str) -> str:
    """Return what names a project on every machine: its remote, or its path without one."""
    if match := _REDACTED_NAME.fullmatch(remote or path):
        return match[1]
    return digest_name(f"remote\0{without_user(remote)}" if remote else f"path\0{path}")


def session_identity(agent: str, external_id: str) -> str:
    """Return what names a session on every machine."""
    if match := _REDACTED_NAME.fullmatch(external_id):
        return match[1]
    return digest_name(f"session\0{agent}\0{external_id}")


def message_identity(session: str | None, channel: int, key: str) -> str:
    """Return what names a message on every machine that captured it."""
    return digest_name(f"{session}\0{channel}\0{key}")


def digest_name(text: str) -> str:
    """Return a digest of a name."""
    encoded = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(encoded, digest_size=12).hexdigest()


PROJECT_COLUMNS = "p.path, p.remote, p.name"
SESSION_COLUMNS = f"s.id, s.agent, s.external_id, s.started_at, {PROJECT_COLUMNS}"
SESSION_FROM = "LEFT JOIN projects p ON p.n = s.project_n"


def make_project(path: str | None, remote: str, name: str) -> dict[str, str] | None:
    """Return what finds or creates a project, or None."""
    return None if path is None else {"path": path, "remote": remote, "name": name}


def project_key(project: Mapping[str, str] | None) -> str | None:
    """Return the name of a project on every machine, or None."""
    return None if project is None else project_identity(project["remote"], project["path"])


def make_session(row: Sequence[Any]) -> SessionReference | None:
    """Return what finds or creates a session, by the columns of one, or None."""
    if row[0] is None:
        return None
    return SessionReference(row[0], row[1], row[2], row[3], make_project(*row[4:7]))


def session_key(session: SessionReference | None) -> str | None:
    """Return the name of a session on every machine, or None."""
    return None if session is None else session_identity(session.agent, session.external_id)


def make_references(**named: Any) -> dict[str, Any]:
    """Return references as they travel, without those that are missing."""
    return {
        name: one._asdict() if isinstance(one, SessionReference) else one
        for name, one in named.items()
        if one is not None
    }


class KindReader(NamedTuple):
    """How records of a kind are read: a statement up to its condition, and what follows that.

    `make` turns a row into a record; of several rows with one key the first counts. `number` is the
    column that `read_numbers` compares.
    """

    select: str
    order: str
    make: Callable[[Row], StoredRecord]
    number: str
