"""Read the memories of agents into fragments, and keep both in step.

A note that is new becomes a fragment, one that changed a new version of it, and one that is gone is
hidden until it comes back. What a person deleted, revoked or forgot stays so.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from lore import clock, projects
from lore.capture import exclusion, native_files
from lore.capture.native_files import NativeFile
from lore.capture.transcript_files import find_identity, is_unchanged
from lore.digest import fragment_edits
from lore.digest.draft_writer import CONFIDENCE, SAME_WORDS
from lore.errors import CaptureError, InvalidInput, NotFound
from lore.projects import ProjectFinder
from lore.records import (
    TRUST,
    Draft,
    FileProblem,
    Fragment,
    NativeResult,
    NewerStatement,
    Origin,
    OutdatedNote,
    Watermark,
)
from lore.redaction.redactor import EPHEMERAL_REDACTOR, Redactor
from lore.store import (
    distillations,
    fragments,
    items,
    native_rows,
    project_rows,
    replacements,
    reversible_changes,
    sessions,
    watermarks,
)
from lore.store.database import Connection, Database
from lore.store.fragments import NewFragment
from lore.store.native_rows import KnownNotes, NoteRow
from lore.text import entities, sentences, words
from lore.text.native_notes import Note

_CONTEXT = "native"
"""The field of a watermark's context that marks the file of an agent's memory."""

_BEGINNING = f'{{"{_CONTEXT}":'

_SAME_NOTE = 0.5
"""A line that has this share of words in common with a former one below the same heading is that
line, reworded; chosen by hand."""

_WHOLE = ("memory", "whole")
"""Forms of files with a single note."""

_IMPORTANCE: Mapping[str, float] = {
    "user": 0.7, "feedback": 0.7, "instruction": 0.7, "project": 0.6, "reference": 0.4,
}  # fmt: skip
"""By the type of a note; recaps of sessions and a repository's rules count less."""

_OTHER_IMPORTANCE, _RECAP_IMPORTANCE, _REPOSITORY_IMPORTANCE = 0.5, 0.3, 0.4


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """Whose home is read, what is left out, and when to stop."""

    home: Path
    redactor: Redactor = EPHEMERAL_REDACTOR
    exclude: tuple[str, ...] = ()
    dry_run: bool = False
    stopping: Callable[[], bool] = field(default=lambda: False)


def capture_notes(database: Database, options: CaptureOptions) -> NativeResult:
    """Read the files that changed, and return what that changed in memory."""
    with database.read() as db:
        folders = _known_folders(db)
        marks = {mark.source: mark for mark in watermarks.find_by_context(db, _BEGINNING)}
    run = _CaptureRun(database, options, folders, marks)
    for file in native_files.find_files(options.home, folders):
        if options.stopping():
            return run.result
        run.read(file)
    run.retire_missing()
    return run.result


def _known_folders(db: Connection) -> list[str]:
    paths = (project.path for project in project_rows.all_projects(db).values())
    local = (path for path in paths if path.startswith("/"))
    return [path for path in local if stat.S_ISDIR(native_files.file_mode(Path(path)))]


def _context_of(mark: Watermark | None) -> dict[str, Any]:
    """Return what a watermark says about the file of an agent's memory; nothing for another."""
    if mark is None or not mark.context.startswith("{"):
        return {}
    try:
        context = json.loads(mark.context)
    except ValueError:
        return {}
    return context if isinstance(context, dict) and _CONTEXT in context else {}


