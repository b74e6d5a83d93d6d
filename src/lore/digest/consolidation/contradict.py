"""Phase contradict: judge related pairs, supersede what changed, and list the conflicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import NamedTuple

from lore import clock
from lore.digest.consolidation.doubts import settle_doubts
from lore.digest.consolidation.pairs import find_embedder, find_similar_roots_since
from lore.digest.consolidation.phase import PhaseRun, label, live_fragments
from lore.digest.consolidation.summaries import withdraw_overviews
from lore.errors import NotFound
from lore.records import UNASKED_TRUST, Conflict, Decision, Fragment, Verdict
from lore.store import consolidation, fragments, graph, history, items, pages, reversible_changes
from lore.store.consolidation import ActiveEmbedder, Judgement, StepRecorder
from lore.store.database import Connection, Database
from lore.store.graph import EdgeRow
from lore.store.history import LinkSnapshot, SuccessorSnapshot, UndoSnapshot
from lore.store.replacements import CHAT_CERTAINTY, Replacement

MIN_COSINE = 0.5
BATCH = 10
"""Pairs per request: as many as a chat model judges with care."""


class _Lane(NamedTuple):
    """Pairs that are judged together, and how far they are: roots are siblings too.

    At most `most_paid` pairs of a cycle are paid for, so many of them in a request.
    """

    mark: str
    roots_mark: str
    is_trusted: bool
    most_paid: int
    batch: int


_TRUSTED = _Lane("contradict", "contradict roots", is_trusted=True, most_paid=200, batch=BATCH)
_UNTRUSTED = _Lane(
    "contradict untrusted", "contradict untrusted roots", is_trusted=False, most_paid=20, batch=1
)
_LANES = (_TRUSTED, _UNTRUSTED)
"""What a tool or a repository says may speak to the chat that judges: it is read beside no other
pair. As there are fewer of these requests, they have marks of their own and keep nothing waiting.
"""

_MAX_CHILDREN, _MAX_PAID_CHILDREN = 5_000, 50
"""New children per cycle, by rules and by a paid chat:

