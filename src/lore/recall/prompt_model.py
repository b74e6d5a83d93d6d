"""Estimate how likely a candidate answers a prompt or matters for it, without being asked."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore.lazy_dataclass import dataclass
from lore.recall import confidence, fusion
from lore.recall.features import Floats, needle
from lore.recall.presentation import is_announcement
from lore.recall.question import Question, exact_names
from lore.recall.ranking import Ranked
from lore.recall.sources import plain
from lore.records import Hit
from lore.text import goals, words
from lore.text.regex import compile_lazy

_OF_CANDIDATE = (
    "cosine", "cosine_before", "cosine_beside", "covered", "covered_near", "covered_close",
    "pairs", "exact", "sole", "keyword", "length", "user", "reply", "asks", "answers",
    "announces", "first_person", "standing", "opens", "tool", "line", "told", "session_best",
    "session_cosine", "date", "time_if_when", "number_if_many",
)  # fmt: skip
"""Features of recall that say as much in a memory of five items as in one of a hundred thousand."""

_OF_ANSWER = ("answered", "spread", "candidates", "people", "agent")
_OF_PROMPT = ("terms", "question", "request", "names", "rare_terms", "chars")
_BESIDE = ("lead", "share", "place", "rarity", "fragment", "log", "importance", "age_days")

_TOGETHER = (
    "user_cosine", "user_covered", "asks_covered", "question_cosine", "question_user",
    "question_answered", "request_rarity",
)  # fmt: skip
"""Products: a person's words that are near a question mostly ask it again."""

SCREEN_NAMES = (*_OF_CANDIDATE, *_BESIDE, *_OF_ANSWER, *_OF_PROMPT, *_TOGETHER)
"""Features of candidates before anything is presented."""

TEXT_NAMES = (
    "shown_tokens", "shown_covered", "shown_repeats", "shown_new", "shown_asks", "shown_announces",
    "shown_user", "shown_reply", "shown_path", "shown_code", "shown_digits", "shown_cause",
    "shown_done", "shown_error", "why_cause", "where_path", "number_digits", "how_code",
)  # fmt: skip
"""Features of the passage that would be shown."""

NAMES = (*SCREEN_NAMES, *TEXT_NAMES)

MOST_LEAD = 8.0
"""Leads are cut here: at e⁸ the odds are beyond doubt."""

_QUESTION = compile_lazy(
    r"\W*(?:who|what|when|where|why|how|which|whose|did|do|does|is|are|was|were|have|has|should|can"
    r"|could|would|any)\b",
    re.IGNORECASE,
)

_ASKS_WHY = compile_lazy(r"\b(?:why|reason|cause|because|error|fail\w*|wrong)\b", re.IGNORECASE)
_ASKS_WHERE = compile_lazy(
    r"\b(?:where|which (?:file|folder|function|module)|path)\b", re.IGNORECASE
)
_ASKS_NUMBER = compile_lazy(
    r"\b(?:how (?:many|much|long|often)|when|which version|port|limit|timeout)\b", re.IGNORECASE
)
_ASKS_HOW = compile_lazy(
    r"\b(?:how (?:do|to|can|should|did)|command|run|flag|option)\b", re.IGNORECASE
)
_CAUSE = compile_lazy(
    r"\b(?:because|since|due to|caused? by|root cause|the (?:problem|issue|reason|fix) (?:is|was)"
    r"|instead of|rather than|so that|turns out|decided)\b",
    re.IGNORECASE,
)
_DONE = compile_lazy(
    r"\W*(?:done|fixed|all (?:tests|done)|committed|pushed|summary|created|updated|added"
    r"|removed)\b",
    re.IGNORECASE,
)
_ERROR = compile_lazy(r"\w*(?:Error|Exception)\b[:(]|Traceback|^\s+at \S+ \(", re.MULTILINE)
_PATH = compile_lazy(
    r"\w[\w.-]*/[\w./-]+|\b\w+\.(?:py|ts|js|go|md|json|toml|ya?ml|sh|rs|tsx|vue)\b"
)
_CODE_MARK = compile_lazy(r"`|^\s*[$>] |--\w", re.MULTILINE)
_DIGITS = compile_lazy(r"\d")

US_PER_DAY = 8.64e10


@dataclass(frozen=True, slots=True)
class PromptModel:
    """A linear model with a hidden layer beside it, whose output is a probability."""

    mean: Floats
    deviation: Floats
    linear: Floats
    hidden: Floats
    hidden_bias: Floats
    output: Floats
    bias: float

    def probabilities(self, matrix: Floats) -> Floats:
        """Return the probability of each row that it answers the prompt or matters for it."""
        z = np.clip((matrix - self.mean) / self.deviation, -fusion.CLIPPED, fusion.CLIPPED)
        layer = np.tanh(z @ self.hidden + self.hidden_bias)
        odds = z @ self.linear + layer @ self.output + self.bias
        return np.asarray(1 / (1 + np.exp(-odds)))


