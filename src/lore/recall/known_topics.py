"""Known topics: the few statements about a project that a new session is given unasked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, log2

import numpy as np
from numpy.typing import NDArray

from lore.recall.sources import Sources
from lore.records import UNASKED_TRUST, Fragment, FragmentKind
from lore.store import fragments, native_rows, replacements
from lore.store.database import Connection
from lore.store.replacements import Successor
from lore.text import sentences, statements
from lore.text.regex import compile_lazy

MOST_TOPICS = 10

_MOST_READ = 600
"""The latest statements of a project that are compared: that takes some milliseconds."""

_SAME_SUBJECT = 0.5
"""The cosine from which two statements count as being about one thing."""

_LATER = 0.6
"""The cosine from which a later statement may have made an earlier one out of date."""

_OUTDATED = 0.4
"""The factor for a statement with a later one about the same thing in another session."""

_FRESH_DAYS = 14
"""In so many days a statement loses half of what recency gives it."""

_LEAST_RECENCY = 0.25
"""What is left of a statement however old it is: an old decision may be the one that holds."""

_FEWEST_WORDS, _MOST_CHARS = 5, 240

_WEIGHTS: dict[FragmentKind, float] = {"bug_fix": 0.7, "fact": 0.8, "insight": 0.8}
"""A bug that was mended, and a single fact, are seldom what the next session needs."""

SYMPTOM = 0.35
"""The factor for what was wrong when it was said: mostly it was mended within the session."""

_UNSETTLED = compile_lazy(
    r"(?i)^(?:it |this |that )?(?:seems?|looks? like|maybe|perhaps|i think|i guess"
    r"|the (?:problem|issue|error) is)\b|^(?:problem|issue|issues found|error|symptom)s?:"
)
"""How a sentence begins that says how something looks, or what is wrong."""

_LEANS = compile_lazy(
    r"(?i)^(?:however|then|but|and|so|also|thus|therefore|otherwise|instead|here(?:'s| is)"
    r"|in (?:this|that|these|those)|with (?:this|that)|this|that|these|those|it|they)\b"
)
"""How a sentence begins that leans on the one before it."""

_BY_HAND = 1.5
"""The factor for what a person stored themselves."""


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """A statement for the start of a session: its fragment, the text to show, what replaces it."""

    fragment: Fragment
    text: str
    newer: Successor | None


@dataclass(frozen=True, slots=True)
class _Candidate:
    n: int
    topic: KnownTopic


def choose_topics(
    sources: Sources, db: Connection, *, project_n: int | None, agent: str
) -> list[KnownTopic]:
    """Return what a session should know of a project, the most useful first.

    That is what was said lately, came up in several sessions, is read, and stands for itself. Of
    several statements about one thing the latest is taken.
    """
    candidates = _candidates(db, project_n, agent)
    if not candidates:
        return []
    ns = np.array([one.n for one in candidates], np.int64)
    cosines = _cosines(sources, ns)
    scores = _scores([one.topic.fragment for one in candidates], cosines)
    chosen: dict[int, KnownTopic] = {}
    for place in sorted(range(len(candidates)), key=lambda one: -scores[one]):
        one = candidates[place]
        same = [other for other in chosen if cosines[place, other] >= _SAME_SUBJECT]
        if not same and len(chosen) < MOST_TOPICS:
            chosen[place] = one.topic
        for other in same:
            if one.topic.newer is not None and one.topic.newer.n == candidates[other].n:
                chosen[other] = one.topic  # shown with the newer statement ahead of it
    return list(chosen.values())


def _candidates(db: Connection, project_n: int | None, agent: str) -> list[_Candidate]:
    ns = fragments.latest(db, project_n=project_n, limit=_MOST_READ, least_trust=UNASKED_TRUST)
    own = native_rows.notes_of_agent(db, ns, agent)
    ns = [n for n in ns if n not in own]
    replaced = replacements.successors(db, ns)
    by_n = fragments.by_number(db, ns)
    return [
        _Candidate(n, KnownTopic(by_n[n], text, replaced.get(n)))
        for n in ns
        if n in by_n
        and (n not in replaced or replaced[n].relation == "may_replace")
        and (text := _whole_text(by_n[n]))
    ]


def _whole_text(fragment: Fragment) -> str:
    """Return a fragment or its first sentence; '' if that cannot stand for itself."""
    content = statements.strip_opening(statements.strip_markup(fragment.content))
    if len(content) <= _MOST_CHARS and "\n" not in fragment.content.strip():
        text = content
    else:
        text = sentences.first_sentence(content)
    if statements.is_proposal(content):
        return ""
    is_by_hand = fragment.session_id is None
    is_fit = is_by_hand or (len(text) <= _MOST_CHARS and stands_for_itself(text))
    return text if is_fit else ""


def stands_for_itself(text: str) -> bool:
    """Return whether a statement is understood by who did not see what stood around it."""
    text = statements.strip_markup(text)
    return (
        len(text.split()) >= _FEWEST_WORDS
        and statements.is_whole(text)
        and statements.stands_alone(text)
        and not _LEANS.match(text)
        and not text.rstrip("\"'”`").endswith((":", "?", "…"))
    )


def is_symptom(fragment: Fragment) -> bool:
    """Return whether a statement only says what was wrong, or how something looked."""
    payload = fragment.payload
    is_bare = fragment.kind == "bug_fix" and payload.get("symptom") == payload.get("solution")
    return is_bare or bool(_UNSETTLED.match(statements.strip_markup(fragment.content)))


def _cosines(sources: Sources, ns: NDArray[np.int64]) -> NDArray[np.float32]:
    if not sources.embedder.dimension:
        return np.eye(len(ns), dtype=np.float32)
    vectors = sources.load_vectors(ns)
    return np.asarray(vectors @ vectors.T, np.float32)


def _scores(stated: Sequence[Fragment], cosines: NDArray[np.float32]) -> list[float]:
    days = np.array([one.created_at.timestamp() / 86_400 for one in stated])
    sessions = [one.session_id or one.id for one in stated]
    latest = float(days.max())
    scores = []
    for place, one in enumerate(stated):
        near = cosines[place] >= _SAME_SUBJECT
        in_sessions = {sessions[other] for other in np.flatnonzero(near)} | {sessions[place]}
        later = (cosines[place] >= _LATER) & (days > days[place])
        is_outdated = any(sessions[other] != sessions[place] for other in np.flatnonzero(later))
        recency = 0.5 ** ((latest - float(days[place])) / _FRESH_DAYS)
        scores.append(
            one.importance
            * (SYMPTOM if is_symptom(one) else _WEIGHTS.get(one.kind, 1.0))
            * (_BY_HAND if one.session_id is None and one.origin == "user" else 1.0)
            * (_LEAST_RECENCY + (1 - _LEAST_RECENCY) * recency)
            * (1 + 0.35 * log2(len(in_sessions)))
            * (1 + 0.15 * log(1 + one.access_count))
            * (_OUTDATED if is_outdated else 1.0)
        )
    return scores
