"""The offline summarizer: what to keep, logs and verdicts without a chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lore.llm.offline import extractor, log_writer
from lore.llm.offline.statement_classifier import Embed, Read, StatementClassifier
from lore.records import (
    DatedStatement,
    Extract,
    FactVerdict,
    Fragment,
    JudgedPair,
    Log,
    MessageText,
    Segment,
    Verdict,
)
from lore.text import entities, words
from lore.text.regex import PatternFile

_re = PatternFile("sentence_rules")

_MIN_SHARED = 0.5
"""Share of the shorter statement's words that both must have to be about the same thing."""

_SAME_FRAME = 0.75
"""The same share where only a value may differ."""

_READ_CHARS = 2_000

_MAX_UNREPLACED = 2
"""So many unmatched words (a verb and one more) an older statement may have to be replaced as a
whole. With more it says something else too, and a person decides.
"""


_FUNCTION_WORDS = _re.words("function_words")


class ParsedStatement(NamedTuple):
    """The words and numbers of a statement, and whether it is negated."""

    words: frozenset[str]
    numbers: frozenset[str]
    denies: bool


def judge_pairs(pairs: Sequence[JudgedPair]) -> list[Verdict]:
    """Return for each pair (older, newer) what the newer one does to the older."""
    return [compare_statements(_text_of(older), _text_of(newer)) for older, newer in pairs]


def _text_of(one: Fragment | DatedStatement) -> str:
    return one.content or (one.summary if isinstance(one, Fragment) else "")


def compare_statements(older: str, newer: str) -> Verdict:
    """Return what a newer statement does to an older one."""
    older, newer = older[:_READ_CHARS], newer[:_READ_CHARS]
    was, now = parse_statement(older), parse_statement(newer)
    if not (was.words and now.words and _is_statement(older) and _is_statement(newer)):
        return "agrees"
    differs = _differ_in_value(was, now)
    if _names_what_it_replaces(older, was, newer) or (
        _re.says_now.search(newer) and (differs or _other_value(older, newer, was, now))
    ):
        return "changes" if len(was.words - now.words) <= _MAX_UNREPLACED else "contradicts"
    return "contradicts" if differs else "agrees"


def _is_statement(text: str) -> bool:
    """Return whether a text states something, rather than asks or narrates."""
    return not text.rstrip().endswith("?") and not _re.narration.match(text)


def parse_statement(text: str) -> ParsedStatement:
    """Parse a statement; dates are dropped, and numbers that name a thing count as words."""
    bare = entities.numbers_to_digits(_re.date.sub(" ", text))
    numbers: set[str] = set()
    names: set[str] = set()
    for match in _re.numbered_value.finditer(bare):
        value = match["number"].replace(",", "") + (match["unit"] or "").strip().lower()
        (names if match["named"] else numbers).add(value)
    content = {
        word
        for word in words.split(_re.numbered_value.sub(" ", bare))
        if word not in _FUNCTION_WORDS
    }
    stems = {words.stem(word) for word in content - entities.polarity_words(bare) if len(word) > 1}
    return ParsedStatement(frozenset(stems | names), frozenset(numbers), entities.is_negated(bare))


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, min(len(one), len(other)))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def _replaced_statements(text: str) -> list[ParsedStatement]:
    return [
        parse_statement(next(group for group in match.groups() if group))
        for match in _re.names_replaced.finditer(text)
    ]


def _names_what_it_replaces(older: str, was: ParsedStatement, newer: str) -> bool:
    """Return whether a statement names what it replaces, and the older one says that.

    If the older one replaced the same thing, both report one change.
    """
    before = [old.words | old.numbers for old in _replaced_statements(older)]
    for old in _replaced_statements(newer):
        replaced = old.words | old.numbers
        if not replaced or was.denies or any(replaced & former for former in before):
            continue
        hit = len(replaced & (was.words | was.numbers)) / len(replaced)
        if hit < _MIN_SHARED:
            continue
        beside = parse_statement(newer).words - old.words
        if beside & was.words or _shared(was.words, old.words) >= _MIN_SHARED:
            return True
    return False


def _differ_in_value(was: ParsedStatement, now: ParsedStatement) -> bool:
    """Return whether two statements differ only in a number or in a negation."""
    alike = _overlap(was.words, now.words) >= _SAME_FRAME and len(was.words & now.words) >= 2
    if not alike:
        return False
    if was.denies != now.denies:
        return was.numbers == now.numbers
    return _other_number(was.numbers, now.numbers)


def _other_number(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether a number differs; several different ones are two separate events."""
    several = min(len(one), len(other)) > 1
    return entities.sets_conflict(one, other) and (not several or bool(one & other))


def _other_value(older: str, newer: str, was: ParsedStatement, now: ParsedStatement) -> bool:
    """Return whether a statement about now names another value in the same place."""
    if _shared(was.words, now.words) < _MIN_SHARED or len(was.words & now.words) < 2:
        return False
    if _other_number(was.numbers, now.numbers):
        return True
    mine, theirs = _names(older), _names(newer)
    if was.denies != now.denies or not entities.sets_conflict(mine, theirs):
        return False
    names = {words.stem(word) for name in mine | theirs for word in words.split(name)}
    return _overlap(was.words - names, now.words - names) >= _SAME_FRAME


def _names(text: str) -> frozenset[str]:
    return entities.identifier_names(_re.date.sub(" ", text))


class OfflineSummarizer:
    """The summarizer without a chat; without `embed` it compares words.

    `encoder` names the model of `embed`; `read` is the pair model's reading of statements;
    `classifier` takes the place of the shipped one.
    """

    @property
    def identity(self) -> str:
        """Return `offline`."""
        return "offline"

    def __init__(
        self,
        embed: Embed | None = None,
        *,
        encoder: str = "",
        read: Read | None = None,
        classifier: StatementClassifier | None = None,
    ) -> None:
        self._embed = embed
        self._encoder = encoder
        self._read = read
        self._classifier = classifier

    def observe(self, segment: Segment, *, limit_tokens: int) -> Log:
        """Write a dated log of a segment that keeps everything operational."""
        return log_writer.observe(segment, limit_tokens=limit_tokens)

    def condense(self, logs: Sequence[Log], former: Log, *, limit_tokens: int) -> Log:
        """Condense several logs into one: current state, decisions, changes, timeline."""
        texts = [log.text for log in logs]
        return log_writer.condense(texts, former.text, limit_tokens=limit_tokens)

    def extract(self, exchange: Segment) -> list[Extract]:
        """Return the knowledge in an exchange that is worth keeping, broad before specific."""
        return extractor.extract(
            exchange,
            embed=self._embed,
            encoder=self._encoder,
            read=self._read,
            classifier=self._classifier,
        )

    def overview(self, root: Fragment, children: Sequence[Fragment]) -> str:  # noqa: ARG002
        """Return the root's own text: a list of what others say is no overview."""
        return root.content

    def reflect(self, cluster: Sequence[Fragment]) -> str:  # noqa: ARG002 - the protocol
        """Return nothing: an insight needs a chat, and a list of what is known is none."""
        return ""

    def check(
        self,
        facts: Sequence[Fragment],
        spoken: Sequence[MessageText],  # noqa: ARG002 - the protocol
    ) -> list[FactVerdict]:
        """Keep every fact: extraction has read what follows it already."""
        return ["keep"] * len(facts)

    def judge(self, pairs: Sequence[JudgedPair]) -> list[Verdict]:
        """Return for each pair (older, newer) what the newer one does to the older."""
        return judge_pairs(pairs)
