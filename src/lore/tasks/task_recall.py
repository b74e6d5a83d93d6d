"""Task-aware recall: the memories that a task of one type needs, best first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import log
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lore.index.vector_index import VectorFilter
from lore.recall.question import Question, parse
from lore.recall.sources import Sources
from lore.records import UNASKED_TRUST, Fragment, FragmentKind, Hit, Origin, TaskType
from lore.store import fragments, items, keywords, replacements
from lore.store.database import Connection
from lore.store.fragments import FragmentFilter
from lore.store.keywords import SearchScope
from lore.tasks.command_steps import purpose_of
from lore.tasks.profiles import RecallSettings
from lore.tasks.task_type import COLLECTIONS, Collection, Weights, collection_size, weights_of
from lore.text import tokens, words
from lore.text.regex import compile_lazy

MOST_RESULTS = 5
"""From the specification: five memories before a task."""

RECENT_DAYS, RECENT_BONUS = 30, 0.1
"""What is younger has up to so much more."""

LEAST_SIMILARITY = RecallSettings().least_similarity
"""What is less similar only happens to be the nearest."""

_POOL = 60
"""Candidates of each collection by words, and as many by meaning."""

_TELLING_WORDS = 8
"""A memory that has so many of the rarest words of a goal is about it."""

_OTHER_TEXTS = 50
"""Texts without a word that are assumed beside those there are: in a memory about one subject its
name would else count for nothing."""

_UNFINISHED, _FAILED = 0.9, 0.75
"""The share of its score that an episode without success keeps, unless a failure is looked for."""

_ALIKE = 0.7
"""Two texts that share so many of their words say the same."""

_COLLECTIONS: Mapping[FragmentKind, Collection] = {
    "episode": "episodic",
    "skill": "skills",
    "workflow": "skills",
    "anti_pattern": "anti_patterns",
}
"""The collections of kinds of fragments; every other kind is semantic memory."""

CLOSE = 0.4
"""A warning or a skill that nobody weighed must be this similar to the goal."""

COMMAND = compile_lazy(r"`([^`]+)`")
"""A command in a text of a lesson."""

_URL = compile_lazy(r"https?://[^\s<>()\"'`]+")
_NAMES = compile_lazy(r"(?<=[/#?=])[^/#?=&\s]+")

_OWN = ("user", "assistant", "tool")
"""Origins of an episode that happened here; one that quotes an error has a tool's."""


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """A goal, and what may be given for it.

    `unasked` leaves out what an agent may only see if it asks; `without` are the numbers of
    sessions whose own memories are left out, and `known` those of memories that were given already.
    """

    goal: str
    task_type: TaskType | None
    project_n: int | None
    now: datetime
    weights: Weights | None = None
    without: tuple[int, ...] = ()
    unasked: bool = False
    known: frozenset[int] = frozenset()
    settings: RecallSettings = field(default_factory=RecallSettings)


@dataclass(frozen=True, slots=True)
class TaskHit:
    """A memory for a task, with its collection and score."""

    fragment: Fragment
    collection: Collection
    similarity: float
    score: float


def recall_for_task(
    sources: Sources, db: Connection, query: TaskQuery, *, limit: int | None = None
) -> list[TaskHit]:
    """Return the best memories of all collections that the type of a task weighs, best first."""
    hits = [
        hit
        for collection, best in rank_collections(sources, db, query).items()
        for hit in best[: collection_size(collection, _weights(query)[collection])]
    ]
    return drop_repeated(sorted(hits, key=lambda hit: hit.score, reverse=True))[
        : query.settings.depth if limit is None else limit
    ]


def find_task_hits(
    sources: Sources,
    db: Connection,
    goal: str,
    task_type: TaskType,
    *,
    project_n: int | None,
    now: datetime,
    trusted_only: bool = False,
) -> list[Hit]:
    """Return the memories for a task as search results, with the reason for each."""
    query = TaskQuery(goal, task_type, project_n, now, unasked=trusted_only)
    return [
        Hit(
            id=hit.fragment.id,
            type="fragment",
            text=hit.fragment.content,
            title=hit.fragment.summary,
            score=round(hit.score, 4),
            why=f"{hit.collection.replace('_', ' ')} for {task_type}, similar {hit.similarity:.2f}",
            created_at=hit.fragment.created_at,
            tokens=tokens.count(hit.fragment.content),
            kind=hit.fragment.kind,
            depth=hit.fragment.depth,
            session_id=hit.fragment.session_id or "",
            project_id=hit.fragment.project_id or "",
            origin=hit.fragment.origin,
            sources=hit.fragment.source_messages,
        )
        for hit in recall_for_task(sources, db, query)
    ]


