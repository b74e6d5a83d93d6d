"""Rank the candidates for a question: describe, score by a recipe, apply the policy bonuses."""

from __future__ import annotations

from dataclasses import field, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from lore import clock, telemetry
from lore.errors import InvalidInput
from lore.lazy_dataclass import dataclass
from lore.recall import features, fusion
from lore.recall.candidates import Bounds, Pool, gather
from lore.recall.features import Floats
from lore.recall.outdated import outdated_shares
from lore.recall.question import Question, in_first_person
from lore.recall.sources import Numbers, Sources
from lore.recall.sources import Scores as Vector
from lore.store import messages
from lore.store.candidate_rows import CandidateRows
from lore.store.database import Connection
from lore.text import words

RECIPES = ("learned", "weighted", "rrf")

SAME_SESSION = 1.5
"""Bonus for messages of the session that asks."""

KNOWLEDGE = 2.0
"""Bonus for fragments other than episodes: they were worth storing, and rank before raw text that
says the same. (The model was trained on messages, whose surroundings speak for them.)"""


BRIEF = 0.7
"""Bonus for a distillation line that costs a fraction of its message and leaves room for others.
(On BEAM, 0.4 to 1.0 gain 1 to 3 points of recall within a budget; from 1.5 on, the first ten hits
suffer.)"""

EXACT = 3.0
"""Bonus for identifiers and quoted phrases that match letter by letter."""

OWN = 5.0
"""Among few candidates a text's own words and meaning count more: the model was trained on long
conversations, where the surroundings say as much."""

RECENT, RECENT_HALVES_DAYS = 0.6, 30.0
"""Of two texts that fit alike, the newer one is more likely to hold still."""

LATEST = 2.5
"""Bonus for the newest of the fitting texts when the question asks what holds now."""

IN_TIME = 6.0
"""Bonus for items from the time span asked for. (Where people talk, a date that is spelled out is a
feature of the model: they mention dates of other things too.)"""

REPLACED = 2.5
"""Penalty for items that something newer replaced as a whole; half of it for a part."""


WEAK = 8.0
"""A hit that scores this much less than the best is noise: at e⁻⁸ of its odds."""

UNRELATED = 0.2
"""A text that shares no word with the question is unrelated unless its cosine, or that of a
neighbour, reaches this."""

