"""The context of a phase: its database and dependencies, its counts and its report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, TypeVar

from lore.digest import extraction
from lore.llm import Summarizer
from lore.records import Fragment, PhaseReport
from lore.redaction.redactor import EPHEMERAL_REDACTOR, Redactor
from lore.store import consolidation, fragments
from lore.store.consolidation import Root, StepRecorder
from lore.store.database import Connection, Database
from lore.text import sentences, words

T = TypeVar("T")

DigestSession = Callable[[str, StepRecorder], Mapping[str, int]]
"""Digests a session by id, records its steps, and returns counts."""

LearnFromTasks = Callable[[StepRecorder], Mapping[str, int]]
"""Consolidates new episodes, records its steps, and returns counts."""

Progress = Callable[[str, int, int], None]
"""Called with the phase, how much of it is done, and the total."""

BATCH = 100
"""Offline answers per transaction; each paid answer is stored at once."""

MAX_CONSECUTIVE_FAILURES = 3
"""After so many failures, assume that the provider is down, not that the session is at fault."""

MAX_LINES = 50
"""Report lines per phase; further ones are only counted."""

_LABEL_CHARS = 100


class Stopped(Exception):
    """Ends a phase between two steps, because its runner is stopping."""


class _DryRunRollback(Exception):
    """Rolls back a write of a dry run."""


@dataclass(frozen=True, slots=True)
class CycleContext:
    """The dependencies of a cycle, given by whoever has the memory open.

    `digest_steps` run in order for each session that is idle for `idle_s`, each under the kind of
    the job that does the same; a session whose job failed is postponed here too. `embed_pending`
    embeds items without a vector, `forget_vectors` removes those of removed items from the index.
    """

    summarizer: Summarizer
    digest_steps: Mapping[str, DigestSession] = field(default_factory=dict)
    learn_from_tasks: LearnFromTasks | None = None
    idle_s: float = extraction.IDLE_S
    redactor: Redactor = EPHEMERAL_REDACTOR
    embed_pending: Callable[[], object] | None = None
    forget_vectors: Callable[[Sequence[int]], object] | None = None


class RootPair(NamedTuple):
    """Two roots of one project, the lower number first, and their cosine."""

    a: Root
    b: Root
    cosine: float


class SimilarRoots(NamedTuple):
    """Similar pairs, nearest first, and the change number up to which they are complete."""

    pairs: list[RootPair]
    seq: int
    compared: int


@dataclass(slots=True)
class PhaseRun:
    """One run of a phase: its database and context, its counts and report lines."""

    database: Database
    context: CycleContext
    phase: str
    cycle_n: int
    now: datetime
    dry_run: bool = False
    progress: Progress | None = None
    should_stop: Callable[[], bool] = lambda: False
    counts: dict[str, int] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    skipped: str = ""
    """Why the phase cannot run."""

    similar_roots: dict[int, SimilarRoots] = field(default_factory=dict)
    """Similar pairs by progress mark, shared by all phases of one cycle."""

    @property
    def is_paid(self) -> bool:
        """Return whether the summarizer is a chat, whose answers cost money."""
        return self.context.summarizer.identity != "offline"

    def take(self, pending: Sequence[T], most: int, most_paid: int | None = None) -> Sequence[T]:
        """Return the requests of this cycle, and count the rest; a dry run sends no paid ones."""
        most = most_paid if self.is_paid and most_paid is not None else most
        self.count("waiting", max(0, len(pending) - most))
        if self.dry_run and self.is_paid:
            self.count("to ask", min(len(pending), most))
            return ()
        return pending[:most]

    def answer_batches(self, requests: Sequence[T]) -> Iterator[Sequence[T]]:
        """Yield requests in batches whose answers are stored together, and report progress."""
        return self.batches(requests, 1 if self.is_paid else BATCH)

    def batches(self, items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
        """Yield items in batches of a size, and report progress."""
        for start in range(0, len(items), size):
            self.advance(start, len(items))
            yield items[start : start + size]

    def clean(self, answer: str) -> str:
        """Return a summarizer's text for storage: clean, and without secrets."""
        return self.context.redactor.redact(words.clean(answer)).strip()

    def count(self, what: str, by: int = 1) -> None:
        """Count something that was done."""
        if by:
            self.counts[what] = self.counts.get(what, 0) + by

    def report_line(self, line: str) -> None:
        """Add a line to the report."""
        if len(self.lines) < MAX_LINES:
            self.lines.append(line)
        elif len(self.lines) == MAX_LINES:
            self.lines.append("and more, which are counted only")

    def advance(self, done: int, total: int) -> None:
        """Report progress, and raise `Stopped` if the runner is stopping."""
        if self.should_stop():
            raise Stopped
        if self.progress:
            self.progress(self.phase, done, total)

    def write(self, work: Callable[[Connection, int], T]) -> T:
        """Run a write with the cycle's number, and save counts and report lines with it.

        A dry run rolls it back.
        """
        if not self.dry_run:

            def keep(db: Connection) -> T:
                result = work(db, self.cycle_n)
                consolidation.save_phase(db, self.cycle_n, self.report())
                return result

            return self.database.write(keep)
        results: list[T] = []

        def rehearse(db: Connection) -> None:
            results.append(work(db, consolidation.begin_cycle(db, [self.phase], now=self.now)))
            raise _DryRunRollback

        with suppress(_DryRunRollback):
            self.database.write(rehearse)
        return results[0]

    def report(self) -> PhaseReport:
        """Return the report so far; the phase is still pending."""
        return PhaseReport(self.phase, "pending", dict(self.counts), tuple(self.lines))


Phase = Callable[[PhaseRun], None]


def label(fragment: Fragment) -> str:
    """Return a fragment's id and summary for a report line."""
    return f"{fragment.id} {sentences.one_line(fragment.summary, _LABEL_CHARS)}"


def live_fragments(db: Connection, ns: Sequence[int]) -> dict[int, Fragment]:
    """Return the fragments of these numbers that are not deleted."""
    deleted = fragments.deletion_times(db, ns)
    return {n: one for n, one in fragments.by_number(db, ns).items() if n not in deleted}
