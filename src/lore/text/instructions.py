"""Instructions: lasting rules that a person gives, wishes, and withdrawals of rules.

`rule_model` judges what is a rule; patterns find wishes and withdrawals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from lore.records import Message, NewMessage
from lore.text import message_features, pasted_text, rule_model, words
from lore.text.regex import PatternFile
from lore.text.sentences import sentence_spans

_re = PatternFile("instructions")


_HINTS = (
    "always", "ever", "now on", "forward", "future", "time", "remember", "in mind", "sure",
    "stop", "avoid", "for all", "for any", "my", "i ask", "rule", "matter", "here on", "point",
    "henceforth", "unless", "until", "without", "more", "in this", "in our", "prefer", "rather",
    "favo", "like", "i do", "i really", "i want", "i love", "i hate", "insist", "used to", "chose",
    "decided", "opted", "usually",
)  # fmt: skip
"""A cheap first test: few sentences have one of these words."""


_READ_CHARS = 4_000
_SHORTEST, _LONGEST = 8, 600


TypedState = Literal["stands", "suggested", "passing"]
"""A rule that needs no confirmation, one that does, and a sentence that only withdraws another."""


class TypedInstruction(NamedTuple):
    """A sentence that a person typed, word for word, and whether it is a rule."""

    text: str
    state: TypedState
    confirms: bool = True
    """Whether it is the person's own voice, so that saying it again confirms it."""


def judge_rule(sentence: str, message_chars: int = 0) -> TypedState:
    """Return whether a sentence, with quotes masked, is a lasting rule.

    A rule said with 'always', 'from now on' or the like stands at once if it is certain. What is
    said otherwise, asked, or said in a long message or in a line that looks pasted has to be
    confirmed.
    """
    if not may_be_standing(sentence):
        return "passing"
    addressed = _re.agent_as_subject.sub("You", sentence)
    model = rule_model.load_model()
    probability = model.probability(addressed, message_chars)
    if probability < model.suggested:
        return "passing"
    is_certain = probability >= model.stands
    if rule_model.is_said_as_lasting(addressed) and message_chars <= rule_model.LONG:
        # 'the agent should always …' may be about an agent that is being built
        is_addressed = addressed == sentence
        is_own = is_addressed and not (sentence.endswith("?") or _re.pasted.match(sentence))
        return "stands" if is_certain and is_own else "suggested"
    return "suggested" if is_certain else "passing"


def find_wishes(text: str) -> tuple[str, ...]:
    """Return the sentences of a person that have the form of a rule, preference or habit.

    Many are about the task at hand or about the person: they are knowledge, but no rules.
    """
    if not may_be_standing(text):
        return ()
    return tuple(sentence for sentence, masked in masked_sentences(text) if is_wish(masked))