the oldest first, the rest in the next cycle.
"""

_MAX_SIBLINGS = 50
_MAX_PAIRS_EACH = 4
"""Each new child is compared with its newest siblings, and judged with the nearest ones."""

_MAX_PAIRS = 25_000
"""Pairs that are judged per cycle by rules."""

_BATCHES_PER_WRITE = 20

_MAX_TRIES = 3
"""Cycles in which a pair without a verdict is asked about again, until one of the two changes."""


class Pair(NamedTuple):
    """Two fragments by number, and their cosine."""

    a: int
    b: int
    cosine: float


def contradict(run: PhaseRun) -> None:
    """Judge each pair of siblings once, supersede what has changed, and settle doubts."""
    _contradict_fragments(run)
    settle_doubts(run)


def _contradict_fragments(run: PhaseRun) -> None:
    embedding = find_embedder(run)
    if embedding is None:
        return
    fresh_since: dict[tuple[int, int], _Fresh] = {}
    for lane in _LANES:
        with run.database.read() as db:
            since = _get_marks(db, lane)
        if since not in fresh_since:
            fresh_since[since] = _find_fresh(run, embedding, *since)
        _judge_lane(run, lane, fresh_since[since])
    run.count("children waiting", max(fresh.children_left for fresh in fresh_since.values()))


class _Fresh(NamedTuple):
    """The pairs of what is new, up to which change numbers they are, and what is left."""

    pending: Sequence[_PendingPair]
    seq: int
    roots_seq: int
    children_left: int


def _find_fresh(run: PhaseRun, embedding: ActiveEmbedder, seq: int, roots_seq: int) -> _Fresh:
    limit = _MAX_PAID_CHILDREN if run.is_paid else _MAX_CHILDREN
    with run.database.read() as db:
        fresh = consolidation.children_since(db, seq, limit=limit)
        pairs = list(_sibling_pairs(db, fresh, embedding))
        children_left = consolidation.count_children_since(db, fresh[-1][0]) if fresh else 0
    joined = find_similar_roots_since(run, embedding, roots_seq)
    pairs += [Pair(near.a.n, near.b.n, near.cosine) for near in joined.pairs]
    last = fresh[-1][0] if fresh else seq
    return _Fresh(list(_unjudged_pairs(run, pairs)), last, joined.seq, children_left)


def _judge_lane(run: PhaseRun, lane: _Lane, fresh: _Fresh) -> None:
    """Judge the pairs of a lane; its marks move on if each of them got a verdict."""
    pending = [p for p in fresh.pending if (p.trust >= UNASKED_TRUST) == lane.is_trusted]
    chosen = run.take(pending, _MAX_PAIRS, lane.most_paid)
    unjudged = run.counts.get("unjudged", 0)
    for piece in run.batches(chosen, lane.batch if run.is_paid else BATCH * _BATCHES_PER_WRITE):
        _judge(run, piece)
    if len(chosen) == len(pending) and run.counts.get("unjudged", 0) == unjudged:
        run.write(partial(_set_marks, lane=lane, fresh=fresh))


def _get_marks(db: Connection, lane: _Lane) -> tuple[int, int]:
    """Return up to which change numbers of children and roots a lane is done.

    Memories from before the lanes had one mark for both.
    """
    return (
        consolidation.get_progress(db, lane.mark, before=_TRUSTED.mark),
        consolidation.get_progress(db, lane.roots_mark, before=_TRUSTED.roots_mark),
    )


def _set_marks(db: Connection, _cycle_n: int, *, lane: _Lane, fresh: _Fresh) -> None:
    done = {one: _get_marks(db, one) for one in _LANES}
    done[lane] = fresh.seq, fresh.roots_seq
    for one, (seq, roots_seq) in done.items():
        consolidation.set_progress(db, one.mark, seq)
        consolidation.set_progress(db, one.roots_mark, roots_seq)


def _sibling_pairs(
    db: Connection, fresh: Sequence[tuple[int, int, int]], embedding: ActiveEmbedder
) -> Iterator[Pair]:
    """Yield new children with their parents and their nearest siblings."""
    siblings = consolidation.children_of(db, sorted({parent for _, _, parent in fresh}))
    newest = {parent: ns[-_MAX_SIBLINGS:] for parent, ns in siblings.items()}
    near = {n for below in newest.values() for n in below}
    ns = sorted(near.union(*([child, parent] for _, child, parent in fresh)))
    matrix = consolidation.load_vectors(db, ns, embedding)
    place = {n: i for i, n in enumerate(ns)}
    for _, child, parent in fresh:
        others = [parent, *(n for n in newest.get(parent, ()) if n != child)]
        cosines = matrix[[place[n] for n in others]] @ matrix[place[child]]
        beside = sorted(zip(-cosines[1:], others[1:], strict=True))[:_MAX_PAIRS_EACH]
        # A root with a new overview has no vector yet; count it as near because it is the parent.
        above = cosines[0] if matrix[place[parent]].any() else MIN_COSINE
        nearest = [(-above, parent), *beside]
        for cosine, other in nearest:
            if -cosine >= MIN_COSINE:
                yield Pair(min(child, other), max(child, other), float(-cosine))


class _PendingPair(NamedTuple):
    """A pair to be judged, the older one first, with its cosine and its failed tries."""

    older_n: int
    older: Fragment
    newer_n: int
    newer: Fragment
    cosine: float
    tries: int

    @property
    def trust(self) -> int:
        """Return the trust of the less trusted of the two."""
        return min(self.older.trust, self.newer.trust)


def _unjudged_pairs(run: PhaseRun, pairs: Sequence[Pair]) -> Iterator[_PendingPair]:
    """Yield pairs that were not judged in their current versions, newest first."""
    once = {(pair.a, pair.b): pair for pair in pairs}
    with run.database.read() as db:
        ns = sorted({n for pair in once for n in pair})
        by_number = fragments.by_number(db, ns)
        own = consolidation.texts_before_overviews(db, ns)
        firsts = sorted({a for a, _ in once})
        judged = consolidation.judgements_of(db, firsts, "judge")
        in_vain = consolidation.judgements_of(db, firsts, "ask")
    for pair in sorted(once.values(), key=lambda pair: (-pair.b, -pair.a)):
        a, b = by_number.get(pair.a), by_number.get(pair.b)
        if a is None or b is None or a.superseded_by or b.superseded_by:
            continue
        if _find_judgement(judged, pair, a, b):
            continue
        previous = _find_judgement(in_vain, pair, a, b)
        tries = int(previous.verdict) if previous else 0
        if tries >= _MAX_TRIES:
            continue
        (older_n, older), (newer_n, newer) = sorted(
            ((pair.a, a), (pair.b, b)), key=lambda one: (_worded_at(one[1]), one[0])
        )
        # Leave out what an overview added to a root: its children are compared themselves.
        older, newer = (
            replace(one, content=own.get(n, one.content))
            for n, one in ((older_n, older), (newer_n, newer))
        )
        yield _PendingPair(older_n, older, newer_n, newer, pair.cosine, tries)


def _find_judgement(
    judgements: Mapping[tuple[int, int], Judgement], pair: Pair, a: Fragment, b: Fragment
) -> Judgement | None:
    judgement = judgements.get((pair.a, pair.b))
    same = judgement and (judgement.a_version, judgement.b_version) == (a.version, b.version)
    return judgement if same else None


def _worded_at(fragment: Fragment) -> datetime:
    """Return when a fragment got its words; a root's later text may be an overview."""
    return fragment.updated_at if fragment.depth else fragment.created_at


