"""Compare a draft with its nearest fragments: detect duplicates to merge, and choose its parent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from lore.digest.drafts import NearestSearch, Scores
from lore.digest.fragment_edits import required_trust
from lore.index.vector_index import VectorFilter
from lore.lazy_dataclass import dataclass
from lore.records import Fragment, FragmentKind
from lore.store import fragments, items
from lore.store.database import Connection
from lore.text import entities, instructions, words

ATTACH_ABOVE, ASSOCIATE_FROM = 0.65, 0.3
"""A root above the first cosine becomes the parent of the draft;

from the second on the two are linked. Both are a tenth below what was meant for all-MiniLM-L6-v2,
because the cosines of the shipped encoder are lower by that much.
"""

SURPRISE, MIN_KNOWN = 0.2, 40
"""What resembles nothing among at least so many neighbours is more important by the first: the
prediction error. In a young memory everything is new, and a larger factor lifts what is off the
topic above what is graded high (ADR 87).
"""

MAX_IMPORTANCE = 0.95
"""From the specification: at 1 nothing would ever fade."""

NEVER_PARENTS: tuple[FragmentKind, ...] = ("episode", "insight")
"""Episodes and insights are derived; knowledge is never attached below them."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stored fragment, and the cosine between it and a draft."""

    n: int
    cosine: float


@dataclass(frozen=True, slots=True)
class Candidate(Neighbour):
    """A neighbour that was loaded."""

    fragment: Fragment


@dataclass(frozen=True, slots=True)
class Placement:
    """The parent of a draft or the root it is linked to, and the cosine of the nearest root."""

    parent: int | None = None
    linked: int | None = None
    nearest: float = 0.0


def choose_place(candidates: Sequence[Candidate]) -> Placement:
    """Return the place of a draft among the nearest roots that may have children."""
    roots = (
        one
        for one in candidates
        if one.fragment.depth == 0 and one.fragment.kind not in NEVER_PARENTS
    )
    best = max(roots, key=lambda root: (root.cosine, -root.n), default=None)
    if best is None:
        return Placement()
    near = min(1.0, max(0.0, best.cosine))
    if near > ATTACH_ABOVE:
        return Placement(parent=best.n, nearest=near)
    return Placement(linked=best.n if near >= ASSOCIATE_FROM else None, nearest=near)


def raise_importance(importance: float, nearest: float, *, known: int) -> float:
    """Return an importance raised by the novelty of a draft among the neighbours it has.

    At most `MAX_IMPORTANCE`; with fewer than `MIN_KNOWN` neighbours it is not raised.
    """
    surprise = SURPRISE * (1 - nearest) if known >= MIN_KNOWN else 0.0
    return min(MAX_IMPORTANCE, importance * (1 + surprise))


THRESHOLDS: Mapping[FragmentKind, float] = {
    "preference": 0.8,
    "decision": 0.75,
    "pattern": 0.9,
    "workflow": 0.85,
    "config": 0.85,
}
DEFAULT_THRESHOLD = 0.85
"""The cosine from which two fragments of a kind are duplicates, if no value differs:

the lowest at which `benchmarks/dedup.py` merges nothing wrongly with the shipped embedder (330
pairs judged by hand; preferences with room above the highest wrong pair). By cosine
alone every fourth merge of facts at 0.85 would be wrong: another amount, another date. Patterns as
in the specification, workflows and settings by their command and name: too few pairs of them.
"""

CONFIRMATION_STEP = 0.05
"""A confirmation raises the confidence of a fragment by this much, at most to 1."""

DuplicateOutcome = Literal["merge", "known", "replace"]


def is_duplicate(
    kind: FragmentKind, content: str, payload: Mapping[str, Any], candidate: Candidate
) -> bool:
    """Return whether a draft duplicates a stored fragment, with no different value in it."""
    fragment = candidate.fragment
    if fragment.kind != kind:
        return False
    if any(
        payload.get(name, "") != fragment.payload.get(name, "")
        for name in _KEY_FIELDS.get(kind, ())
    ):
        return False
    if content == fragment.content:
        return True
    if candidate.cosine < THRESHOLDS.get(kind, DEFAULT_THRESHOLD):
        return False
    if not entities.values_agree(content, fragment.content):
        return False
    takes_back, took_back = (
        instructions.find_withdrawal(text) is not None for text in (content, fragment.content)
    )
    return takes_back == took_back


RESTATED: frozenset[FragmentKind] = frozenset(("fact", "bug_fix", "architecture", "decision"))
"""Kinds that one statement gets in turn: a session tells a cause, a fix and a report of it."""

