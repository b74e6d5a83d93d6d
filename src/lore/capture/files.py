"""Files: one transcript read from its watermark on, and what it tells stored once.

What is read and how far that is are written in one transaction: an interruption loses
nothing, and nothing is stored twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from lore import clock
from lore.capture import staging
from lore.capture.delivering import Delivery, Parcel
from lore.capture.rehearsing import Rehearsal
from lore.capture.slips import SLIPS
from lore.capture.staging import Batch, Counts
from lore.capture.transcript_files import (
    OpenFile,
    find_identity,
    is_unchanged,
    kept_source,
    open_file,
    source_of,
)
from lore.capture.transcript_lines import LONGEST_LINE, UNREADABLE, Unparsed, parse, read_lines
from lore.capture.transcripts import Adapter, Context, LineAdapter, Stretch, WholeAdapter
from lore.errors import CaptureError, LoreError
from lore.projects import Projects
from lore.records import Watermark
from lore.redaction import UNKEPT
from lore.store import watermarks
from lore.store.db import Connection, Database
from lore.store.keywords import NewMessageText
from lore.text import words
from lore.text.secrets import Redactor

FindAdapter = Callable[[Path, bytes], Adapter | None]
Progress = Callable[[int], None]

UNKNOWN = "is no transcript that Lore knows"
_BAD_LINES = "has lines that are "

_ASKED_AGAIN = timedelta(days=1)
"""A file that nobody knows is looked at daily: a newer Lore may know it."""

_QUIET_BYTES = 16 << 20
"""After so much that tells nothing, how far that is gets written too."""


@dataclass(frozen=True, slots=True)
class FileReading:
    """What reading a file needs beside the file; without a database, all is new."""

    database: Database | None
    find_adapter: FindAdapter
    projects: Projects = field(default_factory=Projects)
    redactor: Redactor = UNKEPT
    dry_run: bool = False
    progress: Progress | None = None
    stopping: Callable[[], bool] = lambda: False
    remembers_unknown: bool = False
    """Whether a file that nobody knows is told of once, and left alone while it stays as it is."""

    rehearsal: Rehearsal = field(default_factory=Rehearsal)
    """What a dry run has told so far."""

    longest_line: int = LONGEST_LINE
    batch_messages: int = staging.BATCH_MESSAGES


def read_file(reading: FileReading, path: Path) -> Counts:
    """Read what is new in a file and store it; what is wrong with it is told in the counts."""
    with Delivery(reading.database, reading.batch_messages) as delivery:
        return read_into(delivery, reading, path)


def read_into(delivery: Delivery, reading: FileReading, path: Path) -> Counts:
    """Read what is new in a file; the last of it may wait for the files that are read next.

    What was new and what was known is counted once it is written.
    """
    source = kept_source(path, reading.redactor)
    if delivery.holds(source):
        delivery.send()
    mark = _find_mark(reading.database, source)
    if mark is not None and is_unchanged(path, mark) and not _is_due(reading, mark):
        return Counts(source, problem=mark.problem)
    counts = Counts(source)
    try:
        with open_file(path) as opened:
            adapter = _get_adapter(reading, opened)
            counts.agent = adapter.agent
            reader = _Reader(reading, opened, source, counts, mark, delivery)
            if isinstance(adapter, LineAdapter):
                _read_lines(reader, adapter)
            else:
                _read_whole(reader, adapter)
    except CaptureError as error:
        if os.path.lexists(path):
            counts.problem = reading.redactor.redact(words.clean(str(error)))
            counts.news = mark is None or mark.problem != counts.problem
            _put_problem(reading, path, counts)
    return counts


def _is_due(reading: FileReading, mark: Watermark) -> bool:
    """Tell whether a file that nobody knew is looked at again."""
    if mark.problem != UNKNOWN or reading.database is None:
        return False
    return reading.database.now() - mark.updated_at > _ASKED_AGAIN


def _get_adapter(reading: FileReading, opened: OpenFile) -> Adapter:
    try:
        adapter = reading.find_adapter(opened.path, opened.head)
    except SLIPS as error:
        raise CaptureError(_slipped(error)) from error
    if adapter is None:
        raise CaptureError(UNKNOWN)
    return adapter


def find_mark(database: Database | None, path: Path, redactor: Redactor) -> Watermark | None:
    """Return how far a file was read."""
    return _find_mark(database, kept_source(path, redactor)) if database else None


def _find_mark(database: Database | None, source: str) -> Watermark | None:
    if database is None:
        return None
    with database.read() as db:
        return watermarks.find(db, source)


def _put_problem(reading: FileReading, path: Path, counts: Counts) -> None:
    """Remember that a problem was told; what was read before stays read."""
    unknown = counts.problem == UNKNOWN
    if reading.database is None or reading.dry_run or (unknown and not reading.remembers_unknown):
        return
    mark = find_mark(reading.database, path, reading.redactor)
    if mark is not None and mark.problem == counts.problem and not (unknown and not mark.position):
        return
    now = reading.database.now()
    kept = mark or Watermark(kept_source(path, reading.redactor), None, 0, "", now)
    told = replace(kept, problem=counts.problem, modified_ns=0, updated_at=now)
    if unknown and not kept.position:
        file, size, modified_ns = find_identity(path)
        told = replace(told, file=file, size=size, modified_ns=modified_ns)
    reading.database.write(lambda db: watermarks.put_file(db, told, session_n=None))


class _Reader:
    """The reading of one file: its place in it, and the batch that is not written yet."""

    def __init__(
        self,
        reading: FileReading,
        opened: OpenFile,
        source: str,
        counts: Counts,
        mark: Watermark | None,
        delivery: Delivery,
    ) -> None:
        self.reading = reading
        self.opened = opened
        self.source = source
        self.agent = counts.agent
        self.counts = counts
        self.batch = self._new_batch()
        self.bad: set[str] = set()
        self._delivery = delivery
        self._stored = mark
        self._renamed: Watermark | None = None

    def _new_batch(self) -> Batch:
        return Batch(self.counts, self.reading.redactor, self.reading.batch_messages)

    def resume(self) -> Watermark | None:
        """Return the watermark to go on from, or None to read from the beginning."""
        mark = self._stored
        if mark is None or not self.opened.goes_on_from(mark):
            mark = self._renamed = self._find_renamed()
        if mark is not None and mark.problem.startswith(_BAD_LINES):
            self.bad.update(mark.problem.removeprefix(_BAD_LINES).split(", "))
        return mark

    def whole_position(self) -> int:
        """Return the position to go on from in a source that is no file of lines."""
        mark = self._stored
        return mark.position if mark is not None and mark.file == self.opened.file else 0

    def _find_renamed(self) -> Watermark | None:
        """Return the watermark that the file has under a former name."""
        if self.reading.database is None:
            return None
        if self._delivery.holds(self.source, self.opened.file):
            self._delivery.send()
        with self.reading.database.read() as db:
            mark = watermarks.find_renamed(db, self.opened.file)
        return mark if mark is not None and self.opened.goes_on_from(mark) else None

    def write(self, position: int, fingerprint: str, context: str, *, is_end: bool = False) -> bool:
        """Store what was gathered with how far that is; False if another reader was quicker.

        The end of a file may wait for other files.
        """
        problem = _BAD_LINES + ", ".join(sorted(self.bad)) if self.bad else ""
        told = self._stored.problem if self._stored else ""
        self.counts.problem, self.counts.news = problem, problem not in ("", told)
        mark = Watermark(
            source=self.source,
            session_id=None,
            position=position,
            fingerprint=fingerprint,
            updated_at=self.reading.database.now() if self.reading.database else clock.now(),
            file=self.opened.file,
            size=self.opened.size if is_end else position,
            modified_ns=self.opened.modified_ns,
            context=context,
            problem=problem,
        )
        batch, self.batch = self.batch, self._new_batch()
        batch.prepare()
        overtaken: list[bool] = []

        def tell(added: int | None) -> None:
            overtaken.append(added is None)
            if added is not None:
                self._stored, self._renamed = mark, None
                self._count(batch, added)

        database = self.reading.database
        if database is None or self.reading.dry_run:
            tell(self._rehearse(database, batch))
        else:
            write = partial(self._write, batch, mark)
            self._delivery.put(Parcel(batch, mark, write, tell))
            if not is_end:
                self._delivery.send()
        return not any(overtaken)

    def _count(self, batch: Batch, added: int) -> None:
        self.counts.added += added
        self.counts.known += batch.messages - added
        self.counts.sessions |= {
            (self.agent, run.context.session) for run in batch.runs if run.prepared
        }

    def _rehearse(self, database: Database | None, batch: Batch) -> int:
        rehearsal, projects = self.reading.rehearsal, self.reading.projects
        if database is None:
            return rehearsal.count_new(None, batch, self.agent, projects)
        with database.read() as db:
            return rehearsal.count_new(db, batch, self.agent, projects)

    def _write(
        self, batch: Batch, mark: Watermark, db: Connection, unindexed: list[NewMessageText]
    ) -> int | None:
        if not _is_same(watermarks.find(db, mark.source), self._stored):
            return None
        projects = self.reading.projects
        session_n, added = staging.write(
            db, batch, self.agent, projects, unindexed, now=mark.updated_at
        )
        if self._renamed is not None and self._is_past(self._renamed.source):
            watermarks.remove(db, self._renamed.source)
        if (told := _unpacked(mark.context)) is not None:
            named = _named(told, self.opened.path)
            kept = staging.without_forgotten(db, self.agent, named)
            if kept is not told:
                mark = replace(mark, context=_packed(kept))
        watermarks.put_file(db, mark, session_n=session_n)
        return added

    def skip(self, reason: str) -> None:
        """Count a line that is lost, and remember why for the file's problem."""
        self.bad.add(reason)
        self.counts.skipped[reason] += 1

    def _is_past(self, source: str) -> bool:
        """Tell whether a file has its former name no more, or is kept by another one now."""
        return not os.path.lexists(source) or source == source_of(self.opened.path)

    def tell_progress(self, size: int) -> None:
        """Tell how much was read since it was last told."""
        self.counts.bytes += size
        if self.reading.progress:
            self.reading.progress(size)


