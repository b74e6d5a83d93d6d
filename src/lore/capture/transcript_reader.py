"""Read one transcript from its watermark on and store its messages once.

Messages and watermark are written in one transaction: an interruption loses nothing, and nothing is
stored twice.
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
from lore.capture import message_batches
from lore.capture.adapter_protocol import Adapter, Context, LineAdapter, SessionChunk, WholeAdapter
from lore.capture.message_batches import (
    PARSE_ERRORS,
    Batch,
    BatchWriter,
    DryRun,
    FileCounts,
    PendingWrite,
)
from lore.capture.transcript_files import (
    LONGEST_LINE,
    UNREADABLE,
    OpenFile,
    Unparsed,
    find_identity,
    is_unchanged,
    open_file,
    parse,
    read_lines,
    redacted_source,
    source_of,
)
from lore.errors import CaptureError, LoreError
from lore.projects import ProjectFinder
from lore.records import Watermark
from lore.redaction.redactor import EPHEMERAL_REDACTOR, Redactor
from lore.store import watermarks
from lore.store.database import Connection, Database
from lore.store.keywords import NewMessageText
from lore.text import words

FindAdapter = Callable[[Path, bytes], Adapter | None]
Progress = Callable[[int], None]

UNKNOWN = "is no transcript that Lore knows"
_BAD_LINES = "has lines that are "

_RETRY_UNKNOWN_AFTER = timedelta(days=1)
"""A file that no adapter fits is retried daily: a newer Lore may know it."""

_WATERMARK_BYTES = 16 << 20
"""The watermark is also written after this many bytes without a message."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options for reading files; without a database, every message is new."""

    database: Database | None
    find_adapter: FindAdapter
    projects: ProjectFinder = field(default_factory=ProjectFinder)
    redactor: Redactor = EPHEMERAL_REDACTOR
    dry_run: bool = False
    progress: Progress | None = None
    stopping: Callable[[], bool] = lambda: False
    remembers_unknown: bool = False
    """Whether a file that no adapter fits is reported once, and skipped while it is unchanged."""

    rehearsal: DryRun = field(default_factory=DryRun)
    """The messages that a dry run has counted so far."""

    longest_line: int = LONGEST_LINE
    batch_messages: int = message_batches.BATCH_MESSAGES


def read_file(reading: ReadOptions, path: Path) -> FileCounts:
    """Read what is new in a file and store it; problems are reported in the counts."""
    with BatchWriter(reading.database, reading.batch_messages) as writer:
        return read_into(writer, reading, path)


def read_into(writer: BatchWriter, reading: ReadOptions, path: Path) -> FileCounts:
    """Read what is new in a file; its last batch may wait for the files that are read next.

    New and duplicate messages are counted once they are written.
    """
    source = redacted_source(path, reading.redactor)
    if writer.has_pending(source):
        writer.flush()
    mark = _find_mark(reading.database, source)
    if mark is not None and is_unchanged(path, mark) and not _is_due(reading, mark):
        return FileCounts(source, problem=mark.problem)
    counts = FileCounts(source)
    try:
        with open_file(path) as opened:
            adapter = _get_adapter(reading, opened)
            counts.agent = adapter.agent
            reader = _Reader(reading, opened, source, counts, mark, writer)
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


def _is_due(reading: ReadOptions, mark: Watermark) -> bool:
    if mark.problem != UNKNOWN or reading.database is None:
        return False
    return reading.database.now() - mark.updated_at > _RETRY_UNKNOWN_AFTER


def _get_adapter(reading: ReadOptions, opened: OpenFile) -> Adapter:
    try:
        adapter = reading.find_adapter(opened.path, opened.head)
    except PARSE_ERRORS as error:
        raise CaptureError(_adapter_error(error)) from error
    if adapter is None:
        raise CaptureError(UNKNOWN)
    return adapter


def find_watermark(database: Database | None, path: Path, redactor: Redactor) -> Watermark | None:
    """Return how far a file was read."""
    return _find_mark(database, redacted_source(path, redactor)) if database else None


def _find_mark(database: Database | None, source: str) -> Watermark | None:
    if database is None:
        return None
    with database.read() as db:
        return watermarks.find(db, source)


def _put_problem(reading: ReadOptions, path: Path, counts: FileCounts) -> None:
    """Record in the watermark that a problem was reported; the position stays."""
    unknown = counts.problem == UNKNOWN
    if reading.database is None or reading.dry_run or (unknown and not reading.remembers_unknown):
        return
    mark = find_watermark(reading.database, path, reading.redactor)
    if mark is not None and mark.problem == counts.problem and not (unknown and not mark.position):
        return
    now = reading.database.now()
    current = mark or Watermark(redacted_source(path, reading.redactor), None, 0, "", now)
    updated = replace(current, problem=counts.problem, modified_ns=0, updated_at=now)
    if unknown and not current.position:
        file, size, modified_ns = find_identity(path)
        updated = replace(updated, file=file, size=size, modified_ns=modified_ns)
    reading.database.write(lambda db: watermarks.put(db, updated, session_n=None))


