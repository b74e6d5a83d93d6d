"""Distillation: write the log of each segment, and condense old logs into one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from math import sqrt
from typing import NamedTuple

from lore import clock
from lore.digest import segments
from lore.errors import PromptTooLong
from lore.llm import Summarizer
from lore.records import Distillation, Log, LogLine, MessageText, Segment
from lore.store import consolidation, distillations, items, messages, sessions
from lore.store.database import Connection, Database
from lore.store.distillations import Span
from lore.text import sentences, tokens, transcript_text, words

MIN_SHARED_WORDS = 0.6
"""A line that shares this part of its words with a text has that text as its source."""

_MIN_LINE_WORDS = 3
"""A line with fewer words, such as a heading, has no sources of its own."""


class SourceText(NamedTuple):
    """The words of a text, and the ordinals of the messages that it is or summarizes."""

    words: frozenset[str]
    ordinals: tuple[int, ...]


def trace_sources(line: str, texts: Sequence[SourceText]) -> tuple[int, ...]:
    """Return the ordinals of the texts that share most with a line; none if that is too little."""
    line_words = _word_set(line)
    if sum(not word.isdigit() for word in line_words) < _MIN_LINE_WORDS:
        return ()
    shared = [
        (len(line_words & text.words) / min(len(line_words), len(text.words)), text.ordinals)
        for text in texts
        if text.words
    ]
    most = max((share for share, _ in shared), default=0.0)
    ordinals_found = {
        o for share, ordinals in shared if share >= max(MIN_SHARED_WORDS, most) for o in ordinals
    }
    return tuple(sorted(ordinals_found))


def verify_sources(lines: Sequence[LogLine], segment: Segment) -> list[LogLine]:
    """Return lines whose sources lie in their segment; if none is left, trace them by words."""
    ordinals = {one.ordinal for one in segment.messages}
    texts = [SourceText(_word_set(one.text), (one.ordinal,)) for one in segment.messages]
    checked = []
    for line in lines:
        sources = tuple(ordinal for ordinal in line.sources if ordinal in ordinals)
        checked.append(LogLine(line.text, sources or trace_sources(line.text, texts)))
    return checked


def _word_set(text: str) -> frozenset[str]:
    return frozenset(word for word in words.split(text) if word not in words.STOP_WORDS)


MIN_LOG_TOKENS, MAX_LOG_TOKENS, LOG_TOKENS_PER_SQRT = 256, 4_096, 10.0
"""A log has at most ten times the square root of its source's tokens, within these bounds."""

OFFLINE_SEGMENT_TOKENS = 1_600
"""Quoted lines are found better in the logs of short segments."""

OFFLINE_SHARE = 0.07
"""Quoting costs nothing, so the limit alone would let a log be a quarter of a short segment."""

IDLE_S = 60.0
"""A session that is idle for this many seconds is due."""

_NO_LIMIT = 10_000_000

Redact = Callable[[str], str]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class LogLimits:
    """How long a segment is, and how long its log may be."""

    segment_tokens: int = segments.MAX_TOKENS
    share: float = 1.0
    """The share of a source that its log may have beyond the lower bound."""

    def for_source(self, source_tokens: int) -> int:
        """Return the maximum number of tokens of a source's log."""
        most = min(
            round(LOG_TOKENS_PER_SQRT * sqrt(source_tokens)), round(self.share * source_tokens)
        )
        return min(MAX_LOG_TOKENS, max(MIN_LOG_TOKENS, most))


def limits_for(summarizer: Summarizer, *, segment_tokens: int = segments.MAX_TOKENS) -> LogLimits:
    """Return the limits that suit a summarizer."""
    if summarizer.identity == "offline":
        about = min(segment_tokens, OFFLINE_SEGMENT_TOKENS)
        return LogLimits(about, OFFLINE_SHARE)
    return LogLimits(segment_tokens)


def due_sessions(database: Database, *, idle_s: float = IDLE_S, limit: int = 100) -> list[str]:
    """Return the idle sessions with messages to distill, newest first."""
    with database.read() as db:
        return distillations.sessions_to_distill(db, now=database.now(), idle_s=idle_s, limit=limit)


def distill_session(
    database: Database,
    summarizer: Summarizer,
    session: str,
    *,
    limits: LogLimits | None = None,
    redact: Redact = str,
    progress: Progress | None = None,
) -> list[str]:
    """Distill the uncovered messages of a session; return the ids of the new distillations.

    Each segment is stored in its own transaction, so a restart continues after the last one. If
    another process covers the same messages first, nothing is stored.
    """
    limits = limits or limits_for(summarizer)
    with database.read() as db:
        session_n = sessions.get_session_number(db, session)
        extent = distillations.get_extent(db, session_n)
        pending = pending_segments(db, session_n, limits)
    new_ids = []
    for place, segment in enumerate(pending):
        log = _write_log(summarizer, segment, limits, redact)
        first, last = segment.messages[0], segment.messages[-1]
        new = _build_distillation(
            log,
            (first.id, last.id),
            session_id=segment.session_id,
            source_tokens=segment.tokens,
            at=last.at,
        )
        keep = partial(
            _store_segment_log, session_n=session_n, new=new, segment=segment, now=database.now()
        )
        if database.write(keep):
            new_ids.append(new.id)
        if progress:
            progress(place + 1, len(pending))
    covered = extent._replace(distillations=extent.distillations + len(new_ids))
    database.write(
        lambda db: distillations.mark_distilled(db, session_n, covered, now=database.now())
    )
    return new_ids


