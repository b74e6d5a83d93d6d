"""Withdrawals: sentences in which a person takes back a rule that they gave before."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from lore.text import instructions, words
from lore.text.later import compile_later

Form = Literal["duty", "ban", "rule", "swap", "instead", "name"]

_OPENING = (
    r"^(?:(?:please|pls|also|and|but|so|ok(?:ay)?|hey|note|actually|btw|by\ the\ way|oh|yes|well"
    r"|thanks|you\ know\ what|from\ now\ on|going\ forward)[,:.!]?\ )*"
)
_DUTY = compile_later(
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
"""Takes back that something is to be done."""

_BAN = compile_later(
    _OPENING
    + r"(?:(?:don'?t|do\ not)\ (?=.*\bany(?:\s?more|\ longer)\b)|stop\ (?=\w+ing\b)|no\ more\s)"
    r"(?P<gone>.+)$",
    re.IGNORECASE | re.VERBOSE,
)
"""Says that something is not to be done any more, which may be a rule of its own."""

_NO_MORE = compile_later(_OPENING + r"no\ more\b", re.IGNORECASE | re.VERBOSE)

_RULE = r"(?:rules?|instructions?|preferences?|conventions?|requirements?|guidelines?)"
_RULE_OFF = compile_later(
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
"""Takes back a rule that it names, whatever that asks for or forbids."""

_INSTEAD = compile_later(
    r"\b(?:instead\ of|rather\ than|in\ place\ of|no\ longer)\ (?P<gone>[^,;.:()]{2,60})",
    re.IGNORECASE | re.VERBOSE,
)
_NAME = (
    r"(?:forget(?:\ about)?|scrap|drop|ditch|no\ more)\s"
    r"(?!(?:the|that|this|these|those|it|them|my|our|your|his|her|their|an?|all|any|what|about|to"
    r"|how|why|everything|anything|me|us|you)\b)"
    r"(?P<gone>`[^`]{2,60}`|[\w./-]{2,40}(?:\ [\w./-]{1,40}){0,3}?)"
)
"""What is called by its name is known before; 'the tests' may be those of the moment."""

_SWAP = compile_later(rf"\b{_NAME}(?:[,;:.!—–]|\ [-—–])\ ", re.IGNORECASE | re.VERBOSE)
"""Takes back whatever names a thing, and says in the same breath what is to be used."""

_NAME_OFF = compile_later(rf"{_OPENING}{_NAME}[.!]*$", re.IGNORECASE | re.VERBOSE)
"""Takes back a thing by its name; what is to be used stands in a sentence beside it."""

_FORMS: Mapping[Form, re.Pattern[str]] = {
    "duty": _DUTY,
    "ban": _BAN,
    "rule": _RULE_OFF,
    "swap": _SWAP,
    "instead": _INSTEAD,
    "name": _NAME_OFF,
}
_TOGETHER: tuple[Form, ...] = ("swap", "instead")
"""What takes one thing back and asks for another."""

_LASTING = compile_later(
    r"\b(?:from\ now\ on|from\ here\ on|from\ this\ point|going\ forward|henceforth|in\ (?:the\ )?"
    r"future|always|i\ (?:now\ )?prefer)\b",
    re.IGNORECASE | re.VERBOSE,
)
_LIMITED = compile_later(
    r"\b(?:for\ now|right\ now|today|tonight|tomorrow|this\ (?:time|once|week|morning|afternoon)"
    r"|(?:for|in|on|with|within|during)\ (?:this|these|that|those|one)|yet|until|unless|if|once"
    r"|when(?:ever)?|while|except|just\ for|only\ for|maybe|perhaps|might|i\ think|i\ guess"
    r"|(?<!i\ )said|says|think\ (?:that\ )?you|so\ often)\b",
    re.IGNORECASE | re.VERBOSE,
)
"""What holds for a while, for a case or by hearsay takes no rule away."""

_OFTEN = compile_later(r"\b(?:every|each\ time)\b", re.IGNORECASE | re.VERBOSE)
"""What is done less often is done still; a thing that another replaces is not."""

_BEHIND = compile_later(
    r"\ *(?:[,;:.!()—–]|\ -\ |\b(?:because|since|now\ that|as\ (?:we|the|it|i|ci)|any\s?more"
    r"|any\ longer|from\ now\ on|going\ forward|at\ all|please|i\ gave\ you|that\ i\b)).*$",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_DENIED = compile_later(r"\b(?:never|not|no|avoid|stop|without)\b|n't\b", re.IGNORECASE)
_CONDITION = compile_later(
    r"\b(?:without|unless|until|before|prior\ to)\b", re.IGNORECASE | re.VERBOSE
)
_REJECTED = compile_later(
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
"""Words that make a sentence a rule and do not say what it is about."""

_MAKE_SURE = compile_later(r"\bmake sure\b", re.IGNORECASE)
_BROAD = compile_later(r"\b(?:use|using|prefer|go\ with|take)\b", re.IGNORECASE | re.VERBOSE)
_MOST_LEFT = 2
"""Where one thing is to be used instead of another, whatever for, a rule that asks for the other
may have so many words of its own: a verb and what it is done to."""

_ALIKE = 0.8
"""Two rules that share so many of their words are one rule, said twice."""


class Withdrawal(NamedTuple):
    """What a sentence takes back, and by which form of words."""

    form: Form
    gone: str
    sentence: str


def find(sentence: str) -> Withdrawal | None:
    """Return what a person's sentence takes back, if it does."""
    said = " ".join(sentence.replace("’", "'").split()).strip(" -*•")
    if said.endswith("?") or _LIMITED.search(said):
        return None
    for form, pattern in _FORMS.items():
        found = pattern.search(said)
        if found and _is_meant(form, said):
            gone = next(part for part in found.groups() if part)
            return _named(form, _BEHIND.sub("", gone), said)
    return None


