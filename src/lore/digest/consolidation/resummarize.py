"""Phase 4, resummarize: roots whose children changed get a fresh overview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from lore.digest.consolidation.phase import Work, named
from lore.records import Fragment
from lore.relevance import VISIBLE
from lore.store import consolidation, fragments, overviews, steps
from lore.store.db import Connection
from lore.text import lines

LEAST_CHILDREN = 2
"""A root with one child says what that child says."""

_MOST, _MOST_ASKED = 2_000, 50
"""Overviews of one cycle by rules, and by a chat; the rest gets its turn in the next."""


def resummarize(work: Work) -> None:
    """Give roots that Lore made a fresh text; the old one stays as a version."""
    most = _MOST_ASKED if work.asks else _MOST
    with work.database.read() as db:
        all_stale = consolidation.stale_overviews(db, least_children=LEAST_CHILDREN)
        stale = all_stale[:most]
        children = consolidation.children_of(db, stale)
        below = sorted({n for ns in children.values() for n in ns})
        found = fragments.by_number(db, [*stale, *below])
        own = consolidation.own_words(db, stale)
    work.count("waiting", len(all_stale) - len(stale))
    if work.dry_run and work.asks:
        work.count("to ask", len(stale))
        return
    for batch in work.batches(stale):
        fresh = []
        for n in batch:
            told = [found[c] for c in children.get(n, ()) if _may_stand_in(found[n], found[c])]
            head = replace(found[n], content=own.get(n, found[n].content))
            fresh.append((n, found[n], _overview(work, head, told) or found[n].content))
        work.write(partial(_keep, fresh=fresh, work=work))


def _overview(work: Work, root: Fragment, told: Sequence[Fragment]) -> str:
    """Return a fresh text for a root in its own words; none where too little is told of it."""
    if len(told) < LEAST_CHILDREN:
        return ""
    return work.cleaned(work.means.digester.overview(root, told))


def _may_stand_in(root: Fragment, child: Fragment) -> bool:
    """Tell whether an overview may tell a child: what has faded is not told any more, and what
    has less trust than the root would gain it by standing in the root's text."""
    return child.relevance >= VISIBLE and child.trust >= root.trust


def _keep(
    db: Connection, cycle_n: int, *, fresh: Sequence[tuple[int, Fragment, str]], work: Work
) -> None:
    """Write overviews, unless a root was changed meanwhile."""
    watch = steps.into(cycle_n)
    ns = [n for n, _, _ in fresh]
    now = fragments.by_number(db, ns)
    gone = fragments.deleted_among(db, ns)
    for n, root, text in fresh:
        if n not in now or n in gone or now[n].version != root.version:
            continue
        if text != root.content:
            summary = root.summary or lines.summary(text)
            overviews.reword(db, n, text, summary, now=work.now, watch=watch)
            work.count("reworded")
            work.tell(named(root))
        consolidation.set_overview_at(db, n, work.now)
