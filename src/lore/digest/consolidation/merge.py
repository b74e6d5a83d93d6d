"""Phase 2, merge: of roots that say the same one survives, with the children of all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lore.digest.consolidation.joining import find_embedding, join
from lore.digest.consolidation.phase import Near, Work, named
from lore.records import UNASKED_TRUST
from lore.store import (
    consolidation,
    cycles,
    edges,
    fragments,
    judgements,
    steps,
    superseding,
    trees,
    vectors,
    watched_edges,
)
from lore.store.consolidation import Root
from lore.store.db import Connection
from lore.store.steps import Watch
from lore.text import values

ABOVE = 0.85
MARK = "merge"

_BATCH = 200
"""Merges of one transaction: others write in between."""


def merge(work: Work) -> None:
    """Merge roots that are nearly the same, unless they differ in a value or in who may speak."""
    embedding = find_embedding(work)
    if embedding is None:
        return
    joined = join(work, embedding, MARK)
    work.count("compared", joined.compared)
    planned = _plan(work, [pair for pair in joined.pairs if pair.cosine > ABOVE])
    for piece in work.pieces(planned, _BATCH):
        work.write(partial(_merge_all, planned=piece, work=work))
    work.write(lambda db, _: cycles.set_mark(db, MARK, joined.seq))


def _plan(work: Work, pairs: Sequence[Near]) -> list[tuple[int, int]]:
    """Choose (survivor, victim) for each root that goes; a survivor does not go itself."""
    fit = [pair for pair in pairs if _may_merge(pair.a, pair.b)]
    survivors: set[int] = set()
    victims: set[int] = set()
    planned = []
    with work.database.read() as db:
        ns = [pair.a.n for pair in fit]
        apart = judgements.of(db, ns, "merge")
        both = sorted({n for pair in fit for n in (pair.a.n, pair.b.n)})
        said = {n: one.content for n, one in fragments.by_number(db, both).items()}
        said |= consolidation.own_words(db, both)
    for stays, goes in sorted(map(_ranked, fit), key=lambda pair: (_rank(pair[0]), _rank(pair[1]))):
        low, high = sorted((stays.n, goes.n))
        if (low, high) in apart or {low, high} & victims or goes.n in survivors:
            continue
        # What goes may say more: a value of it that the other lacks would be lost.
        agreed = values.agree(said[stays.n], said[goes.n])
        if not (agreed and values.keeps(said[stays.n], said[goes.n])):
            work.count("kept apart")
            continue
        survivors.add(stays.n)
        victims.add(goes.n)
        planned.append((stays.n, goes.n))
    return planned


def _may_merge(one: Root, other: Root) -> bool:
    """Tell whether two roots are of one sort, and of one class of trust."""
    return _sort(one.kind) == _sort(other.kind) and (
        (one.trust >= UNASKED_TRUST) == (other.trust >= UNASKED_TRUST)
    )


def _sort(kind: str) -> str:
    """Return what must be the same: an instruction stands by its kind, an insight is derived."""
    return kind if kind in ("preference", "insight") else ""


def _ranked(pair: Near) -> tuple[Root, Root]:
    stays, goes = sorted((pair.a, pair.b), key=_rank)
    return stays, goes


def _rank(root: Root) -> tuple[int, int, int, int]:
    """Return the order in which roots survive: by trust, by readings, by age."""
    return -root.trust, -root.access_count, root.created_at, root.n


def _merge_all(
    db: Connection, cycle_n: int, *, planned: Sequence[tuple[int, int]], work: Work
) -> None:
    watch = steps.into(cycle_n)
    ns = [n for pair in planned for n in pair]
    found = fragments.by_number(db, ns)
    gone = fragments.deleted_among(db, ns)
    for survivor, victim in planned:
        if survivor not in found or victim not in found or {survivor, victim} & gone:
            continue
        stays, goes = found[survivor], found[victim]
        if stays.superseded_by or goes.superseded_by or stays.depth or goes.depth:
            continue
        children = edges.children(db, victim)
        for child in children:
            trees.reparent(db, child, survivor, now=work.now, watch=watch)
        for edge in edges.among_fragments(db, [victim], ("associative",)):
            _move_edge(db, watch, edge, victim, survivor, work)
        superseding.supersede(db, victim, survivor, now=work.now, watch=watch)
        consolidation.set_overview_at(db, survivor, None)
        # It has other children now, and may be near another survivor: it is compared again.
        vectors.renew(db, survivor)
        work.count("merged")
        work.count("children moved", len(children))
        work.tell(f"{named(goes)} → {named(stays)}")


def _move_edge(
    db: Connection, watch: Watch, edge: edges.EdgeRow, victim: int, survivor: int, work: Work
) -> None:
    """Let what was linked to the victim be linked to the survivor."""
    other = edge.target_n if edge.source_n == victim else edge.source_n
    low, high = sorted((other, survivor))
    if other != survivor and (low, high) not in consolidation.associated(db, [survivor]):
        moved = edges.EdgeRow(survivor, other, "associative", edge.weight)
        watched_edges.draw(db, moved, now=work.now, watch=watch)
