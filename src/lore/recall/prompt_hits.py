"""Find hits for a prompt that did not ask memory: what answers it or matters for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from lore import clock
from lore.index.numbers import is_among
from lore.lazy_dataclass import dataclass
from lore.recall import presentation, prompt_model, ranking
from lore.recall.candidates import Bounds
from lore.recall.features import Floats
from lore.recall.hit_selection import Limits
from lore.recall.outdated import WHOLE
from lore.recall.question import Question, parse
from lore.recall.ranking import Ranked, rank
from lore.recall.sources import Sources
from lore.records import ITEM_TYPES, Hit, ItemType, PromptCandidate
from lore.store import distillations, fragments, items, messages
from lore.store.database import Connection
from lore.text import goals, message_features

MOST_PROMPT_HITS = 8
"""Most candidates whose probability is estimated, and most hits that are put into a prompt."""

_WIDE_TOKENS = 4_000


@dataclass(frozen=True, slots=True)
class PromptRanking:
    """The best candidates for a prompt: their places among all, and their features as rows."""

    question: Question
    ranked: Ranked
    places: NDArray[np.int64]
    matrix: Floats


KnownItems = Callable[[Sequence[int]], Set[int]]
"""Returns those of some items that the session has already."""


def knows_none(_ns: Sequence[int]) -> Set[int]:
    """Return that the session has none of some items."""
    return frozenset()


def find_prompt_hits(  # noqa: PLR0913 - what bounds the search, and what it leaves out
    sources: Sources,
    prompt: str,
    *,
    project_n: int | None,
    without: Sequence[int],
    now: datetime,
    types: tuple[ItemType, ...] = ITEM_TYPES,
    threshold: float = 0.0,
    known: KnownItems = knows_none,
) -> list[PromptCandidate]:
    """Return the hits that are likely enough to answer a prompt or to matter for it, best first.

    They are of trusted origins and not from the sessions `without`, nor are they messages that
    those sessions also contain: a forked session has them in its prompt. What is too unlikely is
    not presented: presenting takes longer than searching.
    """
    with sources.database.read() as db:
        best = rank_prompt(
            sources, db, prompt, project_n=project_n, without=without, now=now, types=types,
            known=known,
        )  # fmt: skip
        models = prompt_model.load_prompt_models()
        likely = models.screen.probabilities(best.matrix)
        passing = np.flatnonzero(likely >= (models.least if threshold > 0 else 0.0))
        if not len(passing):
            return []
        hits = _present(db, best, best.places[passing], without)
        candidates = [
            candidate
            for candidate in estimate(db, best, hits)
            if candidate.probability >= threshold
        ]
        return [replace(one, hit=_as_fragment(db, one.hit)) for one in candidates]


def _present(
    db: Connection, best: PromptRanking, places: NDArray[np.int64], without: Sequence[int]
) -> list[Hit]:
    """Return what would be shown of some candidates, without what the prompt has already."""
    limits = Limits(MOST_PROMPT_HITS, _WIDE_TOKENS, trusted_only=True)
    selection = presentation.present(db, best.question, best.ranked, places, limits=limits)
    ns = items.numbers_of(db, [hit.id for hit in selection.hits])
    dropped = messages.find_repeated(db, list(ns.values()), without)
    dropped |= _find_repeated(db, [ns[hit.id] for hit in selection.hits if hit.role == "user"])
    return [
        hit
        for hit in selection.hits
        if ns[hit.id] not in dropped and (hit.replaced or not hit.is_outdated)
    ]


def estimate(db: Connection, best: PromptRanking, hits: Sequence[Hit]) -> list[PromptCandidate]:
    """Return hits with their probabilities, the likeliest first."""
    matrix = describe_hits(db, best, hits)
    likely = prompt_model.load_prompt_models().decision.probabilities(matrix)
    cosine, covered = (prompt_model.NAMES.index(name) for name in ("cosine", "covered"))
    candidates = [
        PromptCandidate(hit, float(chance), float(row[cosine]), float(row[covered]))
        for hit, chance, row in zip(hits, likely.tolist(), matrix, strict=True)
    ]
    return sorted(candidates, key=lambda one: one.probability, reverse=True)


def describe_hits(db: Connection, best: PromptRanking, hits: Sequence[Hit]) -> Floats:
    """Return the features of hits as rows; a reply has the place of the question it answers."""
    ns = items.numbers_of(db, [hit.question_id or hit.id for hit in hits])
    row_of = {n: row for row, n in enumerate(best.ranked.pool.ns[best.places].tolist())}
    weights = best.ranked.pool.word_weights()
    rows = [
        [
            *best.matrix[row_of[ns[hit.question_id or hit.id]]].tolist(),
            *prompt_model.describe_text(best.question, hit, weights),
        ]
        for hit in hits
    ]
    return np.array(rows, np.float64).reshape(len(hits), len(prompt_model.NAMES))


def rank_prompt(  # noqa: PLR0913 - as of `find_prompt_hits`
    sources: Sources,
    db: Connection,
    prompt: str,
    *,
    project_n: int | None,
    without: Sequence[int],
    now: datetime,
    types: tuple[ItemType, ...] = ITEM_TYPES,
    known: KnownItems = knows_none,
) -> PromptRanking:
    """Return the best candidates for a prompt that did not ask memory.

    Superseded items are left out, and `known` ones, which would take the places of others. An
    episode without actions only repeats its request, and would displace what was learned from it.
    """
    question = parse(prompt, now)
    bounds = Bounds(project_n, None, types, trusted_only=True, without=tuple(without))
    ranked = rank(sources, db, question, bounds, "learned")
    ranked = ranking.apply_policy(db, ranked, question, None, now)
    order = ranking.select_relevant(ranked)
    if "replaced" in ranked.features:
        order = order[ranked.features["replaced"][order] < WHOLE]
    ns = ranked.pool.ns[order]
    left_out = {*distillations.episodes_without_calls(db, ns), *known(ns.tolist())}
    order = order[~is_among(ns, list(left_out))][:MOST_PROMPT_HITS]
    rarest = math.log1p(items.highest_number(db))
    matrix = prompt_model.describe(question, ranked, order, rarest=rarest, now_us=clock.to_us(now))
    return PromptRanking(question, ranked, order, matrix)


def _as_fragment(db: Connection, hit: Hit) -> Hit:
    """Replace a message by the fragment that duplicates it, if there is one."""
    if hit.type != "message" or not hit.same:
        return hit
    duplicates = fragments.by_number(db, list(items.numbers_of(db, list(hit.same)).values()))
    fragment = next(iter(duplicates.values()), None)
    if fragment is None:
        return hit
    return replace(
        hit, id=fragment.id, type="fragment", kind=fragment.kind, origin=fragment.origin,
        title=fragment.summary, text=fragment.content, role="", breadcrumb="",
    )  # fmt: skip


def _find_repeated(db: Connection, ns: Sequence[int]) -> set[int]:
    """Return the user messages that only repeat a conversation or that a program wrote."""
    by_n = messages.get_messages(db, ns)
    return {
        n
        for n, message in by_n.items()
        if goals.is_repeated(message_features.spoken_text(message.parts))
    }
