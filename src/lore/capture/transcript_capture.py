"""Find the transcripts of this machine, read each from its watermark, and store its messages once.

Messages and watermark are written in one transaction: an interruption loses nothing, and nothing is
stored twice.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import cast

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
    describe_head,
    find_identity,
    is_unchanged,
    open_file,
    parse,
    read_lines,
    source_of,
)
from lore.errors import CaptureError, LoreError, NotFound
from lore.projects import ProjectFinder
from lore.records import (
    CapturedFile,
    CaptureEstimate,
    CaptureResult,
    FileProblem,
    Redaction,
    Watermark,
)
from lore.redaction.redactor import EPHEMERAL_REDACTOR, Redactor
from lore.store import watermarks
from lore.store.database import Connection, Database
from lore.store.keywords import NewMessageText
from lore.text import words

FindAdapter = Callable[[Path, bytes], Adapter | None]
ReportBytes = Callable[[int], None]

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
    exclude: tuple[str, ...] = ()
    """Globs of folders whose sessions are not stored."""

    dry_run: bool = False
    progress: ReportBytes | None = None
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
        return _read_into(writer, reading, path)


def _read_into(writer: BatchWriter, reading: ReadOptions, path: Path) -> FileCounts:
    """Read what is new in a file; its last batch may wait for the files that are read next.

    New and duplicate messages are counted once they are written.
    """
    source = reading.redactor.redact(source_of(path))
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
            reader = _Reader(reading, opened, counts, mark, writer)
            if hasattr(adapter, "parse_line"):  # a check of the whole protocol is slow
                _read_lines(reader, cast("LineAdapter", adapter))
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
    mark = _find_mark(reading.database, counts.source)
    if mark is not None and mark.problem == counts.problem and not (unknown and not mark.position):
        return
    now = reading.database.now()
    current = mark or Watermark(counts.source, None, 0, "", now)
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
        counts: FileCounts,
        mark: Watermark | None,
        writer: BatchWriter,
    ) -> None:
        self.reading = reading
        self.opened = opened
        self.counts = counts
        self.batch = self._new_batch()
        self.bad: set[str] = set()
        self._writer = writer
        self.stored = mark
        self._renamed: Watermark | None = None

    def _new_batch(self) -> Batch:
        reading = self.reading
        return Batch(self.counts, reading.redactor, reading.batch_messages, reading.exclude)

    def resume(self) -> Watermark | None:
        """Return the watermark to continue from, or None to read from the beginning."""
        mark = self.stored
        if mark is None or not self.opened.goes_on_from(mark):
            mark = self._renamed = self._find_renamed()
        if mark is not None and mark.problem.startswith(_BAD_LINES):
            self.bad.update(mark.problem.removeprefix(_BAD_LINES).split(", "))
        return mark

    def _find_renamed(self) -> Watermark | None:
        """Return the watermark that the file has under a former name."""
        if self.reading.database is None:
            return None
        if self._writer.has_pending(self.counts.source, self.opened.file):
            self._writer.flush()
        with self.reading.database.read() as db:
            mark = watermarks.find_renamed(db, self.opened.file)
        return mark if mark is not None and self.opened.goes_on_from(mark) else None

    def write(self, position: int, fingerprint: str, context: str, *, is_end: bool = False) -> bool:
        """Store the batch with its watermark; return False if another reader was faster.

        The end of a file may wait for other files.
        """
        problem = _BAD_LINES + ", ".join(sorted(self.bad)) if self.bad else ""
        reported = self.stored.problem if self.stored else ""
        self.counts.problem, self.counts.news = problem, problem not in ("", reported)
        mark = Watermark(
            source=self.counts.source,
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
        overtaken: list[bool] = []

        def on_written(added: int | None) -> None:
            overtaken.append(added is None)
            if added is not None:
                self.stored, self._renamed = mark, None
                self.counts.added += added
                self.counts.known += batch.messages - added
                self.counts.sessions |= {
                    (self.counts.agent, run.context.session) for run in batch.runs if run.prepared
                }

        database = self.reading.database
        if database is None or self.reading.dry_run:
            message_batches.prepare_batches([batch])
            with database.read() if database else nullcontext() as db:
                added = self.reading.rehearsal.count_new(db, batch, self.reading.projects)
            on_written(added)
        else:
            write = partial(self._write, batch, mark)
            self._writer.put(PendingWrite(batch, mark, write, on_written))
            if not is_end:
                self._writer.flush()
        return not any(overtaken)

    def _write(
        self, batch: Batch, mark: Watermark, db: Connection, unindexed: list[NewMessageText]
    ) -> int | None:
        if not _is_same_watermark(watermarks.find(db, mark.source), self.stored):
            return None
        session_n, added = message_batches.write_batch(
            db, batch, self.reading.projects, unindexed, now=mark.updated_at
        )
        former = self._renamed.source if self._renamed else ""
        if former and (not os.path.lexists(former) or former == source_of(self.opened.path)):
            watermarks.remove(db, former)
        if (context := _unpack_context(mark.context)) is not None:
            named = _with_session_name(context, self.opened.path)
            remaining = message_batches.drop_forgotten_names(db, self.counts.agent, named)
            if remaining is not context:
                mark = replace(mark, context=_pack_context(remaining))
        watermarks.put(db, mark, session_n=session_n)
        return added

    def skip(self, reason: str) -> None:
        """Count a line that is lost, and record why for the file's problem."""
        self.bad.add(reason)
        self.counts.skipped[reason] += 1

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
    mark = reader.stored
    position = mark.position if mark is not None and mark.file == reader.opened.file else 0
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


