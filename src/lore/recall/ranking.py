"""Ranking: the pool of a question, described and scored by a recipe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lore.errors import InvalidInput
from lore.recall import features, fusion, telling
from lore.recall.features import Floats, Surroundings
from lore.recall.pool import Bounds, Pool, gather
from lore.recall.question import Question, as_told
from lore.recall.sources import BESIDE_CHARS, Numbers, Sources
from lore.store import items, messages, pooling
from lore.store.db import Connection
from lore.store.keywords import stem
from lore.text import words

RECIPES = ("learned", "weighted", "rrf")

SAME_SESSION = 1.5
"""What was said in the session that asks ranks before the same in another."""

KNOWLEDGE = 0.5
"""A fragment was worth keeping: it ranks a little before raw text that says the same."""


BRIEF = 0.7
"""A log line that costs a fraction of the message it tells leaves room for others. (On BEAM, 0.4
to 1.0 bring 1 to 3 points of recall within a budget; from 1.5 on, the first ten hits suffer.)"""

SOLE = 2.0
"""What alone among the candidates has a word of the question is likely meant, whatever its
meaning seems to be: a hit by keywords only must be able to win."""

FEW, OWN = 60, 5.0
"""Among fewer candidates than this, what a text says itself counts more: the model learned from
long conversations, where what stands around a text tells as much."""

EXACT = 3.0
"""What is asked for letter by letter, an identifier or a quoted phrase, is meant so."""

RECENT, RECENT_HALVES_DAYS = 0.6, 30.0
"""Of two texts that fit alike, the newer one is more likely to hold still."""

REPLACED = 2.5
"""What a newer fragment has put out of date ranks below what says how things stand."""

TOGETHER = 6.0
"""A long text that has nearly the whole question in one place is what was asked for."""

LATEST = 2.5
"""Asked for what holds now, of the texts that fit the newest counts most."""

IN_TIME = 4.0
"""Asked for 'last week', what was said last week ranks before the rest. (Where people talk, a
date that is spelled out is a feature of the model: they mention dates of other things too.)"""


@dataclass(frozen=True, slots=True)
class Ranked:
    """Candidates with their scores and what these are made of."""

    pool: Pool
    scores: Floats
    features: dict[str, Floats]
    recipe: str
    model: fusion.LinearModel | None = None
    profile: str = ""
    bonus: Floats | None = None

    def order(self) -> Numbers:
        """Return the places of the candidates, best first; newer first among equals."""
        return fusion.best_first(self.scores, self.pool.rows.created_at.tolist())


def rank(
    sources: Sources,
    db: Connection,
    question: Question,
    bounds: Bounds,
    recipe: str,
    wanted: tuple[str, ...] = (),
) -> Ranked:
    """Gather candidates for a question and score them by a recipe."""
    if recipe not in RECIPES:
        msg = f"'{recipe}' is no recipe."
        raise InvalidInput(msg, hint=f"Recipes: {', '.join(RECIPES)}.")
    speakers = messages.find_speakers(db, _possible_names(question.core))
    query = sources.embed_query(as_told(question.core, speakers))
    pool = gather(sources, db, question, query, bounds)
    if recipe == "rrf":
        keyword = np.maximum(fusion.shares(pool.head), fusion.shares(pool.fragment))
        scores = fusion.reciprocal_ranks(keyword, pool.cosine, len(question.terms))
        return Ranked(pool, scores, {"keyword": keyword, "cosine": pool.cosine}, recipe)
    if recipe == "weighted":
        keyword = np.maximum(fusion.shares(pool.head), fusion.shares(pool.fragment))
        scores = fusion.weighted(keyword, pool.cosine)
        return Ranked(pool, scores, {"keyword": keyword, "cosine": pool.cosine}, recipe)
    around = surroundings(sources, db, query, pool, speakers)
    stems = {word: stem(word) for pair in question.pairs for word in pair}
    stems |= {term: stem(term) for term in question.terms}
    profile = features.profile_of(pool, around)
    model = fusion.load_model("recall", profile)
    described = features.describe(question, pool, around, stems, wanted=wanted or model.names)
    told = telling.tellers(db, pool)
    described |= telling.describe(question, pool, told)
    described["people"] = np.full(len(pool.ns), float(profile == "people"))
    scores = model.score(described)
    if told:
        scores = _with_logs(scores, described, [teller.place for teller in told])
    return Ranked(pool, scores, described, recipe, model, profile)


def _with_logs(scores: Floats, described: dict[str, Floats], logs: list[int]) -> Floats:
    """Score distillations by a model of their own, and lift the messages that they tell."""
    own = fusion.load_model("recall", "log").score(described)
    scores = scores + fusion.load_model("recall", "told").score(described)
    scores[logs] = (own + BRIEF * described["brief"])[logs]
    return scores


def _possible_names(text: str) -> list[str]:
    return [word for word in words.raw(text) if word[:1].isupper()]


def surroundings(
    sources: Sources, db: Connection, query: np.ndarray, pool: Pool, speakers: list[str]
) -> Surroundings:
    """Read what stands around the candidates."""
    rows = pool.rows
    near = np.concatenate([rows.before, rows.before_that, rows.after])
    cosines = sources.cosines(query, near).reshape(3, -1)
    own = sources.texts.of(db, rows.ns, rows.ns[rows.types == items.type_number("fragment")])
    short = {n: text[: BESIDE_CHARS + 2] for n, text in own.items()}
    missing = np.array(
        sorted({*rows.before.tolist(), *rows.after.tolist()} - {0, *rows.ns.tolist()}), np.int64
    )
    short |= sources.beginnings.of(db, missing, missing[:0])
    known = pooling.traits_of(db, rows.before[rows.before > 0])
    before = [known.get(n, (0, "")) for n in rows.before.tolist()]
    return Surroundings(
        own=[own[n] for n in rows.ns.tolist()],
        before=[short.get(n, "") for n in rows.before.tolist()],
        after=[short.get(n, "") for n in rows.after.tolist()],
        before_cosine=cosines[0],
        before_that_cosine=cosines[1],
        after_cosine=cosines[2],
        before_traits=np.array([found[0] for found in before], np.int64),
        same_speaker_before=_same_speaker(rows, before),
        speakers_named=frozenset(name.lower() for name in speakers),
    )


def _same_speaker(rows: pooling.Rows, before: list[tuple[int, str]]) -> np.ndarray:
    """Tell where the message before is by the same speaker, or by the same role if unnamed."""
    from_mask = 128 | 256
    return np.array(
        [
            speaker == other if speaker or other else (own & from_mask) == (found & from_mask)
            for speaker, own, (found, other) in zip(
                rows.speakers, rows.traits.tolist(), before, strict=True
            )
        ],
        np.bool_,
    )
