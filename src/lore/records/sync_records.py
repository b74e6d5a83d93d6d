"""What sync reports: the result of one sync, its peers, and the state of this home."""

from __future__ import annotations

from datetime import datetime

from lore.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SyncPeer:
    """Another home that this one was synced with; `waiting` changes were not sent to it yet.

    `state_hash` is that of its state after the last sync, and `problem` why the last try failed.
    A target that has never answered has no `machine`.
    """

    machine: str
    name: str
    synced_at: datetime | None
    waiting: int
    state_hash: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SyncState:
    """The identity of this home, where it syncs by itself, and its peers, the latest first.

    `unresolved` records wait for others that did not arrive yet.
    """

    machine: str
    target: str
    interval_s: float
    unresolved: int
    peers: tuple[SyncPeer, ...]


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What a sync did: records that were sent and received, and what they changed here.

    `state_hash` is equal on homes with the same state; `peer_hash` is that of the other side.
    """

    peer: str
    sent: int
    received: int
    changed: int
    forgotten: int
    conflicts: int
    state_hash: str
    peer_hash: str
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class SyncIdentity:
    """What a home says of itself at the start of a sync; the hash of its state on request.

    It speaks all formats from `oldest_format` to `format`.
    """

    machine: str
    epoch: str
    format: int
    version: str
    state_hash: str = ""
    oldest_format: int = 1