class _CaptureRun:
    """One pass over the files of all agents."""

    def __init__(
        self,
        database: Database,
        options: CaptureOptions,
        folders: Sequence[str],
        marks: Mapping[str, Watermark],
    ) -> None:
        self.result = NativeResult()
        self._database = database
        self._options = options
        self._folders = folders
        self._marks = marks
        self._seen: set[str] = set()
        self._misses_imports = False
        self._known: KnownNotes | None = None
        self._finder = ProjectFinder(options.home)

    def read(self, file: NativeFile, hops: int = native_files.MAX_HOPS) -> None:
        """Read a file if it changed, and then what it imports."""
        path = Path(os.path.realpath(file.path))
        source = self._options.redactor.redact(str(path))
        if source in self._seen:
            return
        self._seen.add(source)
        mark = self._find_mark(source)
        imports: Sequence[NativeFile] = ()
        context = _context_of(mark)
        # What could not be read once is tried again: a permission may have changed. So is what
        # was read as the words of somebody else.
        is_same = bool(context) and context.get("origin") == file.origin
        if mark is not None and is_same and not mark.problem and is_unchanged(path, mark):
            if hops and context.get("imports"):
                imports = self._find_imports(file)
        else:
            imports = self._read_or_report(file, path, source, mark)
        for each in imports if hops else ():
            self.read(each, hops - 1)

    def _find_mark(self, source: str) -> Watermark | None:
        if source in self._marks:
            return self._marks[source]
        with self._database.read() as db:
            return watermarks.find(db, source)

    def _find_imports(self, file: NativeFile) -> Sequence[NativeFile]:
        """Return what an unchanged file imports; a permission may be gone though it is the same."""
        try:
            return native_files.read_imports(file)
        except CaptureError:
            self._misses_imports = True
            return ()

    def _read_or_report(
        self, file: NativeFile, path: Path, source: str, mark: Watermark | None
    ) -> Sequence[NativeFile]:
        """Read a changed file; one that cannot be read must not keep the others from being read."""
        try:
            return self._read_changed(file, path, source, mark)
        except CaptureError as error:
            problem = str(error)
        except OSError as error:
            problem = f"cannot be read: {error.strerror}"
        self._put_problem(file, source, find_identity(path), problem, mark)
        self._misses_imports = True
        return ()

    def _read_changed(
        self, file: NativeFile, path: Path, source: str, mark: Watermark | None
    ) -> Sequence[NativeFile]:
        folder = native_files.project_folder(file, self._folders)
        if self._is_excluded(file, folder):
            return ()
        identity = find_identity(path)
        notes, imports = native_files.read_notes(file)
        drafts = [
            draft
            for note in notes
            if not self._is_excluded(file, note.folder or folder)
            and (draft := self._draft(file, note, source, note.folder or folder)) is not None
        ]
        at = min(self._database.now(), _modified_at(path))
        new = self._mark(file, source, identity, imports=len(imports))
        self._count(files=1, notes=len(drafts))
        self._write(_FileNotes(drafts, at, new, mark))
        return imports

    def _mark(
        self, file: NativeFile, source: str, identity: tuple[str, int, int], *, imports: int = 0
    ) -> Watermark:
        context = {
            _CONTEXT: file.agent, "imports": imports, "imported": file.imported,
            "origin": file.origin,
        }  # fmt: skip
        now, packed = self._database.now(), json.dumps(context)
        return Watermark(source, None, 0, "", now, *identity, context=packed)

    def _put_problem(
        self,
        file: NativeFile,
        source: str,
        identity: tuple[str, int, int],
        problem: str,
        mark: Watermark | None,
    ) -> None:
        """Report that a file cannot be read; what was read of it before stays."""
        is_news = mark is None or mark.problem != problem
        reported = (*self.result.problems, FileProblem(source, problem, is_news))
        self.result = replace(self.result, problems=reported)
        if is_news and not self._options.dry_run:
            new = replace(self._mark(file, source, identity), problem=problem)
            self._database.write(lambda db: watermarks.put(db, new, session_n=None))

    def _is_excluded(self, file: NativeFile, folder: str) -> bool:
        here = (folder, str(file.path.parent))
        exclude = self._options.exclude
        return any(exclusion.covers_folder(exclude, file.agent, place) for place in here)

    def _draft(self, file: NativeFile, note: Note, source: str, folder: str) -> Draft | None:
        """Return the draft of a note; None if nothing of it is left to remember."""
        origin = file.origin_of(note)
        payload: dict[str, Any] = {
            "agent": file.agent, "file": source, "line": note.line, "type": note.type,
        }  # fmt: skip
        if note.heading:
            payload["heading"] = note.heading
        if note.links:
            payload["links"] = list(note.links)
        if note.fields:
            payload["front_matter"] = dict(note.fields)
        metadata: dict[str, Any] = {native_rows.FILE: source}
        if file.form in _WHOLE:
            metadata["native_whole"] = True
        draft = Draft(
            note.text, note.title, note.kind, importance=_importance(file, note, origin),
            confidence=CONFIDENCE, origin=origin, project=folder, session=note.session,
            payload=payload, metadata=metadata,
        )  # fmt: skip
        try:
            clean = fragment_edits.clean_draft(draft, self._options.redactor)
        except InvalidInput:
            return None
        digest = _digest(clean.content, clean.summary, clean.kind, clean.origin, clean.project)
        return replace(clean, metadata={**clean.metadata, native_rows.DIGEST: digest})

    def _write(self, notes: _FileNotes) -> None:
        if self._options.dry_run:
            self._count(added=len(notes.drafts))
            return
        known, source = self._find_known(), notes.mark.source
        has_peers = native_files.may_have_peers(source)
        now = self._database.now()
        places = {draft.project: self._finder.find(draft.project) for draft in notes.drafts}

        def work(db: Connection) -> dict[str, int]:
            if watermarks.find(db, source) != notes.former:
                return {}  # another process was faster
            rows = native_rows.notes_of_file(db, source, known, has_peers=has_peers)
            writer = _NoteWriter(db, notes, rows, places, now)
            writer.write()
            if notes.is_gone:
                watermarks.remove(db, source)
            else:
                watermarks.put(db, notes.mark, session_n=None)
            return writer.counts

        self._count(**self._database.write(work))

    def _find_known(self) -> KnownNotes:
        """Return which notes are stored, read once per pass; their rows are read when written."""
        if self._known is None:
            with self._database.read() as db:
                self._known = native_rows.find_notes(db)
        return self._known

    def _count(self, **counts: int) -> None:
        summed = {name: getattr(self.result, name) + count for name, count in counts.items()}
        self.result = replace(self.result, **summed)

    def retire_missing(self) -> None:
        """Retire the notes of files that are gone, or that nothing imports any more.

        A file that could not be read may import any of them: none of those is retired then.
        """
        for source, mark in self._marks.items():
            is_gone = not os.path.lexists(source)
            is_unused = _context_of(mark).get("imported") and not self._misses_imports
            if source in self._seen or not (is_gone or is_unused):
                continue
            self._write(_FileNotes((), self._database.now(), mark, mark, is_gone=True))


