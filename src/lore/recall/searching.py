"""Search over fragments: similarity and relevance, one hit per tree, deeper by the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import log

import numpy as np

from lore import clock
from lore.checking import check_origin
from lore.errors import InvalidInput
from lore.recall import deep, fusion, pagerank, paths, reading, time_spans
from lore.recall.deep import Direct
from lore.recall.graph import Graph
from lore.recall.question import Question, parse
from lore.recall.sources import Numbers, Sources
from lore.records import FRAGMENT_KINDS, Fragment, Hit, Signal, Title
from lore.store import edges, fragments, items, keywords, mentions, sessions
from lore.store.db import Connection
from lore.store.fragments import FragmentFilter
from lore.store.keywords import Within
from lore.store.vector_index import Where
from lore.text import entities, tokens

SIMILARITY_SHARE, RELEVANCE_SHARE = 0.7, 0.3
POOL = 100
"""Candidates of each arm."""

_ENOUGH_COUNTED = 20_000
"""A word in more fragments than this is common; counting further would not change that."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What a search asks for."""

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


def search(sources: Sources, request: SearchRequest) -> list[Hit]:
    """Return the fragments that fit a question, best first."""
    if not 1 <= request.limit <= 1_000:
        msg = "A search returns between 1 and 1000 hits."
        raise InvalidInput(msg)
    question = parse(request.query, request.now or sources.database.now())
    query = sources.embed_query(question.text)
    with sources.database.read() as db:
        wanted = _filter(db, request)
        direct = _direct(sources, db, question, query, wanted)
        if not len(direct.ns):
            return []
        if request.deep:
            return _deep_hits(sources, db, question, query, direct, wanted, request.limit)
        return _plain_hits(db, direct, wanted, request)


def _filter(db: Connection, request: SearchRequest) -> FragmentFilter:
    if request.kind and request.kind not in FRAGMENT_KINDS:
        msg = f"'{request.kind}' is no kind of fragment."
        raise InvalidInput(msg, hint=f"Kinds: {', '.join(FRAGMENT_KINDS)}.")
    if request.origin:
        check_origin(request.origin)
    subtree = None
    if request.parent_id:
        top = items.resolve(db, request.parent_id, type="fragment").n
        subtree = frozenset(n for n, _ in edges.subtree(db, top))
    since = time_spans.since(request.since, request.now or clock.now()) if request.since else None
    return FragmentFilter(
        kind=request.kind,
        origin=request.origin,
        since_us=None if since is None else clock.to_us(since),
        project_n=sessions.get_project(db, request.project) if request.project else None,
        subtree=subtree,
    )


def _direct(
    sources: Sources, db: Connection, question: Question, query: np.ndarray, wanted: FragmentFilter
) -> Direct:
    """Return the visible hits of both arms, best first by both together."""
    weights = [float(w) for w in sources.settings.search_fts_weights.split(",")]
    allowed = sorted(fragments.visible(db, wanted)) if wanted.is_narrow else None
    by_keyword = dict(
        keywords.search(
            db,
            "fragment_words",
            question.match(),
            limit=POOL,
            weights=weights,
            within=Within(ns=allowed),
        )
    )
    only = None if allowed is None else np.array(allowed, np.int64)
    where = Where(types=(items.type_number("fragment"),), ns=only)
    ns, scores = sources.nearest(query, POOL, where=where)
    by_vector = dict(zip(ns.tolist(), scores.tolist(), strict=True))
    together = list(dict.fromkeys([*by_keyword, *by_vector]))
    visible = fragments.visible(db, wanted, together)
    kept = np.array([n for n in together if n in visible], np.int64)
    unseen = np.array([n for n in kept if int(n) not in by_vector], np.int64)
    if len(unseen) and len(query):
        matrix = sources.load_vectors(unseen)
        by_vector |= dict(zip(unseen.tolist(), (matrix @ query).tolist(), strict=True))
    keyword = np.array([by_keyword.get(int(n), 0.0) for n in kept])
    cosine = np.array([by_vector.get(int(n), 0.0) for n in kept])
    fused = fusion.weighted(keyword, cosine)
    order = fusion.best_first(fused, kept.tolist())
    return Direct(kept[order], keyword[order], cosine[order], fused[order])


def _plain_hits(
    db: Connection, direct: Direct, wanted: FragmentFilter, request: SearchRequest
) -> list[Hit]:
    found = fragments.by_number(db, direct.ns.tolist())
    similarity = (fusion.shares(direct.keyword) + np.clip(direct.cosine, 0, 1)) / 2
    if not direct.cosine.any():
        similarity = fusion.shares(direct.keyword)
    relevance = np.array([found[int(n)].relevance for n in direct.ns])
    scores = SIMILARITY_SHARE * similarity + RELEVANCE_SHARE * relevance
    order = fusion.best_first(scores, direct.ns.tolist())
    ranked = [int(n) for n in direct.ns[order]]
    by_n = dict(zip(direct.ns.tolist(), range(len(direct.ns)), strict=True))
    if request.depth is not None:
        ranked = _at_depth(db, ranked, request.depth)
        shown = fragments.visible(db, wanted, ranked)
        ranked = [n for n in ranked if n in shown]
        found |= fragments.by_number(db, ranked)
    elif not request.parent_id:
        ranked = _one_per_tree(db, ranked)
    hits = []
    for n in ranked[: request.limit]:
        place = by_n.get(n)
        signals: tuple[Signal, ...] = ()
        if place is not None:
            near, strong = float(similarity[place]), float(relevance[place])
            signals = (
                Signal("similarity", near, SIMILARITY_SHARE * near),
                Signal("relevance", strong, RELEVANCE_SHARE * strong),
                Signal("keyword", float(direct.keyword[place]), 0.0),
                Signal("cosine", float(direct.cosine[place]), 0.0),
            )
        score = 0.0 if place is None else float(scores[place])
        hits.append(_hit(db, found[n], n, score, signals))
    return hits


