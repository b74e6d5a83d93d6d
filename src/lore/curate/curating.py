"""Curating a session: what is new in it becomes knowledge, exchange by exchange.

Reading and embedding happen before the transaction that stores an exchange with its progress
mark. A mark that another process moved meanwhile means that the exchange is done: nothing is
stored twice, and after a kill the work goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import numpy as np

from lore.curate import drafting, events, exchanges, nearness
from lore.curate.drafting import Voices
from lore.curate.keeping import Keeper, Place
from lore.curate.means import CurationMeans, Scores
from lore.records import Curated, Message, Said, Segment
from lore.store import curation, items, messages, sessions, vectors
from lore.store.db import Connection, Database
from lore.store.steps import Watch, unwatched
from lore.text import saying

IDLE_S = 300.0
"""A session that was silent for so long is curated; from the specification."""

TURNS = 20
"""One that goes on is curated after so many requests, but for its last exchange."""

READ_TOGETHER_TOKENS = 1_024
"""Short exchanges of one event are read together up to this size."""

TURN_CHARS = 240
"""Of a request and of the answer, so much is compared to find where a session turns."""

LOOK_AHEAD = 60
"""Messages after an exchange that are shown with it: what is said is soon repaired or denied."""

PAGE = 4_000
"""Messages that are looked at together: events of a longer session are cut page by page."""

Progress = Callable[[int, int], None]


def due(db: Connection, *, now: datetime, idle_s: float = IDLE_S, turns: int = TURNS) -> list[str]:
    """Return the ids of the sessions to curate now, those that fell silent first in front."""
    return curation.due(db, idle_since=now - timedelta(seconds=idle_s), turns=turns)


def curate(
    database: Database,
    session: str,
    means: CurationMeans,
    *,
    idle_s: float = 0.0,
    watch: Watch = unwatched,
    progress: Progress | None = None,
) -> Curated:
    """Make knowledge of what is new in a session and return what it brought.

    While a session was not silent for `idle_s` its last exchange is left for later: it may go
    on. Without that nothing is left.
    """
    with database.read() as db:
        session_n = sessions.get_number(db, session)
        result = Curated(sessions.get(db, session_n).id)
        before = max(0, curation.find_mark(db, session_n) + 1 - drafting.HEARD)
        voices = drafting.Voices()
        voices.hear(messages.of_session(db, session_n, first=before, limit=drafting.HEARD))
    while (page := _page(database, session_n, means, idle_s=idle_s)) is not None:
        for done, told in enumerate(page):
            voices.hear(told[-1])
            brought = _curate_one(database, session_n, told, voices, means, watch)
            if brought is None:
                break
            result += brought
            if progress:
                progress(done + 1, len(page))
        else:
            continue
        break
    return result


Read = tuple[int, Segment, list[Message]]
"""An exchange, the mark that must stand before it, and its messages."""


def _page(
    database: Database, session_n: int, means: CurationMeans, *, idle_s: float
) -> list[Read] | None:
    """Return the next exchanges of a session in order; None if there is nothing new."""
    with database.read() as db:
        mark = curation.find_mark(db, session_n)
        found = messages.of_session(db, session_n, first=mark + 1, limit=PAGE)
        session = sessions.get(db, session_n)
    if not found:
        return None
    whole = len(found) < PAGE
    said = [one for one in saying.said_of(found, saying.FOR_KNOWLEDGE) if one.text]
    cut = exchanges.exchanges(found[0].session_id, said, title=session.title)
    silent_since = database.now() - timedelta(seconds=idle_s)
    is_idle = not idle_s or session.last_message_at <= silent_since
    goes_on = not whole and len(cut) > 1
    if goes_on or (whole and not is_idle):
        cut = cut[:-1]
        last = None
    else:
        last = found[-1].ordinal
    grouped = _looking_ahead(_grouped(database, cut, means), said)
    pages = list(_with_messages(grouped, found, mark, last))
    return pages or None


def _grouped(database: Database, cut: Sequence[Segment], means: CurationMeans) -> list[Segment]:
    """Put short exchanges of one event together; no group reaches over a boundary."""
    turns = [_begun(exchange) for exchange in cut]
    embed = partial(_turn_vectors, database, cut, means) if means.embedder.dimension else None
    grouped: list[Segment] = []
    for event in events.split(turns, embed):
        run: list[Segment] = []
        for exchange in (cut[place] for place in event):
            if run and sum(e.tokens for e in run) + exchange.tokens > READ_TOGETHER_TOKENS:
                grouped.append(_joined(run))
                run = []
            run.append(exchange)
        if run:
            grouped.append(_joined(run))
    return grouped


def _turn_vectors(
    database: Database, cut: Sequence[Segment], means: CurationMeans, turns: Sequence[str]
) -> Scores:
    """Return a vector of how each exchange begins; only where none is stored is it embedded."""
    begun = [[one.id for one in exchange.said[:2]] for exchange in cut]
    rows = np.zeros((len(cut), means.embedder.dimension), np.float32)
    with database.read() as db:
        if vectors.find_adopted(db) == means.embedder.identity:
            known = items.numbers_of(db, [id_ for ids in begun for id_ in ids])
            for place, ids in enumerate(begun):
                ns = np.array([known[id_] for id_ in ids if id_ in known], np.int64)
                rows[place] = vectors.load(db, ns, means.embedder.dimension).sum(axis=0)
    lengths = np.linalg.norm(rows, axis=1)
    rows[lengths > 0] /= lengths[lengths > 0, None]
    missing = np.flatnonzero(lengths == 0)
    if len(missing):
        rows[missing] = means.embedder.embed([turns[place] for place in missing.tolist()])
    return rows


def _looking_ahead(grouped: Sequence[Segment], said: Sequence[Said]) -> list[Segment]:
    """Give each exchange the messages that follow it, those that wait to be curated included."""
    found: list[Segment] = []
    end = 0
    for exchange in grouped:
        end += len(exchange.said)
        found.append(replace(exchange, later=tuple(said[end : end + LOOK_AHEAD])))
    return found


def _begun(exchange: Segment) -> str:
    """Return how an exchange begins: what it is about stands there."""
    return "\n".join(one.text[:TURN_CHARS] for one in exchange.said[:2])


def _joined(run: Sequence[Segment]) -> Segment:
    said = tuple(one for exchange in run for one in exchange.said)
    return Segment(run[0].session_id, said, run[0].title)


def _with_messages(
    grouped: Sequence[Segment], found: Sequence[Message], mark: int, last: int | None
) -> Iterator[Read]:
    """Give each exchange its messages, those that say nothing included: the marks have no gaps."""
    start = 0
    for place, exchange in enumerate(grouped):
        end = exchange.said[-1].ordinal
        if place == len(grouped) - 1 and last is not None:
            end = last
        stop = start
        while stop < len(found) and found[stop].ordinal <= end:
            stop += 1
        yield mark, exchange, list(found[start:stop])
        mark, start = end, stop
    if not grouped and last is not None:
        yield mark, Segment(found[0].session_id, ()), list(found)


def _curate_one(
    database: Database,
    session_n: int,
    told: Read,
    voices: Voices,
    means: CurationMeans,
    watch: Watch,
) -> Curated | None:
    """Curate one exchange; None if another process has done it meanwhile."""
    mark, exchange, read = told
    extracts = means.digester.extract(exchange) if exchange.said else []
    drafts, dropped = drafting.draft(extracts, exchange, read, voices, means)
    embedder_n = _ensure_embedder(database, means) if drafts else None
    with database.read() as db:
        project_n = sessions.project_number(db, session_n)
        project_id = sessions.get(db, session_n).project_id
        seq = vectors.newest_seq(db)
    near = [nearness.neighbours(means.nearest, draft.vector, project_n) for draft in drafts]
    place = Place(session_n, project_n, project_id, embedder_n, means.embedder.dimension, seq,
                  database.now())  # fmt: skip
    times = {message.id: message.created_at for message in read}

    def work(db: Connection) -> Curated | None:
        if curation.find_mark(db, session_n) != mark:
            return None
        adopted = vectors.find_adopted(db) in (None, means.embedder.identity)
        here = place if adopted else replace(place, embedder_n=None)
        keeper = Keeper(db, here, watch)
        keeper.keep(drafts, near, times)
        curation.advance(db, session_n, read[-1].ordinal, now=place.now)
        downgraded = sum(one.downgraded for one in drafts)
        return keeper.brought + Curated(exchanges=1, dropped=dropped, downgraded=downgraded)

    return database.write(work)


def _ensure_embedder(database: Database, means: CurationMeans) -> int | None:
    embedder = means.embedder
    if not embedder.dimension:
        return None
    with database.read() as db:
        known = vectors.find_embedder(db, embedder.identity)
    ensure = partial(
        vectors.ensure_embedder, identity=embedder.identity, dimension=embedder.dimension
    )
    return known if known is not None else database.write(ensure)
