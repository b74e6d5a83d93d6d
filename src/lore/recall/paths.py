"""Paths: how a discovery of a deep search hangs together with what was found directly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lore.recall.graph import HUB_USES, LINKING
from lore.store import edges, fragments, mentions
from lore.store.db import Connection
from lore.store.fragments import FragmentFilter

Links = dict[int, str]
"""Fragments one step away, each with what the step goes by: a name or a kind of edge."""


def find_path(db: Connection, seeds: Sequence[int], n: int) -> tuple[str, ...]:
    """Return the way from a seed to a fragment: titles, and between them what links the two.

    At most one other fragment lies in between; where there is no such way, it is empty.
    """
    near = _links(db, n)
    for seed in seeds:
        if seed in near and seed != n:
            return _told(db, [seed, n], [near[seed]])
    for seed in seeds:
        around = _links(db, seed) if seed != n else {}
        between = _shown(db, near.keys() & around.keys() - {n, *seeds})
        if between:
            middle = min(between)
            return _told(db, [seed, middle, n], [around[middle], near[middle]])
    return ()


def _links(db: Connection, n: int) -> Links:
    """Return what lies one step from a fragment; the rarest name goes before the others."""
    found: Links = {}
    for row in edges.among_fragments(db, [n], LINKING):
        other = row.target_n if row.source_n == n else row.source_n
        found.setdefault(other, row.kind.replace("_", " "))
    table = mentions.of_items(db, [n])
    uses = {int(row[1]): int(row[3]) for row in table if 2 <= row[3] <= HUB_USES}
    names = mentions.names_of(db, list(uses))
    back = mentions.of_entities(db, list(uses)).tolist()
    for item, entity, _, _ in sorted(back, key=lambda row: (uses[row[1]], row[1])):
        if item != n:
            found.setdefault(item, names[entity])
    return found


def _shown(db: Connection, ns: Iterable[int]) -> set[int]:
    wanted = sorted(ns)
    return fragments.visible(db, FragmentFilter(), wanted) if wanted else set()


def _told(db: Connection, ns: Sequence[int], links: Sequence[str]) -> tuple[str, ...]:
    found = fragments.by_number(db, ns)
    titles = [found[n].summary for n in ns]
    told = [titles[0]]
    for link, title in zip(links, titles[1:], strict=True):
        told += [link, title]
    return tuple(told)
