"""What a phase works with, and how it tells what it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, TypeVar

from lore.curate import curating
from lore.llm import Digester
from lore.records import Fragment, PhaseReport
from lore.redaction import UNKEPT
from lore.store import cycles
from lore.store.consolidation import Root
from lore.store.db import Connection, Database
from lore.store.steps import Watch
from lore.text import lines, words
from lore.text.secrets import Redactor

T = TypeVar("T")

DigestSession = Callable[[str, Watch], Mapping[str, int]]
"""Digests the session of an id, lets itself be watched, and counts what came of it."""

Progress = Callable[[str, int, int], None]
"""Is told the phase, how much of it is done, and how much there is."""

BATCH = 100
"""Answers that share one transaction where they cost nothing; each of a chat's is kept at once."""

MOST_TOLD = 50
"""Lines of one phase: more are counted, not read."""

_TOLD_CHARS = 100


class Stopped(Exception):
    """Ends a phase between two steps, because whoever runs it is to stop."""


class _Rehearsed(Exception):
    """Ends a write of a dry run, so that nothing of it stays."""


@dataclass(frozen=True, slots=True)
class Means:
    """What a cycle is given to work with by whoever has the memory open.

    `digest` are asked in their order for each session that is idle for `idle_s`, each under the
    kind of the job that does the same; one that failed there waits here too.
    `embed_waiting` gives vectors to what waits for one, `forget_vectors` takes those of removed
    items out of the index.
    """

    digester: Digester
    digest: Mapping[str, DigestSession] = field(default_factory=dict)
    idle_s: float = curating.IDLE_S
    redactor: Redactor = UNKEPT
    embed_waiting: Callable[[], object] | None = None
    forget_vectors: Callable[[Sequence[int]], object] | None = None


class Near(NamedTuple):
    """Two roots of one project, the lower number first, and how close they are."""

    a: Root
    b: Root
    cosine: float


class Joined(NamedTuple):
    """The near pairs, nearest first, and the change number up to which they are known."""

    pairs: list[Near]
    seq: int
    compared: int


@dataclass(slots=True)
class Work:
    """One phase at work: its database and means, what it counted and told so far."""

    database: Database
    means: Means
    phase: str
    cycle_n: int
    now: datetime
    dry_run: bool = False
    progress: Progress | None = None
    stopping: Callable[[], bool] = lambda: False
    counts: dict[str, int] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    skipped: str = ""
    joins: dict[int, Joined] = field(default_factory=dict)
    """Near pairs by the mark that they are fresh since, for all phases of one cycle."""

    @property
    def asks(self) -> bool:
        """Tell whether the digester is a chat, whose answers cost money."""
        return self.means.digester.identity != "offline"

    def batches(self, asked: Sequence[T]) -> Iterator[Sequence[T]]:
        """Yield what is asked in the pieces in which answers are kept, and show the progress."""
        return self.pieces(asked, 1 if self.asks else BATCH)

    def pieces(self, found: Sequence[T], size: int) -> Iterator[Sequence[T]]:
        """Yield what is to be done in pieces of a size, and show the progress."""
        for start in range(0, len(found), size):
            self.advance(start, len(found))
            yield found[start : start + size]

    def cleaned(self, answer: str) -> str:
        """Return what a digester wrote as it may be stored: clean, and without secrets."""
        return self.means.redactor.redact(words.clean(answer)).strip()

    def count(self, what: str, by: int = 1) -> None:
        """Count something that was done."""
        if by:
            self.counts[what] = self.counts.get(what, 0) + by

    def tell(self, line: str) -> None:
        """Say in one line what was done."""
        if len(self.told) < MOST_TOLD:
            self.told.append(line)
        elif len(self.told) == MOST_TOLD:
            self.told.append("and more, which are counted only")

    def skip(self, reason: str) -> None:
        """Say why the phase cannot work."""
        self.skipped = reason

    def advance(self, done: int, total: int) -> None:
        """Show how far the phase has come, and go no further if it is to stop."""
        if self.stopping():
            raise Stopped
        if self.progress:
            self.progress(self.phase, done, total)

    def write(self, work: Callable[[Connection, int], T]) -> T:
        """Run a write with the cycle's number, and keep in it what was counted and told.

        In a dry run it is done and taken back again.
        """
        if not self.dry_run:

            def keep(db: Connection) -> T:
                result = work(db, self.cycle_n)
                cycles.save(db, self.cycle_n, self.report())
                return result

            return self.database.write(keep)
        done: list[T] = []

        def rehearse(db: Connection) -> None:
            done.append(work(db, cycles.begin(db, [self.phase], now=self.now)))
            raise _Rehearsed

        with suppress(_Rehearsed):
            self.database.write(rehearse)
        return done[0]

    def report(self) -> PhaseReport:
        """Return what was done so far; the phase is not through yet."""
        return PhaseReport(self.phase, "pending", dict(self.counts), tuple(self.told))


Phase = Callable[[Work], None]


def named(fragment: Fragment) -> str:
    """Return a fragment's id with its words, as a report tells it."""
    return f"{fragment.id} {lines.one_line(fragment.summary, _TOLD_CHARS)}"
