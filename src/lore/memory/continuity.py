"""CONTINUITY.md of projects: write it after a turn, and review what a person changed on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from lore import local_files
from lore.capture import exclusion
from lore.errors import LoreError, NotFound
from lore.memory import work_scope
from lore.memory.context import MemoryContext, MemoryPart
from lore.memory.handoffs import LATEST_OF_PROJECT, Handoffs
from lore.records import UNASKED_TRUST, ContinuityText, Fragment
from lore.records.task_records import ContinuityEdit
from lore.store import dialogue_state, fragments, handoff_rows, items, pages, project_rows, sessions
from lore.store.database import Connection
from lore.tasks import continuity_file, continuity_page, open_work, session_work
from lore.tasks.continuity_file import MemoryLine
from lore.tasks.working_state import PersonEdits
from lore.validation import validate_methods

_MOST_MEMORIES, _MOST_MISTAKES = 5, 3
"""As many as a task is given."""


@validate_methods
class Continuity(MemoryPart):
    """The page of a project that has the state of its work, for people and agents."""

    def __init__(self, context: MemoryContext) -> None:
        super().__init__(context)
        self._handoffs = Handoffs(context)

    def write(self, folder: str, *, session: str = "", force: bool = False) -> Path | None:
        """Write CONTINUITY.md of a folder, where `tasks.continuity` is on; return its path.

        It has the state of a session, or of the latest one. Lines of a person stay as they are.
        """
        if local_files.are_withheld():
            return None
        place = Path(folder)
        if not (force or self._is_page_on(place)) or not place.is_dir():
            return None
        with self._database.read() as db:
            page = self._build_page(db, folder, self._page_session(db, folder, session))
            derived = self._derived_page(db, folder)
        if page is None:
            return None
        self._remember_place(folder)
        continuity_file.write_file(place, page, derived)
        return place / continuity_page.FILE_NAME

    def text(self, folder: str, *, reads_folder: bool = True) -> ContinuityText:
        """Return the page of a folder: the file, or what it would say. Nothing is written.

        The file is left alone for a caller that may be on another machine.
        """
        with suppress(LoreError, OSError):
            text = continuity_file.read_file(Path(folder)) if reads_folder else None
            if text is not None:
                return ContinuityText(folder, self._redactor.redact(text), is_written=True)
        with self._database.read() as db:
            page = self._build_page(db, folder, self._page_session(db, folder, ""))
        text = continuity_page.render_page(page) if page is not None else ""
        return ContinuityText(folder, text, is_written=False)

    def edits(self, folder: str) -> list[ContinuityEdit]:
        """Return what a person changed on a project's page, without applying it."""
        text = continuity_file.read_file(Path(folder))
        if text is None:
            msg = f"There is no {continuity_page.FILE_NAME} in {folder}."
            raise NotFound(msg, hint="'lore continuity' writes one.")
        with self._database.read() as db:
            derived = self._derived_page(db, folder)
        return continuity_page.find_edits(continuity_page.parse_page(text), derived)

    def apply(self, folder: str, edits: Sequence[ContinuityEdit]) -> int:
        """Apply edits of a page that a person has approved; return how many.

        A new decision becomes a fragment; the other sections change the working state.
        """
        from lore.memory.knowledge import Knowledge

        text = continuity_file.read_file(Path(folder))
        page = continuity_page.parse_page(text or "")
        with self._database.read() as db:
            n = self._find_session(db, folder, page.session)
        if n is None:
            msg = "The session of this page is not stored any more, or is of another project."
            raise NotFound(msg)
        for edit in edits:
            if edit.verb == "add" and edit.section == "decisions":
                Knowledge(self._context).remember(edit.text, kind="decision", project=folder)
        chosen = _person_edits(edits, self._redactor.redact)
        now = self._database.now()
        self._database.write(lambda db: session_work.edit_state(db, n, chosen, now=now))
        self.write(folder, session=page.session, force=True)
        return len(edits)

    def folders(self) -> list[str]:
        """Return the folders that may have a page: those of all projects, and the home folder."""
        with self._database.read() as db:
            names = project_rows.names_of_projects(db, [*project_rows.all_projects(db)])
        return [*filter(os.path.isabs, names), str(Path.home())]

    def with_page(self, folders: Sequence[str]) -> list[str]:
        """Return those of the folders that have a page, or something in its place."""
        return [one for one in folders if Path(one, continuity_page.FILE_NAME).is_file()]

    def refresh(self, folders: Sequence[str]) -> None:
        """Write the pages in folders again, where there are any, after something was forgotten."""
        for folder in folders:
            with suppress(LoreError, OSError):
                if continuity_file.read_file(Path(folder)) is not None:
                    self._rewrite(folder)

    def _remember_place(self, folder: str) -> None:
        """Store a folder as one of its project, so that `refresh` finds the page in it."""
        with self._database.read() as db:
            project_n = work_scope.find_project(db, self._redactor, folder)
            if project_n is None or folder in project_rows.names_of_projects(db, [project_n]):
                return
        if self._database.read_only:
            return
        now = self._database.now()
        self._database.write(
            lambda db: work_scope.ensure_project(db, self._redactor, folder, None, now)
        )

    def _rewrite(self, folder: str) -> None:
        self._handoffs.catch_up()
        if self.write(folder, force=True) is None:
            empty = continuity_page.ContinuityPage()
            continuity_file.write_file(Path(folder), empty, empty)

    def _is_page_on(self, folder: Path) -> bool:
        """Return whether the person wants the page here; a repository cannot ask for it."""
        patterns = self._settings.tasks_continuity_folders
        return self._settings.tasks_continuity or exclusion.covers_folder(patterns, "", str(folder))

    def _page_session(self, db: Connection, folder: str, session: str) -> int | None:
        if session:
            return self._find_session(db, folder, session)
        rows = handoff_rows.recent_working_states(
            db, work_scope.find_project(db, self._redactor, folder), limit=LATEST_OF_PROJECT
        )
        with_task = (row for row in rows if session_work.parse_state(row.body).task.text)
        return next((row.session_n for row in with_task), None)

    def _find_session(self, db: Connection, folder: str, session: str) -> int | None:
        """Return the number of a session of the folder's project, else None.

        An agent may have gone to the folder of another project, and a page may come from one.
        """
        own = work_scope.find_family(db, self._redactor, session)
        project_n = work_scope.find_project(db, self._redactor, folder)
        is_own = bool(own) and sessions.project_of_session(db, own[0]) == project_n
        return own[0] if is_own else None

    def _derived_page(self, db: Connection, folder: str) -> continuity_page.ContinuityPage:
        """Return the page as the state behind the present file gives it."""
        with suppress(LoreError):
            text = continuity_file.read_file(Path(folder))
            written = continuity_page.parse_page(text or "")
            page = self._build_page(db, folder, self._find_session(db, folder, written.session))
            if page is not None:
                return page
        return continuity_page.ContinuityPage()

    def _build_page(
        self, db: Connection, folder: str, session_n: int | None
    ) -> continuity_page.ContinuityPage | None:
        work = open_work.find_own_work(db, session_n) if session_n is not None else None
        if work is None or session_n is None:
            return None
        project_n = work_scope.find_project(db, self._redactor, folder)
        earlier = open_work.find_open_work(
            db, project_n, without=[session_n], now=self._database.now()
        )
        memories = _given_fragments(db, session_n)
        warnings = [one for one in memories if one.kind == "anti_pattern"]
        warnings += _known_mistakes(db, project_n, without=warnings)
        known = [one for one in memories if one.kind != "anti_pattern"]
        return continuity_file.build_page(
            work,
            earlier=earlier,
            memories=_memory_lines(db, known[:_MOST_MEMORIES]),
            mistakes=_memory_lines(db, warnings[:_MOST_MISTAKES]),
        )