def _judge(run: PhaseRun, pending: Sequence[_PendingPair]) -> None:
    verdicts: list[Verdict | None] = []
    for start in range(0, len(pending), BATCH):
        batch = [(one.older, one.newer) for one in pending[start : start + BATCH]]
        answer = run.context.summarizer.judge(batch)
        verdicts += answer if len(answer) == len(batch) else [None] * len(batch)
    run.write(partial(_apply_verdicts, pending=pending, verdicts=verdicts, run=run))


def _apply_verdicts(
    db: Connection,
    cycle_n: int,
    *,
    pending: Sequence[_PendingPair],
    verdicts: Sequence[Verdict | None],
    run: PhaseRun,
) -> None:
    """Apply verdicts and record them; skip fragments that are gone meanwhile.

    For a pair without a verdict only the try is recorded.
    """
    recorder = consolidation.step_recorder(cycle_n)
    ns = [n for one in pending for n in (one.older_n, one.newer_n)]
    by_number = live_fragments(db, ns)
    superseded: set[int] = set()
    judged = []
    for one, verdict in zip(pending, verdicts, strict=True):
        ends = {one.older_n, one.newer_n}
        if not ends <= by_number.keys() or ends & superseded:
            continue
        if any(by_number[n].superseded_by for n in ends):
            continue
        (a, a_version), (b, b_version) = sorted((
            (one.older_n, one.older.version),
            (one.newer_n, one.newer.version),
        ))
        if verdict is None:
            judged.append(Judgement(a, b, "ask", str(one.tries + 1), a_version, b_version))
            run.count("unjudged")
            continue
        judged.append(Judgement(a, b, "judge", verdict, a_version, b_version))
        run.count("judged")
        if verdict == "changes" and one.newer.trust >= one.older.trust:
            _supersede(db, one, recorder, run)
            superseded.add(one.older_n)
        elif verdict == "changes_part" and one.newer.trust >= one.older.trust:
            link = _link_in_part(one)
            if reversible_changes.record_settled(db, link, recorder, inserts=True):
                run.count("replaced in part")
                run.report_line(f"{label(one.newer)} replaces a part of {label(one.older)}")
        elif verdict != "agrees":
            edge = EdgeRow(one.newer_n, one.older_n, "contradicts", one.cosine)
            if reversible_changes.add_edge(db, edge, now=run.now, recorder=recorder):
                run.count("conflicts")
                run.report_line(f"{label(one.newer)} contradicts {label(one.older)}")
    withdraw_overviews(db, sorted(superseded), recorder, run)
    consolidation.put_judgements(db, judged, now=run.now)


