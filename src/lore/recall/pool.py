"""The pool: candidates of all arms with what ranking needs to know of each, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from lore import clock
from lore.recall import fusion
from lore.recall.question import Question
from lore.recall.sources import Numbers, Sources
from lore.records import NOTE_EDGES, EdgeKind, ItemType
from lore.store import distillations, edges, items, keywords, pooling, trusting
from lore.store.db import Connection
from lore.store.pooling import Rows
from lore.store.vector_index import Where

HEAD, LONG, LOGS, FRAGMENTS, NEAREST = 120, 60, 60, 60, 120
"""Candidates that each arm may bring."""

MORE = 4
"""So many times the nearest are looked at where only the trusted count: others stand between."""

OF_TIME, LONGEST_SPAN = 40, timedelta(days=62)
"""A question about a stretch of time brings along what was said then, if it is a short one."""

EXPANDED = 3
"""The best fragments bring along what they are linked to."""

RANKED, RANKED_LOGS = 100, 40
"""Candidates that are looked at closely; distillations take no place from what they tell."""

SURE = 20
"""The first of each arm are always among those."""

POSTINGS, POSTINGS_PER_ROOT = 1_000, 10
"""Rows that a keyword query may touch: at least the first, or the second times √size. The
commonest words are left out beyond that: they cost most of the time and tell least."""

Floats = NDArray[np.float64]

_NOWHERE = 1e9
_LINKING: tuple[EdgeKind, ...] = ("hierarchical", "associative", *NOTE_EDGES)


@dataclass(frozen=True, slots=True)
class Pool:
    """Candidates as columns; ranks are 0 for the best and huge where an arm has them not."""

    rows: Rows
    head: Floats
    long: Floats
    log: Floats
    fragment: Floats
    cosine: Floats
    head_rank: Floats
    long_rank: Floats
    log_rank: Floats
    fragment_rank: Floats
    cosine_rank: Floats
    base: Floats
    rarity: Floats
    considered: int

    @property
    def ns(self) -> Numbers:
        """Return the numbers of the candidates."""
        return self.rows.ns

    def keyword_rank(self, place: int) -> float:
        """Return the best rank that a candidate has in a keyword table."""
        ranks = (self.head_rank, self.long_rank, self.log_rank, self.fragment_rank)
        return min(float(column[place]) for column in ranks)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where recall may look; what belongs to the sessions `without` is not found."""

    project_n: int | None = None
    session_n: int | None = None
    types: tuple[ItemType, ...] = ("message", "distillation", "fragment")
    trusted_only: bool = False
    without: tuple[int, ...] = ()

    def where(self) -> Where:
        """Return the part of the bounds that the vector index can apply."""
        return Where(
            projects=None if self.project_n is None else (0, self.project_n),
            types=tuple(items.type_number(name) for name in self.types),
            since_us=None,
            until_us=None,
            ns=None,
        )


def gather(
    sources: Sources,
    db: Connection,
    question: Question,
    query: NDArray[np.float32],
    bounds: Bounds,
) -> Pool:
    """Let each arm bring its candidates and keep those worth a closer look."""
    terms, rarity = _weigh(sources, db, question)
    match = question.match(terms)
    arms = {
        "head": _search(db, "message_words", match, HEAD, keywords.MESSAGE_WEIGHTS, bounds),
        "long": _search(db, "long_words", match, LONG, keywords.LONG_WEIGHTS, bounds),
        "log": _search(db, "log_words", match, LOGS, keywords.LOG_WEIGHTS, bounds),
        "fragment": _search(
            db, "fragment_words", match, FRAGMENTS, _fragment_weights(sources), bounds
        ),
    }
    near_ns, near = _nearest(sources, db, query, bounds)
    arms["cosine"] = dict(zip(near_ns.tolist(), near.tolist(), strict=True))
    beside = _linked(db, list(arms["fragment"])[:EXPANDED])
    beside |= _of_time(db, question, bounds)
    together = np.array(sorted({n for arm in arms.values() for n in arm} | beside), np.int64)
    logs = np.isin(together, distillations.among_items(db, together.tolist()))
    told = set(together[logs].tolist())
    ranks = {name: _ranks(arm, told) for name, arm in arms.items()}
    columns = {name: _column(together, arm) for name, arm in arms.items()}
    rank_columns = {name: _column(together, found, _NOWHERE) for name, found in ranks.items()}
    missing = columns["cosine"] == 0
    columns["cosine"][missing] = sources.cosines(query, together[missing])
    base = _base(columns, logs)
    brought = np.zeros(len(together), np.bool_)
    brought[np.searchsorted(together, sorted(beside))] = True
    chosen = _closer_look(base, rank_columns, brought, logs)
    rows = pooling.rows_of(
        db,
        together[chosen],
        project_n=bounds.project_n,
        session_n=bounds.session_n,
        trusted_only=bounds.trusted_only,
        without=bounds.without,
    )
    kept = chosen[np.searchsorted(together[chosen], rows.ns)]
    return Pool(
        rows=rows,
        head=columns["head"][kept],
        long=columns["long"][kept],
        log=columns["log"][kept],
        fragment=columns["fragment"][kept],
        cosine=columns["cosine"][kept],
        head_rank=rank_columns["head"][kept],
        long_rank=rank_columns["long"][kept],
        log_rank=rank_columns["log"][kept],
        fragment_rank=rank_columns["fragment"][kept],
        cosine_rank=rank_columns["cosine"][kept],
        base=base[kept],
        rarity=rarity,
        considered=len(together),
    )