def rank_collections(
    sources: Sources, db: Connection, query: TaskQuery
) -> dict[Collection, list[TaskHit]]:
    """Return the memories of each collection that have to do with a goal, best first.

    What a collection without weight holds has no score, and is ordered by similarity.
    """
    question = parse(shorten_urls(query.goal), query.now)
    cosines = _find_candidates(sources, db, question, query)
    loaded = fragments.by_number(db, sorted(cosines))
    word_sets = {n: searched_words(one) for n, one in loaded.items()}
    similar = measure_similarity(question, word_sets, cosines, word_share=query.settings.word_share)
    similar |= _similarity_of_warnings(loaded, similar, content_words(query.goal))
    replaced = replacements.successors(db, sorted(loaded))
    ranked: dict[Collection, list[TaskHit]] = {name: [] for name in COLLECTIONS}
    for n, fragment in loaded.items():
        least = query.settings.least_similarity
        if similar[n] < least or n in query.known or not _is_wanted(fragment, query):
            continue
        newer = replaced.get(n)
        if newer is not None and newer.relation != "may_replace":
            continue
        if query.unasked and not is_given_unasked(fragment):
            continue
        collection = collection_of(fragment.kind, query.task_type)
        score = _score(fragment, similar[n] * _weights(query)[collection], query)
        ranked[collection].append(TaskHit(fragment, collection, similar[n], score))
    for hits in ranked.values():
        hits.sort(key=lambda hit: (hit.score, hit.similarity), reverse=True)
    return ranked


_OF_SESSIONS = ("episode", "pattern", "anti_pattern", "skill")
"""Whole sessions, and what several of them taught; every other kind is a single finding."""


def _is_wanted(fragment: Fragment, query: TaskQuery) -> bool:
    """Return whether a memory has the granularity of the settings."""
    if query.settings.granularity == "session":
        return fragment.kind in _OF_SESSIONS
    return query.settings.granularity == "hierarchical" or fragment.kind != "episode"


def collection_of(kind: FragmentKind, task_type: TaskType | None) -> Collection:
    """Return the collection of a kind; for debugging, fixed bugs are warnings too."""
    if kind == "bug_fix" and task_type == "debugging":
        return "anti_patterns"
    return _COLLECTIONS.get(kind, "semantic")


def is_given_unasked(fragment: Fragment) -> bool:
    """Return whether a memory may be put into a prompt that did not ask for it."""
    return is_own_word(fragment) and not (
        fragment.kind == "episode" and fragment.payload.get("titled")
    )


_WHOSE: Mapping[Origin, str] = {
    "peer": "from an import, not confirmed",
    "repo": "from a file of the repository, not confirmed",
    "tool": "from the output of a tool, not confirmed",
    "web": "from the web, not confirmed",
}


def is_own_word(fragment: Fragment) -> bool:
    """Return whether a memory is the word of the person or of an agent here."""
    if fragment.kind == "episode":
        return fragment.origin in _OWN
    return fragment.trust >= UNASKED_TRUST


def name_source(fragment: Fragment) -> str:
    """Return whose word a memory is; '' if it is that of the person or of an agent here."""
    return "" if is_own_word(fragment) else _WHOSE.get(fragment.origin, "not confirmed")


def drop_repeated(hits: Sequence[TaskHit]) -> list[TaskHit]:
    """Return the hits without those that repeat a better one."""
    distinct: list[TaskHit] = []
    word_sets: list[frozenset[str]] = []
    for hit in hits:
        mine = content_words(hit.fragment.content)
        if not any(is_alike(mine, other) for other in word_sets):
            distinct.append(hit)
            word_sets.append(mine)
    return distinct


