"""A small trained classifier of statements: what kind of knowledge each is, and its worth."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lore.records import FragmentKind
from lore.text.regex import compile_lazy

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
Rows = NDArray[np.float32]
Read = Callable[[Sequence[tuple[str, str]]], NDArray[np.float32] | None]
"""Reads each statement after its context, as the pair model does (see `PairModel.statements`);
returns None if it cannot."""

WEIGHTS = Path(__file__).parents[2] / "data" / "statements.npz"
"""Made by `benchmarks/train_statements.py`, which also measures it on projects left out."""

KINDS: tuple[FragmentKind, ...] = (
    "decision", "preference", "fact", "config", "workflow", "bug_fix", "architecture",
)  # fmt: skip


Turn = Literal["user", "assistant", "call", "result"]
"""What follows one another in a session: what was said, and tool traffic."""


@dataclass(frozen=True, slots=True)
class SpokenStatement:
    """A statement where it was said.

    It is number `place` of `count` in its message, after the sentence `before`. `around` describes
    the message and its place among the turns: see `describe_message`.
    """

    text: str
    before: str = ""
    is_user: bool = False
    is_named: bool = False
    place: int = 0
    count: int = 1
    is_item: bool = False
    around: tuple[float, ...] = ()


class Score(NamedTuple):
    """What the classifier says of a statement.

    `worth` is the probability that it is worth something, `importance` its grade from 0 to 1.
    """

    kind: FragmentKind
    worth: float
    importance: float


Use = Literal["person", "agent", "talk"]
USES: tuple[Use, ...] = ("person", "agent", "talk")
"""Each has weights of its own: people and agents at work, and all that is no work."""


def statement_use(one: SpokenStatement, *, at_work: bool) -> Use:
    """Return whose weights score a statement."""
    if not at_work:
        return "talk"
    return "person" if one.is_user else "agent"


def reading_pair(one: SpokenStatement, use: Use) -> tuple[str, str]:
    """Return what the pair model reads of a statement: who said what before it, and itself."""
    return f"{use}: {one.before}", one.text


READ_FROM = 0.05
"""Statements that are less likely worth keeping by their vector are not read: it takes longer."""

NEAR_TURNS = 6
"""Turns before and after a message whose share of tool traffic is a feature."""

OPENING_CHARS = 300
"""The beginning of a message whose marks of mode are features: a plan says there that it is one."""


def straighten(text: str) -> str:
    """Return a text with straight apostrophes, as the marks have them."""
    return text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


def describe_message(text: str, turns: Sequence[Turn], at: int) -> tuple[float, ...]:
    """Return features of a message: its form, and the tool traffic and requests around it."""
    following = turns[at + 1] if at + 1 < len(turns) else "user"
    preceding = turns[at - 1] if at else "user"
    near = turns[max(0, at - NEAR_TURNS) : at + NEAR_TURNS + 1]
    remaining = next((i for i, turn in enumerate(turns[at + 1 :]) if turn == "user"), None)
    remaining = len(turns) - at - 1 if remaining is None else remaining
    items = text.count("\n- ") + text.count("\n* ")
    opening = straighten(text[:OPENING_CHARS])
    return (
        float(following == "call"), float(following == "user"), float(following == "assistant"),
        float(preceding == "result"), float(preceding == "user"), float(preceding == "assistant"),
        sum(turn in ("call", "result") for turn in near) / (2 * NEAR_TURNS),
        math.log1p(remaining) / 4, math.log1p(len(text)) / 10, float("```" in text),
        float("\n#" in text or text.startswith("#")), float(text.count("\n|") > 1),
        math.log1p(items) / 3, *(float(bool(mark.search(opening))) for mark in _MODE_MARKERS),
    )  # fmt: skip


_CODE = compile_lazy(r"`[^`\n]+`")
_PATH = compile_lazy(r"[\w-]+[./][\w./-]{2,}")
_NAME = compile_lazy(r"(?<=\w )[A-Z][a-z]+|\b\w+_\w+|\b[a-z]+[A-Z]\w+|\b[A-Z]{2,}\b")
_MARKERS = (
    compile_lazy(r"\d"),
    compile_lazy(r"\b(?:I|I'm|I'll|I've|my|me)\b"),
    compile_lazy(r"\b(?:we|our|us|we're|we've)\b", re.IGNORECASE),
    compile_lazy(r"\b(?:you|your)\b", re.IGNORECASE),
    compile_lazy(r"^\W*(?:let me|now|next|i'll|let's|i'm|i will|first)\b", re.IGNORECASE),
    compile_lazy(r"\b(?:will|going to|should|would)\b", re.IGNORECASE),
    compile_lazy(r"\b(?:might|may|could|maybe|perhaps|seems?|probably|think)\b", re.IGNORECASE),
    compile_lazy(r"\b(?:because|since|so that|due to|therefore|caused?|reason)\b", re.IGNORECASE),
    compile_lazy(r"\b(?:instead|rather than|no longer|not|never|don't|only)\b", re.IGNORECASE),
    compile_lazy(r"\b(?:always|must|never|every|prefer|want)\b", re.IGNORECASE),
    compile_lazy(r"\b(?:was|were|had|did|been|fixed|added|removed|changed|\w+ed)\b"),
    compile_lazy(r"\b(?:is|are|has|uses|needs|requires?|defaults?)\b"),
    compile_lazy(r"\b(?:fix|bug|error|fails?|failed|crash\w*|issue|problem|root)\b", re.IGNORECASE),
    compile_lazy(r"\b(?:tests?|lint|build|commit\w*|pass\w*|green|done|ready)\b", re.IGNORECASE),
    compile_lazy(r"→|->|=>|[=<>]"),
    compile_lazy(r"^\W*(?:this|that|it|these|those|they|he|she|there|both)\b", re.IGNORECASE),
    compile_lazy(r"^(?:ok\w*|yes|no|good|great|thanks?|perfect|sure)\b", re.IGNORECASE),
    compile_lazy(r"^[a-z]"),
    compile_lazy(r"^\W*(?:`[^`]+`|[\w ]{2,40}):\s"),
    compile_lazy(r"\([^)]*\)"),
    compile_lazy(r"—|–| - |;"),
)
"""Cheap marks of speaker, tense, plan, guess, reason, order and state."""

_MODE_MARKERS = tuple(
    compile_lazy(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:^\W*|[;,] |\b(?:so|now) )(?:i'm|we're|i am|we are) \w+ing\b",
        r"\b(?:i'll|we'll|i will|we will|let's|going to)\b",
        r"\b(?:i'd|i would|you'd|you could|you can|we could|we can)\b",
        r"\b(?:recommend|suggest|propos|option|alternative|approach|ideally|best practice"
        r"|better to)",
        r"\b(?:likely|probably|might|may|perhaps|suspect|seems?|appears?|presumably|i think"
        r"|assum\w+)\b",
        r"^\W*(?:add|remove|use|update|create|make|move|keep|write|set|change|fix|replace|ensure|run"
        r"|extract|delete|switch|include|pass|validate|treat)\b",
        r"^\W*(?:added|removed|updated|created|moved|fixed|replaced|changed|renamed|switched"
        r"|implemented|extracted|deleted)\b",
        r"\b(?:if you (?:want|like|prefer)|next step|want me to|would you like|should i)\b",
        r"\b(?:fix is to|solution|plan|steps?|phase \d|todo)\b",
        r"\b(?:tests? pass\w*|all \d+ tests|lint|clean|green|verified|confirmed)\b",
        r"\b(?:merged|pushed|commit\w*|pr #?\d+|branch|worktree)\b",
        r"\b(?:should|must|need(?:s|ed)? to|would|could)\b",
        r"\b(?:currently|today|right now|at the moment|so far|yet|still|for now)\b",
        r"\bnow\b",
        r"\b(?:was|were|did|had)\b",
    )
)
"""Marks of what is done, proposed, announced or guessed, or holds for the moment."""


def plain_features(one: SpokenStatement) -> list[float]:
    """Return the features of a statement that need no vector."""
    text, before = straighten(one.text), straighten(one.before)
    word_count = len(text.split())
    code = len(_CODE.findall(text))
    length = math.log1p(word_count) / 4
    return [
        float(one.is_user), float(one.is_named),
        float(one.place == 0), one.place / max(1, one.count - 1),
        float(one.place == one.count - 1), math.log1p(one.count) / 4,
        length, length * length, float(word_count < 5), float(word_count < 9),
        float(word_count > 40), float(code > 0), min(code, 5) / 5,
        float(bool(_PATH.search(text))), min(len(_NAME.findall(text)), 6) / 6,
        float(text.endswith("?")), float(text.endswith(":")), float("?" in text),
        float(one.is_item), float(one.is_item and one.is_user), float(not before),
        float(before.endswith(":")), float(before.endswith("?")),
        *(float(bool(mark.search(text))) for mark in _MARKERS),
        *(float(one.is_user and bool(mark.search(text))) for mark in _MARKERS[:12]),
        *(float(bool(mark.search(text))) for mark in _MODE_MARKERS),
        *(float(bool(mark.search(before))) for mark in _MODE_MARKERS),
        *one.around,
    ]  # fmt: skip


Form = Literal["plain", "vectors", "read"]
FORMS: tuple[Form, ...] = ("plain", "vectors", "read")
"""Features alone, with the vector, and with what the pair model reads as well."""

Models = dict[tuple[Use, Form], "LinearModel"]


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A linear layer over scaled features, and behind vectors if there are any.

    `link` turns an output into a probability, `grades` one of them into an importance.
    """

    mean: Rows
    scale: Rows
    weights: Rows
    link: Rows
    grades: Rows

    def outputs(self, features: Rows, vectors: Rows | None) -> Rows:
        """Return a row of outputs for each row of features."""
        rows = (features - self.mean) * self.scale
        parts = [rows] if vectors is None else [vectors, rows]
        out: Rows = np.hstack([*parts, np.ones((len(rows), 1), np.float32)]) @ self.weights
        return out

    def probabilities(self, outputs: Rows) -> Rows:
        """Return the probabilities of some outputs."""
        chances: Rows = 1 / (1 + np.exp(-(self.link[0] * outputs + self.link[1])))
        return chances

    def grade(self, values: Rows) -> Rows:
        """Return the importance of some outputs or probabilities."""
        importance: Rows = np.interp(values, self.grades[0], self.grades[1])
        return importance