def _weigh(sources: Sources, db: Connection, question: Question) -> tuple[tuple[str, ...], Floats]:
    """Return the words to search for, and how telling each word of the question is."""
    total = max(1, items.highest(db))
    uses = np.array(
        [max(1, sources.count_uses(db, term, total)) for term in question.terms],
        float,
    )
    rarity = np.log1p(np.maximum(0.0, total - uses + 0.5) / (uses + 0.5)).clip(1e-6)
    allowed = max(POSTINGS, POSTINGS_PER_ROOT * total**0.5)
    order = np.argsort(uses, kind="stable")
    affordable = max(2, int((np.cumsum(uses[order]) <= allowed).sum()))
    chosen = sorted(order[:affordable].tolist())
    return tuple(question.terms[place] for place in chosen), rarity


def _fragment_weights(sources: Sources) -> tuple[float, ...]:
    return tuple(float(weight) for weight in sources.settings.search_fts_weights.split(","))


def _search(
    db: Connection,
    table: str,
    match: str,
    limit: int,
    weights: tuple[float, ...],
    bounds: Bounds,
) -> dict[int, float]:
    if _HELD[table] not in bounds.types:
        return {}
    return dict(
        keywords.search(
            db,
            table,
            match,
            limit=limit,
            weights=weights,
            within=keywords.Within(
                bounds.project_n,
                bounds.session_n,
                trusted_only=bounds.trusted_only,
                without=bounds.without,
            ),
        )
    )


_HELD: dict[str, ItemType] = {
    "message_words": "message",
    "long_words": "message",
    "log_words": "distillation",
    "fragment_words": "fragment",
}
"""What each keyword table holds."""


def _linked(db: Connection, ns: list[int]) -> set[int]:
    """Return the fragments that are one edge away from the best ones."""
    found = edges.among_fragments(db, ns, _LINKING)
    return {n for edge in found for n in (edge.source_n, edge.target_n)}


def _of_time(db: Connection, question: Question, bounds: Bounds) -> set[int]:
    """Return what was said in the stretch of time that a question speaks of."""
    types = [items.type_number(name) for name in bounds.types]
    found: set[int] = set()
    for span in question.spans:
        if span.end - span.start <= LONGEST_SPAN:
            start, end = clock.to_us(span.start), clock.to_us(span.end)
            found.update(pooling.of_time(db, start, end, types, limit=OF_TIME))
    return found


def _nearest(
    sources: Sources, db: Connection, query: NDArray[np.float32], bounds: Bounds
) -> tuple[Numbers, NDArray[np.float32]]:
    where = bounds.where()
    if bounds.session_n is not None:
        ns = pooling.of_session(db, bounds.session_n)
        where = Where(None, where.types, None, None, ns)
    wanted = NEAREST
    if "distillation" in bounds.types and distillations.exist(db):
        wanted += RANKED_LOGS
    if not bounds.trusted_only and not bounds.without:
        return sources.nearest(query, wanted, where=where)
    ns, near = sources.nearest(query, wanted * MORE, where=where)
    kept = np.ones(len(ns), np.bool_)
    if bounds.without:
        kept &= ~np.isin(ns, items.of_sessions(db, ns.tolist(), bounds.without))
    if bounds.trusted_only:
        kept[kept] = np.isin(ns[kept], sorted(trusting.trusted(db, ns[kept].tolist())))
    return ns[kept][:wanted], near[kept][:wanted]


def _column(ns: Numbers, found: dict[int, float] | dict[int, int], missing: float = 0.0) -> Floats:
    column = np.full(len(ns), missing)
    if found:
        places = np.searchsorted(ns, np.fromiter(found.keys(), np.int64, len(found)))
        column[places] = np.fromiter(found.values(), float, len(found))
    return column


def _ranks(arm: dict[int, float], logs: set[int]) -> dict[int, int]:
    """Return the ranks of an arm's candidates, those of distillations among themselves."""
    if not logs:
        return {n: i for i, n in enumerate(arm)}
    others = [n for n in arm if n not in logs]
    told = [n for n in arm if n in logs]
    return {n: i for found in (others, told) for i, n in enumerate(found)}


def _base(columns: dict[str, Floats], logs: NDArray[np.bool_]) -> Floats:
    """Return a first guess: half keywords, half meaning."""
    keyword = np.maximum.reduce([
        fusion.shares(columns[name]) for name in ("head", "long", "log", "fragment")
    ])
    cosine = columns["cosine"]
    nearest = cosine if logs.all() else cosine[~logs]
    highest = max(0.2, float(nearest.max(initial=0.0)))
    base: Floats = 0.5 * keyword + 0.5 * np.clip(cosine / highest, 0, None)
    return base


def _closer_look(
    base: Floats, ranks: dict[str, Floats], brought: NDArray[np.bool_], logs: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the places of candidates worth a closer look, in the order of their numbers."""
    if len(base) <= RANKED:
        return np.arange(len(base))
    order = np.argsort(-base, kind="stable")
    told = logs[order]
    order = np.concatenate([order[~told][:RANKED], order[told][:RANKED_LOGS]])
    sure = np.flatnonzero(np.minimum.reduce(list(ranks.values())) < SURE)
    chosen = brought.copy()
    chosen[order] = chosen[sure] = True
    return np.flatnonzero(chosen)