class _Reader:
    """The state of reading one file: its position, and the batch that is not written yet."""

    def __init__(
        self,
        reading: ReadOptions,
        opened: OpenFile,
        source: str,
        counts: FileCounts,
        mark: Watermark | None,
        writer: BatchWriter,
    ) -> None:
        self.reading = reading
        self.opened = opened
        self.source = source
        self.agent = counts.agent
        self.counts = counts
        self.batch = self._new_batch()
        self.bad: set[str] = set()
        self._writer = writer
        self._stored = mark
        self._renamed: Watermark | None = None

    def _new_batch(self) -> Batch:
        return Batch(self.counts, self.reading.redactor, self.reading.batch_messages)

    def resume(self) -> Watermark | None:
        """Return the watermark to continue from, or None to read from the beginning."""
        mark = self._stored
        if mark is None or not self.opened.goes_on_from(mark):
            mark = self._renamed = self._find_renamed()
        if mark is not None and mark.problem.startswith(_BAD_LINES):
            self.bad.update(mark.problem.removeprefix(_BAD_LINES).split(", "))
        return mark

    def whole_position(self) -> int:
        """Return the position to continue from in an archive or database."""
        mark = self._stored
        return mark.position if mark is not None and mark.file == self.opened.file else 0

    def _find_renamed(self) -> Watermark | None:
        """Return the watermark that the file has under a former name."""
        if self.reading.database is None:
            return None
        if self._writer.has_pending(self.source, self.opened.file):
            self._writer.flush()
        with self.reading.database.read() as db:
            mark = watermarks.find_renamed(db, self.opened.file)
        return mark if mark is not None and self.opened.goes_on_from(mark) else None

    def write(self, position: int, fingerprint: str, context: str, *, is_end: bool = False) -> bool:
        """Store the batch with its watermark; return False if another reader was faster.

        The end of a file may wait for other files.
        """
        problem = _BAD_LINES + ", ".join(sorted(self.bad)) if self.bad else ""
        reported = self._stored.problem if self._stored else ""
        self.counts.problem, self.counts.news = problem, problem not in ("", reported)
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

        def on_written(added: int | None) -> None:
            overtaken.append(added is None)
            if added is not None:
                self._stored, self._renamed = mark, None
                self._count(batch, added)

        database = self.reading.database
        if database is None or self.reading.dry_run:
            on_written(self._count_new(database, batch))
        else:
            write = partial(self._write, batch, mark)
            self._writer.put(PendingWrite(batch, mark, write, on_written))
            if not is_end:
                self._writer.flush()
        return not any(overtaken)

    def _count(self, batch: Batch, added: int) -> None:
        self.counts.added += added
        self.counts.known += batch.messages - added
        self.counts.sessions |= {
            (self.agent, run.context.session) for run in batch.runs if run.prepared
        }

    def _count_new(self, database: Database | None, batch: Batch) -> int:
        dry_run, projects = self.reading.rehearsal, self.reading.projects
        if database is None:
            return dry_run.count_new(None, batch, self.agent, projects)
        with database.read() as db:
            return dry_run.count_new(db, batch, self.agent, projects)

    def _write(
        self, batch: Batch, mark: Watermark, db: Connection, unindexed: list[NewMessageText]
    ) -> int | None:
        if not _is_same_watermark(watermarks.find(db, mark.source), self._stored):
            return None
        projects = self.reading.projects
        session_n, added = message_batches.write_batch(
            db, batch, self.agent, projects, unindexed, now=mark.updated_at
        )
        if self._renamed is not None and self._is_past(self._renamed.source):
            watermarks.remove(db, self._renamed.source)
        if (context := _unpack_context(mark.context)) is not None:
            named = _with_session_name(context, self.opened.path)
            remaining = message_batches.drop_forgotten_names(db, self.agent, named)
            if remaining is not context:
                mark = replace(mark, context=_pack_context(remaining))
        watermarks.put(db, mark, session_n=session_n)
        return added

    def skip(self, reason: str) -> None:
        """Count a line that is lost, and record why for the file's problem."""
        self.bad.add(reason)
        self.counts.skipped[reason] += 1

    def _is_past(self, source: str) -> bool:
        """Return whether a file no longer has its former name, or is recorded under another one."""
        return not os.path.lexists(source) or source == source_of(self.opened.path)

    def report_progress(self, size: int) -> None:
        """Report the bytes read since the last report."""
        self.counts.bytes += size
        if self.reading.progress:
            self.reading.progress(size)