FEWEST = 3
"""This many hits are returned even if they exceed the token budget."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """Candidates with their scores and features."""

    pool: Pool
    query: Vector
    scores: Floats
    features: dict[str, Floats]
    recipe: str
    model: fusion.RankingModel | None = None
    bonus: Floats | None = None
    scored: dict[str, Floats] = field(default_factory=dict)
    """The features as the model saw them."""
    embedder_n: int | None = None
    """The embedder of the query."""

    def order(self) -> Numbers:
        """Return the places of the candidates, best first; newer first among equals."""
        return fusion.best_first(self.scores, self.pool.rows.created_at.tolist())


def rank(
    sources: Sources,
    db: Connection,
    question: Question,
    bounds: Bounds,
    recipe: str,
) -> Ranked:
    """Gather the candidates for a question and score them by a recipe."""
    if recipe not in RECIPES:
        msg = f"'{recipe}' is not a recipe."
        raise InvalidInput(msg, hint=f"Recipes: {', '.join(RECIPES)}.")
    query, speakers = embed_question(sources, db, question)
    with telemetry.span("gather") as span:
        pool = gather(sources, db, question, query, bounds)
        span.set("lore.candidates", len(pool.ns))
    if recipe != "learned":
        keyword = np.maximum(*(fusion.shares(pool.scores[name]) for name in ("head", "fragment")))
        scores = (
            fusion.weighted(keyword, pool.cosine)
            if recipe == "weighted"
            else fusion.reciprocal_ranks(keyword, pool.cosine, len(question.terms))
        )
        shown = {"keyword": keyword, "cosine": pool.cosine}
        return Ranked(pool, query, scores, shown, recipe, embedder_n=sources.embedder_n)
    with telemetry.span("describe"):
        described = describe(sources, db, question, query, pool, speakers)
    with telemetry.span("score"):
        model = fusion.load_ranking("ranking" if pool.cosine.any() else "ranking-words")
        scored = described | _as_average(described, model, pool.is_type("fragment"))
        scores = model.score(scored)
        logs = pool.is_type("distillation")
        if logs.any():
            scores = _with_logs(scores, described, logs)
    return Ranked(
        pool, query, scores, described, recipe, model,
        scored=scored, embedder_n=sources.embedder_n,
    )  # fmt: skip


def _as_average(
    described: dict[str, Floats], model: fusion.RankingModel, fragments_: np.ndarray
) -> dict[str, Floats]:
    """Return features in which a fragment is average where it has none: it has no neighbours."""
    if not fragments_.any():
        return {}
    means = dict(zip(model.names, model.mean.tolist(), strict=True))
    return {
        name: np.where(fragments_, means[name], described[name])
        for name in model.names
        if name not in features.OF_FRAGMENTS
    }


def embed_question(
    sources: Sources, db: Connection, question: Question
) -> tuple[Vector, list[str]]:
    """Return the vector of a question, and the speakers that it names."""
    names = [word for word in words.raw_words(question.core) if word[:1].isupper()]
    speakers = messages.find_speakers(db, names)
    return sources.embed_query(in_first_person(question.core, speakers)), speakers


def describe(
    sources: Sources,
    db: Connection,
    question: Question,
    query: Vector,
    pool: Pool,
    speakers: list[str],
) -> dict[str, Floats]:
    """Return the features of candidates."""
    around = features.load_surroundings(sources, db, query, pool, speakers)
    profile = features.profile_of(pool)
    described = features.describe(question, pool, around)
    described |= features.describe_logs(db, question, pool)
    for name in ("people", "agent"):
        described[name] = np.full(len(pool.ns), float(profile == name))
    return described


def _with_logs(scores: Floats, described: dict[str, Floats], logs: np.ndarray) -> Floats:
    """Score distillations by their own model, and raise their source messages."""
    own = fusion.load_model("logs", "log").score(described)
    scores = scores + fusion.load_model("logs", "told").score(described)
    scores[logs] = (own + BRIEF * described["brief"])[logs]
    return scores


def _find_outdated(db: Connection, rows: CandidateRows) -> Floats | None:
    """Return how outdated each candidate is; None if all of them hold."""
    session_ns = sorted(set(rows.sessions.tolist()) - {0})
    shares = outdated_shares(db, rows.ns.tolist(), session_ns)
    return np.array([shares.get(n, 0.0) for n in rows.ns.tolist()]) if shares else None


def apply_policy(
    db: Connection, ranked: Ranked, question: Question, session_n: int | None, now: datetime
) -> Ranked:
    """Put first what was asked for: this session, a time, what holds now; and knowledge.

    Outdated items are marked in the feature "replaced": 1 as a whole, less in part.
    """
    rows = ranked.pool.rows
    outdated = _find_outdated(db, rows)
    if outdated is not None:
        ranked = replace(ranked, features={**ranked.features, "replaced": outdated})
    scale = 1.0 if ranked.recipe == "learned" else float(ranked.scores.std() or 0.0)
    bonus = KNOWLEDGE * _find_knowledge(ranked.pool).astype(float)
    if session_n is not None:
        bonus += SAME_SESSION * (rows.sessions == session_n)
    if outdated is not None:
        bonus -= REPLACED * outdated
    if ranked.model is not None:
        bonus += LATEST * ranked.features["latest_if_now"]
        bonus += EXACT * ranked.features["exact"]
        bonus += OWN * (ranked.features["covered_if_few"] + ranked.features["cosine_if_few"])
        age_days = (clock.to_us(now) - rows.created_at) / 8.64e10
        bonus += RECENT * np.exp2(-np.maximum(age_days, 0.0) / RECENT_HALVES_DAYS)
        is_people = bool(ranked.features["people"].any())
        if not (is_people and (question.months or question.years)):
            bonus += IN_TIME * ranked.features["in_time"]
    return replace(ranked, scores=ranked.scores + scale * bonus, bonus=scale * bonus)


def _find_knowledge(pool: Pool) -> NDArray[np.bool_]:
    """Return which candidates are knowledge; an episode tells what a session was about."""
    is_knowledge: NDArray[np.bool_] = pool.is_type("fragment") & (pool.rows.is_episode == 0)
    return is_knowledge


def select_relevant(ranked: Ranked) -> np.ndarray:
    """Return the places of the relevant candidates, best first, without noise and the weak tail."""
    order = ranked.order()
    near = ranked.features.get("covered_near")
    if near is None:
        return order
    pool = ranked.pool
    beside = ranked.features["cosine_beside"]
    fits = (near > 0) | (beside >= UNRELATED) | (ranked.features["date"] > 0)
    for name in ("fragment", "long", "log"):
        fits |= pool.scores[name] > 0
    order = order[fits[order]]
    scores = ranked.scores[order]
    is_log = pool.is_type("distillation")[order]
    strong = np.arange(len(order)) < FEWEST
    for group in (is_log, ~is_log):  # distillations have a share of the answer of their own
        strong |= group & (scores > scores[group].max(initial=-np.inf) - WEAK)
    return order[strong]
