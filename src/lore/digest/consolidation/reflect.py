"""Phase 5, reflect: clusters of linked roots yield an insight, once each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from lore import clock
from lore.digest.consolidation.clusters import clusters, is_news
from lore.digest.consolidation.phase import Work, named
from lore.records import Fragment
from lore.store import consolidation, edges, fragments, items, judgements, steps
from lore.store.db import Connection
from lore.store.fragments import NewFragment
from lore.store.judgements import Judgement
from lore.store.steps import Step
from lore.text import entities, lines

LEAST_WEIGHT = 0.5
"""Weaker links say that two roots have something to do with each other, not what."""

_MOST, _MOST_ASKED = 200, 20
"""Insights of one cycle by rules, and by a chat."""

_IMPORTANCE = 0.5
_CONFIDENCE = 0.6
"""An insight is what nobody said: a little less sure than what was said."""

_MOST_SOURCES = 200


def reflect(work: Work) -> None:
    """Ask for an insight of each cluster that was not reflected on before."""
    with work.database.read() as db:
        links = consolidation.root_links(db, least=LEAST_WEIGHT)
        known = judgements.groups(db, "reflect")
    holding: dict[int, set[int]] = {}
    for anchor, members in known.items():
        for n in members:
            holding.setdefault(n, set()).add(anchor)
    fresh = [
        cluster
        for cluster in clusters(links)
        if is_news(cluster, [known[a] for n in cluster for a in holding.get(n, ())])
    ]
    most = _MOST_ASKED if work.asks else _MOST
    work.count("waiting", max(0, len(fresh) - most))
    if work.dry_run and work.asks:
        work.count("to ask", min(len(fresh), most))
        return
    for batch in work.batches(fresh[:most]):
        with work.database.read() as db:
            found = fragments.by_number(db, sorted({n for cluster in batch for n in cluster}))
        answers = []
        for cluster in batch:
            told = [found[n] for n in cluster if n in found]
            text = work.cleaned(work.means.digester.reflect(told))
            answers.append(_Answer(cluster, told, text))
        work.write(partial(_keep, answers=answers, work=work))


class _Answer(NamedTuple):
    """What reflecting on a cluster gave."""

    ns: tuple[int, ...]
    members: list[Fragment]
    text: str


def _keep(db: Connection, cycle_n: int, *, answers: Sequence[_Answer], work: Work) -> None:
    for answer in answers:
        _keep_one(db, cycle_n, answer, work)


def _keep_one(db: Connection, cycle_n: int, answer: _Answer, work: Work) -> None:
    """Store an insight with what it was derived from, and that it was asked for."""
    ns, members, text = answer
    if len(fragments.by_number(db, ns)) < len(ns):
        return
    # The first member stands for the cluster, also when nothing came of it.
    judged = [Judgement(ns[0], n, "reflect", "insight" if text else "none") for n in ns]
    judgements.put(db, judged, now=work.now)
    if not text:
        work.count("without insight")
        return
    lowest = min(members, key=lambda one: one.trust)
    sources = dict.fromkeys(id_ for one in members for id_ in one.source_messages)
    summary = lines.summary(text)
    new = NewFragment(
        id=clock.new_id(work.now),
        content=text,
        summary=summary,
        kind="insight",
        created_at=work.now,
        importance=_IMPORTANCE,
        confidence=_CONFIDENCE,
        origin=lowest.origin,
        trust=lowest.trust,
        project_n=items.resolve(db, members[0].id, type="fragment").project_n,
        source_messages=tuple(sources)[:_MOST_SOURCES],
        mentions=entities.of_fragment(text, summary),
    )
    n = fragments.add(db, new, now=work.now)
    steps.record(db, cycle_n, Step("added", n))
    for member in ns:
        edges.put(db, n, member, "derived_from", now=work.now)
    work.count("insights")
    work.tell(named(fragments.get(db, n)))
