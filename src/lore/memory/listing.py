"""The desk for lists: pages of what the memory holds, each from where the last one ended."""

from __future__ import annotations

from typing import Annotated

from lore.checking import Bounds, checked_class
from lore.memory import cursors
from lore.memory.desk import Desk
from lore.recall import reading
from lore.records import (
    Conflict,
    Distillation,
    Edge,
    Fragment,
    KeptEpisode,
    Message,
    Page,
    Project,
    Reading,
    Session,
    Spend,
    Title,
)
from lore.store import distillations, fragments, items, listing, sessions
from lore.store import messages as message_store
from lore.store.db import Connection

MOST_ON_A_PAGE = 500
"""More would make the answer too large to be read at once; the next page is as quick."""

PageSize = Annotated[int, Bounds(least=1, most=MOST_ON_A_PAGE)]


@checked_class
class Listing(Desk):
    """For lists."""

    __slots__ = ()

    def page_of_sessions(
        self, *, project: str = "", limit: PageSize = 50, cursor: str = ""
    ) -> Page[Session]:
        """Return sessions, those last spoken in first."""
        after = cursors.read(cursor, int, int)
        with self.database.read() as db:
            keys = listing.sessions(db, after, project_n=self._project(db, project), limit=limit)
            found = sessions.by_number(db, [n for _, n in keys])
        return cursors.page_of([(key, found[key[1]]) for key in keys], limit)

    def page_of_messages(
        self, session: str, *, limit: PageSize = 50, cursor: str = ""
    ) -> Page[Message]:
        """Return the messages of a session in order."""
        (after,) = cursors.read(cursor, int) or (-1,)
        with self.database.read() as db:
            n = sessions.get_number(db, self.redactor.redact(session))
            found = message_store.of_session(db, n, first=int(after) + 1, limit=limit)
        return cursors.page_of([((one.ordinal,), one) for one in found], limit)

    def page_of_distillations(
        self, *, session: str = "", project: str = "", limit: PageSize = 50, cursor: str = ""
    ) -> Page[Distillation]:
        """Return distillations, newest first."""
        after = cursors.read(cursor, int)
        with self.database.read() as db:
            named = self.redactor.redact(session)
            ns = listing.distillations(
                db,
                after,
                session_n=sessions.get_number(db, named) if named else None,
                project_n=self._project(db, project),
                limit=limit,
            )
            found = distillations.by_number(db, ns)
        return cursors.page_of([((n,), found[n]) for n in ns], limit)

    def page_of_fragments(
        self, *, kind: str = "", origin: str = "", project: str = "",
        limit: PageSize = 50, cursor: str = "",
    ) -> Page[Fragment]:  # fmt: skip
        """Return fragments that are not deleted, newest first."""
        after = cursors.read(cursor, int)
        with self.database.read() as db:
            project_n = self._project(db, project)
            ns = listing.fragments(
                db, after, kind=kind, origin=origin, project_n=project_n, limit=limit
            )
            found = fragments.by_number(db, ns)
        return cursors.page_of([((n,), found[n]) for n in ns], limit)

    def page_of_episodes(
        self, *, project: str = "", limit: PageSize = 50, cursor: str = ""
    ) -> Page[KeptEpisode]:
        """Return episodes, those whose sessions ended last first."""
        from lore.curate import episodes

        after = cursors.read(cursor, int, int)
        with self.database.read() as db:
            keys = listing.episodes(db, after, project_n=self._project(db, project), limit=limit)
            found = fragments.by_number(db, [n for _, n in keys])
            kept = [(key, episodes.kept(db, found[key[1]])) for key in keys]
        return cursors.page_of(kept, limit)

    def page_of_roots(
        self, *, project: str = "", limit: PageSize = 50, cursor: str = ""
    ) -> Page[Title]:
        """Return the roots of the knowledge by title, strongest first."""
        after = cursors.read(cursor, float, int)
        with self.database.read() as db:
            project_n = self._project(db, project)
            keys = listing.roots(db, after, project_n=project_n, limit=limit)
            found = reading.titles(db, [n for _, n in keys])
        return cursors.page_of(list(zip(keys, found, strict=True)), limit)

    def page_of_edges(
        self, *, fragment: str = "", kind: str = "", limit: PageSize = 50, cursor: str = ""
    ) -> Page[Edge]:
        """Return edges, of all fragments or of one."""
        after = cursors.read(cursor, int, int, str)
        with self.database.read() as db:
            n = items.resolve(db, fragment, type="fragment").n if fragment else None
            found = listing.edges(db, after, fragment_n=n, kind=kind, limit=limit)
        return cursors.page_of(found, limit)

    def page_of_spend(self, *, limit: PageSize = 50, cursor: str = "") -> Page[Spend]:
        """Return what calls to models cost, newest first."""
        after = cursors.read(cursor, int, int)
        with self.database.read() as db:
            return cursors.page_of(listing.spend(db, after, limit=limit), limit)

    def page_of_projects(self, *, limit: PageSize = 50, cursor: str = "") -> Page[Project]:
        """Return projects in the order they became known."""
        after = cursors.read(cursor, int)
        with self.database.read() as db:
            return cursors.page_of(listing.projects(db, after, limit=limit), limit)

    def page_of_conflicts(
        self, *, project: str = "", limit: PageSize = 50, cursor: str = ""
    ) -> Page[Conflict]:
        """Return the fragments that speak against each other, newest first."""
        after = cursors.read(cursor, int, int, int)
        with self.database.read() as db:
            project_n = self._project(db, project)
            keys = listing.conflicts(db, after, project_n=project_n, limit=limit)
            said = fragments.by_number(db, sorted({n for _, *pair in keys for n in pair}))
        rows = [(key, Conflict(said[key[1]], said[key[2]])) for key in keys]
        return cursors.page_of(rows, limit)

    def message(self, id: str) -> Message:
        """Return one message whole."""
        with self.database.read() as db:
            return message_store.get(db, items.resolve(db, id, type="message").n)

    def fragment(self, id: str) -> Reading:
        """Return one fragment with what is around it; that does not reinforce it."""
        with self.database.read() as db:
            return reading.read(db, items.resolve(db, id, type="fragment").id)

    def _project(self, db: Connection, project: str) -> int | None:
        named = self.redactor.redact(project)
        return sessions.get_project(db, named) if named else None
