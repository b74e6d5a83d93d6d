"""Edits: change knowledge where it is seen; each change is undone by its id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from lore.digest import change_ids, fragment_edits
from lore.digest.change_ids import KeptPair
from lore.errors import InvalidInput
from lore.memory.context import MemoryPart
from lore.records import Correction, Draft, Origin
from lore.store import fragments, graph, items
from lore.store.database import Connection
from lore.validation import validate_methods

T = TypeVar("T")


@validate_methods
class Edits(MemoryPart):
    """Change knowledge where it is seen; each change is undone by its id."""

    def update(
        self, id: str, content: str, *, summary: str = "", reason: str = "", origin: Origin = "user"
    ) -> Correction:
        """Replace the text of a fragment; former versions are stored."""
        work = fragment_edits.prepare_update(
            self._database.now(), id, content,
            summary=summary, reason=reason, origin=origin, redactor=self._redactor,
        )  # fmt: skip
        version, action = self.record(work)
        return Correction(action, "update", self._full_id(id), version=version)

    def supersede(
        self, id: str, *, by: str = "", content: str = "", origin: Origin = "user"
    ) -> Correction:
        """Supersede a fragment by another one, or by a new one with this text."""
        if bool(by) == bool(content.strip()):
            msg = "Give either 'by', the id of the newer fragment, or 'content', its text."
            raise InvalidInput(msg)
        now = self._database.now()
        store = None if by else self._prepare_successor(id, content, origin)

        def work(db: Connection) -> str:
            newer = store(db) if store else items.resolve(db, by, type="fragment").id
            fragment_edits.replace_one(db, old=id, new=newer, origin=origin, now=now)
            return newer

        newer, action = self.record(work)
        return Correction(action, "supersede", self._full_id(id), newer)

    def _prepare_successor(
        self, id: str, content: str, origin: Origin
    ) -> Callable[[Connection], str]:
        """Return the work that stores a fragment in the place of another one."""
        with self._database.read() as db:
            n = fragment_edits.resolve_live(db, id)
            old, parent_n = fragments.get(db, n), graph.find_parent(db, n)
            is_live = parent_n is not None and not fragments.is_deleted(db, parent_n)
            parent = items.ids_of(db, [parent_n])[parent_n] if is_live and parent_n else ""
        draft = Draft(
            content, kind=old.kind, parent_id=parent, importance=old.importance, origin=origin,
            project=old.project_id or "", payload=old.payload,
        )  # fmt: skip
        return fragment_edits.prepare_store(self._database, draft, self._redactor)

    def approve(self, id: str) -> Correction:
        """Confirm the rules in a fragment, and trust it enough to be put into prompts."""
        work = partial(change_ids.approve, id_=id, now=self._database.now())
        _, action = self.record(work)
        return Correction(action, "approve", self._full_id(id))

    def reject(self, id: str, *, origin: Origin = "user") -> Correction:
        """Reject the rules in a fragment; hide a fragment that has none."""
        work = partial(change_ids.reject, id_=id, origin=origin, now=self._database.now())
        _, action = self.record(work)
        return Correction(action, "reject", self._full_id(id))

    def delete(self, id: str, *, origin: Origin = "user") -> Correction:
        """Hide a fragment until this is undone."""
        work = partial(fragment_edits.hide_one, id_=id, origin=origin, now=self._database.now())
        deleted, action = self.record(work)
        return Correction(action, "delete", deleted)

    def undo(self, action: str) -> Correction:
        """Undo a correction by its id, unless what it changed was changed again."""
        change = change_ids.decode_change(action)
        self._change(partial(change_ids.undo_change, change=change, now=self._database.now()))
        return Correction(action, "undo", self._subject(change))

    def redo(self, action: str) -> Correction:
        """Redo a correction that was undone."""
        change = change_ids.decode_change(action)
        self._change(partial(change_ids.redo_change, change=change, now=self._database.now()))
        return Correction(action, "redo", self._subject(change))

    def record(
        self, work: Callable[[Connection], T], exemptions: Sequence[KeptPair] = ()
    ) -> tuple[T, str]:
        """Do something in one transaction; return its result, and the id that undoes it."""
        return self._change(partial(change_ids.record, work=work, exemptions=exemptions))

    def _change(self, work: Callable[[Connection], T]) -> T:
        result = self._database.write(work)
        self._sources.drop_hidden()
        return result

    def _full_id(self, id: str) -> str:
        with self._database.read() as db:
            return items.resolve(db, id).id

    def _subject(self, change: change_ids.Change) -> str:
        """Return the id of the item that a correction is about, if it is still there."""
        with self._database.read() as db:
            return change_ids.find_subject(db, change)