def describe(
    question: Question, ranked: Ranked, places: Sequence[int] | NDArray[np.int64], *,
    rarest: float, now_us: int,
) -> Floats:  # fmt: skip
    """Return the features of some candidates as rows; `rarest` is the weight of a unique word."""
    at = np.asarray(places, np.int64)
    if not len(at):
        return np.zeros((0, len(SCREEN_NAMES)))
    rows, features = ranked.pool.rows, ranked.features
    scores = ranked.scores
    total_rarity = float(ranked.pool.rarity.sum()) / max(rarest, 1.0)
    age_days = np.maximum((now_us - rows.created_at[at]) / US_PER_DAY, 0.0)
    beside = {
        "lead": _leads(scores, at),
        "share": np.exp(scores[at] - scores.max()) / np.exp(scores - scores.max()).sum(),
        "place": np.log1p(np.arange(len(at))),
        "rarity": features["covered"][at] * total_rarity,
        "fragment": ranked.pool.is_type("fragment")[at].astype(float),
        "log": ranked.pool.is_type("distillation")[at].astype(float),
        "importance": rows.importance[at],
        "age_days": np.log1p(age_days),
    }
    common = _describe_answer(ranked) | _describe_prompt(question, total_rarity)
    columns = [features[name][at] for name in _OF_CANDIDATE]
    columns += [beside[name] for name in _BESIDE]
    columns += [np.full(len(at), common[name]) for name in (*_OF_ANSWER, *_OF_PROMPT)]
    user, cosine = features["user"][at], features["cosine"][at]
    columns += [
        user * cosine,
        user * features["covered"][at],
        features["asks"][at] * features["covered"][at],
        common["question"] * cosine,
        common["question"] * user,
        np.full(len(at), common["question"] * common["answered"]),
        common["request"] * beside["rarity"],
    ]
    return np.asarray(np.column_stack(columns))


def describe_text(question: Question, hit: Hit, weights: Floats) -> list[float]:
    """Return the features of the passage that would be shown; `weights` are those of the terms."""
    text, asked = hit.text, question.text
    own = frozenset(words.split(text))
    prompt_words = frozenset(words.split(asked))
    shared = len(own & prompt_words) / max(1, len(own))
    levelled = plain(text)
    covered = sum(
        weight
        for term, weight in zip(question.terms, weights.tolist(), strict=True)
        if needle(term) in levelled
    )
    path, code, digits, cause = (
        float(bool(pattern.search(text))) for pattern in (_PATH, _CODE_MARK, _DIGITS, _CAUSE)
    )

    def asks(pattern: re.Pattern[str]) -> float:
        return float(bool(pattern.search(asked)))

    return [
        math.log1p(hit.tokens), covered, shared, math.log1p(len(own - prompt_words)),
        float(text.rstrip(" `*_\n").endswith("?")), float(is_announcement(text)),
        float(hit.role == "user"), float(bool(hit.question_id)), path, code, digits, cause,
        float(bool(_DONE.match(text))), float(bool(_ERROR.search(text))),
        asks(_ASKS_WHY) * cause, asks(_ASKS_WHERE) * path, asks(_ASKS_NUMBER) * digits,
        asks(_ASKS_HOW) * code,
    ]  # fmt: skip


def _leads(scores: Floats, at: NDArray[np.int64]) -> Floats:
    """Return how far each candidate scores above the best of the others."""
    if len(scores) < 2:
        return np.full(len(at), MOST_LEAD)
    second, first = np.partition(scores, -2)[-2:]
    others = np.where(scores[at] >= first, second, first)
    return np.asarray(np.clip(scores[at] - others, -MOST_LEAD, MOST_LEAD))


def _describe_answer(ranked: Ranked) -> dict[str, float]:
    """Return what the candidates as a whole say: whether any of them answers."""
    plain = ranked.scores if ranked.bonus is None else ranked.scores - ranked.bonus
    likely = confidence.load_confidence().probability(plain, ranked.features)
    likely = min(max(likely, 1e-4), 1 - 1e-4)
    best = np.sort(ranked.scores)[-confidence.BEST :]
    return {
        "answered": float(np.log(likely / (1 - likely))),
        "spread": float(best.max(initial=0.0) - best.mean()) if len(best) else 0.0,
        "candidates": float(np.log1p(len(ranked.scores))),
        "people": float(ranked.features["people"].any()),
        "agent": float(ranked.features["agent"].any()),
    }


def _describe_prompt(question: Question, total_rarity: float) -> dict[str, float]:
    """Return the shape of a prompt: a question or a task, short or long, with names or without."""
    text = question.text
    return {
        "terms": float(np.log1p(len(question.terms))),
        "question": float(text.rstrip().endswith("?") or bool(_QUESTION.match(text))),
        "request": float(goals.is_request(text)),
        "names": float(np.log1p(len(exact_names(question)))),
        "rare_terms": total_rarity,
        "chars": float(np.log1p(len(text))),
    }


@dataclass(frozen=True, slots=True)
class PromptModels:
    """The model that decides, and one that screens candidates before they are presented."""

    decision: PromptModel
    screen: PromptModel
    least: float
    """What the screening gives less than this never decides otherwise."""


@cache
def load_prompt_models() -> PromptModels:
    """Return the models shipped with the package."""
    raw = fusion.read_data("injection")
    return PromptModels(_parse(raw["decision"]), _parse(raw["screen"]), raw["least"])


def _parse(raw: Mapping[str, Any]) -> PromptModel:
    arrays = {
        key: np.array(raw[key], np.float64)
        for key in ("mean", "deviation", "linear", "hidden", "hidden_bias", "output")
    }
    return PromptModel(**arrays, bias=raw["bias"])
