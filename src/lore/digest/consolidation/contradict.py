"""Phase 6, contradict: of siblings, and of child and parent, one may change or deny the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import NamedTuple

from lore.digest.consolidation.joining import find_embedding, join
from lore.digest.consolidation.phase import Work, named
from lore.records import Fragment, Verdict
from lore.store import (
    consolidation,
    cycles,
    edges,
    fragments,
    judgements,
    overviews,
    steps,
    superseding,
    trees,
    watched_edges,
)
from lore.store.consolidation import Embedding
from lore.store.db import Connection
from lore.store.edges import EdgeRow
from lore.store.judgements import Judgement
from lore.store.steps import Watch

LEAST = 0.5
BATCH = 10
"""Pairs of one question: as many as a chat judges with care."""

MARK, ROOTS_MARK = "contradict", "contradict roots"
"""Roots are siblings too; of those only the near ones are judged."""

_MOST_CHILDREN, _MOST_ASKED_CHILDREN = 5_000, 50
"""New children that are looked at in one cycle, by rules and by a chat: the oldest first, the
rest in the next cycle."""

_MOST_SIBLINGS = 50
_MOST_EACH = 4
"""Each new child is compared with so many of its newest siblings, and judged with the nearest."""

_MOST, _MOST_ASKED = 25_000, 200
"""Pairs that are judged in one cycle, by rules and by a chat."""

_SAVED_BATCHES = 20

_MOST_TRIES = 3
"""Cycles in which a pair is asked about that gets no verdict, until one of the two is changed."""


class Pair(NamedTuple):
    """Two fragments by number, and how close they are."""

    a: int
    b: int
    cosine: float


def contradict(work: Work) -> None:
    """Judge pairs of siblings, each once; what is explicitly changed is superseded."""
    embedding = find_embedding(work)
    if embedding is None:
        return
    limit = _MOST_ASKED_CHILDREN if work.asks else _MOST_CHILDREN
    with work.database.read() as db:
        fresh = consolidation.children_since(db, cycles.find_mark(db, MARK), limit=limit)
        pairs = list(_sibling_pairs(db, fresh, embedding))
        left = consolidation.count_children_since(db, fresh[-1][0]) if fresh else 0
    work.count("children waiting", left)
    joined = join(work, embedding, ROOTS_MARK)
    pairs += [Pair(near.a.n, near.b.n, near.cosine) for near in joined.pairs]
    asked = list(_unjudged(work, pairs))
    most = _MOST_ASKED if work.asks else _MOST
    waiting = max(0, len(asked) - most)
    asked = asked[:most]
    work.count("waiting", waiting)
    if work.dry_run and work.asks:
        work.count("to ask", len(asked))
        return
    for piece in work.pieces(asked, BATCH if work.asks else BATCH * _SAVED_BATCHES):
        _judge(work, piece)
    if not waiting and not work.counts.get("unjudged"):
        seq = fresh[-1][0] if fresh else 0
        work.write(partial(_set_marks, seq=seq, roots_seq=joined.seq))


def _set_marks(db: Connection, _cycle_n: int, *, seq: int, roots_seq: int) -> None:
    cycles.set_mark(db, MARK, max(seq, cycles.find_mark(db, MARK)))
    cycles.set_mark(db, ROOTS_MARK, roots_seq)


def _sibling_pairs(
    db: Connection, fresh: Sequence[tuple[int, int, int]], embedding: Embedding
) -> Iterator[Pair]:
    """Yield new children with their parents and their nearest siblings."""
    siblings = consolidation.children_of(db, sorted({parent for _, _, parent in fresh}))
    newest = {parent: ns[-_MOST_SIBLINGS:] for parent, ns in siblings.items()}
    near = {n for below in newest.values() for n in below}
    ns = sorted(near.union(*([child, parent] for _, child, parent in fresh)))
    matrix = consolidation.vectors_of(db, ns, embedding)
    place = {n: i for i, n in enumerate(ns)}
    for _, child, parent in fresh:
        others = [parent, *(n for n in newest.get(parent, ()) if n != child)]
        cosines = matrix[[place[n] for n in others]] @ matrix[place[child]]
        beside = sorted(zip(-cosines[1:], others[1:], strict=True))[:_MOST_EACH]
        # A root that just got an overview waits for its vector; it is near by its place.
        above = cosines[0] if matrix[place[parent]].any() else LEAST
        nearest = [(-above, parent), *beside]
        for cosine, other in nearest:
            if -cosine >= LEAST:
                yield Pair(min(child, other), max(child, other), float(-cosine))


class _Asked(NamedTuple):
    """A pair to be judged: the older one first, how close they are, and how often in vain."""

    older_n: int
    older: Fragment
    newer_n: int
    newer: Fragment
    cosine: float
    tries: int


def _unjudged(work: Work, pairs: Sequence[Pair]) -> Iterator[_Asked]:
    """Yield pairs that were not judged in these words, newest first."""
    once = {(pair.a, pair.b): pair for pair in pairs}
    with work.database.read() as db:
        ns = sorted({n for pair in once for n in pair})
        found = fragments.by_number(db, ns)
        own = consolidation.own_words(db, ns)
        firsts = sorted({a for a, _ in once})
        judged = judgements.of(db, firsts, "judge")
        in_vain = judgements.of(db, firsts, "ask")
    for pair in sorted(once.values(), key=lambda pair: (-pair.b, -pair.a)):
        a, b = found.get(pair.a), found.get(pair.b)
        if a is None or b is None or a.superseded_by or b.superseded_by:
            continue
        if _find(judged, pair, a, b):
            continue
        asked = _find(in_vain, pair, a, b)
        tries = int(asked.verdict) if asked else 0
        if tries >= _MOST_TRIES:
            continue
        (older_n, older), (newer_n, newer) = sorted(
            ((pair.a, a), (pair.b, b)), key=lambda one: (_said_at(one[1]), one[0])
        )
        # What an overview put under a root is left out: its children speak for themselves.
        older, newer = (
            replace(one, content=own.get(n, one.content))
            for n, one in ((older_n, older), (newer_n, newer))
        )
        yield _Asked(older_n, older, newer_n, newer, pair.cosine, tries)


def _find(
    made: Mapping[tuple[int, int], Judgement], pair: Pair, a: Fragment, b: Fragment
) -> Judgement | None:
    """Return what was decided of a pair in the words that it has now."""
    found = made.get((pair.a, pair.b))
    same = found and (found.a_version, found.b_version) == (a.version, b.version)
    return found if same else None


def _said_at(fragment: Fragment) -> datetime:
    """Return when a fragment got its words; those of a root may be an overview of Lore's own."""
    return fragment.updated_at if fragment.depth else fragment.created_at


