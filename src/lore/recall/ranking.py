"""Rank the candidates for a question: describe, score by a recipe, apply the policy bonuses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from lore import clock
from lore.errors import InvalidInput
from lore.recall import features, fusion
from lore.recall.candidates import Bounds, Pool, gather
from lore.recall.features import Floats, Surroundings
from lore.recall.question import Question, in_first_person
from lore.recall.sources import BESIDE_CHARS, Numbers, Sources
from lore.store import candidate_rows, fragments, items, messages
from lore.store import standing_instructions as instructions
from lore.store.database import Connection
from lore.store.keywords import stem
from lore.text import words

RECIPES = ("learned", "weighted", "rrf")

SAME_SESSION = 1.5
"""Bonus for messages of the session that asks."""

KNOWLEDGE = 0.5
"""Bonus for fragments: they were worth storing, and rank before raw text that says the same."""


BRIEF = 0.7
"""Bonus for a distillation line that costs a fraction of its message and leaves room for others.
(On BEAM, 0.4 to 1.0 gain 1 to 3 points of recall within a budget; from 1.5 on, the first ten hits
suffer.)"""

SOLE = 2.0
"""Bonus for the only candidates with a word of the question: a keyword-only hit must be able to
win."""

FEW, OWN = 60, 5.0
"""Among fewer candidates than this, a text's own words and meaning count more: the model was
trained on long conversations, where the load_surroundings say as much."""

EXACT = 3.0
"""Bonus for identifiers and quoted phrases that match letter by letter."""

RECENT, RECENT_HALVES_DAYS = 0.6, 30.0
"""Of two texts that fit alike, the newer one is more likely to hold still."""

REPLACED = 2.5
"""Penalty for messages that a newer fragment supersedes."""

TOGETHER = 6.0
"""Bonus for a long text with nearly the whole question in one place."""

LATEST = 2.5
"""Bonus for the newest of the fitting texts when the question asks what holds now."""

IN_TIME = 4.0
"""Bonus for items from the time span asked for. (Where people talk, a date that is spelled out is a
feature of the model: they mention dates of other things too.)"""


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
    """Gather the candidates for a question and score them by a recipe."""
    if recipe not in RECIPES:
        msg = f"'{recipe}' is not a recipe."
        raise InvalidInput(msg, hint=f"Recipes: {', '.join(RECIPES)}.")
    speakers = messages.find_speakers(db, _possible_names(question.core))
    query = sources.embed_query(in_first_person(question.core, speakers))
    pool = gather(sources, db, question, query, bounds)
    if recipe == "rrf":
        keyword = np.maximum(fusion.shares(pool.head), fusion.shares(pool.fragment))
        scores = fusion.reciprocal_ranks(keyword, pool.cosine, len(question.terms))
        return Ranked(pool, scores, {"keyword": keyword, "cosine": pool.cosine}, recipe)
    if recipe == "weighted":
        keyword = np.maximum(fusion.shares(pool.head), fusion.shares(pool.fragment))
        scores = fusion.weighted(keyword, pool.cosine)
        return Ranked(pool, scores, {"keyword": keyword, "cosine": pool.cosine}, recipe)
    around = load_surroundings(sources, db, query, pool, speakers)
    stems = {word: stem(word) for pair in question.pairs for word in pair}
    stems |= {term: stem(term) for term in question.terms}
    profile = features.profile_of(pool, around)
    model = fusion.load_model("recall", profile)
    described = features.describe(question, pool, around, stems, wanted=wanted or model.names)
    logs = features.find_logs(db, pool)
    described |= features.describe_log_lines(question, pool, logs)
    described["people"] = np.full(len(pool.ns), float(profile == "people"))
    scores = model.score(described)
    if logs:
        scores = _with_logs(scores, described, [log.place for log in logs])
    return Ranked(pool, scores, described, recipe, model, profile)


def _with_logs(scores: Floats, described: dict[str, Floats], logs: list[int]) -> Floats:
    """Score distillations by their own model, and raise their source messages."""
    own = fusion.load_model("recall", "log").score(described)
    scores = scores + fusion.load_model("recall", "told").score(described)
    scores[logs] = (own + BRIEF * described["brief"])[logs]
    return scores


def _possible_names(text: str) -> list[str]:
    return [word for word in words.raw_words(text) if word[:1].isupper()]


def load_surroundings(
    sources: Sources, db: Connection, query: np.ndarray, pool: Pool, speakers: list[str]
) -> Surroundings:
    """Load the texts and cosines of the candidates and of their neighbours."""
    rows = pool.rows
    near = np.concatenate([rows.before, rows.before_that, rows.after])
    cosines = sources.cosines(query, near).reshape(3, -1)
    own = sources.texts.of(db, rows.ns, rows.ns[rows.types == items.type_number("fragment")])
    short = {n: text[: BESIDE_CHARS + 2] for n, text in own.items()}
    missing = np.array(
        sorted({*rows.before.tolist(), *rows.after.tolist()} - {0, *rows.ns.tolist()}), np.int64
    )
    short |= sources.beginnings.of(db, missing, missing[:0])
    traits_by_n = candidate_rows.message_traits(db, rows.before[rows.before > 0])
    before = [traits_by_n.get(n, (0, "")) for n in rows.before.tolist()]
    return Surroundings(
        own=[own[n] for n in rows.ns.tolist()],
        before=[short.get(n, "") for n in rows.before.tolist()],
        after=[short.get(n, "") for n in rows.after.tolist()],
        before_cosine=cosines[0],
        before_that_cosine=cosines[1],
        after_cosine=cosines[2],
        before_traits=np.array([traits for traits, _ in before], np.int64),
        same_speaker_before=_same_speaker(rows, before),
        speakers_named=frozenset(name.lower() for name in speakers),
    )


def _same_speaker(rows: candidate_rows.CandidateRows, before: list[tuple[int, str]]) -> np.ndarray:
    """Return where the message before is by the same speaker, or by the same role if unnamed."""
    from_mask = 128 | 256
    return np.array(
        [
            speaker == other if speaker or other else (own & from_mask) == (previous & from_mask)
            for speaker, own, (previous, other) in zip(
                rows.speakers, rows.traits.tolist(), before, strict=True
            )
        ],
        np.bool_,
    )


def mark_outdated(db: Connection, ranked: Ranked) -> Ranked:
    """Mark messages that a newer fragment supersedes or that the person took back."""
    rows = ranked.pool.rows
    session_ns = sorted(set(rows.sessions.tolist()) - {0})
    out_of_date = (
        fragments.outdated_messages(db, rows.ns.tolist(), session_ns) if session_ns else set()
    )
    out_of_date |= instructions.withdrawn_items(db, rows.ns.tolist())
    if not out_of_date:
        return ranked
    mask = np.isin(rows.ns, sorted(out_of_date)).astype(float)
    return replace(ranked, features={**ranked.features, "replaced": mask})


def with_policy(ranked: Ranked, question: Question, session_n: int | None, now: datetime) -> Ranked:
    """Add bonuses: this session, knowledge, recent items, exact names, the time asked for."""
    rows = ranked.pool.rows
    scale = 1.0 if ranked.recipe == "learned" else float(ranked.scores.std() or 0.0)
    bonus = KNOWLEDGE * (rows.types == items.type_number("fragment")).astype(float)
    if session_n is not None:
        bonus += SAME_SESSION * (rows.sessions == session_n)
    few = max(0.0, 1.0 - len(rows.ns) / FEW)
    covered = ranked.features.get("covered", np.zeros(len(rows.ns)))
    bonus += few * OWN * (covered + np.maximum(ranked.pool.cosine, 0.0))
    nothing = np.zeros(len(rows.ns))
    bonus += TOGETHER * ranked.features.get("together", nothing)
    bonus += SOLE * ranked.features.get("sole", nothing)
    if question.asks_now:
        bonus += LATEST * _recency_rank(covered, rows.created_at)
    bonus += EXACT * ranked.features.get("exact", nothing)
    bonus -= REPLACED * ranked.features.get("replaced", nothing)
    age_days = (clock.to_us(now) - rows.created_at) / 8.64e10
    bonus += RECENT * np.exp2(-np.maximum(age_days, 0.0) / RECENT_HALVES_DAYS)
    spelled_out = question.months or question.years
    if question.spans and not (spelled_out and ranked.profile == "people"):
        bonus += IN_TIME * features.within(question.spans, rows.created_at)
    return replace(ranked, scores=ranked.scores + scale * bonus, bonus=scale * bonus)


def _recency_rank(covered: np.ndarray, created_at: np.ndarray) -> np.ndarray:
    """Return 0 for the oldest to 1 for the newest of the candidates with most of the words."""
    late = np.zeros(len(covered))
    fitting = np.flatnonzero((covered > 0) & (covered >= 0.5 * covered.max(initial=0.0)))
    order = fitting[np.argsort(created_at[fitting], kind="stable")]
    late[order] = np.arange(1, len(order) + 1) / max(1, len(order))
    return late


def select_relevant(ranked: Ranked) -> np.ndarray:
    """Return the places of the relevant candidates, best first, without noise and the weak tail."""
    order = ranked.order()
    near = ranked.features.get("covered_near")
    if near is None:
        return order
    pool = ranked.pool
    beside = ranked.features["cosine_beside"]
    fits = (near > 0) | (beside >= UNRELATED) | (pool.fragment > 0) | (pool.long > 0)
    fits |= pool.log > 0
    fits |= ranked.features["date"] > 0
    order = order[fits[order]]
    return order[: _count_strong(ranked, order)]


def _count_strong(ranked: Ranked, order: np.ndarray) -> int:
    if not len(order):
        return 0
    scores = ranked.scores[order]
    return max(FEWEST, int((scores > scores[0] - WEAK).sum()))
