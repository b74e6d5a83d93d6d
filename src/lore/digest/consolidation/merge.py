"""Phases merge and link: merge duplicate root fragments, and relate similar ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from lore.digest.consolidation.pairs import find_embedder, find_similar_roots
from lore.digest.consolidation.phase import PhaseRun, RootPair, label, live_fragments
from lore.records import UNASKED_TRUST
from lore.store import consolidation, fragments, graph, reversible_changes, vectors
from lore.store.consolidation import ActiveEmbedder, Root
from lore.store.database import Connection
from lore.store.graph import EdgeRow
from lore.text import entities

MERGE_ABOVE = 0.85
MERGE_MARK = "merge"

_MERGE_BATCH = 200
"""Merges per transaction: others write in between."""


def merge(run: PhaseRun) -> None:
    """Merge near-duplicate roots, unless they differ in a value or in trust."""
    embedding = find_embedder(run)
    if embedding is None:
        return
    joined = find_similar_roots(run, embedding, MERGE_MARK)
    run.count("compared", joined.compared)
    planned = _plan_merges(run, [pair for pair in joined.pairs if pair.cosine > MERGE_ABOVE])
    for piece in run.batches(planned, _MERGE_BATCH):
        run.write(partial(_merge_all, planned=piece, run=run))
    run.write(lambda db, _: consolidation.set_progress(db, MERGE_MARK, joined.seq))


def _plan_merges(run: PhaseRun, pairs: Sequence[RootPair]) -> list[tuple[int, int]]:
    with run.database.read() as db:
        planned, kept_apart = plan_merges(db, pairs)
    run.count("kept apart", kept_apart)
    return planned


def plan_merges(db: Connection, pairs: Sequence[RootPair]) -> tuple[list[tuple[int, int]], int]:
    """Choose (survivor, victim) pairs; a survivor is never a victim. Count those kept apart."""
    fit = [pair for pair in pairs if _may_merge(pair.a, pair.b)]
    survivors: set[int] = set()
    victims: set[int] = set()
    planned, kept_apart = [], 0
    apart = consolidation.judgements_of(db, [pair.a.n for pair in fit], "merge")
    both = sorted({n for pair in fit for n in (pair.a.n, pair.b.n)})
    contents = {n: one.content for n, one in fragments.by_number(db, both).items()}
    contents |= consolidation.texts_before_overviews(db, both)
    ranked = (sorted((pair.a, pair.b), key=_rank) for pair in fit)
    for stays, goes in sorted(ranked, key=lambda pair: (_rank(pair[0]), _rank(pair[1]))):
        low, high = sorted((stays.n, goes.n))
        if (low, high) in apart or {low, high} & victims or goes.n in survivors:
            continue
        # A value of the victim that the survivor lacks would be lost.
        agreed = entities.values_agree(contents[stays.n], contents[goes.n])
        if not (agreed and entities.covers_values(contents[stays.n], contents[goes.n])):
            kept_apart += 1
            continue
        survivors.add(stays.n)
        victims.add(goes.n)
        planned.append((stays.n, goes.n))
    return planned, kept_apart


def _may_merge(one: Root, other: Root) -> bool:
    """Return whether two roots are of one merge group, and of one class of trust."""
    return _merge_group(one.kind) == _merge_group(other.kind) and (
        (one.trust >= UNASKED_TRUST) == (other.trust >= UNASKED_TRUST)
    )


def _merge_group(kind: str) -> str:
    """Return what must match: preferences and insights merge with their own kind only."""
    return kind if kind in ("preference", "insight") else ""


def _rank(root: Root) -> tuple[int, int, int, int]:
    """Return the sort key of survivors: by trust, by access count, by age."""
    return -root.trust, -root.access_count, root.created_at, root.n


def _merge_all(
    db: Connection, cycle_n: int, *, planned: Sequence[tuple[int, int]], run: PhaseRun
) -> None:
    recorder = consolidation.step_recorder(cycle_n)
    ns = [n for pair in planned for n in pair]
    by_number = live_fragments(db, ns)
    for survivor, victim in planned:
        if survivor not in by_number or victim not in by_number:
            continue
        stays, goes = by_number[survivor], by_number[victim]
        if stays.superseded_by or goes.superseded_by or stays.depth or goes.depth:
            continue
        children = graph.children(db, victim)
        for child in children:
            reversible_changes.reparent(db, child, survivor, now=run.now, recorder=recorder)
        for edge in graph.edges_among(db, [victim], ("associative",)):
            other = edge.target_n if edge.source_n == victim else edge.source_n
            pair = (min(other, survivor), max(other, survivor))
            if other != survivor and pair not in consolidation.associated_pairs(db, [survivor]):
                moved = EdgeRow(survivor, other, "associative", edge.weight)
                reversible_changes.add_edge(db, moved, now=run.now, recorder=recorder)
        reversible_changes.supersede(db, victim, survivor, now=run.now, recorder=recorder)
        consolidation.set_overview_at(db, survivor, None)
        # The survivor has new children, and may be similar to another one: compare it again.
        vectors.renumber(db, survivor)
        run.count("merged")
        run.count("children moved", len(children))
        run.report_line(f"{label(goes)} → {label(stays)}")


LINK_ABOVE = 0.7
LINK_MARK = "link"

_LINK_BATCH = 200
_MAX_CHILDREN = 200
"""The newest children of each root that are compared."""

_MAX_LINKS_EACH = 8
"""The maximum number of links of a child to the other root's children."""


