"""A small memory with something for every phase of a cycle, its vectors chosen by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from lore.digest.consolidation.phase import CycleContext
from lore.llm.offline.summarizer import OfflineSummarizer
from lore.records import CycleReport, Fragment, PhaseReport
from lore.store import consolidation, fragments, graph, project_rows, vectors
from lore.store.database import Connection, Database
from lore.text import entities
from tests.fakes import FakeEmbedder

DIMENSION = 16


class ListingSummarizer(OfflineSummarizer):
    """Writes the list of the children as an overview, as a chat may."""

    def overview(self, root: Fragment, children: Sequence[Fragment]) -> str:
        """Return the root's own text and what its children say."""
        return "\n".join([root.content, *(f"- {one.summary or one.content}" for one in children)])


OFFLINE = CycleContext(ListingSummarizer())


class ReflectiveSummarizer(ListingSummarizer):
    """Stands for a chat: it derives an insight that quotes the cluster."""

    @property
    def identity(self) -> str:
        """Return the name of no provider."""
        return "scripted"

    def reflect(self, cluster: Sequence[Fragment]) -> str:
        """Return what the cluster has in common, in the words of its members."""
        return "Together: " + "; ".join(one.content for one in cluster)


CHAT = CycleContext(ReflectiveSummarizer())


def axis(*places: int, **leaning: float) -> np.ndarray:
    """Return a unit vector along axes, leaning to others by so much: axis(0, _3=0.2)."""
    vector = np.zeros(DIMENSION)
    vector[list(places)] = 1.0
    for name, share in leaning.items():
        vector[int(name[1:])] += share
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def numbered_id(i: int) -> str:
    return f"{i:08x}-0000-7000-8000-{i:012x}"


@dataclass
class World:
    """Fragments by short names, stored with vectors and edges at chosen times."""

    database: Database
    ns: dict[str, int] = field(default_factory=dict)

    def add(
        self,
        name: str,
        text: str,
        vector: np.ndarray | None = None,
        *,
        parent: str = "",
        project: str = "",
        at: datetime | None = None,
        **fields: Any,
    ) -> int:
        now = at or self.database.now()

        def work(db: Connection) -> int:
            parent_n = self.ns[parent] if parent else None
            depth = fragments.get(db, parent_n).depth + 1 if parent_n else 0
            project_n = project_rows.ensure_project(db, project, now=now) if project else None
            new = fragments.NewFragment(
                id=numbered_id(len(self.ns) + 1),
                content=text,
                summary=text[:80],
                kind=fields.pop("kind", "fact"),
                created_at=now,
                depth=depth,
                project_n=project_n,
                mentions=entities.fragment_mentions(text, text[:80]),
                **fields,
            )
            n = fragments.add(db, new, now=now)
            if parent_n:
                graph.put_edge(db, parent_n, n, "hierarchical", now=now)
            if vector is not None:
                put_vectors(db, [n], vector.reshape(1, -1))
            return n

        self.ns[name] = self.database.write(work)
        return self.ns[name]

    def link(self, one: str, other: str, weight: float, *, at: datetime | None = None) -> None:
        now = at or self.database.now()
        self.database.write(
            lambda db: graph.put_edge(
                db, self.ns[one], self.ns[other], "associative", now=now, weight=weight
            )
        )

    def read(self, name: str, times: int = 1) -> None:
        for _ in range(times):
            self.database.write(
                lambda db: fragments.reinforce(db, self.ns[name], now=self.database.now())
            )

    def get(self, name: str) -> Fragment:
        with self.database.read() as db:
            return fragments.get(db, self.ns[name])

    def children(self, name: str) -> set[str]:
        with self.database.read() as db:
            below = set(graph.children(db, self.ns[name]))
        return {other for other, n in self.ns.items() if n in below}

    def visible(self) -> set[str]:
        with self.database.read() as db:
            shown = fragments.filter_visible(db, fragments.FragmentFilter())
        return {name for name, n in self.ns.items() if n in shown}


def put_vectors(db: Connection, ns: Sequence[int], matrix: np.ndarray) -> None:
    if vectors.find_active_identity(db) is None:
        vectors.set_active_embedder(db, "by hand", matrix.shape[1])
    embedder_n = vectors.ensure_embedder(db, "by hand", matrix.shape[1])
    vectors.put(db, embedder_n, ns, matrix.astype(np.float32))


def embed_all(database: Database, embedder: FakeEmbedder) -> None:
    """Give vectors to all that waits for one."""

    def work(db: Connection) -> None:
        vectors.set_active_embedder(db, embedder.identity, embedder.dimension)
        n = vectors.ensure_embedder(db, embedder.identity, embedder.dimension)
        waiting = vectors.pending_items(db, limit=10_000)
        if waiting:
            matrices = [embedder.embed(one.texts) for one in waiting]
            vectors.put(db, n, [one.n for one in waiting], matrices)

    database.write(work)


def phase(report: CycleReport, name: str) -> PhaseReport:
    return next(one for one in report.phases if one.phase == name)


