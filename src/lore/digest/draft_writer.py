"""Store the drafts of one exchange as fragments, in one transaction: add, merge or supersede."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from lore import clock
from lore.digest import placement
from lore.digest.drafts import DraftFragment, is_of_pasted_text, is_typed
from lore.digest.fragment_edits import required_trust
from lore.digest.placement import NEVER_PARENTS, Candidate, Neighbour
from lore.records import NOTE_EDGES, TRUST, UNASKED_TRUST, CurationResult, EdgeKind, Origin
from lore.store import distillations, fragments, graph, items, messages, reversible_changes, vectors
from lore.store.codec import pack_json
from lore.store.consolidation import Step, StepRecorder
from lore.store.database import Connection
from lore.store.fragments import NewFragment
from lore.store.graph import EdgeRow
from lore.text import entities, instructions, words
from lore.text.instructions import Withdrawal, typed_text

SAME_AS_FORMER = 0.75
"""A fragment this similar to the corrected words states the former value."""

SAME_SUBJECT = 0.6
"""Similar enough to the correction, if it names the former value.

Both are chosen by hand: statements of one subject with another value lie at 0.75 to 0.93 in the
labelled pairs of `benchmarks/dedup.py`, but no set of corrections has been labelled yet.
"""

SAME_NAMED_SUBJECT = 0.45
"""Enough where both name the same version, person or thing as well; chosen by hand too."""


def find_corrected(
    draft: DraftFragment, at: datetime, candidates: Sequence[Candidate], rows: dict[int, np.ndarray]
) -> Candidate | None:
    """Return the older fragment that a draft corrects, if there is one."""
    if not draft.corrects:
        return None
    withdrawal = instructions.find_withdrawal(draft.content) if draft.kind == "preference" else None
    if withdrawal:
        return _find_withdrawn_rule(
            withdrawal, [one for one in candidates if one.fragment.created_at < at]
        )
    fitting = [
        (max(one.cosine, before), one)
        for one in candidates
        if one.fragment.kind not in NEVER_PARENTS and one.fragment.created_at < at
        for before in [_former_similarity(draft, rows.get(one.n))]
        if before >= SAME_AS_FORMER
        or _is_corrected(one.fragment.content, draft.content, draft.corrects, one.cosine)
    ]
    return max(fitting, key=lambda pair: (pair[0], -pair[1].n))[1] if fitting else None


def _find_by_id(id_: str, candidates: Sequence[Candidate]) -> Candidate | None:
    return next((one for one in candidates if id_ and one.fragment.id == id_), None)


def _find_withdrawn_rule(
    withdrawal: Withdrawal, candidates: Sequence[Candidate]
) -> Candidate | None:
    """Return the rule that a user withdraws, matched by its words: similar rules lie close."""
    rules = [one for one in candidates if one.fragment.kind == "preference"]
    places = instructions.match_rules(withdrawal, [one.fragment.content for one in rules])
    return max((rules[i] for i in places), key=lambda one: (one.cosine, -one.n), default=None)


def find_correction(
    draft: DraftFragment, at: datetime, candidates: Sequence[Candidate]
) -> Candidate | None:
    """Return the newer fragment that corrects a late draft, if there is one."""
    fitting = [
        one
        for one in candidates
        if one.fragment.created_at > at
        and _is_corrected(
            draft.content,
            one.fragment.content,
            one.fragment.payload.get("replaces", ""),
            one.cosine,
        )
    ]
    return max(fitting, key=lambda one: (one.cosine, -one.n), default=None)


def _former_similarity(draft: DraftFragment, row: np.ndarray | None) -> float:
    if draft.corrects_vector is None or row is None:
        return 0.0
    return float(row @ draft.corrects_vector)


def _is_corrected(older: str, newer: str, former: object, cosine: float) -> bool:
    """Return whether the older text contains the former value, word for word, on the same subject.

    A shared version or name lowers the required similarity.
    """
    former_words = _singular_words(str(former)) - words.STOP_WORDS
    if not former_words or not former_words <= _singular_words(older):
        return False
    shared = (
        entities.extract_values(older) & entities.extract_values(newer)
    ) - entities.extract_values(str(former))
    return cosine >= (SAME_NAMED_SUBJECT if shared else SAME_SUBJECT)


def _singular_words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in words.split(text)}


_ENVIRONMENT = re.compile(r"\b(dev|prod|staging|test|ci|local)(?:elopment|uction|s|host)?\b")


def is_same_setting(
    one: tuple[str, Mapping[str, Any]], other: tuple[str, Mapping[str, Any]]
) -> bool:
    """Return whether two settings of one name are the same, given as text and payload.

    They are different if they name two locations or two environments.
    """
    (text, payload), (other_text, other_payload) = one, other
    places = {payload.get("location"), other_payload.get("location")} - {None, ""}
    here, there = (set(_ENVIRONMENT.findall(content.lower())) for content in (text, other_text))
    return len(places) < 2 and (not here or not there or bool(here & there))


CONFIDENCE = 0.7
"""The confidence of what was learned once, as of what someone stores by hand."""

SAME_WORDS = 0.8
"""A draft that has this share of words in common with a deleted fragment repeats it."""


@dataclass(frozen=True, slots=True)
class ExchangeContext:
    """Where an exchange belongs, and up to which change its searches have seen the store.

    If a chat digests, `pasted_stems` are the words that are only in pasted text of the exchange.
    """

    session_n: int
    project_n: int | None
    embedder_n: int | None
    dimension: int
    seen_seq: int
    now: datetime
    session: str = ""
    pasted_stems: frozenset[str] | None = None

    @property
    def scope(self) -> int:
        """The number of the project, or what stands for none."""
        return self.project_n or items.NO_PROJECT


@dataclass(frozen=True, slots=True)
class _SourcedDraft:
    """A draft with the origin and time of its messages."""

    draft: DraftFragment
    sources: tuple[str, ...]
    origin: Origin
    at: datetime
    parent: int | None

    @property
    def trust(self) -> int:
        return TRUST[self.origin]


class DraftWriter:
    """Stores the drafts of one exchange inside one transaction."""

    def __init__(self, db: Connection, place: ExchangeContext, recorder: StepRecorder) -> None:
        self.result = CurationResult()
        self._db = db
        self._context = place
        self._recorder = recorder
        self._added: list[int] = []
        self._deleted: list[tuple[str, frozenset[str]]] = []
        self._newcomer_ns: list[int] = []
        if place.embedder_n is not None:
            self._newcomer_ns = distillations.fragments_embedded_since(
                db, place.seen_seq, place.embedder_n
            )

    def store(
        self,
        drafts: Sequence[DraftFragment],
        near: Sequence[Sequence[Neighbour]],
        times: Mapping[str, datetime],
    ) -> None:
        """Store new drafts, merge duplicates, and add their edges."""
        source_ids = sorted({id_ for draft in drafts for id_ in draft.sources})
        self._deleted = distillations.deleted_fragments_of(self._db, source_ids)
        stored: list[int | None] = []
        for draft, neighbours in zip(drafts, near, strict=True):
            parent = stored[draft.parent] if draft.parent is not None else None
            stored.append(self._store_one(draft, neighbours, times, parent))
        self._add_extracted_edges(drafts, stored)

    def _store_one(
        self,
        draft: DraftFragment,
        neighbours: Sequence[Neighbour],
        times: Mapping[str, datetime],
        parent: int | None,
    ) -> int | None:
        there = items.numbers_of(self._db, draft.sources)
        if not there:
            self.result += CurationResult(dropped=1)
            return None
        origin = self._origin_of(draft, list(there.values()))
        said_at = [times[id_] for id_ in there if id_ in times]
        at = min(self._context.now, max(said_at, default=self._context.now))
        one = _SourcedDraft(draft, tuple(there), origin, at, parent)
        if self._was_deleted(one):
            self.result += CurationResult(refused=1)
            return None
        candidates = placement.load_candidates(
            self._db, [*neighbours, *self._nearest_newcomers(draft), *self._named(draft)]
        )
        own = placement.applying(self._db, candidates, self._context.scope)
        same = self._find_duplicate(one, own)
        outcome = placement.duplicate_outcome(one.trust, same.fragment) if same else "replace"
        if same is not None and outcome != "replace":
            if outcome == "known":
                self.result += CurationResult(known=1)
            else:
                self._merge(one, same)
            others = [other for other in own if other is not same]
            # two known statements do not contradict each other because a third one says so
            self._supersede_corrected(one, same.n, others, marks_conflict=outcome != "known")
            return same.n
        n = self._add(one, [candidate for candidate in own if candidate is not same])
        if same is not None:
            self._supersede(same.n, n)
        self._supersede_corrected(one, n, own)
        self._supersede_if_outdated(one, n, own)
        if draft.kind == "config":
            self._supersede_setting(one, n)
        self._confirm_elsewhere(one, candidates)
        return n

    def _origin_of(self, draft: DraftFragment, source_ns: Sequence[int]) -> Origin:
        """Return the least trusted origin of the messages; pasted text is not a person's word."""
        origin = messages.lowest_trust_origin(self._db, "user", source_ns)
        if origin != "user":
            return origin
        typed = list(map(typed_text, messages.get_messages(self._db, source_ns).values()))
        stems = self._context.pasted_stems
        is_pasted = is_of_pasted_text(draft.content, typed) or (
            stems is not None and not is_typed(draft.content, typed, stems)
        )
        return "assistant" if is_pasted else origin

    def _was_deleted(self, one: _SourcedDraft) -> bool:
        """Return whether a user deleted the fragment that came from these messages."""
        draft_words = set(words.split(one.draft.content))
        for text, sources in self._deleted:
            if sources.isdisjoint(one.sources):
                continue
            deleted_words = set(words.split(text))
            if len(draft_words & deleted_words) >= SAME_WORDS * len(draft_words | deleted_words):
                return True
        return False

    def _nearest_newcomers(self, draft: DraftFragment) -> list[Neighbour]:
        ns = [*self._newcomer_ns, *self._added]
        if draft.vector is None or not ns:
            return []
        rows = self._load_vectors(ns)
        return [Neighbour(n, float(row @ draft.vector)) for n, row in zip(ns, rows, strict=True)]

    def _named(self, draft: DraftFragment) -> list[Neighbour]:
        """Return the fragments that a chat named: they may be far from what it makes of them."""
        ids = [id_ for id_ in (draft.same_as, draft.corrects_id) if id_]
        return [Neighbour(n, 0.0) for n in items.numbers_of(self._db, ids).values()]

    def _find_duplicate(self, one: _SourcedDraft, own: Sequence[Candidate]) -> Candidate | None:
        """Return the duplicate of a draft: by its vector, or by its exact text without one."""
        draft = one.draft
        own = [candidate for candidate in own if candidate.fragment.id != draft.corrects_id]
        named = _find_by_id(draft.same_as, own)
        # The summarizer may overlook another value, which must not be lost.
        if named and entities.values_agree(draft.content, named.fragment.content):
            return named
        if draft.vector is not None:
            session = "" if draft.corrects else self._context.session
            return placement.find_duplicate(
                draft.kind, draft.content, draft.payload, own, session=session
            )
        n = distillations.find_same_text(
            self._db, draft.content, scope=self._context.scope, kind=draft.kind
        )
        return None if n is None else Candidate(n, 1.0, fragments.get(self._db, n))

    def _merge(self, one: _SourcedDraft, same: Candidate) -> None:
        """Merge a draft into its duplicate: add its sources, and its wording if it is newer."""
        old, draft, now = same.fragment, one.draft, self._context.now
        if set(one.sources) <= set(old.source_messages):
            self.result += CurationResult(known=1)
            return
        sources = tuple(dict.fromkeys([*old.source_messages, *one.sources]))
        self._confirm(same.n, sources)
        newer = one.at >= old.created_at and draft.content != old.content
        if newer and entities.covers_values(draft.content, old.content):
            fragments.update(
                self._db, same.n, content=draft.content, summary=draft.summary,
                mentioned=entities.fragment_mentions(draft.content, draft.summary),
                now=now, reason="said again",
            )  # fmt: skip
            self._put_vector(same.n, draft)
        self.result += CurationResult(merged=1)

    def _add(self, one: _SourcedDraft, own: Sequence[Candidate]) -> int:
        draft, place = one.draft, self._context
        placed = placement.choose_place([c for c in own if c.n not in self._added])
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
            importance=placement.raise_importance(draft.importance, placed.nearest, known=len(own)),
            confidence=CONFIDENCE,
            origin=one.origin,
            project_n=place.project_n,
            session_n=place.session_n,
            source_messages=one.sources,
            mentions=entities.fragment_mentions(draft.content, draft.summary),
        )
        n = fragments.add(self._db, new, now=place.now)
        self._put_vector(n, draft)
        self._added.append(n)
        self._recorder(self._db, Step("added", n, note=pack_json(one.sources)))
        self.result += CurationResult(stored=(new.id,))
        self._count_confirmation(n)
        if parent is not None:
            self._attach(n, parent, one, reinforces=one.parent is None)
        elif placed.linked is not None:
            self._add_edge(n, placed.linked, "associative", round(placed.nearest, 4))
        return n

    def _confirm(self, n: int, sources: Sequence[str]) -> None:
        """Raise the confidence of a fragment, and count the confirmation for this project."""
        now = self._context.now
        gain = placement.CONFIRMATION_STEP
        reversible_changes.confirm(
            self._db, n, sources=sources, confidence_gain=gain, now=now, recorder=self._recorder
        )
        self._count_confirmation(n)

    def _count_confirmation(self, n: int) -> None:
        project_n = self._context.project_n
        if project_n is not None:
            now, recorder = self._context.now, self._recorder
            reversible_changes.count_confirmation(
                self._db, n, project_n, now=now, recorder=recorder
            )

    def _add_edge(self, source: int, target: int, kind: EdgeKind, weight: float = 1.0) -> None:
        edge = EdgeRow(source, target, kind, weight)
        reversible_changes.add_edge(self._db, edge, now=self._context.now, recorder=self._recorder)

    def _attach(self, n: int, parent: int, one: _SourcedDraft, *, reinforces: bool) -> None:
        """Put a fragment below its parent and after its elder sibling.

        An untrusted draft does not reinforce its parent.
        """
        elder = graph.children(self._db, parent)
        self._add_edge(parent, n, "hierarchical")
        if elder:
            self._add_edge(elder[-1], n, "temporal")
        if reinforces:
            self.result += CurationResult(attached=1)
            if one.trust >= UNASKED_TRUST:
                now = self._context.now
                reversible_changes.reinforce(self._db, parent, now=now, recorder=self._recorder)

    def _put_vector(self, n: int, draft: DraftFragment) -> None:
        if draft.vector is not None and self._context.embedder_n is not None:
            vectors.put(self._db, self._context.embedder_n, [n], draft.vector[None, :])

    def _load_vectors(self, ns: Sequence[int]) -> vectors.Matrix:
        context = self._context
        numbers = np.array(ns, np.int64)
        return vectors.load(self._db, context.embedder_n, numbers, context.dimension)

    def _supersede(self, older: int, newer: int) -> None:
        now = self._context.now
        reversible_changes.supersede(self._db, older, newer, now=now, recorder=self._recorder)
        self.result += CurationResult(superseded=1)

    def _supersede_corrected(
        self,
        one: _SourcedDraft,
        n: int,
        own: Sequence[Candidate],
        *,
        marks_conflict: bool = True,
    ) -> None:
        """Supersede the fragment that a draft corrects, or mark a conflict if trust is too low."""
        older = [candidate for candidate in own if candidate.n not in self._added]
        corrected = _find_by_id(one.draft.corrects_id, older)
        if corrected is None and one.draft.corrects and older:
            ns = [candidate.n for candidate in older]
            by_n = dict(zip(ns, self._load_vectors(ns), strict=True))
            corrected = find_corrected(one.draft, one.at, older, by_n)
        if corrected is None or corrected.fragment.created_at >= one.at:
            return
        if one.trust >= required_trust(corrected.fragment):
            self._supersede(corrected.n, n)
        elif marks_conflict:
            self._add_edge(n, corrected.n, "contradicts")
            self.result += CurationResult(contradicted=1)

    def _supersede_if_outdated(self, one: _SourcedDraft, n: int, own: Sequence[Candidate]) -> None:
        """Supersede a late draft by the newer, equally trusted fragment that corrects it."""
        newer = [c for c in own if c.n not in self._added and c.fragment.trust >= one.trust]
        correction = find_correction(one.draft, one.at, newer)
        if correction is not None:
            self._supersede(n, correction.n)

    def _supersede_setting(self, one: _SourcedDraft, n: int) -> None:
        """Let only the newest value of a setting stand, as far as trust allows.

        A late draft is older than what is stored, and is superseded at once.
        """
        setting = (one.draft.content, one.draft.payload)
        name = str(one.draft.payload.get("setting", ""))
        others = set(distillations.find_config_fragments(self._db, name, scope=self._context.scope))
        for other, fragment in sorted(fragments.by_number(self._db, sorted(others - {n})).items()):
            if not is_same_setting(setting, (fragment.content, fragment.payload)):
                continue
            if fragment.created_at <= one.at and fragment.trust <= one.trust:
                self._supersede(other, n)
            elif fragment.created_at > one.at and fragment.trust >= one.trust:
                self._supersede(n, other)
                return

    def _confirm_elsewhere(self, one: _SourcedDraft, candidates: Sequence[Candidate]) -> None:
        if self._context.project_n is None:
            return
        draft = one.draft
        own = {c.n for c in placement.applying(self._db, candidates, self._context.scope)}
        others = [c for c in candidates if c.n not in own and c.fragment.trust <= one.trust]
        same = [
            c for c in others if placement.is_duplicate(draft.kind, draft.content, draft.payload, c)
        ]
        for duplicate in sorted(same, key=lambda c: c.n)[:1]:
            self._confirm(duplicate.n, duplicate.fragment.source_messages)

    def _add_extracted_edges(
        self, drafts: Sequence[DraftFragment], stored: Sequence[int | None]
    ) -> None:
        """Add the edges between the drafts of one exchange, which name each other by summary."""
        by_summary = {d.summary: n for d, n in zip(drafts, stored, strict=True) if n is not None}
        for draft, n in zip(drafts, stored, strict=True):
            for kind, summary in draft.edges:
                other = by_summary.get(summary)
                if n is not None and other is not None and other != n and kind in _EXTRACTED_EDGES:
                    self._add_edge(n, other, kind)


_EXTRACTED_EDGES: tuple[EdgeKind, ...] = ("associative", *NOTE_EDGES)
"""The edges that extraction may add; hierarchy and supersession are decided here."""