def _supersede(db: Connection, pair: _PendingPair, recorder: StepRecorder, run: PhaseRun) -> None:
    older_n, newer_n = pair.older_n, pair.newer_n
    if graph.find_parent(db, newer_n) == older_n:
        reversible_changes.replace_parent(db, newer_n, older_n, now=run.now, recorder=recorder)
    reversible_changes.supersede(db, older_n, newer_n, now=run.now, recorder=recorder)
    run.count("superseded")
    run.report_line(f"{label(pair.newer)} supersedes {label(pair.older)}")


def _link_in_part(pair: _PendingPair) -> Replacement:
    at = clock.to_us(_worded_at(pair.newer))
    return Replacement(
        pair.older_n,
        pair.older.content,
        pair.newer_n,
        pair.newer.content,
        "partly",
        CHAT_CERTAINTY,
        at,
    )


_UNDO_GROUP = "decision"
"""The name of a conflict resolution in undo."""


def open_conflicts(db: Connection, *, project_n: int | None = None) -> list[Conflict]:
    """Return the conflicts that wait for a person, newest first."""
    pairs = [key[1:] for key in pages.conflicts(db, (), project_n=project_n)]
    by_number = fragments.by_number(db, sorted({n for pair in pairs for n in pair}))
    return [Conflict(by_number[newer], by_number[older]) for newer, older in pairs]


def resolve_conflict(database: Database, one: str, other: str, decision: Decision) -> None:
    """Resolve the conflict between two fragments.

    'keep' lets the first supersede the second, whatever their trust: a person decides; 'both' keeps
    both, as related; 'dismiss' says that there was no conflict. All of it can be undone.
    """
    now = database.now()
    database.write(lambda db: apply_decision(db, one, other, decision, now))


def is_conflict(db: Connection, one: str, other: str) -> bool:
    """Return whether two items contradict each other."""
    return _find_conflict(db, *(items.resolve(db, id_).n for id_ in (one, other))) is not None


def _find_conflict(db: Connection, a: int, b: int) -> tuple[int, int] | None:
    edges = (ends for ends in ((a, b), (b, a)) if graph.find_edge(db, *ends, "contradicts"))
    return next(edges, None)


def apply_decision(db: Connection, one: str, other: str, decision: Decision, now: datetime) -> None:
    """Resolve the conflict between two fragments in a transaction: see `resolve_conflict`."""
    a, b = (items.resolve(db, id_).n for id_ in (one, other))
    edge = _find_conflict(db, a, b)
    if edge is None:
        msg = f"There is no conflict between '{one}' and '{other}'."
        raise NotFound(msg, hint="'lore conflicts' lists those that there are.")
    if decision == "keep":
        before = UndoSnapshot(successor=SuccessorSnapshot(a, fragments.get(db, b).superseded_by))
        reversible_changes.supersede(db, b, a, now=now)
        history.record_action(db, "supersede", b, before, now=now)
        return
    source, target = edge
    former = LinkSnapshot(target, "contradicts", graph.find_edge(db, source, target, "contradicts"))
    graph.remove_edge(db, source, target, "contradicts")
    history.record_action(db, "link", source, UndoSnapshot(link=former, batch=_UNDO_GROUP), now=now)
    if decision == "both" and graph.find_edge(db, source, target, "related_to") is None:
        graph.put_edge(db, source, target, "related_to", now=now)
        drawn = LinkSnapshot(target, "related_to")
        history.record_action(
            db, "link", source, UndoSnapshot(link=drawn, batch=_UNDO_GROUP), now=now
        )
    versions = {n: fragments.get(db, n).version for n in (a, b)}
    low, high = sorted((a, b))
    judged = Judgement(low, high, "judge", "agrees", versions[low], versions[high])
    consolidation.put_judgements(db, [judged], now=now)