def _one_per_tree(db: Connection, ranked: Sequence[int]) -> list[int]:
    """Keep the best hit of each tree."""
    seen: set[int] = set()
    kept = []
    for n in ranked:
        above = edges.ancestors(db, n)
        root = above[0] if above else n
        if root not in seen:
            seen.add(root)
            kept.append(n)
    return kept


def _at_depth(db: Connection, ranked: Sequence[int], depth: int) -> list[int]:
    """Return that level of abstraction of the best branches."""
    found: dict[int, None] = {}
    for n in ranked:
        line = [*edges.ancestors(db, n), n]
        if depth < len(line):
            found[line[depth]] = None
        else:
            below = edges.subtree(db, n, max_depth=depth - len(line) + 1)
            found |= dict.fromkeys(m for m, distance in below if distance == depth - len(line) + 1)
    return list(found)


def _hit(
    db: Connection,
    fragment: Fragment,
    n: int,
    score: float,
    signals: tuple[Signal, ...],
    path: tuple[str, ...] = (),
) -> Hit:
    above = fragments.by_number(db, edges.ancestors(db, n))
    trail = " › ".join(parent.summary for parent in above.values())
    return Hit(
        id=fragment.id,
        type="fragment",
        text=fragment.content,
        title=fragment.summary,
        score=score,
        why=_why(signals),
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


def _why(signals: tuple[Signal, ...]) -> str:
    shown = [f"{signal.name} {signal.value:.2f}" for signal in signals if signal.value]
    return ", ".join(shown) or "on the branch of a hit"


def _deep_hits(
    sources: Sources,
    db: Connection,
    question: Question,
    query: np.ndarray,
    direct: Direct,
    wanted: FragmentFilter,
    limit: int,
) -> list[Hit]:
    found = find_deep(sources, db, question, query, direct)
    model = fusion.load_model("deep-search")
    scores = model.score(found.features)
    visible = fragments.visible(db, wanted, found.ns.tolist())
    order = [
        int(place)
        for place in fusion.best_first(scores, found.ns.tolist())
        if int(found.ns[place]) in visible
    ]
    order = _with_best_direct(order, found.ns, int(direct.ns[0]))
    order = _with_discoveries(order, found.ns, set(direct.ns[: deep.SEEDS].tolist()), limit)
    matrix = model.matrix(found.features)
    ranks = {n: rank for rank, n in enumerate(direct.ns.tolist(), 1)}
    chosen = fragments.by_number(db, [int(found.ns[place]) for place in order])
    hits = []
    for place in order:
        n = int(found.ns[place])
        signals = tuple(
            Signal(name, float(value), float(value * weight))
            for name, value, weight in zip(model.names, matrix[place], model.weights, strict=True)
        )
        rank = ranks.get(n)
        path: tuple[str, ...] = ()
        if rank != 1:
            starts = sorted(found.seeds, key=lambda seed: ranks.get(seed, len(ranks)))
            if rank is None and n in found.via:
                starts.insert(0, found.via[n])
            path = paths.find_path(db, starts, n)
        hit = _hit(db, chosen[n], n, float(scores[place]), signals, path)
        hits.append(replace(hit, why=_why_deep(path, rank)))
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
    """Give what only the graph found at least half of the places, at the end of the list."""
    discovered = [place for place in order if int(ns[place]) not in direct]
    known = [place for place in order if int(ns[place]) in direct]
    most_known = max(limit - len(discovered), limit - limit // 2)
    kept = set(known[:most_known]) | set(discovered)
    return [place for place in order if place in kept][:limit]


def find_deep(
    sources: Sources, db: Connection, question: Question, query: np.ndarray, direct: Direct
) -> deep.Found:
    """Walk the graph from the direct hits and describe what was found."""
    head = question.text[:600]
    names = [*entities.names(head), *entities.phrases(head)]
    titled = mentions.titled(db, names, most_each=deep.TITLED)
    seeds = deep.choose_seeds(direct, titled)
    count = items.count_by_type(db)["fragment"]
    graph = Graph(db, count)
    walked = pagerank.walk(seeds, graph.expand)
    ns = deep.candidates(direct, walked)
    read = sorted({*ns.tolist(), *seeds})
    texts = {n: f"{f.summary} {f.content}" for n, f in fragments.by_number(db, read).items()}
    matrix = sources.load_vectors(np.array(read, np.int64))
    material = deep.Material(
        question=question.text,
        query=query,
        texts=texts,
        vectors=dict(zip(read, matrix, strict=True)) if len(query) else {},
        rarity=_rarity(db, question, count),
        graph=graph,
    )
    return deep.describe(material, direct, seeds, titled, walked, ns)


def _rarity(db: Connection, question: Question, count: int) -> dict[str, float]:
    """Return how telling each word of a question is, by how many fragments have it."""
    rarity: dict[str, float] = {}
    for term in question.terms:
        uses = keywords.count_at_most(db, "fragment_words", term, _ENOUGH_COUNTED)
        rarity[term[:6]] = log(1 + count / (1 + uses))
    return rarity


def roots(sources: Sources, query: str, *, limit: int, project: str) -> list[Title]:
    """Return the roots of the trees that fit a question."""
    hits = search(sources, SearchRequest(query, depth=0, limit=limit, project=project))
    with sources.database.read() as db:
        return reading.titles(db, [items.resolve(db, hit.id).n for hit in hits])
