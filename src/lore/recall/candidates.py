"""Gather the candidates for a question by keyword and vector search, as columns for ranking."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from lore import clock
from lore.index.numbers import is_among
from lore.index.vector_index import VectorFilter
from lore.lazy_dataclass import dataclass
from lore.recall import fusion
from lore.recall.question import Question
from lore.recall.sources import Numbers, Sources
from lore.records import NOTE_EDGES, EdgeKind, ItemType
from lore.store import candidate_rows, distillations, graph, items, keywords, messages
from lore.store.candidate_rows import CandidateRows
from lore.store.database import Connection
from lore.store.overview import is_known_empty

MESSAGES, LONG_MESSAGES, LOGS, FRAGMENTS, NEAREST = 120, 60, 60, 60, 120
"""Most candidates from each search: messages, long messages, distillations, fragments, vectors."""

OVERFETCH = 4
"""The vector search fetches this many times more where a filter drops some of them."""

IN_TIME_SPAN, LONGEST_SPAN = 40, timedelta(days=62)
"""A question about a short time span adds the messages of that time."""

EXPANDED = 3
"""The best fragments add the fragments they are linked to."""

RANKED, RANKED_LOGS = 100, 40
"""Candidates that are ranked; distillations do not displace the messages they summarize."""

ALWAYS_RANKED = 20
"""The first of each search are always ranked."""

POSTINGS, POSTINGS_PER_ROOT = 1_000, 10
"""Rows that a keyword query may touch: at least the first, or the second times √size. The commonest
words are dropped beyond that: they cost most of the time and discriminate least."""

Floats = NDArray[np.float64]

_NO_RANK = 1e9
_LINKING: tuple[EdgeKind, ...] = ("hierarchical", "associative", *NOTE_EDGES)


@dataclass(frozen=True, slots=True)
class Pool:
    """Candidates as columns: scores and ranks by search ("head", "long", "log", "fragment" and
    "cosine"); rank 0 is the best, and huge where a search did not return the item."""

    rows: CandidateRows
    scores: dict[str, Floats]
    ranks: dict[str, Floats]
    base: Floats
    rarity: Floats
    considered: int

    @property
    def ns(self) -> Numbers:
        """Return the item numbers of the candidates."""
        return self.rows.ns

    @property
    def cosine(self) -> Floats:
        """Return the cosines of the candidates to the question."""
        return self.scores["cosine"]

    def is_type(self, name: ItemType) -> NDArray[np.bool_]:
        """Return which candidates are items of a type."""
        mask: NDArray[np.bool_] = self.rows.types == items.type_number(name)
        return mask

    def word_weights(self) -> Floats:
        """Return the rarity of each term of the question as a share of the total."""
        weights: Floats = self.rarity / max(1e-9, float(self.rarity.sum()))
        return weights

    def keyword_rank(self, place: int) -> int | None:
        """Return a candidate's best rank in a keyword table, from 1."""
        return _rank_or_none(min(float(self.ranks[name][place]) for name in _KEYWORD_TABLES))

    def vector_rank(self, place: int) -> int | None:
        """Return a candidate's rank by cosine, from 1."""
        return _rank_or_none(float(self.ranks["cosine"][place]))


def _rank_or_none(rank: float) -> int | None:
    return int(rank) + 1 if rank < _NO_RANK else None


@dataclass(frozen=True, slots=True)
class Bounds:
    """Filters on candidates; items of the sessions in `without` are excluded.

    `ns` are the items of a time, an agent or a kind, in order, if only these may be found.
    """

    project_n: int | None = None
    session_n: int | None = None
    types: tuple[ItemType, ...] = ("message", "distillation", "fragment")
    trusted_only: bool = False
    without: tuple[int, ...] = ()
    ns: Numbers | None = None


