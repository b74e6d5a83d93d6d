"""Find the transcripts of this machine and capture them one after the other."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path

from lore import clock
from lore.capture.adapter_protocol import Adapter
from lore.capture.message_batches import BatchWriter, FileCounts
from lore.capture.transcript_files import is_unchanged, source_of
from lore.capture.transcript_reader import UNKNOWN, ReadOptions, find_watermark, read_into
from lore.errors import NotFound
from lore.records import CapturedFile, CaptureEstimate, CaptureResult, FileProblem, Redaction
from lore.redaction.redactor import Redactor
from lore.store import watermarks
from lore.store.database import Database
from lore.text import words

Progress = Callable[[int, int], None]

_MEASURED_BYTES = 1 << 20
"""Fewer bytes than this are too few to measure a speed."""

_UNREAD_FOLDERS = frozenset(
    (".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".nox",
     ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".gradle", ".next", ".nuxt",
     ".terraform", ".eggs", ".idea", ".vscode", ".svelte-kit", ".parcel-cache", ".turbo")
)  # fmt: skip
"""Folders that tools fill: what looks like a transcript in them is a library's sample."""

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
    for path, named in _named_files(paths) if paths else _known_files(adapters, home):
        try:
            state = path.lstat()
        except OSError:
            continue
        if since is None or state.st_mtime_ns >= clock.to_us(since) * 1_000:
            by_source.setdefault(source_of(path), TranscriptFile(path, state.st_size, named))
    return list(by_source.values())


def _known_files(adapters: Iterable[Adapter], home: Path) -> Iterator[tuple[Path, bool]]:
    for adapter in adapters:
        for path in adapter.find(home):
            yield path, True


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
        mark = find_watermark(database, file.path, redactor)
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
    done, totals = 0, _Totals()
    with BatchWriter(reading.database, reading.batch_messages) as writer:
        for file in files:
            if reading.stopping():
                break

            def report(size: int, before: int = done) -> None:
                if progress:
                    progress(min(before + size, total), total)

            options = replace(reading, progress=_accumulate(report), remembers_unknown=file.named)
            counts = read_into(writer, options, file.path)
            done += file.size
            report(0, done)
            totals.waiting.append((file, counts))
            if writer.is_empty():
                totals.settle()
    totals.settle()
    summed = totals.summed
    seconds = time.perf_counter() - started
    if summed.bytes >= _MEASURED_BYTES and reading.database and not reading.dry_run:
        speed = summed.bytes / max(seconds, 1e-3)
        reading.database.write(lambda db: watermarks.put_read_speed(db, speed))
    return CaptureResult(
        files=totals.captured,
        bytes=summed.bytes,
        sessions=len(summed.sessions),
        added=summed.added,
        known=summed.known,
        skipped=_redact_names(summed.skipped, reading.redactor),
        redactions=dict(summed.redactions.most_common()),
        problems=tuple(totals.problems),
        redacted=tuple(totals.redacted),
        seconds=seconds,
        each=tuple(totals.each),
        passed_over=totals.passed_over,
    )


@dataclass(slots=True)
class _Totals:
    """The sums over all files; a file that is not written yet waits for its counts."""

    summed: FileCounts = field(default_factory=FileCounts)
    captured: int = 0
    passed_over: int = 0
    problems: list[FileProblem] = field(default_factory=list)
    redacted: list[Redaction] = field(default_factory=list)
    each: list[CapturedFile] = field(default_factory=list)
    waiting: list[tuple[TranscriptFile, FileCounts]] = field(default_factory=list)

    def settle(self) -> None:
        """Add the counts of files that were written."""
        for file, counts in self.waiting:
            self._sum_up(file, counts)
        self.waiting.clear()

    def _sum_up(self, file: TranscriptFile, counts: FileCounts) -> None:
        source = counts.source
        _sum_up(self.summed, counts)
        room = _MOST_SHOWN - len(self.redacted)
        self.redacted += (
            Redaction(source, kind, line, count)
            for (kind, line), count in islice(counts.redacted.items(), room)
        )
        self.captured += bool(counts.agent)
        if counts.agent:
            named = tuple(sorted(name for _, name in counts.sessions))
            self.each.append(CapturedFile(source, counts.agent, counts.added, counts.known, named))
        if counts.problem == UNKNOWN and not file.named:
            self.passed_over += 1
        elif counts.problem:
            self.problems.append(FileProblem(source, counts.problem, counts.news))


def _redact_names(skipped: Counter[str], redactor: Redactor) -> dict[str, int]:
    names: Counter[str] = Counter()
    for name, count in skipped.items():
        names[redactor.redact(words.clean(name))] += count
    return dict(names.most_common())


def _accumulate(report: Callable[[int], None]) -> Callable[[int], None]:
    """Return a function that takes increments and reports their sum."""
    sums: Counter[str] = Counter()

    def add(size: int) -> None:
        sums["read"] += size
        report(sums["read"])

    return add


def _sum_up(total: FileCounts, counts: FileCounts) -> None:
    total.bytes += counts.bytes
    total.added += counts.added
    total.known += counts.known
    total.sessions |= counts.sessions
    total.skipped += counts.skipped
    total.redactions += counts.redactions
