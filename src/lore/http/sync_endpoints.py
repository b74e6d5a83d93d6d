"""REST endpoints of sync: who this home is, what changed in it, and what another home changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from anyio import CapacityLimiter
from pydantic import Field
from starlette.exceptions import HTTPException

from lore.errors import InvalidInput, SyncError
from lore.http.endpoint import Endpoint
from lore.memory import Memory
from lore.records import SyncIdentity
from lore.tools.tool import Arguments, Caller

_MOST_RECORDS = 1_000
"""Of one request; they are applied in one transaction."""

_WRITERS = 1
"""Pushes that are applied at a time: the database has one writer."""

MachineId = Annotated[
    str, Field(max_length=64, pattern=r"^[0-9a-f]*$", description="The caller's machine id.")
]


class OfIdentity(Arguments):
    """Who this home is."""

    state_hash: Annotated[bool, Field(description="With the hash of the whole state.")] = False


class OfChanges(Arguments):
    """A page of changes."""

    cursor: Annotated[
        str, Field(max_length=100, description="'cursor' of the page before; none from the start.")
    ] = ""
    machine: MachineId = ""


class PushedRecords(Arguments):
    """Records of another home of the same person."""

    machine: MachineId
    records: Annotated[tuple[dict[str, Any], ...], Field(max_length=_MOST_RECORDS)]


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed after a cursor, the cursor after that, and whether there is more."""

    records: tuple[dict[str, Any], ...]
    cursor: str
    more: bool


@dataclass(frozen=True, slots=True)
class PushResult:
    """How many records arrived, how many changed something, and how many had been forgotten."""

    received: int
    changed: int
    forgotten: int
    conflicts: int


def _identify(memory: Memory, a: OfIdentity, _caller: Caller) -> SyncIdentity:
    return memory.sync.describe(state_hash=a.state_hash)


def _changes(memory: Memory, a: OfChanges, _caller: Caller) -> Changes:
    page = memory.sync.changes(a.cursor, machine=a.machine)
    return Changes(tuple(page.records), page.cursor, page.more)


def _push(memory: Memory, a: PushedRecords, caller: Caller) -> PushResult:
    if not caller.may_write:  # a key that may only add conversations must not change or delete
        raise HTTPException(403, "Sync also needs the scope 'write': it changes and deletes.")
    try:
        applied = memory.sync.receive(a.records, machine=a.machine)
    except SyncError as error:  # here it is the caller's mistake
        raise InvalidInput(str(error)) from error
    return PushResult(applied.received, applied.changed, applied.forgotten, applied.conflicts)


SYNC_ENDPOINTS: tuple[Endpoint[Any], ...] = (
    Endpoint(
        "GET", "/sync", "Who this home is, once its changes are in its change log.", "push",
        OfIdentity, _identify, SyncIdentity, tags=("sync",), limiter=CapacityLimiter(_WRITERS),
    ),
    Endpoint(
        "GET", "/changes", "What changed after a cursor, for another home of this person.", "read",
        OfChanges, _changes, Changes, tags=("sync",),
    ),
    Endpoint(
        "POST", "/push", "Apply what another home of this person changed.", "push",
        PushedRecords, _push, PushResult, tags=("sync",), limiter=CapacityLimiter(_WRITERS),
    ),
)  # fmt: skip