def read_histories(
    files: Iterable[TranscriptFile], adapter: WholeAdapter
) -> Iterator[SessionChunk]:
    """Yield the sessions in those of the files that an adapter reads."""
    for file in files:
        with suppress(CaptureError):
            with open_file(file.path) as opened:
                is_history = adapter.fits(opened.path, opened.head)
            for chunk in _read_chunks(adapter, file.path, 0) if is_history else ():
                yield replace(chunk, context=_with_session_name(chunk.context, file.path))


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


Progress = Callable[[int, int], None]

_MEASURED_BYTES = 1 << 20
"""Fewer bytes than this are too few to measure a speed."""

_UNREAD_FOLDERS = frozenset(
    (".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".nox",
     ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".gradle", ".next", ".nuxt",
     ".terraform", ".eggs", ".idea", ".vscode", ".svelte-kit", ".parcel-cache", ".turbo")
)  # fmt: skip
"""Folders that tools fill: what looks like a transcript in them is a library's sample."""

_MOST_EXPLAINED = 20
"""Files that are no transcripts and are named with the reason: a folder may have any number."""

_MOST_SHOWN = 1_000
"""Places of secrets that are shown."""


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """A file that may be a transcript; `named` if a person or an adapter named it."""

    path: Path
    size: int
    named: bool


def find_files(
    paths: Sequence[Path], adapters: Iterable[Adapter], home: Path, *, since: datetime | None = None
) -> list[TranscriptFile]:
    """Return the files at the paths, or else all that the adapters find, without duplicates.

    With `since`, only those written since then. A path that a person named must exist.
    """
    by_source: dict[str, TranscriptFile] = {}
    discovered = ((path, True) for adapter in adapters for path in adapter.find(home))
    for path, named in _named_files(paths) if paths else discovered:
        try:
            state = path.lstat()
        except OSError:
            continue
        if since is None or state.st_mtime_ns >= clock.to_us(since) * 1_000:
            by_source.setdefault(source_of(path), TranscriptFile(path, state.st_size, named))
    return list(by_source.values())


