"""Search fragments, by similarity and relevance or through their graph, and search sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import log

import numpy as np

from lore import clock
from lore.errors import InvalidInput
from lore.index.vector_index import VectorFilter
from lore.lazy_dataclass import dataclass
from lore.recall import deep_search, fusion, item_details, presentation, time_spans
from lore.recall.candidates import Bounds
from lore.recall.deep_search import Direct, Graph
from lore.recall.features import Floats
from lore.recall.hit_selection import Limits
from lore.recall.outdated import find_replaced
from lore.recall.question import Question, check_limit, parse
from lore.recall.ranking import Ranked, rank
from lore.recall.sources import Numbers, Sources
from lore.records import FRAGMENT_KINDS, Fragment, Hit, ItemType, Session, SessionHit, Signal, Title
from lore.store import candidate_rows, fragments, graph, items, keywords, project_rows, sessions
from lore.store.database import Connection
from lore.store.fragments import FragmentFilter
from lore.store.keywords import SearchScope
from lore.text import entities, sentences, tokens
from lore.validation import check_origin

SIMILARITY_SHARE, RELEVANCE_SHARE = 0.7, 0.3
POOL = 100
"""Candidates of each search, by keyword and by vector."""

_ENOUGH_COUNTED = 20_000
"""A word in more fragments than this is common; counting further would not change that."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """The parameters of a fragment search."""

    query: str
    parent_id: str = ""
    depth: int | None = None
    limit: int = 10
    deep: bool = False
    kind: str = ""
    origin: str = ""
    since: str = ""
    project: str = ""
    now: datetime | None = None
    until: str = ""
    agent: str = ""


def search_fragments(sources: Sources, request: SearchRequest) -> list[Hit]:
    """Return the fragments that fit a question, best first."""
    check_limit(request.limit)
    question = parse(request.query, request.now or sources.database.now())
    query = sources.embed_query(question.text)
    with sources.database.read() as db:
        fragment_filter = _filter(db, request)
        direct = find_direct(sources, db, question, query, fragment_filter)
        if not len(direct.ns):
            return []
        if request.deep:
            return _deep_hits(sources, db, question, query, direct, fragment_filter, request.limit)
        return _plain_hits(db, direct, fragment_filter, request)


def _filter(db: Connection, request: SearchRequest) -> FragmentFilter:
    if request.kind and request.kind not in FRAGMENT_KINDS:
        msg = f"'{request.kind}' is not a kind of fragment."
        raise InvalidInput(msg, hint=f"Kinds: {', '.join(FRAGMENT_KINDS)}.")
    if request.origin:
        check_origin(request.origin)
    subtree = None
    if request.parent_id:
        top = items.resolve(db, request.parent_id, type="fragment").n
        subtree = frozenset(n for n, _ in graph.subtree(db, top))
    since_us, until_us = (
        clock.to_us(time_spans.since(text, request.now or clock.now())) if text else None
        for text in (request.since, request.until)
    )
    return FragmentFilter(
        kind=request.kind,
        origin=request.origin,
        since_us=since_us,
        until_us=until_us,
        agent=request.agent.lower(),
        project_n=project_rows.get_project(db, request.project) if request.project else None,
        subtree=subtree,
    )


def find_direct(
    sources: Sources,
    db: Connection,
    question: Question,
    query: np.ndarray,
    fragment_filter: FragmentFilter,
) -> Direct:
    """Return the visible candidates of keyword and vector search, best first by both merged."""
    allowed = (
        sorted(fragments.filter_visible(db, fragment_filter)) if fragment_filter.is_narrow else None
    )
    by_keyword = dict(
        keywords.search(
            db,
            "fragment_words",
            question.match(),
            limit=POOL,
            weights=sources.fragment_weights,
            within=SearchScope(ns=allowed),
        )
    )
    allowed_ns = None if allowed is None else np.array(allowed, np.int64)
    where = VectorFilter(types=(items.type_number("fragment"),), ns=allowed_ns)
    ns, scores = sources.nearest(query, POOL, where=where)
    by_vector = dict(zip(ns.tolist(), scores.tolist(), strict=True))
    merged = list(dict.fromkeys([*by_keyword, *by_vector]))
    visible = fragments.filter_visible(db, fragment_filter, merged)
    candidate_ns = np.array([n for n in merged if n in visible], np.int64)
    without_cosine = np.array([n for n in candidate_ns if int(n) not in by_vector], np.int64)
    if len(without_cosine) and len(query):
        matrix = sources.load_vectors(without_cosine)
        by_vector |= dict(zip(without_cosine.tolist(), (matrix @ query).tolist(), strict=True))
    keyword = np.array([by_keyword.get(int(n), 0.0) for n in candidate_ns])
    cosine = np.array([by_vector.get(int(n), 0.0) for n in candidate_ns])
    fused = fusion.weighted(keyword, cosine)
    order = fusion.best_first(fused, candidate_ns.tolist())
    return Direct(candidate_ns[order], keyword[order], cosine[order], fused[order])


def _plain_hits(
    db: Connection, direct: Direct, fragment_filter: FragmentFilter, request: SearchRequest
) -> list[Hit]:
    loaded = fragments.by_number(db, direct.ns.tolist())
    similarity = (fusion.shares(direct.keyword) + np.clip(direct.cosine, 0, 1)) / 2
    if not direct.cosine.any():
        similarity = fusion.shares(direct.keyword)
    relevance = np.array([loaded[int(n)].relevance for n in direct.ns])
    scores = SIMILARITY_SHARE * similarity + RELEVANCE_SHARE * relevance
    order = fusion.best_first(scores, direct.ns.tolist())
    ranked = [int(n) for n in direct.ns[order]]
    place_of = dict(zip(direct.ns.tolist(), range(len(direct.ns)), strict=True))
    if request.depth is not None:
        ranked = _at_depth(db, ranked, request.depth)
        shown = fragments.filter_visible(db, fragment_filter, ranked)
        ranked = [n for n in ranked if n in shown]
        loaded |= fragments.by_number(db, ranked)
    elif not request.parent_id:
        ranked = _one_per_tree(db, ranked)
    hits = []
    for n in ranked[: request.limit]:
        place = place_of.get(n)
        signals: tuple[Signal, ...] = ()
        if place is not None:
            similar, relevant = float(similarity[place]), float(relevance[place])
            signals = (
                Signal("similarity", similar, SIMILARITY_SHARE * similar),
                Signal("relevance", relevant, RELEVANCE_SHARE * relevant),
                Signal("keyword", float(direct.keyword[place]), 0.0),
                Signal("cosine", float(direct.cosine[place]), 0.0),
            )
        score = 0.0 if place is None else float(scores[place])
        why = ", ".join(f"{one.name} {one.value:.2f}" for one in signals if one.value)
        why = why or "on the branch of a hit"
        hits.append(_fragment_hit(db, loaded[n], n, score, signals, why))
    return hits


def _one_per_tree(db: Connection, ranked: Sequence[int]) -> list[int]:
    seen: set[int] = set()
    best = []
    for n in ranked:
        above = graph.ancestors(db, n)
        root = above[0] if above else n
        if root not in seen:
            seen.add(root)
            best.append(n)
    return best


def _at_depth(db: Connection, ranked: Sequence[int], depth: int) -> list[int]:
    """Replace hits by their ancestors or descendants at a depth, without duplicates."""
    at_depth: dict[int, None] = {}
    for n in ranked:
        line = [*graph.ancestors(db, n), n]
        if depth < len(line):
            at_depth[line[depth]] = None
        else:
            below = graph.subtree(db, n, max_depth=depth - len(line) + 1)
            at_depth |= dict.fromkeys(
                m for m, distance in below if distance == depth - len(line) + 1
            )
    return list(at_depth)


def _fragment_hit(
    db: Connection,
    fragment: Fragment,
    n: int,
    score: float,
    signals: tuple[Signal, ...],
    why: str,
    path: tuple[str, ...] = (),
) -> Hit:
    above = fragments.by_number(db, graph.ancestors(db, n))
    trail = " › ".join(parent.summary for parent in above.values())
    hit = Hit(
        id=fragment.id,
        type="fragment",
        text=fragment.content,
        title=fragment.summary,
        score=score,
        why=why,
        created_at=fragment.created_at,
        tokens=tokens.count(fragment.content),
        breadcrumb=trail,
        kind=fragment.kind,
        depth=fragment.depth,
        session_id=fragment.session_id or "",
        project_id=fragment.project_id or "",
        origin=fragment.origin,
        path=path,
        signals=signals,
    )
    return replace(hit, replaced=find_replaced(db, hit))


def _deep_hits(
    sources: Sources,
    db: Connection,
    question: Question,
    query: np.ndarray,
    direct: Direct,
    fragment_filter: FragmentFilter,
    limit: int,
) -> list[Hit]:
    candidates = find_deep(sources, db, question, query, direct)
    model = fusion.load_model("deep-search")
    scores = model.score(candidates.features)
    visible = fragments.filter_visible(db, fragment_filter, candidates.ns.tolist())
    order = [
        int(place)
        for place in fusion.best_first(scores, candidates.ns.tolist())
        if int(candidates.ns[place]) in visible
    ]
    order = _with_best_direct(order, candidates.ns, int(direct.ns[0]))
    order = _with_discoveries(
        order, candidates.ns, set(direct.ns[: deep_search.SEEDS].tolist()), limit
    )
    matrix = model.matrix(candidates.features)
    ranks = {n: rank for rank, n in enumerate(direct.ns.tolist(), 1)}
    loaded = fragments.by_number(db, [int(candidates.ns[place]) for place in order])
    hits = []
    for place in order:
        n = int(candidates.ns[place])
        signals = tuple(
            Signal(name, float(value), float(value * weight))
            for name, value, weight in zip(model.names, matrix[place], model.weights, strict=True)
        )
        rank = ranks.get(n)
        path: tuple[str, ...] = ()
        if rank != 1:
            starts = sorted(candidates.seeds, key=lambda seed: ranks.get(seed, len(ranks)))
            if rank is None and n in candidates.via:
                starts.insert(0, candidates.via[n])
            path = deep_search.find_path(db, starts, n)
        why = _why_deep(path, rank)
        hits.append(_fragment_hit(db, loaded[n], n, float(scores[place]), signals, why, path))
    return hits


def _why_deep(path: tuple[str, ...], rank: int | None) -> str:
    if path:
        return "found through " + " → ".join(path)
    return f"a direct hit, #{rank}" if rank else "in the neighbourhood of the direct hits"


def _with_best_direct(order: list[int], ns: Numbers, best: int) -> list[int]:
    """Give the best direct hit one of the first five places: a plain question stays plain."""
    place = next((place for place in order if int(ns[place]) == best), None)
    if place is None or place in order[:5]:
        return order
    rest = [other for other in order if other != place]
    return [*rest[:4], place, *rest[4:]]


def _with_discoveries(order: list[int], ns: Numbers, direct: set[int], limit: int) -> list[int]:
    """Give fragments that only the graph walk found at least half of the places."""
    discovered = [place for place in order if int(ns[place]) not in direct]
    direct_places = [place for place in order if int(ns[place]) in direct]
    most_direct = max(limit - len(discovered), limit - limit // 2)
    selected = set(direct_places[:most_direct]) | set(discovered)
    return [place for place in order if place in selected][:limit]


def find_deep(
    sources: Sources, db: Connection, question: Question, query: np.ndarray, direct: Direct
) -> deep_search.DeepCandidates:
    """Walk the graph from the direct hits and describe the candidates."""
    head = question.text[:600]
    names = [*entities.extract_names(head), *entities.phrases(head)]
    titled = graph.find_titled(db, names, most_each=deep_search.TITLED)
    seeds = deep_search.choose_seeds(direct, titled)
    count = items.count_by_type(db)["fragment"]
    linked = Graph(db, count)
    walked = deep_search.walk(seeds, linked.expand)
    ns = deep_search.candidates(direct, walked)
    ns_to_load = sorted({*ns.tolist(), *seeds})
    texts = {n: f"{f.summary} {f.content}" for n, f in fragments.by_number(db, ns_to_load).items()}
    matrix = sources.load_vectors(np.array(ns_to_load, np.int64))
    material = deep_search.Material(
        question=question.text,
        query=query,
        texts=texts,
        vectors=dict(zip(ns_to_load, matrix, strict=True)) if len(query) else {},
        rarity=_rarity(db, question, count),
        graph=linked,
    )
    return deep_search.describe_candidates(material, direct, seeds, titled, walked, ns)


def _rarity(db: Connection, question: Question, count: int) -> dict[str, float]:
    """Return the rarity of each word of a question among the fragments."""
    rarity: dict[str, float] = {}
    for term in question.terms:
        uses = keywords.count_at_most(db, "fragment_words", term, _ENOUGH_COUNTED)
        rarity[term[:6]] = log(1 + count / (1 + uses))
    return rarity


def search_roots(sources: Sources, query: str, *, limit: int, project: str) -> list[Title]:
    """Return the roots of the trees that fit a question."""
    hits = search_fragments(sources, SearchRequest(query, depth=0, limit=limit, project=project))
    with sources.database.read() as db:
        return item_details.titles(db, [items.resolve(db, hit.id).n for hit in hits])


_BEST = 3
_LOWEST_LOG_SCORE = -8.0
_HOURS = (3, 24, 168)
"""Time scales of a session's recency: hours, days and weeks."""

