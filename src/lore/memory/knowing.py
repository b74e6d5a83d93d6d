"""The desk for knowledge by hand: storing, changing, linking, undoing, revoking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lore.checking import Whole, checked_class
from lore.curate import fragments, undoing
from lore.errors import NotFound
from lore.memory.desk import Desk
from lore.recall import reading
from lore.records import (
    Draft,
    EdgeKind,
    FragmentKind,
    Origin,
    Remembered,
    Revocation,
    SharedChange,
    SharedPage,
)


@checked_class
class Knowing(Desk):
    """For knowledge by hand."""

    __slots__ = ()

    def store(
        self,
        content: str,
        *,
        summary: str = "",
        kind: FragmentKind = "fact",
        parent_id: str = "",
        depth: Whole | None = None,
        importance: float = 0.5,
        confidence: float = 0.7,
        origin: Origin = "user",
        project: str = "",
        session: str = "",
        source_messages: Sequence[str] = (),
        payload: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> str:
        """Store a fragment and return its id; the same key again returns the same id."""
        draft = Draft(
            content, summary, kind, parent_id, depth, importance, confidence, origin, project,
            session, tuple(source_messages), payload or {},
        )  # fmt: skip
        return fragments.store(self.database, draft, key=key, redactor=self.redactor)

    def remember(
        self,
        content: str,
        *,
        summary: str = "",
        kind: FragmentKind = "fact",
        parent_id: str = "",
        depth: Whole | None = None,
        importance: float = 0.5,
        origin: Origin = "user",
        project: str = "",
        session: str = "",
        payload: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> Remembered:
        """Store a fragment where it belongs, unless it is known, and say what became of it.

        Without a parent it goes below the root that it is near to. A depth of 0 keeps it at the
        top; any other is a wish that only a parent can fulfil.
        """
        from lore.curate import remembering

        draft = Draft(
            content, summary, kind, parent_id, depth, importance,
            origin=origin, project=project, session=session, payload=payload or {},
        )  # fmt: skip
        self.catch_up()
        kept = remembering.remember(
            self.database, draft, self.sources.embedder, self.sources.nearest,
            key=key, redactor=self.redactor,
        )  # fmt: skip
        if kept.replaced:
            self.sources.drop_hidden([kept.replaced])
        with self.database.read() as db:
            return reading.remembered(db, kept.id, kept.outcome, kept.resembles)

    def store_all(self, drafts: Iterable[Draft]) -> list[str]:
        """Store many fragments at once and return their ids in order."""
        return fragments.store_all(self.database, drafts, redactor=self.redactor)

    def update(
        self,
        id: str,
        content: str,
        *,
        summary: str = "",
        reason: str = "",
        origin: Origin = "user",
        key: str = "",
    ) -> int:
        """Give a fragment new words and return its new version; the old ones are kept."""
        return fragments.update(
            self.database, id, content,
            summary=summary, reason=reason, origin=origin, key=key, redactor=self.redactor,
        )  # fmt: skip

    def delete(self, id: str, *, origin: Origin = "user", key: str = "") -> str:
        """Hide a fragment until `undo` brings it back; return its whole id."""
        deleted = fragments.delete(self.database, id, origin=origin, key=key)
        self.sources.drop_hidden([deleted])
        return deleted

    def undo(self, id: str = "", *, key: str = "") -> tuple[str, str]:
        """Undo the last change by hand, of all or of one fragment; return verb and id."""
        undone = undoing.undo(self.database, id, key=key)
        self.sources.drop_hidden()
        return undone

    def redo(self, id: str = "", *, key: str = "") -> tuple[str, str]:
        """Do again what was last undone; return verb and id."""
        redone = undoing.redo(self.database, id, key=key)
        self.sources.drop_hidden()
        return redone

    def next_undo(self, id: str = "", *, redo: bool = False) -> tuple[str, str] | None:
        """Return verb and id of what `undo`, or `redo`, would act on."""
        with self.database.read() as db:
            return undoing.find_next(db, id, redo=redo)

    def link(
        self, source: str, target: str, kind: EdgeKind, *,
        weight: float = 1.0, note: str = "", origin: Origin = "user", key: str = "",
    ) -> None:  # fmt: skip
        """Draw an edge between two fragments. `origin` says who draws it."""
        fragments.link(
            self.database, source, target, kind,
            weight=weight, note=note, origin=origin, key=key, redactor=self.redactor,
        )  # fmt: skip

    def supersede(self, old: str, new: str, *, origin: Origin = "user", key: str = "") -> None:
        """Let a newer fragment replace an older one; both are kept. `origin` says who decides."""
        fragments.supersede(self.database, old, new, origin=origin, key=key)
        self.sources.drop_hidden([old])

    def plan_share(self, project: str, file: Path) -> SharedPage:
        """Return the page of a project's knowledge as `share` would write it to a file."""
        from lore.curate import shared_file, sharing

        page = shared_file.read_page(file, self.redactor)
        with self.database.read() as db:
            return sharing.plan_writing(db, self.redactor.redact(project), page)

    def share(self, page: SharedPage, file: Path) -> None:
        """Write the page of a project's knowledge that a person has seen."""
        from lore.curate import shared_file, sharing

        shared_file.write_page(file, page.text)
        sharing.keep_written(self.database, page)

    def leave_out(self, ids: Sequence[str]) -> None:
        """Keep fragments off the shared page from now on."""
        from lore.curate import sharing

        sharing.leave_out(self.database, ids)

    def read_shared(self, project: str, file: Path) -> list[SharedChange]:
        """Return what people changed on a project's page; nothing of it is used yet."""
        from lore.curate import shared_file, sharing

        page = shared_file.read_page(file, self.redactor)
        if page is None:
            msg = f"There is no {file}."
            raise NotFound(msg, hint="'lore share' writes one.")
        with self.database.read() as db:
            return sharing.plan_reading(db, self.redactor.redact(project), page)

    def take_shared(self, project: str, changes: Sequence[SharedChange]) -> int:
        """Take in what people changed on a project's page, once a person has approved it."""
        from lore.curate import sharing

        project = self.redactor.redact(project)
        taken = sharing.take(self.database, project, changes, redactor=self.redactor)
        self.sources.drop_hidden()
        return taken

    def revoke(
        self,
        *,
        session: str = "",
        origin: str = "",
        file: str = "",
        project: str = "",
        dry_run: bool = False,
    ) -> Revocation:
        """Hide what was derived from a session, an origin or a file; the messages stay."""
        from lore.curate import revoking
        from lore.curate.revoking import Suspect

        suspect = Suspect(*map(self.redactor.redact, (session, origin, file, project)))
        if dry_run:
            return revoking.preview(self.database, suspect)
        gone = revoking.revoke(self.database, suspect)
        self.sources.drop_hidden()
        return gone
