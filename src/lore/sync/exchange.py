"""The exchange: pull what another home changed, push what this one did, until both are the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lore import clock
from lore.errors import SyncError
from lore.lazy_dataclass import dataclass
from lore.records import SyncIdentity
from lore.store import sync_rows
from lore.store.database import Connection, Database
from lore.store.sync_rows import PeerRow
from lore.sync.batch import Applied
from lore.sync.peers import Peer
from lore.sync.replica import ChangePage, Replica

_MOST_ROUNDS = 8
"""What one side deletes or merges because of the other goes back in the next round; two are usual,
and a conflict needs three."""

BUNDLES = "bundles"
"""The name of a peer of which only bundles were read."""

_LONGEST_PROBLEM = 300

Progress = Callable[[str, int], None]
"""Called with the part of the work and how many records of it are done."""

Receive = Callable[[ChangePage, Callable[[Connection], object], str], Applied]
"""Applies a page of a machine, together with a write that stores how far the exchange is."""


@dataclass(slots=True)
class Exchange:
    """One sync with a peer; each page is applied and remembered in one transaction.

    A sync that is interrupted anywhere goes on where it was.
    """

    database: Database
    replica: Replica
    peer: Peer
    receive: Receive
    progress: Progress
    sent: int = 0
    applied: Applied = Applied()
    peer_hash: str = ""
    machine: str = ""
    """Who the peer is, once it has answered."""

    def run(self) -> None:
        """Exchange pages until neither side has anything new."""
        for _ in range(_MOST_ROUNDS):
            self.replica.scan()
            identity = self.peer.describe()
            if identity.machine == self.replica.machine:
                msg = "The other side is this very home."
                raise SyncError(msg, hint="Name the other machine.")
            self.machine = identity.machine
            moved = self._pull(identity) + self._push(identity)
            if not moved:
                break
        self.peer_hash = self.peer.describe(state_hash=True).state_hash
        self._remember(identity)

    def count(self) -> tuple[int, int]:
        """Return how many records would be sent, and of how many the peer has news at least."""
        self.replica.scan()
        identity = self.peer.describe(state_hash=True)
        self.peer_hash = identity.state_hash
        row = self._row(identity)
        machine = identity.machine
        page = self.peer.changes(row.pulled, self.replica.machine)
        return self.replica.count_changes(row.pushed, without=machine), len(page.records)

    def _row(self, identity: SyncIdentity) -> PeerRow:
        with self.database.read() as db:
            row = sync_rows.get_peer(db, identity.machine)
        if row.epoch != identity.epoch:  # it was restored: it may have lost what it got
            row = row._replace(pulled="", pushed="")
        return row._replace(name=self.peer.name, epoch=identity.epoch)

    def _remember(self, identity: SyncIdentity) -> None:
        at = clock.to_us(self.database.now())
        row = self._row(identity)._replace(synced_at=at, state_hash=self.peer_hash, problem="")

        def work(db: Connection) -> None:
            sync_rows.clear_problem(db, self.peer.name)
            sync_rows.put_peer(db, row)

        self.database.write(work)

    def _pull(self, identity: SyncIdentity) -> int:
        count, more = 0, True
        row = self._row(identity)
        while more:
            page = self.peer.changes(row.pulled, self.replica.machine)
            row = row._replace(pulled=page.cursor)
            finish = partial(sync_rows.put_peer, peer=row)
            self.applied += self.receive(page, finish, identity.machine)
            count, more = count + len(page.records), page.more
            self.progress("receiving", self.applied.received)
        if self.applied.received:
            self.replica.scan()
        return count

    def _push(self, identity: SyncIdentity) -> int:
        count, more = 0, True
        row = self._row(identity)
        while more:
            page = self.replica.changes(row.pushed, without=identity.machine)
            if page.records:
                self.peer.push(page.records, self.replica.machine)
            # After the reply: if it is lost, the page is sent again, which changes nothing.
            if page.cursor != row.pushed:
                row = row._replace(pushed=page.cursor)
                self.database.write(partial(sync_rows.put_peer, peer=row))
            count, more = count + len(page.records), page.more
            self.sent += len(page.records)
            self.progress("sending", self.sent)
        return count


def note_bundle(database: Database, machine: str) -> None:
    """Remember when a machine's bundle was read; a machine that is reached otherwise has a name."""

    def work(db: Connection) -> None:
        row = sync_rows.get_peer(db, machine)
        now = clock.to_us(database.now())
        sync_rows.put_peer(db, row._replace(name=row.name or BUNDLES, synced_at=now))

    if machine:
        database.write(work)


def note_problem(database: Database, name: str, problem: str, *, machine: str = "") -> None:
    """Remember why the last sync with a peer failed, also if it never answered.

    A machine that has answered is known, under whatever name it was reached before.
    """

    def work(db: Connection) -> None:
        sync_rows.clear_problem(db, name)
        known = [row for row in sync_rows.all_peers(db) if row.name == name]
        if machine:
            known = [sync_rows.get_peer(db, machine)._replace(name=name)]
        for row in known or [sync_rows.unknown_peer(name)]:
            sync_rows.put_peer(db, row._replace(problem=problem[:_LONGEST_PROBLEM]))

    database.write(work)
