"""Phases resummarize and reflect: refresh overviews, and derive insights from linked roots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from lore import clock
from lore.digest.consolidation.phase import PhaseRun, label, live_fragments
from lore.records import Fragment
from lore.relevance import VISIBLE
from lore.store import consolidation, fragments, graph, items, reversible_changes
from lore.store.consolidation import Judgement, Step, StepRecorder
from lore.store.database import Connection
from lore.store.fragments import NewFragment
from lore.text import entities, sentences

MIN_CHILDREN = 2
"""A root with one child says what that child says."""

_MAX_OVERVIEWS, _MAX_PAID_OVERVIEWS = 2_000, 50
"""Overviews per cycle by rules, and by a paid chat; the rest follows in the next cycle."""


def resummarize(run: PhaseRun) -> None:
    """Rewrite the overviews of roots that Lore made; the old text stays as a version."""
    with run.database.read() as db:
        all_stale = consolidation.stale_overviews(db, least_children=MIN_CHILDREN)
        stale = run.take(all_stale, _MAX_OVERVIEWS, _MAX_PAID_OVERVIEWS)
        children = consolidation.children_of(db, stale)
        below = sorted({n for ns in children.values() for n in ns})
        by_number = fragments.by_number(db, [*stale, *below])
        own = consolidation.texts_before_overviews(db, stale)
    for batch in run.answer_batches(stale):
        fresh = []
        for n in batch:
            root = by_number[n]
            # Faded children are left out; a less trusted child would gain the root's trust.
            mentioned = [
                child
                for child in map(by_number.__getitem__, children.get(n, ()))
                if child.relevance >= VISIBLE and child.trust >= root.trust
            ]
            text = ""
            if len(mentioned) >= MIN_CHILDREN:
                head = replace(root, content=own.get(n, root.content))
                text = run.clean(run.context.summarizer.overview(head, mentioned))
            fresh.append((n, root, text or root.content))
        run.write(partial(_store_overviews, fresh=fresh, run=run))


def _store_overviews(
    db: Connection, cycle_n: int, *, fresh: Sequence[tuple[int, Fragment, str]], run: PhaseRun
) -> None:
    recorder = consolidation.step_recorder(cycle_n)
    now = live_fragments(db, [n for n, _, _ in fresh])
    for n, root, text in fresh:
        if n not in now or now[n].version != root.version:
            continue
        if text != root.content:
            summary = root.summary or sentences.summary(text)
            reversible_changes.write_overview(db, n, text, summary, now=run.now, recorder=recorder)
            run.count("reworded")
            run.report_line(label(root))
        consolidation.set_overview_at(db, n, run.now)


def withdraw_overviews(
    db: Connection, ns: Sequence[int], recorder: StepRecorder, run: PhaseRun
) -> None:
    """Restore the own words of the parents of fragments that hold no longer, until the next cycle.

    An overview that still states what was superseded or archived would bring it back; a new one
    costs a request, and the phase resummarize sends those.
    """
    parents = {graph.find_parent(db, n) for n in ns} - {None, *ns}
    for parent in sorted(n for n in parents if n is not None):
        own = reversible_changes.find_text_before_overview(db, parent)
        if own is not None:
            reversible_changes.write_overview(
                db, parent, own.content, own.summary, now=run.now, recorder=recorder
            )
            run.count("overviews withdrawn")
    consolidation.request_overviews(db, ns)


MAX_CLUSTER = 8
"""An insight from more roots would say nothing about each."""

MIN_CLUSTER = 3


def build_clusters(links: Iterable[tuple[int, int, float]]) -> list[tuple[int, ...]]:
    """Group the ends of links, given strongest first; return groups of 3 to 8, in that order."""
    group_of: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    for a, b, _ in links:
        for n in (a, b):
            if n not in group_of:
                group_of[n] = n
                members[n] = [n]
        one, other = group_of[a], group_of[b]
        if one == other or len(members[one]) + len(members[other]) > MAX_CLUSTER:
            continue
        for n in members[other]:
            group_of[n] = one
        members[one] += members.pop(other)
    return [tuple(sorted(ns)) for ns in members.values() if len(ns) >= MIN_CLUSTER]


def is_new_cluster(cluster: Iterable[int], previous: Iterable[set[int]]) -> bool:
    """Return whether at least half of a cluster was not reflected on together before."""
    members = set(cluster)
    return all(2 * len(members & before) <= len(members) for before in previous)


MIN_WEIGHT = 0.5
"""Weaker links say that two roots are related, not how."""

_MAX_INSIGHTS = 20
"""Insights per cycle: only a chat derives them, and it may be paid for."""

_IMPORTANCE = 0.5
_CONFIDENCE = 0.6
"""Nobody stated an insight: it is a little less certain than a statement."""

_MAX_SOURCES = 200


def reflect(run: PhaseRun) -> None:
    """Derive an insight from each cluster that was not reflected on before, with a chat."""
    if not run.is_paid:
        run.skipped = "an insight needs a chat"
        return
    with run.database.read() as db:
        links = consolidation.root_links(db, least=MIN_WEIGHT)
        previous = consolidation.judgement_groups(db, "reflect")
    holding: dict[int, set[int]] = {}
    for anchor, members in previous.items():
        for n in members:
            holding.setdefault(n, set()).add(anchor)
    fresh = [
        cluster
        for cluster in build_clusters(links)
        if is_new_cluster(cluster, [previous[a] for n in cluster for a in holding.get(n, ())])
    ]
    for batch in run.answer_batches(run.take(fresh, _MAX_INSIGHTS)):
        with run.database.read() as db:
            by_number = fragments.by_number(db, sorted({n for cluster in batch for n in cluster}))
        answers = []
        for cluster in batch:
            cluster_members = [by_number[n] for n in cluster if n in by_number]
            text = run.clean(run.context.summarizer.reflect(cluster_members))
            answers.append((cluster, cluster_members, text))
        run.write(partial(_store_insights, answers=answers, run=run))


Answer = tuple[tuple[int, ...], list[Fragment], str]
"""The numbers of a cluster, its members, and their insight, which may be empty."""


def _store_insights(
    db: Connection, cycle_n: int, *, answers: Sequence[Answer], run: PhaseRun
) -> None:
    for answer in answers:
        _store_insight(db, cycle_n, answer, run)


def _store_insight(db: Connection, cycle_n: int, answer: Answer, run: PhaseRun) -> None:
    """Store an insight with its sources, and record that the cluster was asked about."""
    ns, members, text = answer
    if len(fragments.by_number(db, ns)) < len(ns):
        return
    # The first member represents the cluster, also without an insight.
    judged = [Judgement(ns[0], n, "reflect", "insight" if text else "none") for n in ns]
    consolidation.put_judgements(db, judged, now=run.now)
    if not text:
        run.count("without insight")
        return
    home = items.find_home(db, ns)
    lowest = min(members, key=lambda one: one.trust)
    sources = dict.fromkeys(id_ for one in members for id_ in one.source_messages)
    summary = sentences.summary(text)
    new = NewFragment(
        id=clock.new_id(run.now),
        content=text,
        summary=summary,
        kind="insight",
        created_at=run.now,
        importance=_IMPORTANCE,
        confidence=_CONFIDENCE,
        origin=lowest.origin,
        trust=lowest.trust,
        project_n=home.project_n,
        session_n=home.session_n,
        source_messages=tuple(sources)[:_MAX_SOURCES],
        mentions=entities.fragment_mentions(text, summary),
    )
    n = fragments.add(db, new, now=run.now)
    consolidation.record_steps(db, cycle_n, Step("added", n))
    for member in ns:
        graph.put_edge(db, n, member, "derived_from", now=run.now)
    run.count("insights")
    run.report_line(label(fragments.get(db, n)))
