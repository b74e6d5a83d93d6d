"""Clusters: groups of linked roots, strongest links first, none larger than can be read."""

from __future__ import annotations

from collections.abc import Iterable

LARGEST = 8
"""Roots of one cluster: an insight of more would say nothing of each."""

SMALLEST = 3


def clusters(links: Iterable[tuple[int, int, float]]) -> list[tuple[int, ...]]:
    """Group the ends of links, given strongest first; return groups of 3 to 8, in that order."""
    group_of: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    for a, b, _ in links:
        for n in (a, b):
            if n not in group_of:
                group_of[n] = n
                members[n] = [n]
        one, other = group_of[a], group_of[b]
        if one == other or len(members[one]) + len(members[other]) > LARGEST:
            continue
        for n in members[other]:
            group_of[n] = one
        members[one] += members.pop(other)
    return [tuple(sorted(ns)) for ns in members.values() if len(ns) >= SMALLEST]


def is_news(cluster: Iterable[int], known: Iterable[set[int]]) -> bool:
    """Tell whether at least half of a cluster was not reflected on together before."""
    wanted = set(cluster)
    return all(2 * len(wanted & before) <= len(wanted) for before in known)
