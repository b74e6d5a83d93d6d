"""Keeping: the drafts of one exchange become fragments, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from lore import clock
from lore.curate import correcting, merging, nearness, placing
from lore.curate.drafting import Drafted
from lore.curate.merging import Candidate
from lore.curate.placing import NO_ROOTS, Neighbour
from lore.curate.trust import needed_for
from lore.records import NOTE_EDGES, TRUST, UNASKED_TRUST, Curated, EdgeKind, Origin
from lore.store import (
    confirmations,
    curation,
    edges,
    fragments,
    lifetimes,
    strengths,
    superseding,
    trusting,
    vectors,
    watched_edges,
)
from lore.store.db import Connection
from lore.store.edges import EdgeRow
from lore.store.fragments import NewFragment
from lore.store.steps import Watch
from lore.text import entities, words

CONFIDENCE = 0.7
"""Of what was learned once: as sure as what someone stores by hand."""

SAME_WORDS = 0.8
"""A draft that shares so many words with what a person deleted is that again."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an exchange belongs, and what the searches for it have seen."""

    session_n: int
    project_n: int | None
    project_id: str | None
    embedder_n: int | None
    dimension: int
    seen_seq: int
    now: datetime


@dataclass(frozen=True, slots=True)
class _One:
    """A draft with what the store knows of its messages."""

    draft: Drafted
    sources: tuple[str, ...]
    origin: Origin
    at: datetime
    parent: int | None

    @property
    def trust(self) -> int:
        return TRUST[self.origin]