def _is_same(one: Watermark | None, other: Watermark | None) -> bool:
    """Tell whether nobody has read the file meanwhile."""
    if one is None or other is None:
        return one is other
    return (one.position, one.fingerprint, one.file) == (
        other.position,
        other.fingerprint,
        other.file,
    )


def _read_lines(reader: _Reader, adapter: LineAdapter) -> None:
    """Read the lines of a file that grows by lines."""
    opened = reader.opened
    place = _begin(reader, adapter)
    told_to = place.position
    for line in read_lines(opened.stream, place.position, reader.reading.longest_line):
        value = parse(line.raw)
        if not line.ended and not isinstance(value, dict):
            break
        place.position, place.last = line.end, line.raw
        is_full = False
        if isinstance(value, Unparsed):
            reader.skip(value.reason)
        elif value is not None:
            is_full = _take(reader, adapter, place, value)
        if is_full or place.position - told_to > _QUIET_BYTES:
            reader.tell_progress(place.position - told_to)
            told_to = place.position
            if not _write_lines(reader, place) or reader.reading.stopping():
                return
    reader.tell_progress(place.position - told_to)
    _write_lines(reader, place, is_end=True)


def _write_lines(reader: _Reader, place: _Place, *, is_end: bool = False) -> bool:
    reader.batch.end(_named(place.context, reader.opened.path))
    known_by = place.known_by(reader.opened)
    kept = reader.batch.kept(place.context)
    return reader.write(place.position, known_by, _packed(kept), is_end=is_end)