def load_linear_models(stored: Any, names: Iterable[tuple[Use, Form]]) -> Models:
    """Return the models of uses and forms from a file of weights."""
    return {
        (use, form): LinearModel(
            *(stored[f"{use}_{form}_{one.name}"] for one in fields(LinearModel))
        )
        for use, form in names
    }


class StatementClassifier:
    """Scores statements with the vectors of the encoder that it was trained on, or without any."""

    def __init__(self, path: Path = WEIGHTS, *, read_from: float = READ_FROM) -> None:
        self._read_from = read_from
        with np.load(path) as stored:
            self.encoder = str(stored["encoder"])
            self._models = load_linear_models(stored, product(USES, FORMS))

    def score(
        self,
        statements: Sequence[SpokenStatement],
        embed: Embed | None,
        *,
        at_work: bool,
        read: Read | None = None,
    ) -> list[Score]:
        """Score statements of work with an agent or of talk.

        `embed` must be of the encoder `self.encoder`. With `read`, those that may be worth keeping
        are read after the sentence before them.
        """
        uses = [statement_use(one, at_work=at_work) for one in statements]
        scores: dict[int, Score] = {}
        for use in USES:
            rows = [row for row, other in enumerate(uses) if other == use]
            some = self._score_use(use, [statements[row] for row in rows], embed, read)
            scores |= zip(rows, some, strict=True)
        return [scores[row] for row in range(len(statements))]

    def _score_use(
        self, use: Use, some: Sequence[SpokenStatement], embed: Embed | None, read: Read | None
    ) -> list[Score]:
        if not some:
            return []
        plain = np.array([plain_features(one) for one in some], np.float32)
        if embed is None:
            return self._scores(use, "plain", plain, None)
        vectors = embed([one.text for one in some])
        scores = self._scores(use, "vectors", plain, vectors)
        likely = [row for row, score in enumerate(scores) if score.worth >= self._read_from]
        readings = None
        if read and likely:
            readings = read([reading_pair(some[row], use) for row in likely])
        if readings is not None:
            features = np.hstack([plain[likely], readings])
            better = self._scores(use, "read", features, vectors[likely])
            for row, score in zip(likely, better, strict=True):
                scores[row] = score
        return scores

    def _scores(self, use: Use, form: Form, features: Rows, vectors: Rows | None) -> list[Score]:
        """Return the scores by the outputs of a model: worth, and a column for each kind."""
        model = self._models[use, form]
        out = model.outputs(features, vectors)
        worth, importance = model.probabilities(out[:, 0]), model.grade(out[:, 0])
        return [
            Score(KINDS[kind], *(float(value) for value in values))
            for kind, *values in zip(out[:, 1:].argmax(axis=1), worth, importance, strict=True)
        ]


@cache
def shipped_classifier() -> StatementClassifier:
    """Return the classifier of this package, loaded on the first call."""
    return StatementClassifier()