def pending_segments(db: Connection, session_n: int, limits: LogLimits) -> list[Segment]:
    """Return the due segments of a session that no distillation covers yet."""
    session = sessions.get_session(db, session_n)
    covered = distillations.covered_spans(db, session_n)
    pending: list[Segment] = []
    runs = _uncovered_runs(db, session_n, covered)
    for run, grows in runs:
        spoken = sum(one.tokens for one in run)
        if segments.is_large_enough(run) or (not grows and spoken >= segments.MIN_TOKENS):
            pending += segments.split_segments(
                session.id,
                run,
                title=session.title,
                about_tokens=limits.segment_tokens,
                vectors=_load_vectors(db, run),
            )
    return pending


def _uncovered_runs(
    db: Connection, session_n: int, covered: Sequence[Span]
) -> list[tuple[list[MessageText], bool]]:
    """Return the runs of messages between the covered spans, and whether each can still grow."""
    starts = [0, *(span.last + 1 for span in covered)]
    runs: list[tuple[list[MessageText], bool]] = []
    for place, start in enumerate(starts):
        until = covered[place].first if place < len(covered) else None
        if until is not None and until <= start:
            continue
        most = _NO_LIMIT if until is None else until - start
        read = messages.messages_of_session(db, session_n, first=start, limit=most)
        run = [one for one in read if until is None or one.ordinal < until]
        if run:
            texts = transcript_text.render_messages(
                run, transcript_text.FOR_LOG, most_tokens=segments.MAX_TOKENS
            )
            runs.append((texts, until is None))
    return runs


def _load_vectors(db: Connection, texts: Sequence[MessageText]) -> dict[str, segments.Vector]:
    embedder = consolidation.find_active_embedder(db)
    if embedder is None:
        return {}
    ns = items.numbers_of(db, [one.id for one in texts])
    matrix = consolidation.load_vectors(db, list(ns.values()), embedder)
    return {id_: row for id_, row in zip(ns, matrix, strict=True) if row.any()}


def _write_log(summarizer: Summarizer, segment: Segment, limits: LogLimits, redact: Redact) -> Log:
    """Return the log of a segment, or its messages verbatim where that is shorter."""
    log = _observe(summarizer, segment, limits.for_source(segment.tokens))
    if tokens.count(log.text) > segment.tokens:
        log = verbatim_log(segment)
    elif not log.lines:
        log = clipped_log(segment, limits.for_source(segment.tokens))
    checked = verify_sources(log.lines, segment)
    return Log(tuple(LogLine(redact(line.text), line.sources) for line in checked))


def _observe(summarizer: Summarizer, segment: Segment, limit_tokens: int) -> Log:
    """Return what a summarizer writes of a segment, in halves if it is too long for the prompt."""
    try:
        return summarizer.observe(segment, limit_tokens=limit_tokens)
    except PromptTooLong:
        if len(segment.messages) < 2:
            raise
    middle = len(segment.messages) // 2
    halves = (segment.messages[:middle], segment.messages[middle:])
    each = limit_tokens // 2
    logs = [_observe(summarizer, replace(segment, messages=half), each) for half in halves]
    return Log(tuple(line for log in logs for line in log.lines))


def verbatim_log(segment: Segment) -> Log:
    """Return a segment as a log of its own words, a line for each message."""
    return Log(
        tuple(
            LogLine(
                f"{one.voice}: {sentences.one_line(one.text, len(one.text) + 1)}", (one.ordinal,)
            )
            for one in segment.messages
            if one.text
        )
    )


