"""Distilling: the segments of one session, each to a log that is stored with what it tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from math import sqrt

import numpy as np

from lore import clock
from lore.distill import segmenting, tracing
from lore.errors import PromptTooLong
from lore.llm import Digester
from lore.records import Distillation, Log, LogLine, Said, Segment
from lore.store import distillations, items, messages, sessions, vectors
from lore.store.db import Connection, Database
from lore.store.distillations import Span
from lore.text import lines, saying, tokens

LEAST_LIMIT, MOST_LIMIT, PER_ROOT = 256, 4_096, 10.0
"""A log has at most ten times the root of its source's tokens, within these bounds."""

OFFLINE_SEGMENT_TOKENS = 1_600
"""Where lines are quoted and not written anew, short segments make logs that are found."""

OFFLINE_SHARE, OFFLINE_LEAST = 0.07, 48
"""Quoting costs nothing, so that the limit alone would let a log be a quarter of its source."""

IDLE_S = 60.0
"""A session that has been quiet for so long is due."""

_MANY = 10_000_000

Redact = Callable[[str], str]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a segment is, and how long its log may be."""

    segment_tokens: int = segmenting.MOST_TOKENS
    share: float = 1.0
    least: int = LEAST_LIMIT

    def of(self, source_tokens: int) -> int:
        """Return the tokens that the log of a source may have."""
        most = min(MOST_LIMIT, max(LEAST_LIMIT, round(PER_ROOT * sqrt(source_tokens))))
        return min(most, max(self.least, round(self.share * source_tokens)))


def limits_for(digester: Digester, *, segment_tokens: int = segmenting.MOST_TOKENS) -> Limits:
    """Return the limits that suit a digester."""
    if digester.identity == "offline":
        about = min(segment_tokens, OFFLINE_SEGMENT_TOKENS)
        return Limits(about, OFFLINE_SHARE, OFFLINE_LEAST)
    return Limits(segment_tokens)


def due(database: Database, *, idle_s: float = IDLE_S, limit: int = 100) -> list[str]:
    """Return the sessions that have gone quiet and hold something to distil, newest first."""
    with database.read() as db:
        return distillations.due(db, now=database.now(), idle_s=idle_s, limit=limit)


def distil_session(
    database: Database,
    digester: Digester,
    session: str,
    *,
    limits: Limits | None = None,
    dimension: int = 0,
    redact: Redact = str,
    progress: Progress | None = None,
) -> list[str]:
    """Distil what is not covered yet of a session; return the ids of the new distillations.

    Each segment is stored by itself: a restart goes on behind the last one. Whoever comes second
    to the same messages stores nothing.
    """
    limits = limits or limits_for(digester)
    with database.read() as db:
        session_n = sessions.get_number(db, session)
        extent = distillations.extent_of(db, session_n)
        found = pending(db, session_n, limits, dimension)
    made = []
    for place, segment in enumerate(found):
        log = _observed(digester, segment, limits, redact)
        new = _distillation(segment, log)
        keep = partial(_keep, session_n=session_n, new=new, segment=segment, now=database.now())
        if database.write(keep):
            made.append(new.id)
        if progress:
            progress(place + 1, len(found))
    done = extent._replace(distillations=extent.distillations + len(made))
    database.write(lambda db: distillations.mark_done(db, session_n, done, now=database.now()))
    return made


def pending(db: Connection, session_n: int, limits: Limits, dimension: int = 0) -> list[Segment]:
    """Return the segments of a session that no distillation covers yet and that are due."""
    session = sessions.get(db, session_n)
    covered = distillations.spans(db, session_n)
    found: list[Segment] = []
    runs = _uncovered(db, session_n, covered)
    for run, grows in runs:
        spoken = sum(one.tokens for one in run)
        if segmenting.is_enough(run) or (not grows and spoken >= segmenting.LEAST_TOKENS):
            found += segmenting.segments(
                session.id,
                run,
                title=session.title,
                about_tokens=limits.segment_tokens,
                vectors=_vectors(db, run, dimension),
            )
    return found


def _uncovered(
    db: Connection, session_n: int, covered: Sequence[Span]
) -> list[tuple[list[Said], bool]]:
    """Return the runs of messages between what is covered, and whether each can still grow."""
    starts = [0, *(span.last + 1 for span in covered)]
    runs: list[tuple[list[Said], bool]] = []
    for place, start in enumerate(starts):
        until = covered[place].first if place < len(covered) else None
        if until is not None and until <= start:
            continue
        most = _MANY if until is None else until - start
        read = messages.of_session(db, session_n, first=start, limit=most)
        found = [one for one in read if until is None or one.ordinal < until]
        if found:
            said = saying.said_of(found, saying.FOR_LOG, most_tokens=segmenting.MOST_TOKENS)
            runs.append((said, until is None))
    return runs


def _vectors(db: Connection, said: Sequence[Said], dimension: int) -> dict[str, segmenting.Vector]:
    if not dimension:
        return {}
    ns = items.numbers_of(db, [one.id for one in said])
    matrix = vectors.load(db, np.array(list(ns.values()), np.int64), dimension)
    return {id_: row for id_, row in zip(ns, matrix, strict=True) if row.any()}


def _observed(digester: Digester, segment: Segment, limits: Limits, redact: Redact) -> Log:
    """Return the log of a segment, or what was said itself where that is shorter."""
    log = _written(digester, segment, limits)
    if tokens.count(log.text) > segment.tokens:
        log = as_it_stands(segment)
    elif not log.lines:
        log = beginnings(segment, limits.of(segment.tokens))
    checked = tracing.verified(log.lines, segment)
    return Log(tuple(LogLine(redact(line.text), line.sources) for line in checked))


def _written(digester: Digester, segment: Segment, limits: Limits) -> Log:
    """Return what a digester writes of a segment, in halves if it is too long for it."""
    try:
        return digester.observe(segment, limit_tokens=limits.of(segment.tokens))
    except PromptTooLong:
        if len(segment.said) < 2:
            raise
    middle = len(segment.said) // 2
    halves = (segment.said[:middle], segment.said[middle:])
    logs = [_written(digester, replace(segment, said=half), limits) for half in halves]
    return Log(tuple(line for log in logs for line in log.lines))


def as_it_stands(segment: Segment) -> Log:
    """Return a segment as a log of its own words, a line for each message."""
    return Log(
        tuple(
            LogLine(f"{one.voice}: {lines.one_line(one.text, len(one.text) + 1)}", (one.ordinal,))
            for one in segment.said
            if one.text
        )
    )


def beginnings(segment: Segment, limit_tokens: int) -> Log:
    """Return how each message begins, where an observer found nothing to tell."""
    whole = as_it_stands(segment)
    each = max(1, limit_tokens // max(1, len(whole.lines)))
    told = (LogLine(tokens.clip(line.text, each), line.sources) for line in whole.lines)
    return Log(tuple(told))


def _distillation(segment: Segment, log: Log) -> Distillation:
    first, last = segment.said[0], segment.said[-1]
    return Distillation(
        id=clock.new_id(last.at),
        session_id=segment.session_id,
        generation=0,
        text=log.text,
        from_message=first.id,
        to_message=last.id,
        tokens=tokens.count(log.text),
        source_tokens=segment.tokens,
        archived=False,
        created_at=last.at,
        sources=tuple(line.sources for line in log.lines),
    )


def _keep(
    db: Connection, *, session_n: int, new: Distillation, segment: Segment, now: datetime
) -> bool:
    """Store a distillation unless its messages are gone or another one covers some of them."""
    if len(items.numbers_of(db, [one.id for one in segment.said])) < len(segment.said):
        return False
    first, last = segment.said[0].ordinal, segment.said[-1].ordinal
    if any(s.first <= last and first <= s.last for s in distillations.spans(db, session_n)):
        return False
    distillations.add(db, session_n, new, now=now)
    return True
