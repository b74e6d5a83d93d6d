"""Cases for tuning: the memories that could be given to a task, and the log of a project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial

from lore.recall.sources import Sources
from lore.records import TASK_TYPES, TaskType, TuningCandidate, TuningCase
from lore.store import items, strategy_rows
from lore.store.database import Connection
from lore.tasks import task_brief
from lore.tasks.profile_search import CUTS
from lore.tasks.profiles import RecallSettings
from lore.tasks.task_recall import TaskQuery, rank_collections
from lore.tasks.task_type import COLLECTIONS
from lore.text import tokens
from lore.text.hidden_text import one_line

_MOST_CANDIDATES = 80
_KNOWN_AT = 40
"""A memory that was used and is cut to fewer tokens may have lost what was used of it."""

Gains = Callable[[str, str], frozenset[str]]
"""Returns what of a memory was used, given its id and the text that is shown of it."""


def find_candidates(
    sources: Sources, db: Connection, query: TaskQuery, gains: Gains
) -> tuple[TuningCandidate, ...]:
    """Return the memories that could be given to a task, with both kinds of similarity."""
    even = dict.fromkeys(COLLECTIONS, 1.0)
    ranked = [
        rank_collections(
            sources, db,
            replace(query, weights=even,
                    settings=RecallSettings(word_share=share, least_similarity=0.0)),
        )
        for share in (1.0, 0.0)
    ]  # fmt: skip
    meaning = {hit.fragment.id: hit.similarity for hits in ranked[1].values() for hit in hits}
    ranked_candidates = []
    for collection, hits in ranked[0].items():
        for hit in hits:
            id_, both = hit.fragment.id, max(hit.similarity, meaning.get(hit.fragment.id, 0.0))
            quality = hit.score / hit.similarity if hit.similarity else 0.7
            text = task_brief.describe(hit.fragment, unasked=query.unasked)
            cut = {size: tuple(sorted(gains(id_, one_line(text, size)))) for size in CUTS}
            one = TuningCandidate(
                id_, collection, hit.fragment.kind == "episode", hit.similarity,
                meaning.get(id_, 0.0), quality, text, tokens.count(text), cut,
            )  # fmt: skip
            ranked_candidates.append((both, one))
    ranked_candidates.sort(key=lambda pair: -pair[0])
    return tuple(one for _, one in ranked_candidates[:_MOST_CANDIDATES])


def log_cases(
    sources: Sources, db: Connection, *, project_n: int | None, now: datetime
) -> list[TuningCase]:
    """Return the retrievals for tasks of which it is known what was used.

    Of memories that were not given it is not known whether they would have been used: they bring
    nothing here. A search over the log alone therefore finds what to leave out sooner than what to
    add; recorded sessions do both.
    """
    cases = []
    for row in strategy_rows.retrieval_rows(db, project_n=project_n):
        if not row.used or row.task_type not in TASK_TYPES:
            continue
        used = frozenset(row.used)
        task_type: TaskType = row.task_type
        scope = items.NO_PROJECT if row.project_n is None else row.project_n
        query = TaskQuery(row.query, task_type, scope, now)
        candidates = find_candidates(sources, db, query, partial(_used_of, used))
        known = tuple(one for one in candidates if one.id in {*row.candidates, *row.hits})
        cases.append(TuningCase(row.at, task_type, known, row.took_ms, "log"))
    return cases


def _used_of(used: frozenset[str], id_: str, text: str) -> frozenset[str]:
    is_whole = not text.endswith("…") or tokens.count(text) >= _KNOWN_AT
    return frozenset((id_,)) if id_ in used and is_whole else frozenset()