def _is_same_watermark(one: Watermark | None, other: Watermark | None) -> bool:
    """Return whether no one else has read the file meanwhile."""
    if one is None or other is None:
        return one is other
    return (one.position, one.fingerprint, one.file) == (
        other.position,
        other.fingerprint,
        other.file,
    )


def _read_lines(reader: _Reader, adapter: LineAdapter) -> None:
    opened = reader.opened
    place = _start_position(reader, adapter)
    reported_to = place.position
    for line in read_lines(opened.stream, place.position, reader.reading.longest_line):
        value = parse(line.raw)
        if not line.ended and not isinstance(value, dict):
            break
        place.position, place.last = line.end, line.raw
        is_full = False
        if isinstance(value, Unparsed):
            reader.skip(value.reason)
        elif value is not None:
            is_full = _add_line(reader, adapter, place, value)
        if is_full or place.position - reported_to > _WATERMARK_BYTES:
            reader.report_progress(place.position - reported_to)
            reported_to = place.position
            if not _write_lines(reader, place) or reader.reading.stopping():
                return
    reader.report_progress(place.position - reported_to)
    _write_lines(reader, place, is_end=True)


def _write_lines(reader: _Reader, place: _Position, *, is_end: bool = False) -> bool:
    reader.batch.end(_with_session_name(place.context, reader.opened.path))
    known_by = place.known_by(reader.opened)
    redacted = reader.batch.redacted(place.context)
    return reader.write(place.position, known_by, _pack_context(redacted), is_end=is_end)


@dataclass(slots=True)
class _Position:
    """How far a file was read: the position, the last line before it, and its context."""

    position: int
    context: Context
    fingerprint: str = ""
    last: bytes | None = None

    def known_by(self, opened: OpenFile) -> str:
        """Return the fingerprint of the file up to here."""
        if self.last is not None:
            self.fingerprint = opened.fingerprint(self.position, self.last)
        return self.fingerprint


def _start_position(reader: _Reader, adapter: LineAdapter) -> _Position:
    """Return where to start: at the watermark, or at the beginning."""
    mark = reader.resume()
    context = _unpack_context(mark.context) if mark else None
    if mark is not None and context is not None:
        return _Position(mark.position, context, mark.fingerprint)
    try:
        context = adapter.initial_context(reader.opened.path)
    except PARSE_ERRORS as error:
        raise CaptureError(_adapter_error(error)) from error
    return _Position(0, _with_session_name(context, reader.opened.path))


def _add_line(reader: _Reader, adapter: LineAdapter, place: _Position, value: object) -> bool:
    """Put the messages of a line into the batch; return whether it is time to write it."""
    try:
        context, messages, unknown = adapter.parse_line(value, place.context)
    except PARSE_ERRORS:
        reader.skip(UNREADABLE)
        return False
    place.context = context
    if unknown:
        reader.counts.skipped[unknown] += 1
    if not messages:
        return False
    reader.batch.add(
        _with_session_name(context, reader.opened.path), messages, len(place.last or b"")
    )
    return reader.batch.is_full()


def _read_whole(reader: _Reader, adapter: WholeAdapter) -> None:
    position = reader.whole_position()
    fingerprint = reader.opened.fingerprint(0, b"")
    try:
        for stretch in _read_chunks(adapter, reader.opened.path, position):
            reader.counts.skipped.update(stretch.unknown)
            context = _with_session_name(stretch.context, reader.opened.path)
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
    reader.report_progress(reader.opened.size)


def _read_chunks(adapter: WholeAdapter, path: Path, position: int) -> Iterator[SessionChunk]:
    """Yield the chunks of a source; turn every error into `CaptureError`."""
    try:
        yield from adapter.read(path, position)
    except (OSError, ValueError, LoreError) as error:
        raise CaptureError(f"cannot be read: {str(error).rstrip('.')}") from error
    except PARSE_ERRORS as error:
        raise CaptureError(_adapter_error(error)) from error


def _adapter_error(error: Exception) -> str:
    """Return that an adapter failed, by the type of error only: its text may quote the file."""
    return f"cannot be read: {type(error).__name__}"


def _with_session_name(context: Context, path: Path) -> Context:
    return context if context.session.strip() else replace(context, session=path.stem)


def _pack_context(context: Context) -> str:
    return json.dumps({each.name: getattr(context, each.name) for each in fields(context)})


def _unpack_context(packed: str) -> Context | None:
    """Return a stored context, or None if it is malformed."""
    try:
        stored = json.loads(packed)
        return Context(**{**stored, "files": tuple(stored["files"])})
    except (ValueError, TypeError, KeyError):
        return None
