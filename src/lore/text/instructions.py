"""Instructions: standing rules that a person gives, and withdrawals of such rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from lore.records import Message, NewMessage
from lore.text import message_features, words
from lore.text.regex import compile_lazy
from lore.text.sentences import sentence_spans

_INSTRUCTION = compile_lazy(
    r"""^(?:(?:please|pls|also|and|but|so|ok(?:ay)?|hey|note)[,:]?\s+)*
        (?:always|never(?!\ mind)|from\ now\ on|going\ forward|in\ (?:the\ )?future|whenever
          |every\ time|each\ time|remember(?:\ that|\ to|(?=:))|keep\ in\ mind
          |make\ sure\ (?:that\ )?you|be\ sure\ to|do(?:n't|\ not)\ ever
          |stop\ \w+ing|avoid\ \w+ing|for\ (?:all|any|every)\ (?:future|my))\b
      | \b(?:you\ (?:should|must)\ (?:always|never)
          |i(?:\ (?:want|need|expect|would\ like)|'?d\ like)\ you\ to\ (?:always|never)
          |please\ (?:always|never|remember)|when(?:ever)?\ i\ ask|from\ now\ on
          |going\ forward,?\ (?:please|always|use|i\ want)|(?:as|is)\ a\ (?:standing\ )?rule
          |no\ matter\ what)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_HABIT = compile_lazy(
    r"""\b(?:from\ here\ on(?:\ out)?|from\ this\ point\ (?:on|forward)|henceforth)\b
      | \b(?:can|could|will|would)\ you\ (?:please\ )?stop\ \w+ing\b
      | \bmake\ sure\ (?:that\ you\ |you\ |to\ )?(?:always|never)\b
      | (?<!\bi\ )(?<!\bwe\ )(?<!\bthey\ )(?<!\byou\ )\bdo(?:n't|\ not)\ ever\b
      | \bdo(?:n't|\ not)\ [^,;]{2,60}\ (?:unless|until)\ i\ (?:ask|say|tell|explicitly|request)
      | ^(?:please\ )?do(?:n't|\ not)\ [^,;]{2,60}\ without
            \ (?:asking|my\ (?:ok|consent|permission))
      | ^(?:please\ )?(?:use|write|run|answer|keep|put|do|add|call|name)\b[^?]*
            \ going\ forward[.!]?$
      | ^(?:please[,]?\ |ok(?:ay)?[,]?\ |and\ |also[,]?\ )*no\ more\ (?!than|or\ less|questions?
            |errors?|issues?|problems?|time|need|changes?|warnings?|failures?)\w+
            (?:\ (?!than|for\ now|today|left|needed)\w+){0,4}[.!]?$
      | \bin\ (?:this|our|my)\ (?:repo(?:sitory)?|project|code\ ?base|team|company|code),?
            \ (?:we|i)\ (?:always|never|only|do\ not|don't|use|prefer|write|name|avoid|keep)\b[^?]*$
      | \bwe\ (?:always|never)\ (?:use|write|commit|push|deploy|merge|name|log|squash)\b[^?]*$""",
    re.IGNORECASE | re.VERBOSE,
)
"""Further phrasings; each is narrow, because a wrong rule lasts long."""

_PREFERENCE = compile_lazy(
    r"""\bi(?:'d|\ would)?(?:\ (?:really|generally|usually|still|also|always|definitely|much
            |strongly|tend\ to))?\s+(?:prefer|rather|favou?r)\b
      | \bmy\ (?:personal\ )?preferences?\b
      | \bi\ (?:don't|do\ not|really\ don't)\ (?:like|want\ you)\b
      | \bi\ (?:like|love|hate|insist\ on|am\ used\ to)
            \ (?:to|it\ when|when|using|having|working)\b
      | \bi(?:'ve|\ have)?\ (?:chose|chosen|decided|opted|insisted)\ (?:to|on|for)\b
      | \bi\ (?:always|never|usually)\ (?:use|want|write|work|do|avoid|go)\b
      | \bmy\ insistence\b""",
    re.IGNORECASE | re.VERBOSE,
)
_HINTS = (
    "always", "ever", "now on", "forward", "future", "time", "remember", "in mind", "sure",
    "stop", "avoid", "for all", "for any", "my", "i ask", "rule", "matter", "here on", "point",
    "henceforth", "unless", "until", "without", "more", "in this", "in our", "prefer", "rather",
    "favo", "like", "i do", "i really", "i want", "i love", "i hate", "insist", "used to", "chose",
    "decided", "opted", "usually",
)  # fmt: skip
"""A cheap first test: few sentences have one of these words."""

_QUOTED = compile_lazy(r"```.*?(?:```|\Z)|^[ \t]*>[^\n]*|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_QUESTION = compile_lazy(
    r"(?:do|does|did|should|shall|am|is|are|was|were|have|has|which|what|why|how|where|who)\b"
    r".*\?$",
    re.IGNORECASE | re.DOTALL,
)
"""A question about a habit states none; 'could you always …?' is a request."""

_LISTED = compile_lazy(r"[-*•\s]*(?:\d{1,3}[.)]\s+)?")

_READ_CHARS = 4_000
_SHORTEST, _LONGEST = 8, 600


def find_standing(text: str) -> tuple[str, ...]:
    """Return the standing instructions in a person's message, word for word."""
    return tuple(sentence for sentence, masked in masked_sentences(text) if is_standing(masked))


def masked_sentences(text: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a person's message, word for word and with quotes masked."""
    head = text[:_READ_CHARS]
    masked = _QUOTED.sub(lambda match: "\x01" * len(match.group()), head.replace("’", "'"))
    for start, end in sentence_spans(masked, typed=True):
        listed = _LISTED.match(masked, start, end)
        begin = listed.end() if listed else start
        sentence = masked[begin:end].strip(" -*•\t\n")
        if _SHORTEST <= len(sentence.replace("\x01", "")) <= _LONGEST:
            yield head[begin:end].strip(" -*•\t\n"), sentence


def _hints(sentence: str) -> bool:
    """Return whether a sentence has a word that every phrasing needs."""
    lower = sentence.lower()
    return any(hint in lower for hint in _HINTS)


def is_standing(sentence: str) -> bool:
    """Return whether a sentence is a standing instruction."""
    if sentence.isascii() and not _hints(sentence):
        return False
    if _QUESTION.match(sentence):
        return False
    return any(form.search(sentence) for form in (_INSTRUCTION, _PREFERENCE, _HABIT))


Form = Literal["duty", "ban", "rule", "swap", "instead", "name"]

_OPENING = (
    r"^(?:(?:please|pls|also|and|but|so|ok(?:ay)?|hey|note|actually|btw|by\ the\ way|oh|yes|well"
    r"|thanks|you\ know\ what|from\ now\ on|going\ forward)[,:.!]?\ )*"
)
_DUTY = compile_lazy(
    _OPENING
    + r"""(?:
        (?:you|we|i)\ no\ longer\ (?:(?:need|have|want\ you|need\ you|expect\ you)\ to\ |use\ )
      | (?:there\ is\ |there's\ )?no\ (?:longer\ (?:any\ |a\ )?)?need\ to\ (?=.*\bany\s?more\b)
      | there(?:\ is|'s)\ no\ longer\ (?:any\ |a\ )?need\ to\ |no\ longer\ (?:any\ )?need\ to\s
      | (?:you|we)\ (?:don'?t|do\ not|needn't|need\ not)\ (?:(?:need|have)\ to\ )?
            (?=.*\bany(?:\s?more|\ longer)\b)
      | (?:don'?t|do\ not)\ bother\ (?:to\ |with\ |about\ )?(?=.*\bany(?:\s?more|\ longer)\b)
    )(?P<gone>.+)$""",
    re.IGNORECASE | re.VERBOSE,
)
"""Withdraws a duty."""

_BAN = compile_lazy(
    _OPENING
    + r"(?:(?:don'?t|do\ not)\ (?=.*\bany(?:\s?more|\ longer)\b)|stop\ (?=\w+ing\b)|no\ more\s)"
    r"(?P<gone>.+)$",
    re.IGNORECASE | re.VERBOSE,
)
"""Forbids something from now on, which may be a rule of its own."""

_NO_MORE = compile_lazy(_OPENING + r"no\ more\b", re.IGNORECASE | re.VERBOSE)

_RULE = r"(?:rules?|instructions?|preferences?|conventions?|requirements?|guidelines?)"
_RULE_OFF = compile_lazy(
    _OPENING
    + rf"""(?:
        (?:you\ can\ |you\ may\ |let's\ |we\ can\ )?
        (?:forget|drop|ignore|disregard|scrap|cancel|remove|lift|withdraw|retract|retire)\ (?:
            (?:about\ )?(?:the|that|my|our)\ (?:old\ |former\ |earlier\ |previous\ |standing\ )?
            {_RULE}\ (?:about|on|to|of|that|for|regarding|concerning|with)\s
          | (?:the|that|my|our)\ (?P<gone_before>\w[\w\ -]{{1,40}}?)\ {_RULE}[.!]*$
          | what\ i\ (?:said|told\ you|asked)\ (?:earlier\ |before\ )?about\s
          )(?P<gone>.*)
      | (?:the|that|my|our)\ (?:old\ |former\ )?{_RULE}
            \ (?:about|on|to|of|that|for|regarding|concerning)\ (?P<gone_too>.+?)
            \ (?:no\ longer\ (?:holds?|appl(?:y|ies)|stands?)|(?:is|are)\ (?:off|gone|void)
            |(?:does|do)(?:\ not|n't)\ (?:hold|apply)\ any\s?more)\b.*
    )$""",
    re.IGNORECASE | re.VERBOSE,
)
"""Withdraws a rule that it names, whatever the rule asks for or forbids."""

_INSTEAD = compile_lazy(
    r"\b(?:instead\ of|rather\ than|in\ place\ of|no\ longer)\ (?P<gone>[^,;.:()]{2,60})",
    re.IGNORECASE | re.VERBOSE,
)
_NAME = (
    r"(?:forget(?:\ about)?|scrap|drop|ditch|no\ more)\s"
    r"(?!(?:the|that|this|these|those|it|them|my|our|your|his|her|their|an?|all|any|what|about|to"
    r"|how|why|everything|anything|me|us|you)\b)"
    r"(?P<gone>`[^`]{2,60}`|[\w./-]{2,40}(?:\ [\w./-]{1,40}){0,3}?)"
)
"""A proper name refers to something known; 'the tests' may be those of the moment."""

_SWAP = compile_lazy(rf"\b{_NAME}(?:[,;:.!—–]|\ [-—–])\ ", re.IGNORECASE | re.VERBOSE)
"""Replaces a named thing with another in the same sentence."""

_NAME_OFF = compile_lazy(rf"{_OPENING}{_NAME}[.!]*$", re.IGNORECASE | re.VERBOSE)
"""Withdraws a named thing; the sentence beside it names the replacement."""

_FORMS: Mapping[Form, re.Pattern[str]] = {
    "duty": _DUTY,
    "ban": _BAN,
    "rule": _RULE_OFF,
    "swap": _SWAP,
    "instead": _INSTEAD,
    "name": _NAME_OFF,
}
_TOGETHER: tuple[Form, ...] = ("swap", "instead")
"""Forms that withdraw one thing and ask for another."""

_LASTING = compile_lazy(
    r"\b(?:from\ now\ on|from\ here\ on|from\ this\ point|going\ forward|henceforth|in\ (?:the\ )?"
    r"future|always|i\ (?:now\ )?prefer)\b",
    re.IGNORECASE | re.VERBOSE,
)
_LIMITED = compile_lazy(
    r"\b(?:for\ now|right\ now|today|tonight|tomorrow|this\ (?:time|once|week|morning|afternoon)"
    r"|(?:for|in|on|with|within|during)\ (?:this|these|that|those|one)|yet|until|unless|if|once"
    r"|when(?:ever)?|while|except|just\ for|only\ for|maybe|perhaps|might|i\ think|i\ guess"
    r"|(?<!i\ )said|says|think\ (?:that\ )?you|so\ often)\b",
    re.IGNORECASE | re.VERBOSE,
)
"""A temporary, conditional or reported statement withdraws no rule."""

_OFTEN = compile_lazy(r"\b(?:every|each\ time)\b", re.IGNORECASE | re.VERBOSE)
"""What is done less often is still done."""

_BEHIND = compile_lazy(
    r"\ *(?:[,;:.!()—–]|\ -\ |\b(?:because|since|now\ that|as\ (?:we|the|it|i|ci)|any\s?more"
    r"|any\ longer|from\ now\ on|going\ forward|at\ all|please|i\ gave\ you|that\ i\b)).*$",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_DENIED = compile_lazy(r"\b(?:never|not|no|avoid|stop|without)\b|n't\b", re.IGNORECASE)
_CONDITION = compile_lazy(
    r"\b(?:without|unless|until|before|prior\ to)\b", re.IGNORECASE | re.VERBOSE
)
_REJECTED = compile_lazy(
    r"\b(?:instead\ of|rather\ than|in\ place\ of|no\ longer|over|not|never|avoid|stop|don't"
    r"|do\ not)\b",
    re.IGNORECASE | re.VERBOSE,
)
_SCOPE = frozenset(
    "in on at for when whenever before after during inside within under if while with of".split()
)
_RULE_WORDS = frozenset(
    """after all also always any anymore avoid be before bother do doing don't each ensure every
    forward from future going instead just keep let like longer mind more must my need never
    no not note now ok okay our please prefer preference prefers rather really remember rule rules
    shall should still stop than time us use used using want without you your""".split()
)
"""Words that make a sentence a rule and say nothing about its subject."""

_MAKE_SURE = compile_lazy(r"\bmake sure\b", re.IGNORECASE)
_BROAD = compile_lazy(r"\b(?:use|using|prefer|go\ with|take)\b", re.IGNORECASE | re.VERBOSE)
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
    if plain.endswith("?") or _LIMITED.search(plain):
        return None
    for form, pattern in _FORMS.items():
        match = pattern.search(plain)
        if match and _is_withdrawal(form, plain):
            withdrawn = next(part for part in match.groups() if part)
            return _build_withdrawal(form, _BEHIND.sub("", withdrawn), plain)
    return None


def find_paired_withdrawal(sentence: str, *neighbours: str) -> Withdrawal | None:
    """Return the withdrawal in a sentence, given the sentences beside it.

    A name alone ('Forget make check.') withdraws a rule if a sentence beside it gives another.
    """
    withdrawal = find_withdrawal(sentence)
    if withdrawal is None or withdrawal.form != "name":
        return withdrawal
    return withdrawal if any(_LASTING.search(neighbour) for neighbour in neighbours) else None


def _is_withdrawal(form: Form, sentence: str) -> bool:
    if form in _TOGETHER:
        return bool(_LASTING.search(sentence)) and (form == "swap" or not _OFTEN.search(sentence))
    if _OFTEN.search(sentence):
        return False
    return form != "ban" or not _NO_MORE.match(sentence) or is_standing(sentence)


def is_only_withdrawal(sentence: str) -> bool:
    """Return whether a sentence withdraws something and asks for nothing else."""
    withdrawal = find_withdrawal(sentence)
    if withdrawal is None or withdrawal.form in _TOGETHER:
        return False
    return withdrawal.form != "ban" or not find_standing(sentence)


def match_rules(withdrawal: Withdrawal, rules: Sequence[str]) -> list[int]:
    """Return the indexes of the rules that a withdrawal means; none if it is ambiguous."""
    fitting = [place for place, rule in enumerate(rules) if _fits(withdrawal, rule)]
    if withdrawal.form == "instead" or not fitting:
        return fitting
    withdrawn = _content(withdrawal.withdrawn)
    contents = {place: _content(rules[place]) for place in fitting}
    whole = [place for place in fitting if contents[place] <= withdrawn]
    chosen = whole or fitting
    return chosen if all(_alike(contents[chosen[0]], contents[place]) for place in chosen) else []


def is_same_rule(one: str, other: str) -> bool:
    """Return whether two sentences are duplicates of one rule."""
    return _alike(_content(one), _content(other))


def _build_withdrawal(form: Form, withdrawn: str, sentence: str) -> Withdrawal | None:
    return Withdrawal(form, withdrawn.strip(), sentence) if _content(withdrawn) else None


def _fits(withdrawal: Withdrawal, rule: str) -> bool:
    withdrawn = _content(withdrawal.withdrawn)
    if not withdrawn <= _content(rule):
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
    if not _DENIED.search(rule):
        return True
    condition = _CONDITION.search(rule)
    first = next((stem for word in words.split(withdrawn) for stem in _content(word)), "")
    return bool(condition) and first in _content(rule[condition.end() :] if condition else "")


def _is_replaced(withdrawal: Withdrawal, withdrawn: frozenset[str], rule: str) -> bool:
    """Return whether a rule asks for the replaced thing and for nothing else."""
    rejected = _REJECTED.search(rule)
    if rejected and withdrawn & _content(rule[rejected.end() :]):
        return bool(withdrawn & _content(rule[: rejected.start()]))
    remaining = _content(rule) - _content(withdrawal.sentence)
    behind = withdrawal.sentence.partition(withdrawal.withdrawn)[2]
    broad = bool(_BROAD.search(withdrawal.sentence)) and not _scoped(
        f"{withdrawal.withdrawn} {behind}"
    )
    return not remaining & _scoped(rule) and len(remaining) <= (_MOST_LEFT if broad else 0)


def _scoped(rule: str) -> frozenset[str]:
    """Return the words of a rule that say where or when it applies."""
    rule_words = words.split(rule)
    start = next((i for i, word in enumerate(rule_words) if word in _SCOPE), len(rule_words))
    return _content(" ".join(rule_words[start:]))


def _content(text: str) -> frozenset[str]:
    return frozenset(
        _stem(word)
        for word in words.split(_MAKE_SURE.sub(" ", text))
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


def typed_instructions(message: NewMessage | Message) -> tuple[str, ...]:
    """Return the standing instructions and withdrawals that the person typed."""
    cut = list(masked_sentences(typed_text(message)))
    before = ["", *(masked for _, masked in cut)]
    behind = [*(masked for _, masked in cut[1:]), ""]
    return tuple(
        sentence
        for (sentence, masked), *beside in zip(cut, before, behind, strict=False)
        if is_standing(masked) or find_paired_withdrawal(sentence, *beside)
    )


def typed_text(message: NewMessage | Message) -> str:
    """Return what the person typed, without tool output, other speakers and documents."""
    if message.role != "user" or message.speaker:
        return ""
    origin = message.origin or "user"
    own = [part for part in message.parts if message_features.part_origin(part, origin) == "user"]
    return message_features.spoken_text(part for part in own if part.kind == "text")
