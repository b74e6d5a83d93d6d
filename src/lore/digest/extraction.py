"""Extract knowledge from sessions (curation), exchange by exchange.

Reading and embedding happen before the transaction that stores an exchange with its progress mark.
If another process moved the mark meanwhile, the exchange is done: nothing is stored twice, and
after a crash the work continues where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import numpy as np

from lore.digest import chat_context, placement, segments
from lore.digest.draft_writer import DraftWriter, ExchangeContext
from lore.digest.drafts import (
    MAX_UNTRUSTED_MESSAGES,
    CurationContext,
    QuoteDetector,
    Scores,
    build_drafts,
    find_pasted_stems,
)
from lore.records import CurationResult, Message, MessageText, Segment
from lore.store import distillations, items, messages, sessions, vectors
from lore.store.consolidation import StepRecorder, ignore_step
from lore.store.database import Connection, Database
from lore.text import transcript_text

IDLE_S = 300.0
"""A session that is idle for this many seconds is curated; from the specification."""

MAX_WAITING_TURNS = 20
"""An active session is curated after this many requests, except its last exchange."""

MAX_GROUP_TOKENS, MAX_CHAT_GROUP_TOKENS = 1_024, 4_096
"""Short exchanges of one event are read together up to this size; a chat is paid per request."""

TURN_CHARS = 240
"""The characters of a request and its answer that are compared to find topic changes."""

LOOK_AHEAD = 60
"""Messages after an exchange that are shown with it: statements are soon repaired or denied."""

PAGE_MESSAGES = 4_000
"""Messages that are loaded together: a longer session is split into events page by page."""

Progress = Callable[[int, int], None]


def due_sessions(
    db: Connection, *, now: datetime, idle_s: float = IDLE_S, turns: int = MAX_WAITING_TURNS
) -> list[str]:
    """Return the ids of the sessions to curate now, those idle for longest first."""
    return distillations.sessions_to_curate(
        db, idle_since=now - timedelta(seconds=idle_s), turns=turns
    )


def curate_session(
    database: Database,
    session: str,
    context: CurationContext,
    *,
    idle_s: float = 0.0,
    recorder: StepRecorder = ignore_step,
    progress: Progress | None = None,
) -> CurationResult:
    """Extract knowledge from the new messages of a session and return what was stored.

    While a session was not idle for `idle_s`, its last exchange is left for later: it may continue.
    With 0 nothing is left.
    """
    with database.read() as db:
        session_n = sessions.get_session_number(db, session)
        result = CurationResult(sessions.get_session(db, session_n).id)
        before = max(0, distillations.curated_up_to(db, session_n) + 1 - MAX_UNTRUSTED_MESSAGES)
        quotes = QuoteDetector()
        quotes.add(
            messages.messages_of_session(db, session_n, first=before, limit=MAX_UNTRUSTED_MESSAGES)
        )
    while (page := _next_page(database, session_n, context, idle_s=idle_s)) is not None:
        for index, exchange in enumerate(page):
            quotes.add(exchange[-1])
            outcome = _curate_exchange(database, session_n, exchange, quotes, context, recorder)
            if outcome is None:
                break
            result += outcome
            if progress:
                progress(index + 1, len(page))
        else:
            continue
        break
    return result


PendingExchange = tuple[int, Segment, list[Message]]
"""An exchange, the progress mark that must precede it, and its messages."""


def _next_page(
    database: Database, session_n: int, context: CurationContext, *, idle_s: float
) -> list[PendingExchange] | None:
    with database.read() as db:
        mark = distillations.curated_up_to(db, session_n)
        new_messages = messages.messages_of_session(
            db, session_n, first=mark + 1, limit=PAGE_MESSAGES
        )
        session = sessions.get_session(db, session_n)
    if not new_messages:
        return None
    whole = len(new_messages) < PAGE_MESSAGES
    texts = [
        one
        for one in transcript_text.render_messages(new_messages, transcript_text.FOR_KNOWLEDGE)
        if one.text
    ]
    cut = segments.split_exchanges(new_messages[0].session_id, texts, title=session.title)
    silent_since = database.now() - timedelta(seconds=idle_s)
    is_idle = not idle_s or session.last_message_at <= silent_since
    goes_on = not whole and len(cut) > 1
    if goes_on or (whole and not is_idle):
        cut = cut[:-1]
        last = None
    else:
        last = new_messages[-1].ordinal
    grouped = _add_following(_group_exchanges(database, cut, context), texts)
    return list(_add_messages(grouped, new_messages, mark, last)) or None


def _group_exchanges(
    database: Database, cut: Sequence[Segment], context: CurationContext
) -> list[Segment]:
    """Join short exchanges of one event; no group crosses an event boundary."""
    # The beginning of an exchange states its topic.
    turns = ["\n".join(one.text[:TURN_CHARS] for one in each.messages[:2]) for each in cut]
    embed = partial(_turn_vectors, database, cut, context) if context.embedder.dimension else None
    grouped: list[Segment] = []
    is_chat = context.summarizer.identity != "offline"
    most = MAX_CHAT_GROUP_TOKENS if is_chat else MAX_GROUP_TOKENS
    for event in segments.split_events(turns, embed):
        first = len(grouped)
        for exchange in (cut[place] for place in event):
            if len(grouped) > first and grouped[-1].tokens + exchange.tokens <= most:
                joined = (*grouped[-1].messages, *exchange.messages)
                grouped[-1] = replace(grouped[-1], messages=joined)
            else:
                grouped.append(exchange)
    return grouped


def _turn_vectors(
    database: Database, cut: Sequence[Segment], context: CurationContext, turns: Sequence[str]
) -> Scores:
    """Return a vector for the beginning of each exchange, embedding only what has none stored."""
    begun = [[one.id for one in exchange.messages[:2]] for exchange in cut]
    rows = np.zeros((len(cut), context.embedder.dimension), np.float32)
    with database.read() as db:
        embedder_n = vectors.find_embedder(db, context.embedder.identity)
        numbers = items.numbers_of(db, [id_ for ids in begun for id_ in ids])
        for place, ids in enumerate(begun):
            ns = np.array([numbers[id_] for id_ in ids if id_ in numbers], np.int64)
            stored = vectors.load(db, embedder_n, ns, context.embedder.dimension)
            rows[place] = stored.sum(axis=0)
    lengths = np.linalg.norm(rows, axis=1)
    rows[lengths > 0] /= lengths[lengths > 0, None]
    missing = np.flatnonzero(lengths == 0)
    if len(missing):
        rows[missing] = context.embedder.embed([turns[place] for place in missing.tolist()])
    return rows


def _add_following(grouped: Sequence[Segment], texts: Sequence[MessageText]) -> list[Segment]:
    """Add to each exchange the messages that follow it, uncurated ones included."""
    extended: list[Segment] = []
    end = 0
    for exchange in grouped:
        end += len(exchange.messages)
        extended.append(replace(exchange, later=tuple(texts[end : end + LOOK_AHEAD])))
    return extended


def _add_messages(
    grouped: Sequence[Segment], page: Sequence[Message], mark: int, last: int | None
) -> Iterator[PendingExchange]:
    """Add to each exchange its messages, empty ones included, so that the marks have no gaps."""
    start = 0
    for place, exchange in enumerate(grouped):
        end = exchange.messages[-1].ordinal
        if place == len(grouped) - 1 and last is not None:
            end = last
        stop = start
        while stop < len(page) and page[stop].ordinal <= end:
            stop += 1
        yield mark, exchange, list(page[start:stop])
        mark, start = end, stop
    if not grouped and last is not None:
        yield mark, Segment(page[0].session_id, ()), list(page)


def _curate_exchange(
    database: Database,
    session_n: int,
    pending: PendingExchange,
    quotes: QuoteDetector,
    context: CurationContext,
    recorder: StepRecorder,
) -> CurationResult | None:
    """Curate one exchange; None if another process has done it meanwhile."""
    mark, exchange, read = pending
    pasted_stems: frozenset[str] | None = None
    if context.summarizer.identity != "offline":
        exchange = chat_context.add_context(database, session_n, exchange, context)
        pasted_stems = find_pasted_stems(exchange)
    elif exchange.messages:
        exchange = chat_context.add_earlier(database, session_n, exchange)
    extracts = context.summarizer.extract(exchange) if exchange.messages else []
    drafts, dropped = build_drafts(extracts, exchange, read, quotes, context)
    embedder_n = _ensure_embedder(database, context) if drafts else None
    with database.read() as db:
        project_n = sessions.project_of_session(db, session_n)
        seq = vectors.newest_seq(db)
    near = [placement.find_neighbours(context.nearest, draft.vector, project_n) for draft in drafts]
    dimension, now = context.embedder.dimension, database.now()
    id_ = exchange.session_id
    place = ExchangeContext(
        session_n, project_n, embedder_n, dimension, seq, now, id_, pasted_stems
    )
    times = {message.id: message.created_at for message in read}

    def work(db: Connection) -> CurationResult | None:
        if distillations.curated_up_to(db, session_n) != mark:
            return None
        adopted = vectors.find_active_identity(db) in (None, context.embedder.identity)
        here = place if adopted else replace(place, embedder_n=None)
        writer = DraftWriter(db, here, recorder)
        writer.store(drafts, near, times)
        distillations.mark_curated(db, session_n, read[-1].ordinal, now=place.now)
        downgraded = sum(one.downgraded for one in drafts)
        return writer.result + CurationResult(exchanges=1, dropped=dropped, downgraded=downgraded)

    return database.write(work)


def _ensure_embedder(database: Database, context: CurationContext) -> int | None:
    identity, dimension = context.embedder.identity, context.embedder.dimension
    if not dimension:
        return None
    with database.read() as db:
        embedder_n = vectors.find_embedder(db, identity)
    if embedder_n is not None:
        return embedder_n
    return database.write(lambda db: vectors.ensure_embedder(db, identity, dimension))