class Keeper:
    """Stores the drafts of one exchange inside one transaction."""

    def __init__(self, db: Connection, place: Place, watch: Watch) -> None:
        self.brought = Curated()
        self._db = db
        self._place = place
        self._watch = watch
        self._fresh: list[int] = []
        self._deleted: list[tuple[str, frozenset[str]]] = []
        self._late = self._newcomers()

    def keep(
        self,
        drafts: Sequence[Drafted],
        near: Sequence[Sequence[Neighbour]],
        times: Mapping[str, datetime],
    ) -> None:
        """Store drafts that are new, merge those that are known, and draw their edges."""
        told = sorted({id_ for draft in drafts for id_ in draft.sources})
        self._deleted = curation.deleted_of(self._db, told)
        kept: list[int | None] = []
        for draft, neighbours in zip(drafts, near, strict=True):
            parent = kept[draft.parent] if draft.parent is not None else None
            kept.append(self._keep(draft, neighbours, times, parent))
        self._relate(drafts, kept)

    def _newcomers(self) -> list[int]:
        """Return fragments that came in since the search, from whichever process."""
        place = self._place
        if place.embedder_n is None:
            return []
        return curation.vectors_since(self._db, place.seen_seq, place.embedder_n)

    def _keep(
        self,
        draft: Drafted,
        neighbours: Sequence[Neighbour],
        times: Mapping[str, datetime],
        parent: int | None,
    ) -> int | None:
        """Store or merge a draft and return the number of the fragment that holds it."""
        there = curation.messages_there(self._db, draft.sources)
        if not there:
            self.brought += Curated(dropped=1)
            return None
        origin = trusting.lowest(self._db, "user", list(there.values()))
        said = [times[id_] for id_ in there if id_ in times]
        at = min(self._place.now, max(said, default=self._place.now))
        one = _One(draft, tuple(there), origin, at, parent)
        if self._was_deleted(one):
            self.brought += Curated(refused=1)
            return None
        known = nearness.candidates(self._db, [*neighbours, *self._near(draft)])
        own = [candidate for candidate in known if self._is_own(candidate)]
        same = self._same(one, own)
        if same is not None and merging.outcome(one.trust, same.fragment) == "known":
            self.brought += Curated(known=1)
            return same.n
        if same is not None and merging.outcome(one.trust, same.fragment) == "merge":
            self._merge(one, same)
            return same.n
        n = self._add(one, [candidate for candidate in own if candidate is not same])
        if same is not None:
            self._supersede(same.n, n)
        self._correct(one, n, own)
        self._step_back(one, n, own)
        if draft.kind == "config":
            self._set(one, n)
        self._confirm_elsewhere(one, known)
        return n

    def _was_deleted(self, one: _One) -> bool:
        """Tell whether a person deleted what these messages had become."""
        told = set(words.split(one.draft.content))
        for text, sources in self._deleted:
            if sources.isdisjoint(one.sources):
                continue
            former = set(words.split(text))
            if len(told & former) >= SAME_WORDS * len(told | former):
                return True
        return False

    def _near(self, draft: Drafted) -> list[Neighbour]:
        ns = [*self._late, *self._fresh]
        if draft.vector is None or not ns:
            return []
        rows = vectors.load(self._db, np.array(ns, np.int64), self._place.dimension)
        return [Neighbour(n, float(row @ draft.vector)) for n, row in zip(ns, rows, strict=True)]

    def _is_own(self, candidate: Candidate) -> bool:
        """Tell whether a fragment holds in this project: by itself, or as one for everywhere."""
        return candidate.fragment.project_id in (None, self._place.project_id)

    def _same(self, one: _One, own: Sequence[Candidate]) -> Candidate | None:
        """Return what says the same: by its vector, and word for word where there is none."""
        draft = one.draft
        if draft.vector is not None:
            return merging.find(draft.kind, draft.content, draft.payload, own)
        n = curation.find_saying(
            self._db, draft.content, project_n=self._place.project_n, kind=draft.kind
        )
        return None if n is None else Candidate(n, 1.0, fragments.get(self._db, n))

    def _merge(self, one: _One, same: Candidate) -> None:
        """Let a fragment stand on the draft's messages too, in the newer words if they say all."""
        old, draft, now = same.fragment, one.draft, self._place.now
        if set(one.sources) <= set(old.source_messages):
            self.brought += Curated(known=1)
            return
        sources = tuple(dict.fromkeys([*old.source_messages, *one.sources]))
        self._confirm(same.n, sources)
        newer = one.at >= old.created_at and draft.content != old.content
        if newer and merging.keeps_all(draft.content, old.content):
            fragments.update(
                self._db, same.n, content=draft.content, summary=draft.summary,
                mentioned=entities.of_fragment(draft.content, draft.summary),
                now=now, reason="said again",
            )  # fmt: skip
            self._put_vector(same.n, draft)
        self.brought += Curated(merged=1)

    def _add(self, one: _One, own: Sequence[Candidate]) -> int:
        draft, place = one.draft, self._place
        roots = [
            Neighbour(c.n, c.cosine)
            for c in own
            if c.fragment.depth == 0 and c.fragment.kind not in NO_ROOTS and c.n not in self._fresh
        ]
        placed = placing.place(roots)
        parent = one.parent if one.parent is not None else placed.parent
        depth = fragments.get(self._db, parent).depth + 1 if parent is not None else 0
        new = NewFragment(
            id=clock.new_id(place.now),
            content=draft.content,
            summary=draft.summary,
            kind=draft.kind,
            created_at=one.at,
            depth=depth,
            payload=draft.payload,
            importance=placing.surprising(draft.importance, placed.nearest),
            confidence=CONFIDENCE,
            origin=one.origin,
            project_n=place.project_n,
            session_n=place.session_n,
            source_messages=one.sources,
            mentions=entities.of_fragment(draft.content, draft.summary),
        )
        n = fragments.add(self._db, new, now=place.now)
        self._put_vector(n, draft)
        self._fresh.append(n)
        self._watch(self._db, lifetimes.learned(self._db, n))
        self.brought += Curated(stored=(new.id,))
        self._count(n)
        if parent is not None:
            self._hang(n, parent, one, reinforces=one.parent is None)
        elif placed.linked is not None:
            self._draw(n, placed.linked, "associative", round(placed.weight, 4))
        return n

    def _confirm(self, n: int, sources: Sequence[str]) -> None:
        """Let a fragment be surer, and count that it holds in this project."""
        now = self._place.now
        self._watch(self._db, strengths.before_strengthening(self._db, n, now=now))
        self._watch(self._db, confirmations.before_confirming(self._db, n))
        confirmations.confirm(self._db, n, sources=sources, surer_by=merging.SURER_BY, now=now)
        self._count(n)

    def _count(self, n: int) -> None:
        """Count that a fragment was confirmed in this project."""
        project_n = self._place.project_n
        if project_n is not None:
            self._watch(self._db, confirmations.before_counting(self._db, n, project_n))
            confirmations.count(self._db, n, project_n, now=self._place.now)

    def _draw(self, source: int, target: int, kind: EdgeKind, weight: float = 1.0) -> None:
        """Draw an edge, unless it is there."""
        edge = EdgeRow(source, target, kind, weight)
        watched_edges.draw(self._db, edge, now=self._place.now, watch=self._watch)

    def _hang(self, n: int, parent: int, one: _One, *, reinforces: bool) -> None:
        """Put a fragment below its parent and after its elder sibling.

        A low voice does not strengthen what it hangs below.
        """
        elder = edges.children(self._db, parent)
        self._draw(parent, n, "hierarchical")
        if elder:
            self._draw(elder[-1], n, "temporal")
        if reinforces:
            self.brought += Curated(attached=1)
            if one.trust >= UNASKED_TRUST:
                now = self._place.now
                self._watch(self._db, strengths.before_strengthening(self._db, parent, now=now))
                fragments.reinforce(self._db, parent, now=now)

    def _put_vector(self, n: int, draft: Drafted) -> None:
        """Store the vector with the fragment, so that the next draft finds it at once."""
        if draft.vector is not None and self._place.embedder_n is not None:
            vectors.put(self._db, self._place.embedder_n, [n], draft.vector[None, :])

    def _supersede(self, older: int, newer: int) -> None:
        now = self._place.now
        superseding.supersede(self._db, older, newer, now=now, watch=self._watch)
        self.brought += Curated(superseded=1)

    def _correct(self, one: _One, n: int, own: Sequence[Candidate]) -> None:
        """Let a correction stand in the place of what it corrects, as far as trust allows."""
        older = [candidate for candidate in own if candidate.n not in self._fresh]
        if not one.draft.corrects or not older:
            return
        ns = np.array([candidate.n for candidate in older], np.int64)
        rows = vectors.load(self._db, ns, self._place.dimension)
        by_n = dict(zip(ns.tolist(), rows, strict=True))
        found = correcting.find(one.draft, one.at, older, by_n)
        if found is None:
            return
        if one.trust >= needed_for(found.fragment):
            self._supersede(found.n, n)
        else:
            self._draw(n, found.n, "contradicts")
            self.brought += Curated(contradicted=1)

    def _step_back(self, one: _One, n: int, own: Sequence[Candidate]) -> None:
        """Let what came in late step back where something newer, as trusted, has corrected it."""
        newer = [c for c in own if c.n not in self._fresh and c.fragment.trust >= one.trust]
        found = correcting.find_newer(one.draft, one.at, newer)
        if found is not None:
            self._supersede(n, found.n)

    def _set(self, one: _One, n: int) -> None:
        """Let the newest value of a setting stand alone, as far as trust allows.

        What comes in late is older than what is known: it steps back at once.
        """
        told = (one.draft.content, one.draft.payload)
        name = str(one.draft.payload.get("setting", ""))
        others = set(curation.settings_named(self._db, name, project_n=self._place.project_n))
        for other, known in sorted(fragments.by_number(self._db, sorted(others - {n})).items()):
            if not correcting.is_same_setting(told, (known.content, known.payload)):
                continue
            if known.created_at <= one.at and known.trust <= one.trust:
                self._supersede(other, n)
            elif known.created_at > one.at and known.trust >= one.trust:
                self._supersede(n, other)
                return

    def _confirm_elsewhere(self, one: _One, known: Sequence[Candidate]) -> None:
        """Count for a fragment of another project that the same was learned here."""
        if self._place.project_n is None:
            return
        draft = one.draft
        others = [c for c in known if not self._is_own(c) and c.fragment.trust <= one.trust]
        same = [c for c in others if merging.is_same(draft.kind, draft.content, draft.payload, c)]
        for found in sorted(same, key=lambda c: c.n)[:1]:
            self._confirm(found.n, found.fragment.source_messages)

    def _relate(self, drafts: Sequence[Drafted], kept: Sequence[int | None]) -> None:
        """Draw the edges that drafts of one exchange name to each other by their summaries."""
        by_summary = {d.summary: n for d, n in zip(drafts, kept, strict=True) if n is not None}
        for draft, n in zip(drafts, kept, strict=True):
            for kind, summary in draft.edges:
                other = by_summary.get(summary)
                if n is not None and other is not None and other != n and kind in _DRAWN:
                    self._draw(n, other, kind)


_DRAWN: tuple[EdgeKind, ...] = ("associative", *NOTE_EDGES)
"""What extraction may draw; trees and what supersedes what are decided here."""