_SESSION_TOKENS = 10_000
"""Token limit for the best messages of one session."""

CONSIDERED = 120
"""Sessions considered from each keyword search."""


def search_sessions(
    sources: Sources,
    query: str,
    *,
    project: str,
    limit: int,
    now: datetime,
    recipe: str,
    types: tuple[ItemType, ...] = ("message", "distillation"),
) -> list[SessionHit]:
    """Return the sessions that fit a question, best first."""
    check_limit(limit, "sessions")
    question = parse(query, now)
    with sources.database.read() as db:
        project_n = project_rows.get_project(db, project) if project else None
        ranked = rank(sources, db, question, Bounds(project_n, types=types), recipe)
        counted: ItemType = "message" if "message" in types else "distillation"
        ns, described = describe_sessions(sources, db, question, ranked, now, project_n, counted)
        if not len(ns):
            return []
        scores = fusion.load_model("sessions").score(described)
        best = fusion.best_first(scores, ns.tolist())[:limit]
        loaded = sessions.get_sessions(db, ns[best].tolist())
        return [
            _session_hit(db, question, ranked, n, loaded[n], score)
            for n, score in zip(ns[best].tolist(), scores[best].tolist(), strict=True)
        ]


def _session_hit(
    db: Connection, question: Question, ranked: Ranked, n: int, session: Session, score: float
) -> SessionHit:
    """Present a session by its fitting distillation lines, or else by its messages."""
    inside = [place for place in ranked.order() if ranked.pool.rows.sessions[place] == n]
    logs = [place for place in inside if ranked.pool.scores["log"][place] > 0]
    limits = Limits(_BEST, _SESSION_TOKENS)
    hits = presentation.present(db, question, ranked, (logs or inside)[:_BEST], limits=limits).hits
    title = session.title or (sentences.one_line(hits[0].text, 100) if hits else "")
    return SessionHit(session.id, title, session.started_at, score, hits)


