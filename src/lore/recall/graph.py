"""The graph of fragments: what they are linked by, and what they mention together."""

from __future__ import annotations

from math import log

import numpy as np

from lore.recall.pagerank import TITLE_WEIGHT, Links, Numbers, normalised
from lore.records import NOTE_EDGES, EdgeKind
from lore.store import edges, mentions
from lore.store.db import Connection
from lore.store.mentions import Table

HUB_USES = 200
"""An entity that more fragments mention tells nothing about any of them."""

LINKING: tuple[EdgeKind, ...] = ("associative", *NOTE_EDGES)


class Graph:
    """Links of fragments, read from the database as a walk asks for them."""

    def __init__(self, db: Connection, fragment_count: int) -> None:
        self._db = db
        self._log_count = log(max(2, fragment_count))
        self._tables: dict[int, Table] = {}

    def expand(self, ns: Numbers) -> tuple[Links, Links]:
        """Return the links from items to what they share, and back to all that share it."""
        outward = self._mentions(ns)
        outward = outward[(outward[:, 3] >= 2) & (outward[:, 3] <= HUB_USES)]
        entity_ns = np.unique(outward[:, 1])
        back = mentions.of_entities(self._db, entity_ns.tolist())
        drawn, drawn_weights = self._edges(ns)
        weights = np.where(outward[:, 2] > 0, TITLE_WEIGHT, 1.0) * self._rarity(outward[:, 3])
        back_weights = np.where(back[:, 2] > 0, TITLE_WEIGHT, 1.0)
        return (
            normalised(
                np.concatenate([outward[:, 0], drawn[:, 0]]),
                np.concatenate([outward[:, 1], drawn[:, 1]]),
                np.concatenate([weights, drawn_weights]),
            ),
            normalised(
                np.concatenate([back[:, 1], drawn[:, 1]]),
                np.concatenate([back[:, 0], drawn[:, 0]]),
                np.concatenate([back_weights, drawn_weights]),
            ),
        )

    def rarity_by_entity(self, n: int) -> dict[int, tuple[float, bool]]:
        """Return what an item mentions: how telling each entity is, and if it is its title."""
        table = self._mentions(np.array([n], np.int64))
        table = table[(table[:, 3] >= 2) & (table[:, 3] <= HUB_USES)]
        rarity = self._rarity(table[:, 3])
        return {
            int(row[1]): (float(value), bool(row[2]))
            for row, value in zip(table, rarity, strict=True)
        }

    def _rarity(self, uses: Numbers) -> np.ndarray:
        return np.maximum(0.0, 1.0 - np.log(np.maximum(uses, 1)) / self._log_count)

    def _mentions(self, ns: Numbers) -> Table:
        missing = [int(n) for n in ns if int(n) not in self._tables]
        if missing:
            table = mentions.of_items(self._db, missing)
            order = np.argsort(table[:, 0], kind="stable")
            table = table[order]
            starts = np.searchsorted(table[:, 0], missing, side="left")
            ends = np.searchsorted(table[:, 0], missing, side="right")
            for n, start, end in zip(missing, starts, ends, strict=True):
                self._tables[n] = table[start:end]
        found = [self._tables[int(n)] for n in ns]
        return np.concatenate(found) if found else np.empty((0, 4), np.int64)

    def _edges(self, ns: Numbers) -> tuple[Numbers, np.ndarray]:
        """Return drawn edges as shared nodes of their own (negative), one row for each end."""
        rows = edges.among_fragments(self._db, ns.tolist(), LINKING)
        ends = [
            (n, -place) for place, row in enumerate(rows, 1) for n in (row.source_n, row.target_n)
        ]
        weights = [row.weight for row in rows for _ in (0, 1)]
        return np.array(ends, np.int64).reshape(-1, 2), np.array(weights, np.float64)