def _named_files(paths: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    for path in paths:
        if not os.path.lexists(path):
            msg = f"There is no file {path}."
            raise NotFound(msg)
        if path.is_symlink() or not path.is_dir():
            yield path, True
            continue
        for place, below, names in os.walk(path, followlinks=False):
            below[:] = sorted(set(below) - _UNREAD_FOLDERS)
            yield from ((Path(place, name), False) for name in sorted(names))


def estimate_capture(
    database: Database | None, files: Sequence[TranscriptFile], redactor: Redactor
) -> CaptureEstimate:
    """Return how much there is to read, and how long that takes at the measured speed."""
    left, count, speed = 0, 0, None
    for file in files:
        mark = _find_mark(database, redactor.redact(source_of(file.path)))
        if mark is None or not is_unchanged(file.path, mark):
            count += 1
            left += file.size - (mark.position if mark and mark.position <= file.size else 0)
    if database is not None:
        with database.read() as db:
            speed = watermarks.find_read_speed(db)
    return CaptureEstimate(count, left, left / speed if speed else None, len(files))


def capture_files(
    reading: ReadOptions, files: Sequence[TranscriptFile], *, progress: Progress | None = None
) -> CaptureResult:
    """Capture files one after the other and return the result."""
    total, started = sum(file.size for file in files), time.perf_counter()
    done = read = 0
    every: list[tuple[TranscriptFile, FileCounts]] = []

    def report(size: int) -> None:
        nonlocal read
        read += size
        if progress:
            progress(min(read, total), total)

    with BatchWriter(reading.database, reading.batch_messages) as writer:
        for file in files:
            if reading.stopping():
                break
            options = replace(reading, progress=report, remembers_unknown=file.named)
            every.append((file, _read_into(writer, options, file.path)))
            done += file.size
            read = done
            report(0)
    result = _sum_up(every, reading.redactor)
    seconds = time.perf_counter() - started
    if result.bytes >= _MEASURED_BYTES and reading.database and not reading.dry_run:
        speed = result.bytes / max(seconds, 1e-3)
        reading.database.write(lambda db: watermarks.put_read_speed(db, speed))
    return replace(result, seconds=seconds)


def _sum_up(
    every: Sequence[tuple[TranscriptFile, FileCounts]], redactor: Redactor
) -> CaptureResult:
    counts_of_all = [counts for _, counts in every]
    captured = [counts for counts in counts_of_all if counts.agent]
    skipped: Counter[str] = Counter()
    redactions: Counter[str] = Counter()
    problems: list[FileProblem] = []
    passed_over: list[Path] = []
    for file, counts in every:
        redactions += counts.redactions
        for name, count in counts.skipped.items():
            skipped[redactor.redact(words.clean(name))] += count
        if counts.problem == UNKNOWN and not file.named:
            passed_over.append(file.path)
        elif counts.problem:
            problem = counts.problem
            if problem == UNKNOWN and len(problems) < _MOST_EXPLAINED:
                problem = f"{UNKNOWN}: {_why_unknown(file.path, redactor)}"
            problems.append(FileProblem(counts.source, problem, counts.news))
    redacted = (
        Redaction(counts.source, kind, line, count)
        for counts in counts_of_all
        for (kind, line), count in counts.redacted.items()
    )
    return CaptureResult(
        files=len(captured),
        bytes=sum(counts.bytes for counts in counts_of_all),
        sessions=len(set().union(*(counts.sessions for counts in counts_of_all))),
        added=sum(counts.added for counts in counts_of_all),
        known=sum(counts.known for counts in counts_of_all),
        skipped=dict(skipped.most_common()),
        redactions=dict(redactions.most_common()),
        problems=tuple(problems),
        redacted=tuple(islice(redacted, _MOST_SHOWN)),
        each=tuple(
            CapturedFile(
                counts.source,
                counts.agent,
                counts.added,
                counts.known,
                tuple(sorted(name for _, name in counts.sessions)),
            )
            for counts in captured
        ),
        passed_over=len(passed_over),
        unrecognized=tuple(
            FileProblem(redactor.redact(source_of(path)), _why_unknown(path, redactor))
            for path in passed_over[:_MOST_EXPLAINED]
        ),
    )


def _why_unknown(path: Path, redactor: Redactor) -> str:
    """Return why no adapter fits a file, by its first bytes."""
    try:
        with open_file(path) as opened:
            return redactor.redact(words.clean(describe_head(opened.head)))
    except CaptureError as error:
        return redactor.redact(words.clean(str(error)))
