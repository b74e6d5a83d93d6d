"""The desk for a closer look: items whole, their history, and where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from lore import projects
from lore.checking import Count, Whole, checked_class
from lore.errors import InvalidInput, NotFound
from lore.memory.desk import Desk
from lore.projects import Projects
from lore.recall import history, reading, surroundings
from lore.recall.reading import Direction
from lore.records import (
    Fragment,
    FragmentVersion,
    Happening,
    Message,
    Occurrence,
    Project,
    Provenance,
    Reading,
    Session,
    Stats,
    Title,
)
from lore.store import figures, items, sessions
from lore.store import fragments as fragment_store
from lore.store import messages as message_store

LIVE = timedelta(hours=1)
"""A session that was silent for longer is not taken for the present one: while an agent works, its
transcript is read every half minute, and between two turns a person thinks for minutes."""


@checked_class
class Looking(Desk):
    """For a closer look."""

    __slots__ = ()

    def read(self, ids: Sequence[str], *, reinforce: bool = True) -> list[Reading]:
        """Return items whole; reading a fragment makes it stronger."""
        with self.database.read() as db:
            found = [reading.read(db, id_) for id_ in ids]
        strengthened = [r.id for r in found if r.fragment and not r.deleted]
        if reinforce and strengthened and not self.database.read_only:
            self.database.write(
                lambda db: fragment_store.reinforce_all(db, strengthened, now=self.database.now())
            )
        return found

    def titles(self, ids: Sequence[str]) -> list[Title]:
        """Return fragments by name only, in order."""
        with self.database.read() as db:
            return reading.titles(db, [items.resolve(db, id_, type="fragment").n for id_ in ids])

    def traverse(self, id: str, direction: Direction = "children") -> list[Title]:
        """Return what lies one step from a fragment."""
        if direction not in ("children", "parent", "associations"):
            msg = f"'{direction}' is no direction: children, parent or associations."
            raise InvalidInput(msg)
        with self.database.read() as db:
            return reading.traverse(db, id, direction)

    def log(self, id: str) -> tuple[Fragment, list[FragmentVersion]]:
        """Return a fragment and what it said before, oldest first."""
        with self.database.read() as db:
            n = items.resolve(db, id, type="fragment").n
            return fragment_store.get(db, n), fragment_store.versions(db, n)

    def diff(self, id: str, version: Count | None = None) -> tuple[FragmentVersion, Fragment]:
        """Return a former version of a fragment, by default the last one, and the present."""
        current, former = self.log(id)
        chosen = [v for v in former if version is None or v.version == version]
        if not chosen:
            which = f"version {version}" if version is not None else "former version"
            msg = f"This fragment has no {which}."
            raise NotFound(msg)
        return chosen[-1], current

    def why(self, id: str) -> Provenance:
        """Return where an item comes from, and the numbers behind it."""
        with self.database.read() as db:
            return reading.why(db, id, now=self.database.now())

    def history(self, id: str) -> list[Happening]:
        """Return what happened to a fragment, oldest first."""
        with self.database.read() as db:
            return history.tell(db, id)

    def around(
        self, anchor: str, *, before: Whole = 5, after: Whole = 5, project: str = ""
    ) -> list[Occurrence]:
        """Return what was said and learned around a message, a fragment or a time, oldest first.

        Around a message it is what happened in its session; around a time ('now' too), in all
        of them, or in those of a project.
        """
        project = self.redactor.redact(project)
        with self.database.read() as db:
            project_n = sessions.get_project(db, project) if project else None
            return surroundings.around(
                db, anchor, before=before, after=after, project_n=project_n,
                now=self.database.now(),
            )  # fmt: skip

    def messages(self, session: str, *, first: Whole = 0, limit: Count = 10_000) -> list[Message]:
        """Return the messages of a session in order."""
        with self.database.read() as db:
            n = sessions.get_number(db, self.redactor.redact(session))
            return message_store.of_session(db, n, first=first, limit=limit)

    def sessions(self, *, project: str = "", limit: Count = 20) -> list[Session]:
        """Return the latest sessions, newest first."""
        project = self.redactor.redact(project)
        with self.database.read() as db:
            project_n = sessions.get_project(db, project) if project else None
            return sessions.recent(db, project_n=project_n, limit=limit)

    def has_session(self, session: str) -> bool:
        """Tell whether a session of this id, or of an agent's own name for it, is known."""
        try:
            with self.database.read() as db:
                sessions.get_number(db, self.redactor.redact(session))
        except NotFound:
            return False
        return True

    def find_live_session(self, folder: str) -> Session | None:
        """Return the session that is going on in a folder's project, or None.

        Where several are, it is the one in which something was said last.
        """
        project = self.find_project(folder) if folder else None
        newest = self.sessions(project=project.id, limit=1) if project else []
        since = self.database.now() - LIVE
        return next((one for one in newest if one.last_message_at >= since), None)

    def projects(self) -> list[Project]:
        """Return all projects, by path."""
        with self.database.read() as db:
            return list(sessions.projects(db).values())

    def find_project(self, folder: str) -> Project | None:
        """Return the project that a folder belongs to, or None if it is not known."""
        folder = self.redactor.redact(folder)
        place = Projects().find(folder) if folder else None
        with self.database.read() as db:
            n = projects.find(db, folder, place)
            return sessions.projects(db)[n] if n is not None else None

    def stats(self) -> Stats:
        """Count what the memory holds."""
        with self.database.read() as db:
            return figures.stats(
                db, embedder=self.sources.embedder.identity, notice=self.notice_now
            )

    def short_ids(self, ids: Sequence[str]) -> dict[str, str]:
        """Return for each id the shortest prefix that names it alone."""
        with self.database.read() as db:
            return items.short_ids(db, ids)