def is_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether two texts say the same, by their words."""
    shared = len(one & other)
    return shared >= _ALIKE * min(len(one), len(other)) and shared * 2 >= max(len(one), len(other))


def shorten_urls(text: str) -> str:
    """Return a text with the last two names of each address, which tell it from others."""
    return _URL.sub(lambda url: " ".join(_NAMES.findall(url[0])[-2:]) or url[0], text)


def _weights(query: TaskQuery) -> Weights:
    return query.weights or weights_of(query.task_type)


def _score(fragment: Fragment, weighted: float, query: TaskQuery) -> float:
    """Return the score by weighted similarity, importance, confidence and age."""
    score = weighted * (0.7 + 0.3 * fragment.importance) * fragment.confidence
    if fragment.kind == "episode" and query.task_type != "debugging":
        outcome = fragment.payload.get("outcome")
        score *= {"success": 1.0, "failure": _FAILED}.get(str(outcome), _UNFINISHED)
    days = max(0.0, (query.now - fragment.created_at).total_seconds() / 86_400)
    return score * (1 + RECENT_BONUS * max(0.0, 1 - days / RECENT_DAYS))


def _find_candidates(
    sources: Sources, db: Connection, question: Question, query: TaskQuery
) -> dict[int, float]:
    """Return the candidates of all collections by number, with their cosines to a goal.

    Each collection is searched on its own, so that the many facts do not displace the few skills.
    """
    vector = sources.embed_query(question.text)
    visible = fragments.filter_visible(db, FragmentFilter(project_n=query.project_n))
    by_keyword: set[int] = set()
    cosines: dict[int, float] = {}
    for ns in _split_collections(db, visible, query).values():
        by_keyword |= {
            n
            for n, _ in keywords.search(
                db, "fragment_words", question.match(), limit=_POOL,
                weights=sources.fragment_weights, within=SearchScope(ns=ns.tolist()),
            )
        }  # fmt: skip
        where = VectorFilter(types=(items.type_number("fragment"),), ns=ns)
        near, scores = sources.nearest(vector, _POOL, where=where)
        cosines |= dict(zip(near.tolist(), scores.tolist(), strict=True))
    rest = np.array(sorted(by_keyword - {*cosines}), np.int64)
    measured = sources.load_vectors(rest) @ vector if len(rest) and vector.any() else rest * 0.0
    return cosines | dict(zip(rest.tolist(), measured.tolist(), strict=True))


K = TypeVar("K")


def measure_similarity(
    question: Question,
    word_sets: Mapping[K, frozenset[str]],
    cosines: Mapping[K, float],
    *,
    word_share: float = 0.5,
) -> dict[K, float]:
    """Return how similar texts are to a goal: by their words and by their meaning.

    Of the words it is the share of the goal's rarest ones that a text has, each by its rarity: a
    goal of a hundred words has some that name what it is about.
    """
    terms = {words.stem(term) for term in question.terms}
    uses = Counter(term for mine in word_sets.values() for term in mine & terms)
    texts = len(word_sets) + _OTHER_TEXTS
    rarity = {term: log(texts / (max(1, uses[term]) + 0.5)) for term in terms}
    whole = sum(sorted(rarity.values(), reverse=True)[:_TELLING_WORDS]) or 1.0
    has_vectors = any(cosines.values())
    similarity: dict[K, float] = {}
    for key, mine in word_sets.items():
        covered = min(1.0, max(0.0, sum(rarity[term] for term in mine & terms) / whole))
        cosine = min(1.0, max(0.0, cosines[key]))
        mixed = word_share * covered + (1 - word_share) * cosine
        similarity[key] = mixed if has_vectors else covered
    return similarity


def _similarity_of_warnings(
    loaded: Mapping[int, Fragment], similar: Mapping[int, float], goal: frozenset[str]
) -> dict[int, float]:
    """Return how similar learned warnings are to a goal.

    A warning consists of commands, and a goal rarely names one. So it is as similar as the tasks in
    which its mistake was made, and close to a goal that says what its command is for, like tests.
    """
    episodes = {one.id: similar[n] for n, one in loaded.items() if one.kind == "episode"}
    raised: dict[int, float] = {}
    for n, one in loaded.items():
        met_in = one.payload.get("source_episodes") if one.kind == "anti_pattern" else None
        if not isinstance(met_in, list) or not met_in:
            continue
        purposes = map(purpose_of, COMMAND.findall(str(one.payload.get("what_fails", ""))))
        is_named = any(words.stem(purpose) in goal for purpose in purposes if purpose)
        tasks = (episodes.get(str(id_), 0.0) for id_ in met_in)
        raised[n] = max(similar[n], *tasks, CLOSE if is_named else 0.0)
    return raised


def searched_words(fragment: Fragment) -> frozenset[str]:
    """Return the words by which a memory is compared with a goal."""
    named = fragment.payload.get("keywords")
    return content_words(" ".join((fragment.summary, fragment.content, *map(str, named or ()))))


def _split_collections(
    db: Connection, visible: set[int], query: TaskQuery
) -> dict[Collection, NDArray[np.int64]]:
    """Return the numbers of visible fragments by collection, without those of some sessions."""
    split: dict[Collection, list[int]] = {}
    for n, kind in fragments.kinds_of(db, sorted(visible), without=query.without).items():
        split.setdefault(collection_of(kind, query.task_type), []).append(n)
    return {name: np.array(ns, np.int64) for name, ns in split.items()}


def content_words(text: str) -> frozenset[str]:
    """Return the stems of the words of a text that say something."""
    return frozenset(words.stem(word) for word in words.split(text) if word not in words.STOP_WORDS)