def _given_fragments(db: Connection, session_n: int) -> list[Fragment]:
    """Return the memories that a session was given, those of its tasks first."""
    external = sessions.get_session(db, session_n).external_id
    ns = handoff_rows.memories_given(db, [session_n], limit=20)
    ns += sorted(dialogue_state.find_injections(db, external).items, reverse=True)
    by_n = fragments.by_number(db, list(dict.fromkeys(ns)))
    return [
        one
        for n in dict.fromkeys(ns)
        if (one := by_n.get(n)) and one.trust >= UNASKED_TRUST and not one.superseded_by
    ]


def _known_mistakes(
    db: Connection, project_n: int | None, *, without: Sequence[Fragment]
) -> Iterator[Fragment]:
    if project_n is None:
        return
    ns = pages.fragments(
        db, (), kind="anti_pattern", origin="", project_n=project_n, limit=_MOST_MISTAKES * 2
    )
    shown = {one.id for one in without}
    for one in fragments.by_number(db, ns).values():
        if one.trust >= UNASKED_TRUST and one.id not in shown and not one.superseded_by:
            yield one


def _memory_lines(db: Connection, known: Sequence[Fragment]) -> list[MemoryLine]:
    short = items.short_ids(db, [one.id for one in known]) if known else {}
    return [MemoryLine(short[one.id], one.summary or one.content) for one in known]


def _person_edits(edits: Sequence[ContinuityEdit], redact: Callable[[str], str]) -> PersonEdits:
    added: dict[str, list[str]] = {}
    removed: dict[str, list[str]] = {}
    for edit in edits:
        target = added if edit.verb == "add" else removed
        target.setdefault(edit.section, []).append(redact(edit.text))
    return PersonEdits(
        {name: tuple(texts) for name, texts in added.items()},
        {name: tuple(texts) for name, texts in removed.items()},
    )
