"""Rule model: how likely a sentence that a person typed is a rule that lasts.

A logistic model over words, kinds of words and the place of the sentence, hashed into a table of
small integers. `benchmarks/train_rules.py` trains it; scoring needs the standard library alone,
because it runs at capture.
"""

from __future__ import annotations

import json
import math
from binascii import a2b_base64, crc32
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from lore.text.regex import PatternFile

BUCKETS = 1 << 14
"""Size of the hash table; its weights have one byte each."""

_RECENT_WORDS = 4_096
"""Words repeat, and a sentence asks for the kind of each several times."""

_re = PatternFile("rule_model")
_DATA = Path(__file__).parents[1] / "data" / "rules.json"

_KINDS = (
    "lasting", "doing", "you", "me", "us", "please", "denied", "only", "here", "condition", "all",
    "wish", "modal", "being", "verb", "work", "they", "opening",
)  # fmt: skip
"""Kinds of words; a word is of the first kind that lists it."""

_ANCHORS = frozenset(("lasting", "wish", "denied", "modal", "all"))
_OPENINGS = frozenset(("opening", "please", ",", "!", ":"))
_ENDINGS = ("ing", "ed", "s")

_BEFORE, _BEHIND = 9, 14
"""Words that are read before and from the word that says how long something holds."""

_STARTS = 3
_LENGTHS = (4, 8, 14, 24, 40)

LONG = 1_500
"""A longer message is mostly pasted: a plan, a review, a log."""


class RuleModel(NamedTuple):
    """The weights of the features, and the thresholds that training chose."""

    weights: bytes
    """One signed byte for each bucket."""

    scale: float
    bias: float
    suggested: float
    """The probability from which a sentence may be a rule."""

    stands: float
    """The probability from which a rule that is said as lasting needs no confirmation."""

    def probability(self, sentence: str, message_chars: int) -> float:
        """Return the probability that a sentence is a lasting rule; quotes in it are masked."""
        total = 0
        for bucket in hash_features(feature_names(sentence, message_chars)):
            weight = self.weights[bucket]
            total += weight - 256 if weight > 127 else weight
        return 1 / (1 + math.exp(-max(-40.0, min(40.0, total * self.scale + self.bias))))


@cache
def load_model() -> RuleModel:
    """Return the model shipped with the package."""
    raw = json.loads(_DATA.read_bytes())
    raw.pop("script")
    return RuleModel(**raw | {"weights": a2b_base64(raw["weights"])})


def is_said_as_lasting(sentence: str) -> bool:
    """Return whether a sentence has a word such as 'always', 'never', 'from now on', 'remember'."""
    return any(_kind(token) == "lasting" and token not in _DOUBTFUL for token in _tokens(sentence))


_DOUBTFUL = frozenset(("rule", "rules", "each_time"))
"""Words of rules that are said of the task at hand as often."""


def hash_features(names: Iterable[str]) -> set[int]:
    """Return the buckets of some features."""
    return {crc32(name.encode("utf-8", "replace")) % BUCKETS for name in names}


def feature_names(sentence: str, message_chars: int) -> Iterator[str]:
    """Yield the features of a sentence; '/' and '#' start those that do not name its words."""
    whole = _tokens(sentence)
    tokens, start = _crop(whole)
    kinds = [_kind(token) for token in tokens]
    yield from tokens
    if whole[-1:] == ["?"]:
        yield "/#asks"
    if start:
        yield from (f"/#before {kind}" for kind in {_kind(token) for token in whole[:start]})
    yield from (f"/{kind}" for kind in kinds)
    yield from _opening(tokens, kinds)
    padded = ["^", "^", *kinds, "$", "$"]
    for at, kind in enumerate(kinds):
        if kind in _ANCHORS:
            yield from _beside(tokens[at], padded, at + 2)
    for count in (2, 3):
        for start in range(len(padded) - count - 1):
            yield f"/{' '.join(padded[start + 1 : start + 1 + count])}"
    yield f"#length {sum(len(whole) > limit for limit in _LENGTHS)}"
    if message_chars > LONG:
        yield "#long"


def _crop(tokens: list[str]) -> tuple[list[str], int]:
    """Return the tokens around the first word that says how long something holds, and their start.

    The rest of a long sentence gives reasons and examples.
    """
    at = next((at for at, token in enumerate(tokens) if _kind(token) == "lasting"), 0)
    start = max(0, at - _BEFORE)
    return tokens[start : at + _BEHIND], start


def _opening(tokens: list[str], kinds: list[str]) -> Iterator[str]:
    """Yield how a sentence opens, after words such as 'ok' and 'please'."""
    start = 0
    while start < len(kinds) - 1 and kinds[start] in _OPENINGS:
        start += 1
    for count in range(1, _STARTS + 1):
        yield f"/^{' '.join(kinds[start : start + count])}"
    yield f"^{' '.join(tokens[start : start + 1])}"
    yield f"^{' '.join(tokens[start : start + 2])}"
    yield f"/${' '.join(kinds[-2:])}"


def _beside(word: str, kinds: list[str], at: int) -> Iterator[str]:
    """Yield what stands beside a word that often makes a rule."""
    second, before, behind, last = kinds[at - 2], kinds[at - 1], kinds[at + 1], kinds[at + 2]
    yield f"/{word}"
    for name in (word, kinds[at]):
        yield f"/{name}|-1 {before}"
        yield f"/{name}|+1 {behind}"
        yield f"/{name}|-2 {second} {before}"
        yield f"/{name}|+2 {behind} {last}"
        yield f"/{name}|0 {before} {behind}"


def _tokens(text: str) -> list[str]:
    plain = _re.identifier.sub(" \x02 ", text.replace("’", "'"))
    plain = _re.lasting_phrase.sub(" \x03 ", plain)
    plain = _re.repeated_phrase.sub(" \x04 ", plain).lower()
    return [_SYMBOLS.get(token[0], token) for token in _re.token.findall(plain)]


_SYMBOLS = dict.fromkeys("\x01\x02", "`") | {"\x03": "now_on", "\x04": "each_time"}
_SYMBOLS |= dict.fromkeys("0123456789", "0")


@lru_cache(maxsize=_RECENT_WORDS)
def _kind(token: str) -> str:
    known = _kinds().get(token)
    if known or not token[0].isalpha():
        return known or token
    return next((f"x{ending}" for ending in _ENDINGS if token.endswith(ending)), "x")


@cache
def _kinds() -> Mapping[str, str]:
    kinds = {word: kind for kind in reversed(_KINDS) for word in _re.words(kind)}
    return kinds | {"now_on": "lasting", "each_time": "lasting"}