def link(run: PhaseRun) -> None:
    """Add associative edges between similar children of similar roots, without duplicates."""
    embedding = find_embedder(run)
    if embedding is None:
        return
    joined = find_similar_roots(run, embedding, LINK_MARK)
    run.count("compared", joined.compared)
    run.count("near roots", len(joined.pairs))
    for piece in run.batches(joined.pairs, _LINK_BATCH):
        edges = _find_links(run, piece, embedding)
        run.write(partial(_add_links, edges=edges, run=run))
    run.write(lambda db, _: consolidation.set_progress(db, LINK_MARK, joined.seq))


def _find_links(
    run: PhaseRun, pairs: Sequence[RootPair], embedding: ActiveEmbedder
) -> list[EdgeRow]:
    with run.database.read() as db:
        roots = sorted({root.n for pair in pairs for root in (pair.a, pair.b)})
        children = consolidation.children_of(db, roots)
        ns = sorted({n for below in children.values() for n in below[-_MAX_CHILDREN:]})
        matrix = consolidation.load_vectors(db, ns, embedding)
    place = {n: i for i, n in enumerate(ns)}
    edges: list[EdgeRow] = []
    for pair in pairs:
        mine, theirs = (children.get(n, [])[-_MAX_CHILDREN:] for n in (pair.a.n, pair.b.n))
        if not mine or not theirs:
            continue
        cosines = matrix[[place[n] for n in mine]] @ matrix[[place[n] for n in theirs]].T
        nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :_MAX_LINKS_EACH]
        for row, columns in enumerate(nearest):
            edges += [
                EdgeRow(mine[row], theirs[column], "associative", float(cosines[row, column]))
                for column in columns
                if cosines[row, column] > LINK_ABOVE and mine[row] != theirs[column]
            ]
    return edges


def _add_links(db: Connection, cycle_n: int, *, edges: Sequence[EdgeRow], run: PhaseRun) -> None:
    recorder = consolidation.step_recorder(cycle_n)
    there = consolidation.associated_pairs(db, sorted({edge.source_n for edge in edges}))
    for edge in edges:
        ends = (min(edge[:2]), max(edge[:2]))
        if ends not in there:
            there.add(ends)
            reversible_changes.add_edge(db, edge, now=run.now, recorder=recorder)
            run.count("linked")