@dataclass(slots=True)
class _Place:
    """How far a file was read: the position, the last line before it, and what it told."""

    position: int
    context: Context
    fingerprint: str = ""
    last: bytes | None = None

    def known_by(self, opened: OpenFile) -> str:
        """Return the fingerprint of the file up to here."""
        if self.last is not None:
            self.fingerprint = opened.fingerprint(self.position, self.last)
        return self.fingerprint


def _begin(reader: _Reader, adapter: LineAdapter) -> _Place:
    """Return where a file is read from: its watermark, or the beginning."""
    mark = reader.resume()
    context = _unpacked(mark.context) if mark else None
    if mark is not None and context is not None:
        return _Place(mark.position, context, mark.fingerprint)
    try:
        context = adapter.begin(reader.opened.path)
    except SLIPS as error:
        raise CaptureError(_slipped(error)) from error
    return _Place(0, _named(context, reader.opened.path))


def _take(reader: _Reader, adapter: LineAdapter, place: _Place, value: object) -> bool:
    """Put what a line says into the batch; tell whether it is time to write that."""
    try:
        context, said, unknown = adapter.tell(value, place.context)
    except SLIPS:
        reader.skip(UNREADABLE)
        return False
    place.context = context
    if unknown:
        reader.counts.skipped[unknown] += 1
    if not said:
        return False
    reader.batch.add(_named(context, reader.opened.path), said, len(place.last or b""))
    return reader.batch.is_full()


def _read_whole(reader: _Reader, adapter: WholeAdapter) -> None:
    """Read an archive or a database from a position on."""
    position = reader.whole_position()
    fingerprint = reader.opened.fingerprint(0, b"")
    try:
        for stretch in _stretches(adapter, reader.opened.path, position):
            reader.counts.skipped.update(stretch.unknown)
            context = _named(stretch.context, reader.opened.path)
            for message in stretch.messages:
                reader.batch.add(context, (message,), sum(len(p.text) for p in message.parts))
                if reader.batch.is_full() and not reader.write(position, fingerprint, ""):
                    return
            position = stretch.position
            if reader.reading.stopping():
                reader.write(position, fingerprint, "")
                return
    except CaptureError:
        reader.write(position, fingerprint, "")
        raise
    reader.write(position, fingerprint, "", is_end=True)
    reader.tell_progress(reader.opened.size)


def _stretches(adapter: WholeAdapter, path: Path, position: int) -> Iterator[Stretch]:
    """Yield what a source tells; whatever is wrong with it is told in one way."""
    try:
        yield from adapter.read(path, position)
    except (OSError, ValueError, LoreError) as error:
        raise CaptureError(f"cannot be read: {str(error).rstrip('.')}") from error
    except SLIPS as error:
        raise CaptureError(_slipped(error)) from error


def _slipped(error: Exception) -> str:
    """Return that an adapter failed, by the sort of error alone: its text may quote the file."""
    return f"cannot be read: {type(error).__name__}"


def _named(context: Context, path: Path) -> Context:
    """Give a session without a name that of its file."""
    return context if context.session.strip() else replace(context, session=path.stem)


def _packed(context: Context) -> str:
    return json.dumps({each.name: getattr(context, each.name) for each in fields(context)})


def _unpacked(packed: str) -> Context | None:
    """Return a context as it was kept, or None if it cannot be understood."""
    try:
        told = json.loads(packed)
        return Context(**{**told, "files": tuple(told["files"])})
    except (ValueError, TypeError, KeyError):
        return None