def clipped_log(segment: Segment, limit_tokens: int) -> Log:
    """Return the beginning of each message, for a segment whose log came out empty."""
    whole = verbatim_log(segment)
    each = max(1, limit_tokens // max(1, len(whole.lines)))
    clipped = (LogLine(tokens.clip(line.text, each), line.sources) for line in whole.lines)
    return Log(tuple(clipped))


def _build_distillation(
    log: Log,
    ends: tuple[str, str],
    *,
    session_id: str,
    source_tokens: int,
    at: datetime,
    generation: int = 0,
) -> Distillation:
    return Distillation(
        id=clock.new_id(at),
        session_id=session_id,
        generation=generation,
        text=log.text,
        from_message=ends[0],
        to_message=ends[1],
        tokens=tokens.count(log.text),
        source_tokens=source_tokens,
        archived=False,
        created_at=at,
        sources=tuple(line.sources for line in log.lines),
    )


def _store_segment_log(
    db: Connection, *, session_n: int, new: Distillation, segment: Segment, now: datetime
) -> bool:
    """Store a distillation unless its messages are gone or already covered."""
    if len(items.numbers_of(db, [one.id for one in segment.messages])) < len(segment.messages):
        return False
    first, last = segment.messages[0].ordinal, segment.messages[-1].ordinal
    if any(s.first <= last and first <= s.last for s in distillations.covered_spans(db, session_n)):
        return False
    distillations.add_distillation(db, session_n, new, now=now)
    return True


CONDENSE_THRESHOLD, UNCONDENSED = 20, 5
"""So many distillations of generation 0 are condensed into one, except the newest."""


def condense_session(
    database: Database,
    summarizer: Summarizer,
    session: str,
    *,
    threshold: int = CONDENSE_THRESHOLD,
    redact: Redact = str,
) -> str:
    """Condense a session's distillations once there are enough; return the new one's id, or ''.

    Those it replaces are archived and still found. If their successor is gone, they are restored.
    """
    with database.read() as db:
        session_n = sessions.get_session_number(db, session)
        known = distillations.distillations_of_session(db, session_n)
    if _is_orphaned(known):
        database.write(partial(_restore_orphaned, session_n=session_n))
        with database.read() as db:
            known = distillations.distillations_of_session(db, session_n)
    with database.read() as db:
        ends = distillations.message_ranges(db, session_n)
    # Order by ordinal: agents' clocks can go back.
    known = sorted((one for one in known if one.id in ends), key=lambda one: ends[one.id][0])
    open_ = [one for one in known if one.generation == 0 and not one.archived]
    if len(open_) < threshold:
        return ""
    former = [one for one in known if one.generation > 0 and not one.archived]
    oldest = open_[:-UNCONDENSED]
    replaced = [*former, *oldest]
    log_tokens = sum(one.tokens for one in replaced)
    log = summarizer.condense(
        [_stored_log(one) for one in oldest],
        Log(tuple(line for one in former for line in _stored_log(one).lines)),
        limit_tokens=LogLimits().for_source(log_tokens),
    )
    if not log.lines or tokens.count(log.text) > log_tokens:
        return ""
    spans = [ends[one.id] for one in replaced]
    new = _build_distillation(
        _trace_condensed(log, replaced, redact),
        (min(end[:2] for end in spans)[1], max(end[2:] for end in spans)[1]),
        session_id=replaced[0].session_id,
        source_tokens=sum(one.source_tokens for one in replaced),
        at=max(one.created_at for one in replaced),
        generation=1,
    )
    stored = database.write(
        partial(
            _store_condensed,
            session_n=session_n,
            new=new,
            replaced=replaced,
            now=database.now(),
        )
    )
    return new.id if stored else ""


def _is_orphaned(known: Sequence[Distillation]) -> bool:
    """Return whether distillations are archived for a successor that is gone."""
    stands = any(one.generation > 0 and not one.archived for one in known)
    return not stands and any(one.archived for one in known)


def _restore_orphaned(db: Connection, *, session_n: int) -> None:
    known = distillations.distillations_of_session(db, session_n)
    if _is_orphaned(known):
        ids = [one.id for one in known if one.generation == 0]
        distillations.archive_distillations(
            db, list(items.numbers_of(db, ids).values()), archived=False
        )


def _stored_log(one: Distillation) -> Log:
    """Return a stored log line by line, with the sources of each."""
    lines = one.text.split("\n")
    sources = [*one.sources, *[()] * len(lines)]
    return Log(tuple(LogLine(*line) for line in zip(lines, sources, strict=False)))


def _trace_condensed(log: Log, replaced: Sequence[Distillation], redact: Redact) -> Log:
    """Return a redacted log, each line with the sources that it names or whose words it repeats."""
    lines = [line for one in replaced for line in _stored_log(one).lines if line.sources]
    former = [SourceText(_word_set(line.text), line.sources) for line in lines]
    known = {ordinal for line in lines for ordinal in line.sources}
    traced = []
    for line in log.lines:
        sources = {*trace_sources(line.text, former), *known.intersection(line.sources)}
        traced.append(LogLine(redact(line.text), tuple(sorted(sources))))
    return Log(tuple(traced))


def _store_condensed(
    db: Connection,
    *,
    session_n: int,
    new: Distillation,
    replaced: Sequence[Distillation],
    now: datetime,
) -> bool:
    """Replace distillations by a condensed one, unless another process did or one is gone."""
    ns = items.numbers_of(db, [one.id for one in replaced])
    current = distillations.get_distillations(db, list(ns.values()))
    if len(ns) < len(replaced) or any(one.archived for one in current.values()):
        return False
    distillations.add_distillation(db, session_n, new, now=now)
    distillations.archive_distillations(db, list(ns.values()))
    return True
