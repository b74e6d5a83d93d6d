"""The desk for keeping and giving up: backup, export, forget."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from lore.capture import exchange
from lore.checking import checked_class
from lore.memory.desk import Desk
from lore.records import Forgettable, Names
from lore.redaction import home_key
from lore.store import forgetting, items, upkeep


@checked_class
class Keeping(Desk):
    """For keeping and giving up."""

    __slots__ = ()

    def backup(self, target: Path | str | None = None) -> Path:
        """Write a consistent copy of the database and return its path."""
        if target is None:
            self.settings.backups.mkdir(mode=0o700, parents=True, exist_ok=True)
            target = self.settings.backups
        return upkeep.backup(self.database, Path(target))

    def export(self, target: Path | str | BinaryIO) -> int:
        """Write everything as JSON lines and return how many records that were."""
        place = Path(target) if isinstance(target, str) else target
        return exchange.export(self.database, place, key=home_key(self.settings, "export"))

    def count_forgettable(
        self, *, id: str = "", session: str = "", project: str = "", match: str = ""
    ) -> int:
        """Count what `forget` would delete."""
        return self.forgettable(id=id, session=session, project=project, match=match).count

    def forgettable(
        self, *, id: str = "", session: str = "", project: str = "", match: str = ""
    ) -> Forgettable:
        """Return what `forget` would delete, the items by id in the order they came in."""
        session, project = self.redactor.redact(session), self.redactor.redact(project)
        with self.database.read() as db:
            doomed = forgetting.collect(db, id, session, project, match)
            found = forgetting.with_derived(db, doomed)
            ids = items.ids_of(db, found.item_ns)
        chosen = tuple(ids[n] for n in found.item_ns if n in ids)
        return Forgettable(chosen, len(found.session_ns), len(found.project_ns))

    def names_with(self, text: str) -> Names:
        """Return the sessions and projects that have a text in their names.

        `forget(match=…)` takes it out of the names of sessions; a project keeps its path until
        the project itself is forgotten.
        """
        with self.database.read() as db:
            return forgetting.names_with(db, text)

    def forget(
        self, *, id: str = "", session: str = "", project: str = "", match: str = ""
    ) -> list[str]:
        """Delete on a person's request, without a trace; return the ids that are gone."""
        session, project = self.redactor.redact(session), self.redactor.redact(project)
        with self.database.read() as db:
            doomed = forgetting.collect(db, id, session, project, match)
            doomed = forgetting.with_derived(db, doomed)
        gone = upkeep.forget(self.database, doomed, match, self.settings.backups)
        self.sources.forget_vectors(doomed.item_ns)
        self.let_go()
        return gone

    def let_go(self) -> None:
        """Have no words in mind that may have been forgotten, here or by another process."""
        self.sources.let_go()