def gather(
    sources: Sources, db: Connection, question: Question, query: NDArray[np.float32], bounds: Bounds
) -> Pool:
    """Run all searches, merge their candidates without duplicates, and keep those to rank."""
    terms, rarity = _weigh_terms(sources, db, question)
    match = question.match(terms)
    searches = {name: _search(sources, db, name, match, bounds) for name in _KEYWORD_TABLES}
    near_ns, near = _nearest(sources, db, query, bounds)
    searches["cosine"] = dict(zip(near_ns.tolist(), near.tolist(), strict=True))
    linked = graph.edges_among(db, list(searches["fragment"])[:EXPANDED], _LINKING)
    related = {n for edge in linked for n in (edge.source_n, edge.target_n)}
    related |= _in_time_spans(db, question, bounds)
    if bounds.ns is not None:
        related.intersection_update(bounds.ns.tolist())
    all_ns = np.array(
        sorted({n for results in searches.values() for n in results} | related), np.int64
    )
    logs = is_among(all_ns, distillations.distillations_among(db, all_ns.tolist()))
    log_ns = set(all_ns[logs].tolist())
    scores = {name: _column(all_ns, results) for name, results in searches.items()}
    ranks = {
        name: _column(all_ns, _ranks(results, log_ns), _NO_RANK)
        for name, results in searches.items()
    }
    missing = scores["cosine"] == 0
    scores["cosine"][missing] = sources.cosines(query, all_ns[missing])
    base = _first_score(scores, logs)
    is_related = is_among(all_ns, sorted(related))
    selected = _select_to_rank(base, ranks, is_related, logs)
    rows = candidate_rows.load_candidates(
        db,
        all_ns[selected],
        project_n=bounds.project_n,
        session_n=bounds.session_n,
        trusted_only=bounds.trusted_only,
        excluded_sessions=bounds.without,
    )
    places = selected[np.searchsorted(all_ns[selected], rows.ns)]
    return Pool(
        rows=rows,
        scores={name: column[places] for name, column in scores.items()},
        ranks={name: column[places] for name, column in ranks.items()},
        base=base[places],
        rarity=rarity,
        considered=len(all_ns),
    )


def _weigh_terms(
    sources: Sources, db: Connection, question: Question
) -> tuple[tuple[str, ...], Floats]:
    """Return the terms to search for, and the rarity of every term of the question."""
    total = max(1, items.highest_number(db))
    uses = np.maximum(1.0, sources.count_uses(db, question.terms, total))
    rarity = np.log1p(np.maximum(0.0, total - uses + 0.5) / (uses + 0.5)).clip(1e-6)
    most_rows = max(POSTINGS, POSTINGS_PER_ROOT * total**0.5)
    order = np.argsort(uses, kind="stable")
    affordable = max(2, int((np.cumsum(uses[order]) <= most_rows).sum()))
    places = sorted(order[:affordable].tolist())
    return tuple(question.terms[place] for place in places), rarity


_KEYWORD_TABLES: dict[str, tuple[str, ItemType, int, tuple[float, ...]]] = {
    "head": ("message_words", "message", MESSAGES, keywords.MESSAGE_WEIGHTS),
    "long": ("long_words", "message", LONG_MESSAGES, keywords.LONG_WEIGHTS),
    "log": ("log_words", "distillation", LOGS, keywords.LOG_WEIGHTS),
    "fragment": ("fragment_words", "fragment", FRAGMENTS, ()),
}
"""Table, item type, limit and column weights of each keyword search; the weights of fragments are a
setting."""


def _search(
    sources: Sources, db: Connection, name: str, match: str, bounds: Bounds
) -> dict[int, float]:
    table, item_type, limit, weights = _KEYWORD_TABLES[name]
    if item_type not in bounds.types or _has_none(db, item_type):
        return {}
    scope = keywords.SearchScope(
        bounds.project_n,
        bounds.session_n,
        bounds.ns,
        trusted_only=bounds.trusted_only,
        excluded_sessions=bounds.without,
    )
    return dict(
        keywords.search(
            db, table, match,
            limit=limit, weights=weights or sources.fragment_weights, within=scope,
        )
    )  # fmt: skip


def _has_none(db: Connection, item_type: ItemType) -> bool:
    """Return whether the memory has no items of a type, so that no search finds one."""
    return (item_type == "message" and is_known_empty(db, "messages")) or (
        item_type == "distillation" and is_known_empty(db, "distillations")
    )


