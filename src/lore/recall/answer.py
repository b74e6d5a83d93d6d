"""Answer a question: rank the candidates and return the hits that fit the token budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest

import numpy as np

from lore import clock, telemetry
from lore.errors import InvalidInput
from lore.lazy_dataclass import dataclass
from lore.recall import confidence, presentation, time_spans
from lore.recall.candidates import Bounds
from lore.recall.features import FEW
from lore.recall.hit_selection import Limits, Selection, describe_shown
from lore.recall.outdated import find_successors, put_successors_first
from lore.recall.question import Question, check_limit, parse
from lore.recall.ranking import FEWEST, Ranked, apply_policy, rank, select_relevant
from lore.recall.sources import Sources
from lore.records import (
    FRAGMENT_KINDS,
    ITEM_TYPES,
    SCOPES,
    Answer,
    Hit,
    ItemType,
    RecallTrace,
    Scope,
    StandingInstruction,
)
from lore.relevance import BELIEVED, VISIBLE
from lore.store import fragments, items, project_rows, sessions
from lore.store import standing_instructions as instructions
from lore.store.candidate_rows import ItemFilter, filter_items
from lore.store.database import Connection
from lore.text import tokens
from lore.validation import check_origin

LOG_SHARE = 0.2
"""Share of the token budget that is reserved for distillation lines: dozens of an agent's messages
share the words of a question and say nothing, and a distillation skips those. (From 0.15 to 0.4 the
same evidence of coding sessions is found; on BEAM 0.2 to 0.25 is best, 0.4 is worse than none.)"""


RELEVANT, RELEVANT_WORDS = 0.45, 0.2
"""Threshold for a question to count as answered in a small memory: the best cosine plus the largest
share of the question's words, or that share alone where there are no vectors. (It was 0.5 with
all-MiniLM-L6-v2, whose cosines are some 0.1 higher: none of 156 questions was below then, and 254
of 300 asked of another data set.)"""

_STANDING_PAGE = 16

_HITS_JUDGED = 15
"""The best hits that this is computed from: as many as are shown by default."""


@dataclass(frozen=True, slots=True)
class Request:
    """The parameters of a recall."""

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
    since: str = ""
    until: str = ""
    agent: str = ""
    kind: str = ""
    origin: str = ""
    under: str = ""


def recall(sources: Sources, request: Request) -> Answer:
    """Answer a question from messages, distillations and fragments, best first."""
    check_limit(request.limit)
    if request.budget_tokens < 1:
        msg = f"The token budget must be at least 1, not {request.budget_tokens}."
        raise InvalidInput(msg)
    with telemetry.span("parse"):
        question = parse(request.query, request.now)
    with sources.database.read() as db:
        bounds, session_n = _bounds(db, request)
        own = _OwnAnswer()
        if session_n is not None and bounds.session_n is None:
            own = _find_own(sources, db, question, request, bounds, session_n)
        ranked = rank(sources, db, question, bounds, request.recipe)
        ranked = apply_policy(db, ranked, question, session_n, request.now)
        order = select_relevant(ranked)
        limits = Limits(
            request.limit, request.budget_tokens, FEWEST, request.trusted_only, LOG_SHARE
        )
        with telemetry.span("present"):
            selection = presentation.present(
                db, question, ranked, _without(db, ranked, order, own.hits),
                limits=_room_beside(own.hits, limits), explain=request.explain, among=bounds.ns,
            )  # fmt: skip
        likely, relevant = _judge(sources, question, ranked, order[:_HITS_JUDGED])
        is_first = own.confidence >= OWN_FIRST * likely
        hits = _merge(own.hits, selection.hits, alternate=is_first)
        if bounds.ns is None and "message" in bounds.types:
            hits = put_successors_first(db, hits, limits, adds=bounds.session_n is None)
        selection = replace(selection, reasons=selection.reasons | describe_shown(hits))
        fates = tuple(_fate(db, id_, ranked, order, selection) for id_ in request.why_not)
        standing_hits: tuple[Hit, ...] = ()
        if request.scope != "knowledge":
            project_n = bounds.project_n
            if project_n is None and session_n is not None:
                project_n = sessions.project_of_session(db, session_n)
            standing_hits = fit_standing_instructions(
                sources, question, instructions.current_sizes(db, project_n), db
            )
    likely, relevant = max(likely, own.confidence), relevant or own.relevant
    return Answer(
        question=question.text,
        hits=hits,
        standing=standing_hits,
        tokens=sum(hit.tokens for hit in hits) + sum(hit.tokens for hit in standing_hits),
        considered=ranked.pool.considered,
        fates=fates,
        relevant=bool(hits) and relevant,
        confidence=likely if hits else 0.0,
    )


OWN_SHARE = 0.4
"""Share of an answer for the session that asks. Asked in a memory of a whole project, 111 questions
about a long session have their evidence in 92 % of the answers (78 % without a share), 120 about
other sessions in 90 % (93 %). It was chosen on 95 of these questions, of one of two projects."""

OWN_FIRST = 0.6
"""Hits of the session that asks alternate with the others if it answers at least this many times as
likely as the whole memory; else they come last."""


@dataclass(frozen=True, slots=True)
class _OwnAnswer:
    """What the session that asks says about a question."""

    hits: tuple[Hit, ...] = ()
    confidence: float = 0.0
    relevant: bool = False


def _find_own(
    sources: Sources,
    db: Connection,
    question: Question,
    request: Request,
    bounds: Bounds,
    session_n: int,
) -> _OwnAnswer:
    """Return the best hits of the session that asks, as many as its share of the answer has room.

    They are ranked among themselves: beside those of all sessions they look too much alike.
    """
    limit = int(OWN_SHARE * request.limit)
    if not limit or "message" not in bounds.types:
        return _OwnAnswer()
    own_bounds = replace(bounds, session_n=session_n)
    ranked = rank(sources, db, question, own_bounds, request.recipe)
    ranked = apply_policy(db, ranked, question, None, request.now)
    order = select_relevant(ranked)
    likely, relevant = _judge(sources, question, ranked, order[:_HITS_JUDGED])
    if not relevant:
        return _OwnAnswer()
    tokens_ = int(OWN_SHARE * request.budget_tokens)
    limits = Limits(limit, tokens_, 1, request.trusted_only, LOG_SHARE)
    selection = presentation.present(
        db, question, ranked, order, limits=limits, explain=request.explain, among=bounds.ns
    )
    return _OwnAnswer(selection.hits, likely, relevant)


def _without(db: Connection, ranked: Ranked, order: np.ndarray, hits: Sequence[Hit]) -> np.ndarray:
    """Return candidates without those that some hits already show."""
    if not hits:
        return order
    ids = {id_ for hit in hits for id_ in (hit.id, hit.question_id, *hit.same) if id_}
    shown = [n for id_ in ids if (n := items.find_number(db, id_)) is not None]
    return order[~np.isin(ranked.pool.ns[order], shown)]


def _room_beside(hits: Sequence[Hit], limits: Limits) -> Limits:
    """Return what is left of the limits beside some hits."""
    spent = sum(hit.tokens for hit in hits)
    fewest = max(0, limits.fewest - len(hits))
    return replace(
        limits, hits=limits.hits - len(hits), tokens=max(1, limits.tokens - spent), fewest=fewest
    )


def _merge(own: Sequence[Hit], others: Sequence[Hit], *, alternate: bool) -> tuple[Hit, ...]:
    """Return two lists as one without duplicates: in turn, or the others first."""
    pairs = zip_longest(own, others) if alternate else [(*others, *own)]
    hits = (hit for pair in pairs for hit in pair if hit is not None)
    unique: dict[str, Hit] = {}
    for hit in hits:
        unique.setdefault(hit.id, hit)
    return tuple(unique.values())


def _bounds(db: Connection, request: Request) -> tuple[Bounds, int | None]:
    """Return the candidate filter, and the number of the session that asks."""
    if request.scope not in SCOPES:
        msg = f"'{request.scope}' is not a scope."
        raise InvalidInput(msg, hint=f"Scopes: {', '.join(SCOPES)}.")
    session_n = sessions.get_session_number(db, request.session) if request.session else None
    project_n = project_rows.get_project(db, request.project) if request.project else None
    if request.scope == "session" and session_n is None:
        msg = "The scope 'session' needs a session; pass its id."
        raise InvalidInput(msg)
    if request.scope == "project" and project_n is None and session_n is not None:
        project_n = sessions.project_of_session(db, session_n)
    if request.scope == "project" and project_n is None:
        msg = "The scope 'project' needs a project; pass its name or a session of it."
        raise InvalidInput(msg)
    types = ("fragment",) if request.scope == "knowledge" else request.types
    within = session_n if request.scope == "session" else None
    if request.kind:
        types = tuple(one for one in types if one == _type_of(request.kind))
    if request.under:
        types = tuple(one for one in types if one == "fragment")
    criteria = _filter(db, request)
    ns = None
    if any(value not in (None, "") for value in criteria):
        ns = filter_items(db, criteria, project_n=project_n, session_n=within)
    return Bounds(project_n, within, types, request.trusted_only, ns=ns), session_n


def _type_of(kind: str) -> str:
    """Return the type of the items that have a kind; a type counts as a kind of its own."""
    if kind in FRAGMENT_KINDS:
        return "fragment"
    if kind in ITEM_TYPES:
        return kind
    msg = f"'{kind}' is not a kind of item."
    raise InvalidInput(msg, hint=f"Kinds: {', '.join((*ITEM_TYPES, *FRAGMENT_KINDS))}.")


def _filter(db: Connection, request: Request) -> ItemFilter:
    since, until = (
        clock.to_us(time_spans.since(text, request.now)) if text else None
        for text in (request.since, request.until)
    )
    kind = request.kind if request.kind in FRAGMENT_KINDS else ""
    if request.origin:
        check_origin(request.origin)
    top_n = items.resolve(db, request.under, type="fragment").n if request.under else None
    return ItemFilter(since, until, request.agent, kind, request.origin, top_n)


def _judge(
    sources: Sources, question: Question, ranked: Ranked, best: np.ndarray
) -> tuple[float, bool]:
    """Return the probability that the best candidates answer, and whether any seems to.

    The model knows memories of some size that have vectors; elsewhere words and cosines decide.
    """
    fits = _is_relevant(sources, question, ranked, best)
    if ranked.model is None or ranked.bonus is None or not len(ranked.scores):
        return float(fits), fits
    model = confidence.load_confidence()
    likely = model.probability(ranked.scores - ranked.bonus, ranked.features)
    none = model.threshold(ranked.features)
    if len(ranked.scores) < FEW or not ranked.pool.cosine.any():
        return max(likely, 0.5) if fits else min(likely, none), fits
    asks_time = bool((ranked.features["date"][best] > 0).any())
    return likely, likely >= none or asks_time


def _is_relevant(sources: Sources, question: Question, ranked: Ranked, best: np.ndarray) -> bool:
    """Return whether the best candidates have to do with the question or are only the nearest.

    A question that names a time is answered by what was said then. Without terms, or with a recipe
    that ignores words, nothing can be decided: True.
    """
    covered = ranked.features.get("covered")
    if covered is None or not question.terms or (ranked.features["date"][best] > 0).any():
        return True
    share = float(covered[best].max(initial=0.0))
    if not sources.embedder.dimension:
        return share >= RELEVANT_WORDS
    return share + float(ranked.pool.cosine[best].max(initial=0.0)) >= RELEVANT


def _fate(
    db: Connection, id_: str, ranked: Ranked, order: np.ndarray, selection: Selection
) -> RecallTrace:
    """Return what became of one item: shown, ranked, cut, or never a candidate."""
    item = items.resolve(db, id_)
    places = np.flatnonzero(ranked.pool.ns == item.n)
    if not len(places):
        verdict = selection.reasons.get(item.id) or _why_absent(db, item)
        return RecallTrace(item.id, None, None, None, None, verdict)
    place = int(places[0])
    pool = ranked.pool
    position = np.flatnonzero(order == place)
    rank_ = int(position[0]) + 1 if len(position) else None
    if item.id in selection.reasons:
        verdict = selection.reasons[item.id]
    elif rank_ is None:
        verdict = "a candidate, but too weak beside the best to be more than noise"
    else:
        verdict = f"ranked {rank_}, below the last hit that the limit allowed"
    return RecallTrace(
        id=item.id,
        rank=rank_,
        keyword_rank=pool.keyword_rank(place),
        vector_rank=pool.vector_rank(place),
        score=float(ranked.scores[place]),
        verdict=verdict,
        signals=presentation.signals_of(ranked, place),
    )


def _why_absent(db: Connection, item: items.Item) -> str:
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


def put_first(answer: Answer, first: Sequence[Hit], request: Request) -> Answer:
    """Return an answer with other hits first, within the limits of the request."""
    ids = {hit.id for hit in first}
    merged = [*first, *(hit for hit in answer.hits if hit.id not in ids and not ids & {*hit.same})]
    hits: list[Hit] = []
    left = request.budget_tokens
    for hit in merged[: request.limit]:
        left -= hit.tokens
        if hits and left < 0:
            break
        hits.append(hit)
    standing = sum(hit.tokens for hit in answer.standing)
    return replace(
        answer,
        hits=tuple(hits),
        tokens=sum(hit.tokens for hit in hits) + standing,
        relevant=answer.relevant or bool(first),
    )


def list_standing(sources: Sources, project: str, question: str = "") -> list[Hit]:
    """Return the standing instructions of a project, those nearest to a question first."""
    with sources.database.read() as db:
        project_n = project_rows.get_project(db, project) if project else None
        parsed = parse(question, sources.database.now()) if question else None
        newest = instructions.current_sizes(db, project_n, everywhere=not project)
        return list(fit_standing_instructions(sources, parsed, newest, db))


def list_instructions(
    sources: Sources, project: str, *, rejected: bool = False
) -> list[StandingInstruction]:
    """Return the standing instructions of a project, then the suggested ones; or rejected ones."""
    with sources.database.read() as db:
        project_n = project_rows.get_project(db, project) if project else None
        if rejected:
            listed = instructions.rejected(db, project_n, everywhere=not project)
        else:
            listed = instructions.current_instructions(db, project_n, everywhere=not project)
            listed += instructions.current_suggestions(db, project_n, everywhere=not project)
        return describe_instructions(db, listed)


def describe_instructions(
    db: Connection, listed: Sequence[instructions.Instruction]
) -> list[StandingInstruction]:
    """Return stored instructions as records."""
    item_ns = [one.item_n for one in listed]
    ids, successors = items.ids_of(db, item_ns), find_successors(db, item_ns)
    return [
        StandingInstruction(
            id=ids[one.item_n],
            number=one.n,
            text=one.text,
            state="stands" if one.state == "passing" else one.state,
            created_at=clock.from_us(one.created_at),
            type="fragment" if one.fragment_origin else "message",
            project_id=one.project_id or "",
            session_id=one.session_id or "",
            replaced=successors.get(one.item_n),
        )
        for one in listed
    ]


def fit_standing_instructions(
    sources: Sources,
    question: Question | None,
    sizes: list[instructions.InstructionSize],
    db: Connection,
) -> tuple[Hit, ...]:
    """Fit the instructions into their own token budget: nearest to the question first, else
    newest."""
    if question and sizes:
        query = sources.embed_query(question.core)
        near = sources.cosines(query, np.array([one.item_n for one in sizes], np.int64))
        sizes = [sizes[place] for place in np.argsort(-near, kind="stable")]
    fitting = _select_fitting(db, sizes, sources.settings.recall_standing_tokens)
    item_ns = [entry.item_n for entry, _ in fitting]
    ids, successors = items.ids_of(db, item_ns), find_successors(db, item_ns)
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
            replaced=successors.get(entry.item_n),
        )
    return tuple(hits.values())


def _select_fitting(
    db: Connection, sizes: list[instructions.InstructionSize], budget: int
) -> list[tuple[instructions.Instruction, int]]:
    """Return the instructions that fit into a budget, in their order, with their token counts.

    Their texts are loaded page by page: most are too long once the budget is nearly spent.
    """
    fitting: list[tuple[instructions.Instruction, int]] = []
    rest = sizes
    while True:
        most_chars = (budget + 1) / tokens.TOKENS_PER_CHAR
        waiting = [one for one in rest if one.chars <= most_chars]
        if not waiting:
            return fitting
        page, rest = waiting[:_STANDING_PAGE], waiting[_STANDING_PAGE:]
        for entry in instructions.load(db, [one.n for one in page]):
            size = tokens.count(entry.text)
            if size <= budget:
                budget -= size
                fitting.append((entry, size))