@dataclass(frozen=True, slots=True)
class _FileNotes:
    """The notes of one file, when they were written, and its new and former watermark."""

    drafts: Sequence[Draft]
    at: datetime
    mark: Watermark
    former: Watermark | None
    is_gone: bool = False


def _importance(file: NativeFile, note: Note, origin: Origin) -> float:
    if origin == "repo":
        return _REPOSITORY_IMPORTANCE
    if file.form == "whole":
        return _RECAP_IMPORTANCE
    return _IMPORTANCE.get(note.type, _OTHER_IMPORTANCE)


def _modified_at(path: Path) -> datetime:
    try:
        return clock.from_us(path.stat().st_mtime_ns // 1_000)
    except (OSError, ValueError, OverflowError):
        return clock.now()


def _digest(*texts: str) -> str:
    return hashlib.blake2b("\0".join(texts).encode("utf-8", "replace"), digest_size=12).hexdigest()


class _NoteWriter:
    """Brings the fragments of one file into step with its notes, inside one transaction."""

    def __init__(
        self,
        db: Connection,
        notes: _FileNotes,
        rows: Sequence[NoteRow],
        places: Mapping[str, Any],
        now: datetime,
    ) -> None:
        self.counts = dict.fromkeys(("added", "changed", "retired", "restored"), 0)
        self._db = db
        self._notes = notes
        self._rows = list(rows)
        self._places = places
        self._now = now
        self._word_sets: dict[int, set[str]] = {}

    def write(self) -> None:
        """Match notes with fragments: unchanged ones first, then reworded ones, then new ones."""
        remaining = self._match_unchanged()
        forgotten = self._find_forgotten(remaining)
        for draft in remaining:
            former = self._find_former(draft)
            if former is not None:
                self._rows.remove(former)
            if forgotten & set(self._recognized_by(draft)):
                if former is not None:
                    native_rows.retire(self._db, former, now=self._now)
                continue
            if former is None or not self._change(former, draft):
                self._add(draft)
        for row in self._rows:
            if not row.is_retired and not row.is_deleted:
                native_rows.retire(self._db, row, now=self._now)
                self.counts["retired"] += 1

    def _match_unchanged(self) -> list[Draft]:
        """Take out notes whose fragment has the same digest; return the other notes."""
        by_digest: dict[str, list[NoteRow]] = {}
        for row in self._rows:
            by_digest.setdefault(row.digest, []).append(row)
        remaining = []
        for draft in self._notes.drafts:
            same = by_digest.get(draft.metadata[native_rows.DIGEST])
            if not same:
                remaining.append(draft)
                continue
            row = same.pop(0)
            self._rows.remove(row)
            if row.is_retired:
                native_rows.restore(self._db, row, now=self._now)
                self.counts["restored"] += 1
            elif row.payload != draft.payload:
                native_rows.set_note(self._db, row.n, draft.payload, row.metadata)
        return remaining

    def _recognized_by(self, draft: Draft) -> list[str]:
        digests = [native_rows.words_digest(draft.content)]
        if draft.metadata.get("native_whole"):
            digests.append(native_rows.place_digest(self._notes.mark.source))
        return digests

    def _find_forgotten(self, drafts: Sequence[Draft]) -> set[str]:
        sources = [one for draft in drafts for one in self._recognized_by(draft)]
        return native_rows.forgotten_digests(self._db, sources)

    def _find_former(self, draft: Draft) -> NoteRow | None:
        """Return the fragment that a reworded note had before."""
        rows = [row for row in self._rows if not row.is_retired]
        if draft.metadata.get("native_whole"):
            return rows[-1] if rows else None
        heading = draft.payload.get("heading", "")
        own = set(words.split(draft.content))
        alike = [
            (_overlap(self._words_of(row), own), row.n, row)
            for row in rows
            if row.payload.get("heading", "") == heading
        ]
        share, _, best = max(alike, key=lambda one: one[:2], default=(0.0, 0, None))
        return best if share >= _SAME_NOTE else None

    def _words_of(self, row: NoteRow) -> set[str]:
        """Return the words of a note, split once: it is compared with all others of its file."""
        if row.n not in self._word_sets:
            self._word_sets[row.n] = set(words.split(row.content))
        return self._word_sets[row.n]

    def _change(self, row: NoteRow, draft: Draft) -> bool:
        """Give a fragment the new words of its note; return False if the note needs a new one."""
        if row.is_deleted:
            return _word_overlap(row.content, draft.content) >= SAME_WORDS
        old = fragments.get(self._db, row.n)
        if row.is_superseded or old.project_id != self._project_id(draft):
            native_rows.retire(self._db, row, now=self._now)
            return False
        metadata = {**row.metadata, **draft.metadata}
        native_rows.set_note(self._db, row.n, draft.payload, metadata)
        fragments.set_attribution(self._db, row.n, draft.origin, TRUST[draft.origin], draft.kind)
        native_rows.set_written_at(self._db, row.n, self._notes.at)
        fragments.update(
            self._db,
            row.n,
            content=draft.content,
            summary=_title(draft),
            mentioned=entities.extract_mentions(draft.content, title=draft.summary),
            now=self._now,
            reason=f"changed in {draft.payload['file']}",
        )
        if draft.kind != old.kind:
            fragments.reindex(self._db, row.n)
        self.counts["changed"] += 1
        return True

    def _project_id(self, draft: Draft) -> str | None:
        n = self._project_n(draft)
        return project_rows.all_projects(self._db)[n].id if n is not None else None

    def _project_n(self, draft: Draft) -> int | None:
        place = self._places.get(draft.project)
        return projects.ensure_project(self._db, draft.project, place, now=self._now)

    def _add(self, draft: Draft) -> None:
        project_n = self._project_n(draft)
        session_n = self._find_session(draft, project_n)
        scope = items.NO_PROJECT if project_n is None and session_n is not None else project_n
        same_n = distillations.find_same_text(self._db, draft.content, scope=scope, kind=draft.kind)
        new = NewFragment(
            id=clock.new_id(self._now),
            content=draft.content,
            summary=_title(draft),
            kind=draft.kind,
            created_at=self._notes.at,
            payload=draft.payload,
            importance=draft.importance,
            confidence=draft.confidence,
            origin=draft.origin,
            project_n=project_n,
            session_n=session_n,
            mentions=entities.extract_mentions(draft.content, title=draft.summary),
            metadata=draft.metadata,
        )
        n = fragments.add(self._db, new, now=self._now)
        self.counts["added"] += 1
        if same_n is not None:
            self._supersede_duplicate(n, same_n, TRUST[draft.origin])

    def _find_session(self, draft: Draft, project_n: int | None) -> int | None:
        """Return the session that a note was made in, if it is stored and of the same project."""
        if not draft.session:
            return None
        try:
            n = sessions.get_session_number(self._db, draft.session)
        except (NotFound, InvalidInput):
            return None
        project_id = sessions.get_session(self._db, n).project_id
        own = project_rows.all_projects(self._db)[project_n].id if project_n is not None else None
        return n if project_id == own else None

    def _supersede_duplicate(self, n: int, same_n: int, trust: int) -> None:
        """Show only one of two fragments with the same text: the more trusted, then the older."""
        older = fragments.get(self._db, same_n)
        loser, winner = (same_n, n) if trust > older.trust else (n, same_n)
        reversible_changes.supersede(self._db, loser, winner, now=self._now)


def _title(draft: Draft) -> str:
    title = sentences.one_line(draft.summary, fragment_edits.SUMMARY_CHARS)
    return title or sentences.summary(draft.content)


def _word_overlap(one: str, other: str) -> float:
    return _overlap(set(words.split(one)), set(words.split(other)))


def _overlap(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def find_outdated(db: Connection, *, project_n: int | None = None) -> list[OutdatedNote]:
    """Return the notes in agents' files that something newer replaced, newest first.

    A note that was only merged with a fragment that says the same is not outdated.
    """
    outdated = []
    for n, newer_id in native_rows.find_superseded(db, project_n=project_n):
        note, newer = fragments.get(db, n), _last_successor(db, newer_id)
        if newer is not None and not _says_the_same(note, newer):
            statement = NewerStatement(newer.id, newer.content, newer.created_at)
            outdated.append(_outdated_note(note, statement))
    return outdated + _replaced_notes(db, project_n)


def _replaced_notes(db: Connection, project_n: int | None) -> list[OutdatedNote]:
    """Return the notes that a newer statement replaced, though no fragment superseded them."""
    notes = fragments.by_number(db, native_rows.living_notes(db, project_n=project_n))
    replaced = replacements.successors(db, list(notes))
    ids = items.ids_of(db, [one.n for one in replaced.values()])
    return [
        _outdated_note(notes[n], NewerStatement(ids[one.n], one.text, clock.from_us(one.at)))
        for n, one in replaced.items()
        if one.relation != "may_replace" and one.n in ids
    ]


def _outdated_note(note: Fragment, newer: NewerStatement) -> OutdatedNote:
    file, line = str(note.payload.get("file", "")), int(note.payload.get("line", 1))
    return OutdatedNote(note, str(note.payload.get("agent", "")), file, line, newer)


def _last_successor(db: Connection, id_: str) -> Fragment | None:
    seen: set[str] = set()
    following: str | None = id_
    fragment = None
    while following is not None and following not in seen:
        seen.add(following)
        n = items.find_number(db, following)
        if n is None:
            break
        fragment = fragments.get(db, n)
        following = fragment.superseded_by
    return fragment


def _says_the_same(note: Fragment, newer: Fragment) -> bool:
    if newer.payload.get("replaces"):
        return False
    if note.content == newer.content:
        return True
    agreed = entities.values_agree(newer.content, note.content)
    covered = entities.covers_values(newer.content, note.content)
    return agreed and covered and _word_overlap(newer.content, note.content) >= _SAME_NOTE