def _in_time_spans(db: Connection, question: Question, bounds: Bounds) -> set[int]:
    types = [items.type_number(name) for name in bounds.types]
    ns: set[int] = set()
    for span in question.spans:
        if span.end - span.start <= LONGEST_SPAN:
            start, end = clock.to_us(span.start), clock.to_us(span.end)
            ns.update(candidate_rows.items_between(db, start, end, types, limit=IN_TIME_SPAN))
    return ns


def _nearest(
    sources: Sources, db: Connection, query: NDArray[np.float32], bounds: Bounds
) -> tuple[Numbers, NDArray[np.float32]]:
    types = tuple(items.type_number(name) for name in bounds.types)
    if bounds.ns is not None:
        where = VectorFilter(types=types, ns=bounds.ns)
    elif bounds.session_n is not None:
        where = VectorFilter(types=types, ns=candidate_rows.items_of_session(db, bounds.session_n))
    else:
        where = _project_filter(db, bounds.project_n, types)
    limit = NEAREST
    if "distillation" in bounds.types and distillations.has_distillations(db):
        limit += RANKED_LOGS
    if not bounds.trusted_only and not bounds.without:
        return sources.nearest(query, limit, where=where)
    ns, near = sources.nearest(query, limit * OVERFETCH, where=where)
    mask = np.ones(len(ns), np.bool_)
    if bounds.without:
        mask &= ~is_among(ns, items.of_sessions(db, ns.tolist(), bounds.without))
    if bounds.trusted_only:
        mask[mask] = is_among(ns[mask], sorted(messages.trusted_items(db, ns[mask].tolist())))
    return ns[mask][:limit], near[mask][:limit]


def _project_filter(db: Connection, project_n: int | None, types: tuple[int, ...]) -> VectorFilter:
    """Return the filter for the vectors of a project, and of what applies to all projects.

    The index has one number for all items without a project, whichever session they are of.
    """
    if project_n is None:
        return VectorFilter(types=types)
    if project_n == items.NO_PROJECT:
        return VectorFilter((items.NO_PROJECT,), types)
    beside = np.array(items.for_all_projects(db), np.int64)
    return VectorFilter((project_n,), types, beside=beside)


def _column(ns: Numbers, values: dict[int, float] | dict[int, int], missing: float = 0.0) -> Floats:
    column = np.full(len(ns), missing)
    if values:
        places = np.searchsorted(ns, np.fromiter(values.keys(), np.int64, len(values)))
        column[places] = np.fromiter(values.values(), float, len(values))
    return column


def _ranks(results: dict[int, float], logs: set[int]) -> dict[int, int]:
    """Return the ranks of a search's candidates; distillations are ranked among themselves."""
    others = [n for n in results if n not in logs]
    log_results = [n for n in results if n in logs]
    return {n: i for group in (others, log_results) for i, n in enumerate(group)}


def _first_score(scores: dict[str, Floats], logs: NDArray[np.bool_]) -> Floats:
    """Return a first score: half keywords, half vectors."""
    keyword = np.maximum.reduce([fusion.shares(scores[name]) for name in _KEYWORD_TABLES])
    cosine = scores["cosine"]
    nearest = cosine if logs.all() else cosine[~logs]
    highest = max(0.2, float(nearest.max(initial=0.0)))
    base: Floats = 0.5 * keyword + 0.5 * np.clip(cosine / highest, 0, None)
    return base


def _select_to_rank(
    base: Floats, ranks: dict[str, Floats], is_related: NDArray[np.bool_], logs: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the places of the candidates to rank, in the order of their numbers."""
    if len(base) <= RANKED:
        return np.arange(len(base))
    order = np.argsort(-base, kind="stable")
    is_log = logs[order]
    order = np.concatenate([order[~is_log][:RANKED], order[is_log][:RANKED_LOGS]])
    sure = np.flatnonzero(np.minimum.reduce(list(ranks.values())) < ALWAYS_RANKED)
    chosen = is_related.copy()
    chosen[order] = chosen[sure] = True
    return np.flatnonzero(chosen)
