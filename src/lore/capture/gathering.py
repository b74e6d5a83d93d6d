"""Gathering: the transcripts of this machine found, and brought in one after the other."""

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
from lore.capture.delivering import Delivery
from lore.capture.files import UNKNOWN, FileReading, find_mark, read_into
from lore.capture.staging import Counts
from lore.capture.transcript_files import is_unchanged, source_of
from lore.capture.transcripts import Adapter
from lore.errors import NotFound
from lore.records import Captured, CapturedFile, CaptureEstimate, FileProblem, Redaction
from lore.store import watermarks
from lore.store.db import Database
from lore.text import words
from lore.text.secrets import Redactor

Progress = Callable[[int, int], None]

_MEASURED_BYTES = 1 << 20
"""Less than this is too little to tell a speed from."""

_UNREAD_FOLDERS = frozenset(
    (".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".nox",
     ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".gradle", ".next", ".nuxt",
     ".terraform", ".eggs", ".idea", ".vscode", ".svelte-kit", ".parcel-cache", ".turbo")
)  # fmt: skip
"""Folders that tools fill: what looks like a transcript in them is a library's sample."""

_MOST_SHOWN = 1_000
"""So many places of secrets are shown at most."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file that may be a transcript; `named` by a person, and so no guess."""

    path: Path
    size: int
    named: bool


def find_files(
    paths: Sequence[Path], adapters: Iterable[Adapter], home: Path, *, since: datetime | None = None
) -> list[Found]:
    """Return the files at the paths, or else all that the adapters know of, each once.

    Only those written since a moment; what a person named must exist.
    """
    found: dict[str, Found] = {}
    for path, named in _named_files(paths) if paths else _known_files(adapters, home):
        try:
            state = path.lstat()
        except OSError:
            continue
        if since is None or state.st_mtime_ns >= clock.to_us(since) * 1_000:
            found.setdefault(source_of(path), Found(path, state.st_size, named))
    return list(found.values())


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


def estimate(
    database: Database | None, files: Sequence[Found], redactor: Redactor
) -> CaptureEstimate:
    """Return how much there is to read, and how long that takes at the speed seen so far."""
    left, count, speed = 0, 0, None
    for file in files:
        mark = find_mark(database, file.path, redactor)
        if mark is None or not is_unchanged(file.path, mark):
            count += 1
            left += file.size - (mark.position if mark and mark.position <= file.size else 0)
    if database is not None:
        with database.read() as db:
            speed = watermarks.speed(db)
    return CaptureEstimate(count, left, left / speed if speed else None, len(files))


def capture_files(
    reading: FileReading, files: Sequence[Found], *, progress: Progress | None = None
) -> Captured:
    """Read files one after the other and return what that brought."""
    total, started = sum(file.size for file in files), time.perf_counter()
    done, tally = 0, _Tally()
    with Delivery(reading.database, reading.batch_messages) as delivery:
        for file in files:
            if reading.stopping():
                break

            def tell(size: int, before: int = done) -> None:
                if progress:
                    progress(min(before + size, total), total)

            how = replace(reading, progress=_adding(tell), remembers_unknown=file.named)
            counts = read_into(delivery, how, file.path)
            done += file.size
            tell(0, done)
            tally.waiting.append((file, counts))
            if delivery.is_empty():
                tally.settle()
    tally.settle()
    summed = tally.summed
    seconds = time.perf_counter() - started
    if summed.bytes >= _MEASURED_BYTES and reading.database and not reading.dry_run:
        speed = summed.bytes / max(seconds, 1e-3)
        reading.database.write(lambda db: watermarks.put_speed(db, speed))
    return Captured(
        files=tally.captured,
        bytes=summed.bytes,
        sessions=len(summed.sessions),
        added=summed.added,
        known=summed.known,
        skipped=_told(summed.skipped, reading.redactor),
        redactions=dict(summed.redactions.most_common()),
        problems=tuple(tally.problems),
        redacted=tuple(tally.redacted),
        seconds=seconds,
        each=tuple(tally.each),
        passed_over=tally.passed_over,
    )


@dataclass(slots=True)
class _Tally:
    """What came of all files; a file that is not written yet waits for its counts."""

    summed: Counts = field(default_factory=Counts)
    captured: int = 0
    passed_over: int = 0
    problems: list[FileProblem] = field(default_factory=list)
    redacted: list[Redaction] = field(default_factory=list)
    each: list[CapturedFile] = field(default_factory=list)
    waiting: list[tuple[Found, Counts]] = field(default_factory=list)

    def settle(self) -> None:
        """Sum up what was written."""
        for file, counts in self.waiting:
            self._sum_up(file, counts)
        self.waiting.clear()

    def _sum_up(self, file: Found, counts: Counts) -> None:
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


def _told(skipped: Counter[str], redactor: Redactor) -> dict[str, int]:
    """Return what was skipped, by names without the secrets that a file may have in them."""
    told: Counter[str] = Counter()
    for name, count in skipped.items():
        told[redactor.redact(words.clean(name))] += count
    return dict(told.most_common())


def _adding(tell: Callable[[int], None]) -> Callable[[int], None]:
    """Return a function that is told steps and tells their sum."""
    sums: Counter[str] = Counter()

    def add(size: int) -> None:
        sums["read"] += size
        tell(sums["read"])

    return add


def _sum_up(total: Counts, counts: Counts) -> None:
    total.bytes += counts.bytes
    total.added += counts.added
    total.known += counts.known
    total.sessions |= counts.sessions
    total.skipped += counts.skipped
    total.redactions += counts.redactions