def masked_sentences(text: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a person's message, word for word and with quotes masked."""
    head = _with_plain_lines(text[:_READ_CHARS])
    return ((sentence, masked) for sentence, masked, _ in _placed_sentences(head))


def _with_plain_lines(text: str) -> str:
    """Return a text whose lines all end in the same way, as the patterns of lines expect."""
    return "\n".join(text.splitlines())


def _placed_sentences(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield the sentences of a text, word for word and with quotes masked, and their places."""
    masked = mask_quotes(text)
    for start, end in sentence_spans(masked, typed=True):
        listed = _re.listed.match(masked, start, end)
        begin = listed.end() if listed else start
        sentence = masked[begin:end].strip(" -*•\t\n")
        if _SHORTEST <= len(sentence.replace("\x01", "")) <= _LONGEST:
            place = begin + len(masked[begin:end]) - len(masked[begin:end].lstrip(" -*•\t\n"))
            yield text[begin:end].strip(" -*•\t\n"), sentence, place


def mask_quotes(text: str) -> str:
    """Return a text whose quotes and code are replaced by signs that are no words."""
    return _re.quoted.sub(lambda match: "\x01" * len(match.group()), text.replace("’", "'"))


def may_be_standing(text: str) -> bool:
    """Return whether a text has a word that every phrasing of an instruction needs."""
    return _has_any(text, _HINTS)


def _has_any(text: str, hints: Sequence[str]) -> bool:
    """Return whether a text has one of the words; always, if it has other letters than ASCII."""
    if not text.isascii():
        return True  # Patterns that ignore case know more forms of a letter than `lower`.
    lower = text.lower()
    for hint in hints:  # noqa: SIM110 - a generator takes twice as long
        if hint in lower:
            return True
    return False


def is_wish(sentence: str) -> bool:
    """Return whether a sentence has the form of a rule, preference or habit."""
    if not may_be_standing(sentence):
        return False
    if _re.question.match(sentence):
        return False
    return any(form.search(sentence) for form in (_re.instruction, _re.preference, _re.habit))


Form = Literal["duty", "ban", "rule", "swap", "instead", "name"]


_FORMS: Mapping[Form, re.Pattern[str]] = {
    "duty": _re.duty,
    "ban": _re.ban,
    "rule": _re.rule_off,
    "swap": _re.swap,
    "instead": _re.instead,
    "name": _re.name_off,
}
_WITHDRAWAL_HINTS = (
    "any", "longer", "stop", "more", "instead", "rather", "place", "forget", "scrap", "drop",
    "ditch", "rule", "instruction", "preference", "convention", "requirement", "guideline",
    "what i",
)  # fmt: skip
"""Every form of a withdrawal has one of these."""

_TOGETHER: tuple[Form, ...] = ("swap", "instead")
"""Forms that withdraw one thing and ask for another."""


_SCOPE = frozenset(
    "in on at for when whenever before after during inside within under if while with of".split()
)
_RULE_WORDS = _re.words("rule_words")

_MOST_LEFT = 2
"""Where one thing replaces another in general, a rule that asks for the other may have this many
words of its own: a verb and its object.
"""

_ALIKE = 0.8
"""Share of common words from which two rules count as duplicates."""


class Withdrawal(NamedTuple):
    """What a sentence withdraws, and by which phrasing."""

    form: Form
    withdrawn: str
    sentence: str


def find_withdrawal(sentence: str) -> Withdrawal | None:
    """Return the withdrawal in a person's sentence, if it is one."""
    plain = " ".join(sentence.replace("’", "'").split()).strip(" -*•")
    if not _has_any(plain, _WITHDRAWAL_HINTS):
        return None
    if plain.endswith("?") or _re.limited.search(plain):
        return None
    for form, pattern in _FORMS.items():
        match = pattern.search(plain)
        if match and _is_withdrawal(form, plain):
            withdrawn = next(part for part in match.groups() if part)
            return _build_withdrawal(form, _re.behind.sub("", withdrawn), plain)
    return None


def find_paired_withdrawal(sentence: str, *neighbours: str) -> Withdrawal | None:
    """Return the withdrawal in a sentence, given the sentences beside it.

    A name alone ('Forget make check.') withdraws a rule if a sentence beside it gives another.
    """
    withdrawal = find_withdrawal(sentence)
    if withdrawal is None or withdrawal.form != "name":
        return withdrawal
    return withdrawal if any(_re.lasting.search(neighbour) for neighbour in neighbours) else None


def _is_withdrawal(form: Form, sentence: str) -> bool:
    if form in _TOGETHER:
        return bool(_re.lasting.search(sentence)) and (
            form == "swap" or not _re.often.search(sentence)
        )
    if _re.often.search(sentence):
        return False
    return form != "ban" or not _re.no_more.match(sentence) or is_wish(sentence)


def is_only_withdrawal(sentence: str) -> bool:
    """Return whether a sentence withdraws something and asks for nothing else."""
    withdrawal = find_withdrawal(sentence)
    if withdrawal is None or withdrawal.form in _TOGETHER:
        return False
    return withdrawal.form != "ban" or not find_wishes(sentence)


def match_rules(withdrawal: Withdrawal, rules: Sequence[str]) -> list[int]:
    """Return the indexes of the rules that a withdrawal means; none if it is ambiguous."""
    fitting = [place for place, rule in enumerate(rules) if _fits(withdrawal, rule)]
    if withdrawal.form == "instead" or not fitting:
        return fitting
    withdrawn = content_words(withdrawal.withdrawn)
    contents = {place: content_words(rules[place]) for place in fitting}
    whole = [place for place in fitting if contents[place] <= withdrawn]
    chosen = whole or fitting
    return chosen if all(_alike(contents[chosen[0]], contents[place]) for place in chosen) else []


def is_same_rule(one: str, other: str) -> bool:
    """Return whether two sentences are duplicates of one rule."""
    return _alike(content_words(one), content_words(other))


class RuleContent(NamedTuple):
    """What is compared of a rule: its numbers, whether it forbids, and its words."""

    numbers: tuple[str, ...]
    is_denied: bool
    stems: frozenset[str]

    def repeats(self, other: RuleContent) -> bool:
        """Return whether both ask for the same, or forbid the same, with the same numbers."""
        return self[:2] == other[:2] and _alike(self.stems, other.stems)

    def is_repeated_by(self, text: str) -> bool:
        """Return whether a text repeats this rule; numbers are compared first, words last."""
        return (
            self.numbers == _numbers(text)
            and self.is_denied == _is_denied(text)
            and _alike(self.stems, content_words(text))
        )


def rule_content(text: str) -> RuleContent:
    """Return what is compared of a rule."""
    return RuleContent(_numbers(text), _is_denied(text), content_words(text))


def _numbers(text: str) -> tuple[str, ...]:
    return tuple(_re.number.findall(text))


def _is_denied(text: str) -> bool:
    return bool(_re.denied.search(text))


def _build_withdrawal(form: Form, withdrawn: str, sentence: str) -> Withdrawal | None:
    return Withdrawal(form, withdrawn.strip(), sentence) if content_words(withdrawn) else None


def _fits(withdrawal: Withdrawal, rule: str) -> bool:
    withdrawn = content_words(withdrawal.withdrawn)
    if not withdrawn <= content_words(rule):
        return False
    if withdrawal.form == "instead":
        return _is_replaced(withdrawal, withdrawn, rule)
    if withdrawal.form in ("swap", "name") and not _names(rule, withdrawal.withdrawn):
        return False
    return withdrawal.form == "rule" or _requires(rule, withdrawal.withdrawn)


def _names(rule: str, withdrawn: str) -> bool:
    """Return whether a rule contains a name, word by word in order."""
    name = " ".join(words.split(withdrawn))
    return f" {name} " in f" {' '.join(words.split(rule))} "


def _requires(rule: str, withdrawn: str) -> bool:
    """Return whether a rule asks for something rather than forbids it."""
    if not _re.denied.search(rule):
        return True
    condition = _re.condition.search(rule)
    first = next((stem for word in words.split(withdrawn) for stem in content_words(word)), "")
    return bool(condition) and first in content_words(rule[condition.end() :] if condition else "")


def _is_replaced(withdrawal: Withdrawal, withdrawn: frozenset[str], rule: str) -> bool:
    """Return whether a rule asks for the replaced thing and for nothing else."""
    rejected = _re.rejected.search(rule)
    if rejected and withdrawn & content_words(rule[rejected.end() :]):
        return bool(withdrawn & content_words(rule[: rejected.start()]))
    remaining = content_words(rule) - content_words(withdrawal.sentence)
    behind = withdrawal.sentence.partition(withdrawal.withdrawn)[2]
    broad = bool(_re.broad.search(withdrawal.sentence)) and not _scoped(
        f"{withdrawal.withdrawn} {behind}"
    )
    return not remaining & _scoped(rule) and len(remaining) <= (_MOST_LEFT if broad else 0)


def _scoped(rule: str) -> frozenset[str]:
    """Return the words of a rule that say where or when it applies."""
    rule_words = words.split(rule)
    start = next((i for i, word in enumerate(rule_words) if word in _SCOPE), len(rule_words))
    return content_words(" ".join(rule_words[start:]))


def content_words(text: str) -> frozenset[str]:
    """Return the stems of the words that say what a rule is about."""
    return frozenset(
        _stem(word)
        for word in words.split(_re.make_sure.sub(" ", text))
        if word not in _RULE_WORDS and word not in words.STOP_WORDS and len(word) > 1
    )


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= _ALIKE * len(one | other)


def _stem(word: str) -> str:
    for ending in ("ings", "ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            stem = word.removesuffix(ending)
            return stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] else stem.rstrip("e")
    return word[:-1] if len(word) > 4 and word[-1] == word[-2] else word.rstrip("e")


def typed_instructions(message: NewMessage | Message) -> tuple[TypedInstruction, ...]:
    """Return the lasting rules and withdrawals that the person typed."""
    typed = typed_text(message)
    if not typed:  # most messages are of agents and tools
        return ()
    head = _with_plain_lines(typed[:_READ_CHARS])
    cut = list(_placed_sentences(head))
    before = ["", *(masked for _, masked, _ in cut)]
    behind = [*(masked for _, masked, _ in cut[1:]), ""]
    judged = [
        (_judge_sentence(sentence, masked, beside, len(typed)), place, place + len(masked))
        for (sentence, masked, place), *beside in zip(cut, before, behind, strict=False)
    ]
    listed = [(one, span) for one, *span in judged if one]
    if not listed:
        return ()
    pasted = pasted_text.find_pasted(head)
    own = (_in_own_voice(one, pasted.voice(*span)) for one, span in listed)
    return tuple(one for one in own if one)


def _judge_sentence(
    sentence: str, masked: str, beside: Sequence[str], message_chars: int
) -> TypedInstruction | None:
    state = judge_sentence(sentence, masked, message_chars)
    if state == "passing" and not find_paired_withdrawal(sentence, *beside):
        return None
    return TypedInstruction(sentence, state)


def _in_own_voice(one: TypedInstruction, voice: pasted_text.Voice) -> TypedInstruction | None:
    """Return an instruction as far as it is the person's own; words of others are none.

    What may be the words of others is suggested, and withdraws nothing.
    """
    if voice == "own":
        return one
    if voice == "pasted" or one.state == "passing" or find_withdrawal(one.text):
        return None
    return one._replace(state="suggested", confirms=False)


def judge_sentence(sentence: str, masked: str = "", message_chars: int = 0) -> TypedState:
    """Return whether a sentence is a lasting rule; what replaces one rule by another is one."""
    masked = masked or mask_quotes(sentence)
    if announced := _re.announced.match(masked):
        masked = masked[announced.end() :]
    state = judge_rule(masked, message_chars)
    if state == "stands":
        return state if _stands_alone(masked) else "suggested"
    if message_chars > rule_model.LONG:
        return state
    withdrawal = find_withdrawal(sentence)
    is_replaced = withdrawal and withdrawal.form in _TOGETHER and not _re.asks.search(sentence)
    return "stands" if is_replaced else state


_FEWEST_STEMS = 2


def _stands_alone(sentence: str) -> bool:
    """Return whether a rule says by itself what it asks for, and asks it of the reader.

    'Never do that again' needs what was said before, and 'mention that …' is for a text.
    """
    if pasted_text.is_of_a_document(sentence):
        return False
    own = _re.quotation.sub(" ", sentence)
    if not rule_model.is_said_as_lasting(own):
        return False
    return "\x01" in own or not _re.dangling.search(own) or len(content_words(own)) > _FEWEST_STEMS


def typed_text(message: NewMessage | Message) -> str:
    """Return what the person typed, without tool output, other speakers and documents."""
    if message.role != "user" or message.speaker:
        return ""
    origin = message.origin or "user"
    own = [part for part in message.parts if message_features.part_origin(part, origin) == "user"]
    return message_features.spoken_text(part for part in own if part.kind == "text")
