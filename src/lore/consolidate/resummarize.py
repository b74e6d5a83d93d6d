"""Phase 4, resummarize: roots whose children changed get a fresh overview."""

from __future__ import annotations

from functools import partial

from lore.consolidate.phase import Work, named
from lore.records import Fragment
from lore.store import consolidation, fragments, steps
from lore.store.db import Connection
from lore.text import lines, words

LEAST_CHILDREN = 2
"""A root with one child says what that child says."""

_MOST, _MOST_ASKED = 2_000, 50
"""Overviews of one cycle by rules, and by a chat; the rest gets its turn in the next."""


def resummarize(work: Work) -> None:
    """Give roots that Lore made a fresh text; the old one stays as a version."""
    most = _MOST_ASKED if work.asks else _MOST
    with work.database.read() as db:
        stale = consolidation.stale_overviews(db, least_children=LEAST_CHILDREN, limit=most)
        children = consolidation.children_of(db, stale)
        below = sorted({n for ns in children.values() for n in ns})
        found = fragments.by_number(db, [*stale, *below])
    if work.dry_run and work.asks:
        work.count("to ask", len(stale))
        return
    for done, n in enumerate(stale):
        work.advance(done, len(stale))
        root = found[n]
        # What has less trust than the root would gain it by standing in the root's text.
        trusted = [found[c] for c in children.get(n, ()) if found[c].trust >= root.trust]
        text = root.content
        if len(trusted) >= LEAST_CHILDREN:
            text = words.clean(work.means.digester.overview(root, trusted)).strip() or text
        work.write(partial(_keep, n=n, root=root, text=text, work=work))


def _keep(db: Connection, cycle_n: int, *, n: int, root: Fragment, text: str, work: Work) -> None:
    """Write an overview, unless the root was changed meanwhile."""
    now = fragments.by_number(db, [n]).get(n)
    if now is None or now.version != root.version or fragments.is_deleted(db, n):
        return
    if text != root.content:
        summary = root.summary or lines.summary(text)
        steps.reword(db, cycle_n, n, text, summary, now=work.now)
        work.count("reworded")
        work.tell(named(root))
    consolidation.set_overview_at(db, n, work.now)