def state(database: Database) -> dict[str, Any]:
    """Return all that people see of fragments and edges; weights are rounded.

    What is hidden and was made by a cycle alone is not part of it.
    """
    with database.read() as db:
        rows = db.rows("SELECT n FROM fragments WHERE deleted_at IS NULL ORDER BY n")
        found = fragments.by_number(db, [row[0] for row in rows])
        drawn = db.rows(
            "SELECT source_n, target_n, kind, weight, note, created_at FROM edges"
            " ORDER BY source_n, target_n, kind"
        )
        versions = {n: fragments.get_versions(db, n) for n in found}
    return {
        "fragments": found,
        "versions": versions,
        "edges": [(a, b, kind, round(w, 9), note, at) for a, b, kind, w, note, at in drawn],
    }


def soundness(database: Database) -> list[str]:
    """Return what is wrong with the trees: depths, parents, edges drawn twice."""
    with database.read() as db:
        wrong = db.rows(
            "SELECT f.n, f.depth, p.depth FROM edges e JOIN fragments f ON f.n = e.target_n"
            " JOIN fragments p ON p.n = e.source_n WHERE e.kind = 'hierarchical'"
            " AND f.depth <> p.depth + 1 AND f.deleted_at IS NULL"
        )
        orphans = db.rows(
            "SELECT f.n FROM fragments f WHERE f.depth > 0 AND f.deleted_at IS NULL AND"
            " (SELECT count(*) FROM edges e WHERE e.target_n = f.n"
            " AND e.kind = 'hierarchical') <> 1"
        )
        twice = db.rows(
            "SELECT a.source_n, a.target_n FROM edges a JOIN edges b ON a.source_n = b.target_n"
            " AND a.target_n = b.source_n AND a.kind = b.kind WHERE a.kind = 'associative'"
        )
    return [*map(str, wrong), *map(str, orphans), *map(str, twice)]


def full_world(database: Database) -> World:
    """Make a memory in which every phase finds something to do."""
    world = World(database)
    now = database.now()
    old = now - timedelta(days=200)
    made: dict[str, Any] = {"origin": "assistant", "source_messages": ("m1",)}
    # Two roots that say the same, with children of their own.
    world.add("orders", "The orders service keeps its data in Postgres", axis(0), **made)
    world.add("orders pool", "The pool of orders has 20 connections", axis(0, 1), parent="orders")
    world.add("orders again", "Postgres keeps the data of the orders service",
              axis(0, _2=0.1), **made)  # fmt: skip
    world.add("orders backup", "Orders are saved nightly", axis(0, 2), parent="orders again")
    world.add("orders deep", "The nightly copy goes to the second disk", axis(2, 4),
              parent="orders backup")  # fmt: skip
    world.read("orders", 2)
    # Two roots that are close but not the same, with children that are close.
    world.add("billing", "Billing is done by the invoice worker", axis(5), **made)
    world.add("billing queue", "The invoice worker reads a queue", axis(5, 6), parent="billing")
    world.add("refunds", "Refunds are done by the refund worker", axis(5, _7=0.7), **made)
    world.add("refunds queue", "The refund worker reads a queue", axis(5, 6, _7=0.3),
              parent="refunds")  # fmt: skip
    # A root of Lore's own with two children, one of which changes the other.
    world.add("gateway", "The gateway takes requests", axis(8), **made)
    world.add("port", "The gateway listens on port 8080", axis(8, 9), parent="gateway",
              at=now - timedelta(days=3), **made)  # fmt: skip
    world.add("port now", "The gateway now listens on port 9090", axis(8, 9, _10=0.2),
              parent="gateway", at=now - timedelta(days=1), **made)  # fmt: skip
    world.add("limit", "The gateway takes 100 requests a second", axis(8, 10), parent="gateway",
              at=now - timedelta(days=3), **made)  # fmt: skip
    world.add("limit two", "The gateway takes 300 requests a second", axis(8, 10, _9=0.2),
              parent="gateway", at=now - timedelta(days=2), **made)  # fmt: skip
    # Three roots that are linked: an insight.
    for i, text in enumerate((
        "Deploys need a review",
        "Deploys run at noon",
        "Deploys are logged",
    )):
        world.add(f"deploy {i}", f"{text} by the platform crew", axis(11 + i), **made)
    world.link("deploy 0", "deploy 1", 0.7)
    world.link("deploy 1", "deploy 2", 0.6)
    # Edges that fade, one of them away.
    world.link("billing", "gateway", 0.4, at=now - timedelta(days=5))
    world.link("refunds", "gateway", 0.16, at=now - timedelta(days=200))
    # A child that has faded, with one below it that has not.
    world.add("trifle", "Somebody liked the colour of the logo", axis(14), parent="billing",
              at=old, importance=0.1)  # fmt: skip
    world.add("below trifle", "The logo is drawn in SVG", axis(15), parent="trifle",
              importance=0.9)  # fmt: skip
    database.write(lambda db: fragments.decay_relevance(db, now=now))
    return world


def marks(database: Database) -> dict[str, int]:
    with database.read() as db:
        return {
            name: consolidation.get_progress(db, name) for name in ("merge", "link", "contradict")
        }
