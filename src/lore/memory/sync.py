"""Sync: exchange changes with another home of the same person, by address, ssh or file."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from lore import __version__, clock, config_files, telemetry
from lore.capture.export_import import refuse_own_file
from lore.errors import InvalidInput, SyncError
from lore.memory.context import MemoryPart
from lore.records import SyncIdentity, SyncPeer, SyncResult, SyncState
from lore.redaction.redactor import home_key
from lore.store import hard_delete, history, maintenance, sync_forgets, sync_rows
from lore.store.database import Connection
from lore.store.hard_delete import ForgetSelection
from lore.store.history import Tombstone
from lore.sync import bundle, peers
from lore.sync.batch import Applied
from lore.sync.exchange import Exchange, note_bundle, note_problem
from lore.sync.peers import PeerOptions
from lore.sync.replica import ChangePage, Replica
from lore.sync.wire_format import FORMAT, OLDEST_FORMAT, is_key
from lore.validation import validate_methods

KEY_FILE = "sync.key"
_KEY_BYTES = 32
"""256 bits, as in the other keys of a home."""

_CODE = "lore-pair-"

Progress = Callable[[str, int], None]


def _ignore_progress(_part: str, _done: int) -> None:
    pass


@validate_methods
class Sync(MemoryPart):
    """Exchange changes with another home of the same person."""

    def __call__(
        self, target: str = "", *, dry_run: bool = False, progress: Progress = _ignore_progress
    ) -> SyncResult:
        """Exchange all changes with a home: an http(s) address, or 'HOST:' for ssh.

        Without a target it is that of the setting `sync.target`.
        """
        target = target.strip() or self._settings.sync_target
        if not target:
            msg = "There is nothing to sync with: no target is given, and none is set."
            raise InvalidInput(msg, hint="'lore config sync.target URL' sets one.")
        name, replica = peers.peer_name(target), self._replica
        exchange: Exchange | None = None
        try:
            with telemetry.span("sync") as span, peers.open_peer(name, self._options) as peer:
                exchange = Exchange(self._database, replica, peer, self._receive, progress)
                if dry_run:
                    sent, received = exchange.count()
                    return SyncResult(
                        peer.name, sent, received, 0, 0, 0, replica.state_hash(),
                        exchange.peer_hash, dry_run=True,
                    )  # fmt: skip
                exchange.run()
                span.set("lore.sent", exchange.sent)
                span.set("lore.received", exchange.applied.received)
        except SyncError as error:
            if not dry_run and not self._database.read_only:
                machine = exchange.machine if exchange is not None else ""
                note_problem(self._database, name, str(error), machine=machine)
            raise
        self.finish_forgets()
        return self._result(peer.name, exchange.sent, exchange.applied, exchange.peer_hash)

    def write_bundle(self, target: Path) -> SyncResult:
        """Write all that sync exchanges to a file."""
        refuse_own_file(self._database, target)
        replica = self._replica
        replica.scan()
        sent = bundle.write_bundle(replica, target, key=self._key())
        return self._result(str(target), sent, Applied(), "")

    def read_bundle(
        self, source: Path, *, trust: bool = False, progress: Progress = _ignore_progress
    ) -> SyncResult:
        """Apply a bundle; one that was sealed with another key is refused without `trust`."""
        replica, applied = self._replica, Applied()
        replica.scan()
        with bundle.open_bundle(source, key=self._key(), trust=trust) as opened:
            for block in opened.blocks():
                page = ChangePage(block, "", more=False)
                applied += self._receive(page, _do_nothing, opened.machine)
                progress("receiving", applied.received)
        replica.scan()
        if opened.machine != replica.machine:
            note_bundle(self._database, opened.machine)
        self.finish_forgets()
        return self._result(str(source), 0, applied, "")

    def serve_pipes(self, requests: BinaryIO, responses: BinaryIO) -> None:
        """Answer the requests of another home, which come through a pipe."""
        peers.serve_pipes(self, requests, responses)
        self.finish_forgets()

    def describe(self, *, state_hash: bool = False) -> SyncIdentity:
        """Return who this home is, after looking for its changes."""
        replica = self._replica
        replica.scan()
        hashed = replica.state_hash() if state_hash else ""
        return SyncIdentity(
            replica.machine, replica.epoch, FORMAT, __version__, hashed, OLDEST_FORMAT
        )

    def changes(self, cursor: str = "", *, machine: str = "") -> ChangePage:
        """Return a page of what changed after a cursor, except what a machine itself brought."""
        return self._replica.changes(cursor, without=machine)

    def receive(self, records: Sequence[Any], *, machine: str) -> Applied:
        """Apply records of another machine."""
        page = ChangePage(list(records), "", more=False)
        applied = self._receive(page, _do_nothing, machine)
        self.finish_forgets()
        return applied

    def state_hash(self) -> str:
        """Return the hash of all that sync exchanges."""
        return self._replica.state_hash()

    def state(self) -> SyncState:
        """Return the identity of this home, its target and its peers."""
        replica = self._replica
        with self._database.read() as db:
            rows, unresolved = sync_rows.all_peers(db), sync_rows.count_pending(db)
            machine, _ = sync_rows.get_machine(db)
        return SyncState(
            machine,
            self._settings.sync_target,
            self._settings.sync_interval_s,
            unresolved,
            tuple(
                SyncPeer(
                    row.machine if row.is_known else "",
                    row.name,
                    None if row.synced_at is None else clock.from_us(row.synced_at),
                    replica.count_changes(row.pushed, without=row.machine),
                    row.state_hash,
                    row.problem,
                )
                for row in rows
            ),
        )

    def pairing_code(self) -> str:
        """Return the code by which another home of this person shares the key of bundles."""
        return _CODE + base64.b32encode(self._key()).decode().rstrip("=").lower()

    def join(self, code: str) -> None:
        """Use the key of another home for bundles from now on."""
        digits = code.strip().removeprefix(_CODE).upper()
        try:
            key = base64.b32decode(digits + "=" * (-len(digits) % 8))
        except binascii.Error:
            key = b""
        if len(key) != _KEY_BYTES or not code.strip().startswith(_CODE):
            msg = "This is not a pairing code."
            raise InvalidInput(msg, hint="'lore sync --pair' on the other machine shows it.")
        config_files.make_private_folder(self._settings.home)
        config_files.replace_file(self._settings.home / KEY_FILE, key)

    @property
    def _replica(self) -> Replica:
        return Replica(self._database, self._redactor)

    @property
    def _options(self) -> PeerOptions:
        settings = self._settings
        return PeerOptions(
            settings.sync_api_key, settings.sync_ssh, settings.sync_remote, settings.sync_insecure
        )

    def _key(self) -> bytes:
        return config_files.ensure_key(
            self._settings.home / KEY_FILE,
            make=lambda: secrets.token_bytes(_KEY_BYTES),
            is_sound=lambda key: len(key) == _KEY_BYTES,
        )

    def _result(self, peer: str, sent: int, applied: Applied, peer_hash: str) -> SyncResult:
        return SyncResult(
            peer, sent, applied.received, applied.changed, applied.forgotten + len(applied.deleted),
            applied.conflicts, self._replica.state_hash(), peer_hash,
        )  # fmt: skip

    def _receive(
        self, page: ChangePage, finish: Callable[[Connection], object], via: str
    ) -> Applied:
        """Apply a page, and erase what it forgets from all files of this machine.

        Shared pages and copies in agents' memories go first: only the store knows which of their
        entries are meant. Whoever is killed in between gets the page again.
        """
        from lore.digest import native_share, project_page
        from lore.memory.continuity import Continuity

        selected, folders = ForgetSelection(), list[str]()

        def note_and_finish(db: Connection) -> None:
            if folders:  # once this is written, nothing says any more which folders these were
                sync_rows.set_stale_pages(db, folders)
            finish(db)

        apply = self._replica.prepare_apply(page.records, via=via, finish=note_and_finish)
        tombstones = _tombstones(page.records, self._database.now())
        if tombstones:
            with self._database.read() as db:
                known = history.find_tombstones(db, list(tombstones))
                fresh = {i: s for i, s in tombstones.items() if i not in known}
                selected = hard_delete.with_derived(
                    db,
                    hard_delete.expand_selection(
                        db, sync_forgets.select_forgotten(db, fresh).selection
                    ),
                )
                entries = project_page.ForgottenEntries(db, selected.item_ns, "")
                copies = native_share.SharedCopies(db, Path.home(), selected.item_ns, "")
            if selected.item_ns:
                folders = Continuity(self._context).folders()
                entries.remove()
                copies.remove()
        applied = self._database.write(apply)
        if applied.changed:
            self._sources.drop_hidden()
        if selected.item_ns:
            self.finish_forgets()
        return applied

    def finish_forgets(self) -> None:
        """Erase the bytes of what was forgotten, also after a kill in between."""
        from lore.memory.continuity import Continuity

        with self._database.read() as db:
            deleted, folders = sync_rows.get_deleted(db), sync_rows.get_stale_pages(db)
        if deleted:
            maintenance.forget_everywhere(
                self._database, ForgetSelection(), "", self._settings.backups,
                key=home_key(self._settings, "backup"),
            )  # fmt: skip
            self._sources.forget_vectors(deleted)
            self._sources.clear_caches()
            self._database.write(sync_rows.clear_deleted)
        if folders:
            Continuity(self._context).refresh(folders)
            self._database.write(sync_rows.clear_stale_pages)


def _do_nothing(_db: Connection) -> None:
    pass


def _tombstones(records: Sequence[Any], now: datetime) -> dict[str, Tombstone]:
    """Return the tombstones among records, which are checked when they are applied."""
    tombstones = {}
    for record in records:
        if (
            isinstance(record, dict)
            and record.get("kind") == "forget"
            and is_key(record.get("key"))
        ):
            try:
                us, _, value = record["registers"]["self"][:3]
                one = history.make_tombstone(str(value["source"]), int(us), now=now)
                tombstones[str(record["key"])] = one
            except (KeyError, IndexError, TypeError, ValueError):
                continue
    return tombstones