RESTATED_COSINE, RESTATED_WORDS, RESTATED_AS_OTHER = 0.8, 0.75, 0.8
"""A session restates what is this near and has this share of the words of the shorter text; the
last if the kind differs. Chosen on the pairs of one project, read in three more.
"""

MAX_SWAPPED_WORDS = 2
"""Texts that differ by so few words on either side give another value: npm and pnpm."""


def is_restated(kind: FragmentKind, content: str, candidate: Candidate) -> bool:
    """Return whether a draft says in other words what a fragment of its session says."""
    fragment = candidate.fragment
    if not {kind, fragment.kind} <= RESTATED or candidate.cosine < RESTATED_COSINE:
        return False
    if entities.is_negated(content) != entities.is_negated(fragment.content):
        return False
    own, other = _content_words(content), _content_words(fragment.content)
    share = RESTATED_WORDS if kind == fragment.kind else RESTATED_AS_OTHER
    if len(own & other) < share * max(1, min(len(own), len(other))):
        return False
    is_swap = own - other and other - own and len(own ^ other) <= 2 * MAX_SWAPPED_WORDS
    differs = _value_words(content) - other and _value_words(fragment.content) - own
    return not is_swap and not differs


def _content_words(text: str) -> set[str]:
    return {words.stem(word) for word in words.split(text) if word not in words.STOP_WORDS}


def _value_words(text: str) -> set[str]:
    """Return the words of numbers and names: `/api/*` and `/api/` are the same path."""
    return _content_words(" ".join(entities.extract_values(text)))


_KEY_FIELDS: Mapping[FragmentKind, tuple[str, ...]] = {
    "workflow": ("command",),
    "config": ("setting", "value", "location"),
}
"""Payload fields in which duplicates must agree: other commands lie just as close."""


def find_duplicate(
    kind: FragmentKind,
    content: str,
    payload: Mapping[str, Any],
    candidates: Sequence[Candidate],
    *,
    session: str = "",
) -> Candidate | None:
    """Return the nearest stored fragment that a draft of a session duplicates or restates."""
    same = [
        one
        for one in candidates
        if is_duplicate(kind, content, payload, one)
        or (session and one.fragment.session_id == session and is_restated(kind, content, one))
    ]
    return max(same, key=lambda one: (one.cosine, -one.n), default=None)


def duplicate_outcome(trust: int, fragment: Fragment) -> DuplicateOutcome:
    """Return what to do with a draft of some trust and the fragment that it duplicates."""
    if trust < required_trust(fragment):
        return "known"
    return "merge" if trust == fragment.trust else "replace"


OWN_NEIGHBOURS, OTHER_NEIGHBOURS = 48, 8
"""The number of nearest fragments to look at: of the same project, and of any."""


def find_neighbours(
    nearest: NearestSearch, vector: Scores | None, project_n: int | None
) -> list[Neighbour]:
    """Return the fragments nearest to a vector, of the same project and of any."""
    if vector is None:
        return []
    kind = (items.type_number("fragment"),)
    own = VectorFilter(projects=(project_n, 0) if project_n else (0,), types=kind)
    cosines: dict[int, float] = {}
    for where, k in ((own, OWN_NEIGHBOURS), (VectorFilter(types=kind), OTHER_NEIGHBOURS)):
        ns, scores = nearest(vector, k, where=where)
        cosines |= dict(zip(ns.tolist(), scores.tolist(), strict=True))
    return [Neighbour(n, cosine) for n, cosine in cosines.items()]


def applying(db: Connection, candidates: Sequence[Candidate], scope: int | None) -> list[Candidate]:
    """Return the candidates that apply to a scope, or to all projects."""
    scopes = items.scopes_of(db, [one.n for one in candidates])
    return [one for one in candidates if scopes.get(one.n) in (None, scope)]


def load_candidates(db: Connection, neighbours: Sequence[Neighbour]) -> list[Candidate]:
    """Return the neighbours that are neither deleted, archived nor superseded, nearest first.

    Faded ones are included: what is learned again is not new.
    """
    best: dict[int, float] = {}
    for one in neighbours:
        best[one.n] = max(one.cosine, best.get(one.n, -1.0))
    gone = fragments.deletion_times(db, list(best)).keys() | fragments.archived_of(db, list(best))
    there = fragments.by_number(db, sorted(best.keys() - gone))
    standing = [
        Candidate(n, best[n], fragment)
        for n, fragment in there.items()
        if fragment.superseded_by is None
    ]
    return sorted(standing, key=lambda candidate: (-candidate.cosine, candidate.n))