def _judge(work: Work, asked: Sequence[_Asked]) -> None:
    verdicts: list[Verdict | None] = []
    for start in range(0, len(asked), BATCH):
        batch = [(one.older, one.newer) for one in asked[start : start + BATCH]]
        given = work.means.digester.judge(batch)
        verdicts += given if len(given) == len(batch) else [None] * len(batch)
    work.write(partial(_keep, asked=asked, verdicts=verdicts, work=work))


def _keep(
    db: Connection,
    cycle_n: int,
    *,
    asked: Sequence[_Asked],
    verdicts: Sequence[Verdict | None],
    work: Work,
) -> None:
    """Act on verdicts, and remember them; what is gone meanwhile is passed over.

    Of a pair without a verdict it is remembered only that it was asked about.
    """
    watch = steps.into(cycle_n)
    ns = [n for one in asked for n in (one.older_n, one.newer_n)]
    found = fragments.by_number(db, ns)
    gone = fragments.deleted_among(db, ns)
    superseded: set[int] = set()
    judged = []
    for one, verdict in zip(asked, verdicts, strict=True):
        ends = {one.older_n, one.newer_n}
        if not ends <= set(found) or ends & (gone | superseded):
            continue
        if any(found[n].superseded_by for n in ends):
            continue
        (a, a_version), (b, b_version) = sorted((
            (one.older_n, one.older.version),
            (one.newer_n, one.newer.version),
        ))
        if verdict is None:
            judged.append(Judgement(a, b, "ask", str(one.tries + 1), a_version, b_version))
            work.count("unjudged")
            continue
        judged.append(Judgement(a, b, "judge", verdict, a_version, b_version))
        work.count("judged")
        if verdict == "changes" and one.newer.trust >= one.older.trust:
            if edges.find_parent(db, one.newer_n) == one.older_n:
                trees.take_place(db, one.newer_n, one.older_n, now=work.now, watch=watch)
            superseding.supersede(db, one.older_n, one.newer_n, now=work.now, watch=watch)
            superseded.add(one.older_n)
            work.count("superseded")
            work.tell(f"{named(one.newer)} supersedes {named(one.older)}")
        elif verdict != "agrees":
            edge = EdgeRow(one.newer_n, one.older_n, "contradicts", one.cosine)
            if watched_edges.draw(db, edge, now=work.now, watch=watch):
                work.count("conflicts")
                work.tell(f"{named(one.newer)} contradicts {named(one.older)}")
    _withdraw_overviews(db, watch, sorted(superseded), work)
    judgements.put(db, judged, now=work.now)


def _withdraw_overviews(db: Connection, watch: Watch, ns: Sequence[int], work: Work) -> None:
    """Give the parents of what was superseded their own words back, until the next cycle.

    An overview that still tells what was just superseded would bring it back; a fresh one costs
    a question, and phase 4 asks those.
    """
    parents = {edges.find_parent(db, n) for n in ns} - {None, *ns}
    for parent in sorted(n for n in parents if n is not None):
        own = overviews.find_own_words(db, parent)
        if own is not None:
            overviews.reword(db, parent, own.content, own.summary, now=work.now, watch=watch)
            work.count("overviews withdrawn")
    consolidation.ask_for_overviews(db, ns)