def find_beside(sentence: str, *neighbours: str) -> Withdrawal | None:
    """Return what a sentence takes back that stands between others.

    A name alone ('Forget make check.') takes a rule back where one beside it gives another.
    """
    found = find(sentence)
    if found is None or found.form != "name":
        return found
    return found if any(_LASTING.search(said) for said in neighbours) else None


def _is_meant(form: Form, said: str) -> bool:
    if form in _TOGETHER:
        return bool(_LASTING.search(said)) and (form == "swap" or not _OFTEN.search(said))
    if _OFTEN.search(said):
        return False
    return form != "ban" or not _NO_MORE.match(said) or instructions.lasts(said)


def is_only(sentence: str) -> bool:
    """Tell whether a sentence takes something back and asks for nothing else."""
    found = find(sentence)
    if found is None or found.form in _TOGETHER:
        return False
    return found.form != "ban" or not instructions.standing(sentence)


def meant(withdrawal: Withdrawal, rules: Sequence[str]) -> list[int]:
    """Return the places of the rules that a withdrawal means; none if it may mean several."""
    fitting = [place for place, rule in enumerate(rules) if _fits(withdrawal, rule)]
    if withdrawal.form == "instead" or not fitting:
        return fitting
    gone = _content(withdrawal.gone)
    said = {place: _content(rules[place]) for place in fitting}
    whole = [place for place in fitting if said[place] <= gone]
    chosen = whole or fitting
    return chosen if all(_alike(said[chosen[0]], said[place]) for place in chosen) else []


def is_same(one: str, other: str) -> bool:
    """Tell whether two sentences are one rule, said twice."""
    return _alike(_content(one), _content(other))


def _named(form: Form, gone: str, said: str) -> Withdrawal | None:
    return Withdrawal(form, gone.strip(), said) if _content(gone) else None


def _fits(withdrawal: Withdrawal, rule: str) -> bool:
    gone = _content(withdrawal.gone)
    if not gone <= _content(rule):
        return False
    if withdrawal.form == "instead":
        return _is_replaced(withdrawal, gone, rule)
    if withdrawal.form in ("swap", "name") and not _names(rule, withdrawal.gone):
        return False
    return withdrawal.form == "rule" or _asks_for(rule, withdrawal.gone)


def _names(rule: str, gone: str) -> bool:
    """Tell whether a rule has a name in it, word by word in its order."""
    name = " ".join(words.split(gone))
    return f" {name} " in f" {' '.join(words.split(rule))} "


def _asks_for(rule: str, gone: str) -> bool:
    """Tell whether a rule asks for something: it does not forbid it, or forbids to go without."""
    if not _DENIED.search(rule):
        return True
    condition = _CONDITION.search(rule)
    first = next((stem for word in words.split(gone) for stem in _content(word)), "")
    return bool(condition) and first in _content(rule[condition.end() :] if condition else "")


def _is_replaced(withdrawal: Withdrawal, gone: frozenset[str], rule: str) -> bool:
    """Tell whether a rule asks for what is replaced, and for nothing that was not spoken of."""
    rejected = _REJECTED.search(rule)
    if rejected and gone & _content(rule[rejected.end() :]):
        return bool(gone & _content(rule[: rejected.start()]))
    left = _content(rule) - _content(withdrawal.sentence)
    behind = withdrawal.sentence.partition(withdrawal.gone)[2]
    broad = bool(_BROAD.search(withdrawal.sentence)) and not _scoped(f"{withdrawal.gone} {behind}")
    return not left & _scoped(rule) and len(left) <= (_MOST_LEFT if broad else 0)


def _scoped(rule: str) -> frozenset[str]:
    """Return the words of a rule that say where or when it holds."""
    told = words.split(rule)
    start = next((i for i, word in enumerate(told) if word in _SCOPE), len(told))
    return _content(" ".join(told[start:]))


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
