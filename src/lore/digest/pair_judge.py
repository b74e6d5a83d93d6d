"""Judge pairs of statements: does the newer one replace the older one?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, Protocol

from lore.embed.pair_model import PairModel
from lore.errors import EmbedderError
from lore.llm.offline.summarizer import compare_statements
from lore.records import TRUST
from lore.text import entities, instructions, statements
from lore.text.regex import PatternFile

_re = PatternFile("replacement")

Verdict = Literal["none", "same", "partly", "replaces"]
_RULES_CERTAINTY = 0.3
"""Certainty of what rules find where there is no model, except a withdrawal."""

_LATIN = 0.8
"""Share of ASCII letters in a text of the Latin script, with its accents."""

_TELLING_CHARS = 40
"""A shorter report ('Done, it's 45 s now') needs the request to be understood."""

CHANGES: tuple[Verdict, ...] = ("partly", "replaces")


class Claim(NamedTuple):
    """One sentence of an item that states something, with the sentence before it.

    `at` is its time in microseconds, `statements` the number of claims of its item. `asked` is the
    question that a short reply answers, or the request whose outcome an assistant reports, of the
    message `asked_n`; `was` the line that an assistant's edit of a value took away. `is_kept` if it
    is knowledge that someone stored.
    """

    n: int
    text: str
    before: str
    trust: int
    at: int
    session: str = ""
    statements: int = 1
    asked: str = ""
    was: str = ""
    is_kept: bool = False
    asked_n: int | None = None

    @property
    def stated(self) -> str:
        """Return the sentence with the question or request that it answers."""
        return f"{self.asked} {self.text}" if self.asked else self.text

    @property
    def subject(self) -> str:
        """Return the text whose vector tells the subject: a short reply needs its question."""
        return self.stated if self.trust >= TRUST["user"] else self.text

    @property
    def whole(self) -> str:
        """Return the sentence with the one before it, if it points back to that."""
        needs = self.before and not statements.stands_alone(self.text)
        return f"{self.before} {self.text}" if needs else self.stated

    @property
    def shown(self) -> str:
        """Return what readers are shown: a report that says enough comes without the request."""
        is_report = bool(self.asked) and self.trust < TRUST["user"]
        says_enough = len(self.text) >= _TELLING_CHARS and statements.stands_alone(self.text)
        return self.text if is_report and says_enough else self.whole

    @property
    def shown_asked_n(self) -> int | None:
        """Return the other message that what readers are shown quotes, or None."""
        return self.asked_n if self.asked and self.shown == self.stated else None


class Pair(NamedTuple):
    """An older and a newer claim, and the cosine of their sentences."""

    older: Claim
    newer: Claim
    cosine: float = 0.0


class Judgement(NamedTuple):
    """What a newer claim does to an older one, and how certain that is."""

    verdict: Verdict
    certainty: float


class PairJudge(Protocol):
    """Judges pairs of claims."""

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Return a judgement of each pair, in their order."""


class ClaimJudge(PairJudge, Protocol):
    """Judges claims, too."""

    def worth(self, claims: Sequence[Claim]) -> list[float]:
        """Return how likely each claim is worth remembering at all."""


NOTHING = Judgement("none", 0.0)


class RuleJudge:
    """Judges by the words of both statements alone, where there is no model."""

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Return a judgement of each pair, in their order."""
        return [_judge_by_rules(pair) for pair in pairs]

    def worth(self, claims: Sequence[Claim]) -> list[float]:
        """Return 1 for each claim: rules cannot tell."""
        return [1.0] * len(claims)


def _judge_by_rules(pair: Pair) -> Judgement:
    withdrawal = instructions.find_withdrawal(pair.newer.text)
    if withdrawal and instructions.match_rules(withdrawal, [pair.older.text]):
        return Judgement("replaces", 0.95)
    compared = compare_statements(pair.older.text, pair.newer.whole)
    if compared in ("changes", "contradicts"):
        return Judgement("replaces", _RULES_CERTAINTY)
    return NOTHING


class ModelJudge:
    """Judges by the model that reads both statements together.

    The owner of the model opens it, and gives it up if it cannot be run; then the rules judge.
    """

    def __init__(
        self, open_model: Callable[[], PairModel | None], give_up: Callable[[Exception], None]
    ) -> None:
        self._open_model = open_model
        self._give_up = give_up

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Return a judgement of each pair, in their order."""
        model = self._open_model()
        if model is None:
            return RuleJudge().judge(pairs)
        readings = [(place, text) for place, pair in enumerate(pairs) for text in _readings(pair)]
        try:
            chances = model.relations([
                (pairs[place].older.stated, text) for place, text in readings
            ])
        except (EmbedderError, OSError) as error:
            self._give_up(error)
            return RuleJudge().judge(pairs)
        by_pair: list[list[Judgement]] = [[] for _ in pairs]
        for (place, _), row in zip(readings, chances.tolist(), strict=True):
            by_pair[place].append(_judge_by_chances(*row))
        return [max(judgements, key=_strength) for judgements in by_pair]

    def worth(self, claims: Sequence[Claim]) -> list[float]:
        """Return how likely each claim is worth remembering, by the model's third head."""
        model = self._open_model()
        if model is None or not claims:
            return RuleJudge().worth(claims)
        try:
            log_odds = model.statements([("", claim.text) for claim in claims])[:, 0]
        except (EmbedderError, OSError) as error:
            self._give_up(error)
            return RuleJudge().worth(claims)
        return [1.0 / (1.0 + math.exp(-odds)) for odds in log_odds.tolist()]


def _readings(pair: Pair) -> Iterator[str]:
    """Yield the newer claim as the model reads it: an assistant's report also without the request.

    A request may name the subject that the report leaves out, or distract from what it says.
    """
    yield pair.newer.whole
    if pair.newer.asked and pair.newer.trust < TRUST["user"]:
        yield pair.newer.text


def _judge_by_chances(none: float, same: float, partly: float, replaces: float) -> Judgement:
    """Return the likelier kind of change with the probability that there is any."""
    if same > none + partly + replaces:
        return Judgement("same", same)
    return Judgement("replaces" if replaces >= partly else "partly", partly + replaces)


def _strength(judgement: Judgement) -> float:
    return judgement.certainty if judgement.verdict in CHANGES else 0.0


def is_worth_judging(pair: Pair) -> bool:
    """Return whether the newer claim of a pair can replace the older one at all.

    It must state what holds. An assistant's words count if they report a change of what a person
    said in another session; in the same one they repeat or answer it.
    """
    older, newer = pair.older, pair.newer
    if newer.trust < TRUST["user"] and (
        newer.session == older.session or older.trust < TRUST["user"]
    ):
        return False
    return can_replace(newer) and not reports_malfunction(older.text)


def can_replace(claim: Claim) -> bool:
    """Return whether a claim can replace another: a person's, or a change that is reported."""
    if not is_settled(claim.text) or reports_malfunction(claim.text):
        return False
    return claim.trust >= TRUST["user"] or bool(
        claim.was or claim.asked or _re.change.search(claim.text)
    )


def reports_malfunction(text: str) -> bool:
    """Return whether a sentence says that something does not work, and of no change."""
    return bool(_re.malfunction.search(text)) and not _re.change.search(text)


def names_former(pair: Pair) -> bool:
    """Return whether an older claim names what an edit or a command set, with another value."""
    older, was, now = (_parts(text) for text in (pair.older.text, pair.newer.was, pair.newer.text))
    if was - now:
        return bool(older & (was - now)) and bool(older & was & now)
    numbers = {part for part in older if part[0].isdigit()}
    return bool(older & was) and bool(older & now - was) and bool(numbers) and not numbers & now


def _parts(text: str) -> frozenset[str]:
    """Return the words of a text and the parts of its identifiers, in lower case."""
    return frozenset(part.lower() for part in _re.identifier_part.findall(text))


def reverses(pair: Pair) -> bool:
    """Return whether a newer claim speaks of something as if it no longer applied."""
    text = pair.newer.text
    if _re.reversal.search(text):
        return True
    return bool(_re.lifted.search(text)) and is_rule(pair.older.text)


def is_rule(text: str) -> bool:
    """Return whether a sentence is a standing instruction, or one that is only suggested."""
    return instructions.judge_sentence(text) in ("stands", "suggested")


def specific_words(text: str) -> frozenset[str]:
    """Return the values that a sentence names: names, numbers, code, addresses, paths."""
    return entities.extract_values(text) | {
        word.strip(".:").lower()
        for word in map(_without_signs, _re.token.findall(text))
        if _re.specific.search(word[:-1])
    }


def _without_signs(token: str) -> str:
    """Return a token up to its last letter, digit or underscore."""
    signs = next((n for n, one in enumerate(reversed(token)) if one.isalnum() or one == "_"), None)
    return token[: len(token) - signs] if signs is not None else ""


def is_readable(text: str) -> bool:
    """Return whether the model can read a text: it knows little but the Latin script."""
    letters = [letter for letter in text if letter.isalpha()]
    return sum(letter.isascii() for letter in letters) >= _LATIN * len(letters)


def is_statement(text: str) -> bool:
    """Return whether a sentence may state something: no question, announcement, shell or markup."""
    return not (_re.ends_in_question.search(text) or _re.no_statement.match(text))


def is_settled(text: str) -> bool:
    """Return whether a sentence states what holds: no question, proposal or plan for later."""
    return not (
        _re.ends_in_question.search(text) or _re.tentative.search(text) or _re.later.search(text)
    )
