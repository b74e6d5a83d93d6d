"""Answering: from ranked candidates to hits within a budget, with the reasons for each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from lore import clock
from lore.errors import InvalidInput
from lore.recall import features, presenting
from lore.recall.choosing import Chosen, Limits
from lore.recall.pool import Bounds
from lore.recall.question import Question, parse
from lore.recall.ranking import (
    EXACT,
    FEW,
    IN_TIME,
    KNOWLEDGE,
    LATEST,
    OWN,
    RECENT,
    RECENT_HALVES_DAYS,
    REPLACED,
    SAME_SESSION,
    SOLE,
    TOGETHER,
    Ranked,
    rank,
)
from lore.recall.sources import Sources
from lore.records import ITEM_TYPES, SCOPES, Answer, Fate, Hit, ItemType, Scope
from lore.relevance import BELIEVED, VISIBLE
from lore.store import fragments, items, replaced, sessions
from lore.store import standing as instructions
from lore.store.db import Connection
from lore.text import tokens

FEWEST = 3
"""So many hits are given even where they cost more than the budget."""

LOG_SHARE = 0.2
"""So much of a budget is for log lines: where an agent works, dozens of its messages share the
words of a question and say nothing, and a log skips those. (From 0.15 to 0.4 the same evidence of
coding sessions is found; on BEAM 0.2 to 0.25 is best, 0.4 is worse than none.)"""

WEAK = 8.0
"""A hit that scores so much less than the best is noise: at e⁻⁸ of its odds."""

UNRELATED = 0.2
"""A text that shares no word with the question, whose meaning is no nearer than this and that
stands beside none that is nearer, has nothing to do with it."""

FITTING, FITTING_WORDS = 0.5, 0.2
"""What the hits must reach for a question to count as answered: the nearest in meaning plus the
largest share of the question's words, or that share alone where there are no vectors. Of 156
questions of LoCoMo and BEAM asked of their own conversations none is below; of 300 asked of
another data set's 254 are, and all of 120 made of words that do not exist. At 0.6 one of the 156
would be lost, for 286 of the 300."""

_JUDGED = 15
"""So many of the best hits are looked at for that: as many as are shown by default."""

_MOST = 1_000


@dataclass(frozen=True, slots=True)
class Request:
    """What a recall asks for."""

    query: str
    now: datetime
    scope: Scope = "all"
    session: str = ""
    project: str = ""
    limit: int = 15
    budget_tokens: int = 1_500
    recipe: str = "learned"
    explain: bool = False
    why_not: tuple[str, ...] = ()
    trusted_only: bool = False
    types: tuple[ItemType, ...] = ITEM_TYPES


def recall(sources: Sources, request: Request) -> Answer:
    """Answer a question from messages, distillations and fragments, best first."""
    if not 1 <= request.limit <= _MOST:
        msg = f"A recall returns between 1 and {_MOST} hits."
        raise InvalidInput(msg)
    if request.budget_tokens < 1:
        msg = "A budget has at least one token."
        raise InvalidInput(msg)
    question = parse(request.query, request.now)
    with sources.database.read() as db:
        bounds, session_n = _bounds(db, request)
        ranked = rank(sources, db, question, bounds, request.recipe)
        ranked = with_policy(aware_of_time(db, ranked), question, session_n, request.now)
        order = worth_showing(ranked)
        chosen = presenting.present(
            db,
            question,
            ranked,
            order,
            limits=Limits(
                request.limit,
                request.budget_tokens,
                FEWEST,
                request.trusted_only,
                log_share=LOG_SHARE,
            ),
            explain=request.explain,
        )
        fates = tuple(_fate(db, id_, ranked, order, chosen) for id_ in request.why_not)
        at_hand: tuple[Hit, ...] = ()
        if request.scope != "knowledge":
            project_n = bounds.project_n
            if project_n is None and session_n is not None:
                project_n = sessions.project_number(db, session_n)
            at_hand = fit_standing(sources, question, instructions.newest(db, project_n), db)
    return Answer(
        question=question.text,
        hits=chosen.hits,
        standing=at_hand,
        tokens=sum(hit.tokens for hit in chosen.hits) + sum(hit.tokens for hit in at_hand),
        considered=ranked.pool.considered,
        fates=fates,
        relevant=bool(chosen.hits) and _fits(sources, question, ranked, order[:_JUDGED]),
    )


def _bounds(db: Connection, request: Request) -> tuple[Bounds, int | None]:
    """Return where to look, and the session that asks."""
    if request.scope not in SCOPES:
        msg = f"'{request.scope}' is no scope."
        raise InvalidInput(msg, hint=f"Scopes: {', '.join(SCOPES)}.")
    session_n = sessions.get_number(db, request.session) if request.session else None
    project_n = sessions.get_project(db, request.project) if request.project else None
    if request.scope == "session" and session_n is None:
        msg = "The scope 'session' needs a session."
        raise InvalidInput(msg)
    if request.scope == "project" and project_n is None and session_n is not None:
        project_n = sessions.project_number(db, session_n)
    if request.scope == "project" and project_n is None:
        msg = "The scope 'project' needs a project."
        raise InvalidInput(msg)
    types = ("fragment",) if request.scope == "knowledge" else request.types
    within = session_n if request.scope == "session" else None
    return Bounds(project_n, within, types, request.trusted_only), session_n


def aware_of_time(db: Connection, ranked: Ranked) -> Ranked:
    """Mark the messages that a newer fragment has put out of date, or the person took back."""
    rows = ranked.pool.rows
    session_ns = sorted(set(rows.sessions.tolist()) - {0})
    out_of_date = replaced.messages_among(db, rows.ns.tolist(), session_ns) if session_ns else set()
    out_of_date |= instructions.taken_back(db, rows.ns.tolist())
    if not out_of_date:
        return ranked
    mask = np.isin(rows.ns, sorted(out_of_date)).astype(float)
    return replace(ranked, features={**ranked.features, "replaced": mask})


def with_policy(ranked: Ranked, question: Question, session_n: int | None, now: datetime) -> Ranked:
    """Prefer this session, knowledge to raw text, the new to the old, the time asked for."""
    rows = ranked.pool.rows
    scale = 1.0 if ranked.recipe == "learned" else float(ranked.scores.std() or 0.0)
    bonus = KNOWLEDGE * (rows.types == items.type_number("fragment")).astype(float)
    if session_n is not None:
        bonus += SAME_SESSION * (rows.sessions == session_n)
    few = max(0.0, 1.0 - len(rows.ns) / FEW)
    covered = ranked.features.get("covered", np.zeros(len(rows.ns)))
    bonus += few * OWN * (covered + np.maximum(ranked.pool.cosine, 0.0))
    nothing = np.zeros(len(rows.ns))
    bonus += TOGETHER * ranked.features.get("together", nothing)
    bonus += SOLE * ranked.features.get("sole", nothing)
    if question.asks_now:
        bonus += LATEST * _lateness(covered, rows.created_at)
    bonus += EXACT * ranked.features.get("exact", nothing)
    bonus -= REPLACED * ranked.features.get("replaced", nothing)
    age_days = (clock.to_us(now) - rows.created_at) / 8.64e10
    bonus += RECENT * np.exp2(-np.maximum(age_days, 0.0) / RECENT_HALVES_DAYS)
    spelled_out = question.months or question.years
    if question.spans and not (spelled_out and ranked.profile == "people"):
        bonus += IN_TIME * features.within(question.spans, rows.created_at)
    return replace(ranked, scores=ranked.scores + scale * bonus, bonus=scale * bonus)


def _lateness(covered: np.ndarray, created_at: np.ndarray) -> np.ndarray:
    """Return 0 for the oldest to 1 for the newest of those that have most of the words."""
    late = np.zeros(len(covered))
    fitting = np.flatnonzero((covered > 0) & (covered >= 0.5 * covered.max(initial=0.0)))
    order = fitting[np.argsort(created_at[fitting], kind="stable")]
    late[order] = np.arange(1, len(order) + 1) / max(1, len(order))
    return late


def worth_showing(ranked: Ranked) -> np.ndarray:
    """Return the places of the candidates, best first, without noise and the weak tail."""
    order = ranked.order()
    near = ranked.features.get("covered_near")
    if near is None:
        return order
    pool = ranked.pool
    beside = ranked.features["cosine_beside"]
    fits = (near > 0) | (beside >= UNRELATED) | (pool.fragment > 0) | (pool.long > 0)
    fits |= pool.log > 0
    fits |= ranked.features["date"] > 0
    order = order[fits[order]]
    return order[: _strong(ranked, order)]


def _fits(sources: Sources, question: Question, ranked: Ranked, best: np.ndarray) -> bool:
    """Tell whether the best candidates have to do with a question, or are only the nearest.

    One that names a time is answered by what was said then, and of one without a word to look
    for nothing can be told; nor where a recipe does not look at words.
    """
    covered = ranked.features.get("covered")
    if covered is None or not question.terms or (ranked.features["date"][best] > 0).any():
        return True
    share = float(covered[best].max(initial=0.0))
    if not sources.embedder.dimension:
        return share >= FITTING_WORDS
    return share + float(ranked.pool.cosine[best].max(initial=0.0)) >= FITTING


def _strong(ranked: Ranked, order: np.ndarray) -> int:
    """Count the hits before the weak tail."""
    if not len(order):
        return 0
    scores = ranked.scores[order]
    return max(FEWEST, int((scores > scores[0] - WEAK).sum()))


def _fate(
    db: Connection,
    id_: str,
    ranked: Ranked,
    order: np.ndarray,
    chosen: Chosen,
) -> Fate:
    """Say what became of one item: found, ranked, cut, or never a candidate."""
    item = items.resolve(db, id_)
    places = np.flatnonzero(ranked.pool.ns == item.n)
    if not len(places):
        return Fate(item.id, None, None, None, None, _why_absent(db, item))
    place = int(places[0])
    pool = ranked.pool
    position = np.flatnonzero(order == place)
    rank_ = int(position[0]) + 1 if len(position) else None
    if item.id in chosen.reasons:
        verdict = chosen.reasons[item.id]
    elif rank_ is None:
        verdict = "a candidate, but so much weaker than the best that it counts as noise"
    else:
        verdict = f"ranked {rank_}, below the last hit that the limit allowed"
    return Fate(
        id=item.id,
        rank=rank_,
        keyword_rank=_rank_or_none(pool.keyword_rank(place)),
        vector_rank=_rank_or_none(pool.cosine_rank[place]),
        score=float(ranked.scores[place]),
        verdict=verdict,
        signals=presenting.signals_of(ranked, place),
    )


def _why_absent(db: Connection, item: items.Item) -> str:
    """Say why an item was not even a candidate."""
    if item.type == "fragment":
        fragment = fragments.get(db, item.n)
        if fragments.is_deleted(db, item.n):
            return "deleted: 'lore undo' brings it back"
        if fragment.superseded_by:
            return f"superseded by {fragment.superseded_by}"
        if fragment.relevance < VISIBLE:
            return f"faded: its relevance is {fragment.relevance:.3f}"
        if fragment.confidence <= BELIEVED:
            return f"doubted: its confidence is {fragment.confidence:.2f}"
    return "no candidate: neither its words nor its meaning are near, or it is out of bounds"


def _rank_or_none(value: float) -> int | None:
    return int(value) + 1 if value < 1e8 else None


def standing(sources: Sources, project: str, question: str = "") -> list[Hit]:
    """Return the standing instructions of a project, those near a question first."""
    with sources.database.read() as db:
        project_n = sessions.get_project(db, project) if project else None
        asked = parse(question, sources.database.now()) if question else None
        found = instructions.newest(db, project_n, everywhere=not project)
        return list(fit_standing(sources, asked, found, db))


def fit_standing(
    sources: Sources,
    question: Question | None,
    found: list[instructions.Standing],
    db: Connection,
) -> tuple[Hit, ...]:
    """Fit the instructions into their own budget: near the question first, else newest."""
    if question and found:
        query = sources.embed_query(question.core)
        near = sources.cosines(query, np.array([entry.item_n for entry in found], np.int64))
        found = [found[place] for place in np.argsort(-near, kind="stable")]
    budget = sources.settings.recall_standing_tokens
    fitting = []
    for entry in found:
        size = tokens.count(entry.text)
        if size <= budget:
            budget -= size
            fitting.append((entry, size))
    ids = items.ids_of(db, [entry.item_n for entry, _ in fitting])
    hits: dict[str, Hit] = {}
    for entry, size in fitting:
        id_ = ids[entry.item_n]
        hits[f"{id_}:{entry.text}"] = Hit(
            id=id_,
            type="fragment" if entry.fragment_origin else "message",
            text=entry.text,
            title="",
            score=0.0,
            why="a preference" if entry.fragment_origin else "a standing instruction",
            created_at=clock.from_us(entry.created_at),
            tokens=size,
            kind="preference" if entry.fragment_origin else "",
            role="" if entry.fragment_origin else "user",
            session_id=entry.session_id or "",
            project_id=entry.project_id or "",
            origin=entry.fragment_origin or "user",
        )
    return tuple(hits.values())


def with_notice(answer: Answer, notice: str) -> Answer:
    """Return the answer with a word about what is degraded."""
    return replace(answer, notice=notice) if notice else answer