def describe_sessions(
    sources: Sources,
    db: Connection,
    question: Question,
    ranked: Ranked,
    now: datetime,
    project_n: int | None = None,
    counted: ItemType = "message",
) -> tuple[Numbers, dict[str, Floats]]:
    """Return the candidate sessions with their features."""
    in_files = dict(
        keywords.search(db, "session_words", question.match(), limit=CONSIDERED, weights=(2.0, 1.0))
    )
    in_files = {
        n: score
        for n, score in in_files.items()
        if project_n is None or sessions.project_of_session(db, n) == project_n
    }
    by_terms = candidate_rows.session_term_scores(db, question.terms, project_n, counted)
    pool_sessions = ranked.pool.rows.sessions
    strongest = sorted(by_terms, key=lambda n: -by_terms[n])[:CONSIDERED]
    ns = np.array(sorted({*pool_sessions.tolist(), *in_files, *strongest} - {0}), np.int64)
    if not len(ns):
        return ns, {}
    places = np.searchsorted(ns, pool_sessions)
    figures = candidate_rows.load_session_messages(db, ns, counted)
    members = np.concatenate([figure.ns for figure in figures])
    owners = np.repeat(np.arange(len(ns)), [len(figure.ns) for figure in figures])
    from_user = np.concatenate([figure.from_user for figure in figures])
    query = sources.embed_query(question.core)
    cosines = sources.cosines(query, members)
    counts = np.maximum(1, np.bincount(owners, minlength=len(ns)))
    nearest_user = np.zeros(len(ns))
    np.maximum.at(nearest_user, owners, np.where(from_user, cosines, 0.0))
    logits = ranked.scores - ranked.scores.max() if len(ranked.scores) else ranked.scores
    total = np.bincount(places, np.exp(logits), len(ns))
    keyword = ranked.pool.scores["head" if counted == "message" else "log"]
    columns = {
        "together": np.maximum(np.log(total + 1e-9), _LOWEST_LOG_SCORE),
        "words": fusion.shares(np.array([by_terms.get(int(n), 0.0) for n in ns])),
        "files": fusion.shares(np.array([in_files.get(int(n), 0.0) for n in ns])),
        "best_three": _best_three(fusion.shares(keyword), places, len(ns)),
        "about": np.bincount(owners, cosines, len(ns)) / counts,
        "nearest_user": nearest_user,
        "messages": np.log1p(counts),
    }
    started = np.array([figure.started_at for figure in figures], np.float64)
    is_candidate = (np.bincount(places, minlength=len(ns)) > 0) | (columns["files"] > 0)
    fit = is_candidate * np.maximum(columns["words"], columns["files"])
    return ns, columns | _recency(started, now, fit)


def _best_three(keyword: Floats, places: Numbers, count: int) -> Floats:
    best = np.zeros((count, _BEST))
    filled = np.zeros(count, np.int64)
    for row in np.argsort(-keyword, kind="stable"):
        place = places[row]
        if filled[place] < _BEST:
            best[place, filled[place]] = keyword[row]
            filled[place] += 1
    mean: Floats = best.mean(axis=1)
    return mean


def _recency(started_us: Floats, now: datetime, fit: Floats) -> dict[str, Floats]:
    """Return how recent a session is; one that began after the question is unlikely to be meant.

    It counts as far as the session fits: one of today that has a word of the question somewhere
    would else come before all others.
    """
    hours = (clock.to_us(now) - started_us) / 3.6e9
    later = hours < -timedelta(minutes=6).total_seconds() / 3600
    columns = {
        f"recent_{scale}h": np.where(later, 0.0, fit * np.exp(-np.maximum(hours, 0) / scale))
        for scale in _HOURS
    }
    return columns | {"later": later.astype(float)}
