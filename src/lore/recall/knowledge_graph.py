"""A picture of the graph of knowledge: the strongest trees, or what is around one fragment."""

from __future__ import annotations

from collections import Counter

from lore import clock
from lore.recall import graph_layout
from lore.records import GraphEdge, GraphNode, KnowledgeGraph
from lore.store import graph_rows, items
from lore.store.database import Connection

MAX_NODES = 1_000
_ROOT_SHARE = 0.3
"""Share of the places for roots; the rest shows what is around them."""

_MAX_ROUNDS = 6


def draw(
    db: Connection, *, project_n: int | None, at_us: int | None, focus: str, limit: int
) -> KnowledgeGraph:
    """Return nodes with positions, and the edges between them."""
    focus_id, roots = "", []
    if focus:
        item = items.resolve(db, focus, type="fragment")
        focus_id, start = item.id, [item.n]
    else:
        roots = graph_rows.strongest_roots(db, project_n=project_n, at_us=at_us, limit=limit)
        start = roots[: max(1, int(limit * _ROOT_SHARE))]
    chosen = _spread(db, start, project_n=project_n, at_us=at_us, limit=limit)
    chosen = list(dict.fromkeys([*chosen, *roots]))[:limit]
    rows = graph_rows.load_nodes(db, chosen)
    place = {row.n: at for at, row in enumerate(rows)}
    edges = [
        one for one in graph_rows.edges_between(db, chosen)
        if one.source_n in place and one.target_n in place
    ]  # fmt: skip
    pairs = tuple((place[one.source_n], place[one.target_n]) for one in edges)
    positions = graph_layout.layout(len(rows), tuple(sorted(set(pairs))))
    degree = Counter(end for pair in pairs for end in pair)
    return KnowledgeGraph(
        nodes=tuple(
            GraphNode(
                row.id, row.title, row.kind, row.origin, round(row.relevance, 4), row.importance,
                row.depth, degree[at], *positions[at],
                created_at=clock.from_us(row.created_at),
                replaced_at=clock.from_us(row.replaced_at) if row.replaced_at else None,
                project_id=row.project_id,
            )
            for at, row in enumerate(rows)
        ),
        edges=tuple(
            GraphEdge(a, b, one.kind, one.weight, clock.from_us(one.created_at))
            for (a, b), one in zip(pairs, edges, strict=True)
        ),
        total=graph_rows.count_fragments(db, project_n=project_n),
        focus=focus_id,
    )  # fmt: skip


def _spread(
    db: Connection, start: list[int], *, project_n: int | None, at_us: int | None, limit: int
) -> list[int]:
    """Return fragments with those around them, step by step, up to a limit."""
    chosen = dict.fromkeys(start)
    edge = start
    for _ in range(_MAX_ROUNDS):
        room = limit - len(chosen)
        if room <= 0 or not edge:
            break
        edge = graph_rows.neighbours_of(
            db, edge, without=list(chosen), project_n=project_n, at_us=at_us, limit=room
        )
        chosen |= dict.fromkeys(edge)
    return list(chosen)[:limit]
