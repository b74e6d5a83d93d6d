"""Secret habits: the shapes of passwords that people make up, or that have no digits.

Names of things have these shapes too, so they only tell where a password is named or asked for.
"""

from __future__ import annotations

from lore.text.later import compile_later

__all__ = [
    "is_interleaved",
    "is_passphrase",
    "is_plain_phrase",
    "is_scattered",
    "is_short_phrase",
    "is_word_and_number",
]

_PASSPHRASE = compile_later(
    r"^[A-Za-z][a-z]{2,11}(?:([\-_.+~=,])[A-Za-z][a-z]{2,11})(?:\1[A-Za-z][a-z]{2,11}){1,6}"
    r"(?:\1?\d{1,4}[!?#*$%.]*|\1?[!?#*$%]+|\1\d{1,4}\1[A-Za-z]{3,12})$"
)
"""Three or more words with a number or sign at the end, all joined the same way."""

_SHORT_PHRASE = compile_later(
    r"^[A-Za-z][a-z]{2,11}([\-_.+~=,])[A-Za-z][a-z]{2,11}\1?\d{2,5}[!?#*$%.]{0,2}$"
    r"|^\d{2,5}([\-_.+~=,])[A-Za-z][a-z]{2,11}\2[A-Za-z][a-z]{2,11}[!?#*$%.]{0,2}$"
)
"""Two words and a number: things have such names too, unless they are called a password."""

_PLAIN_PHRASE = compile_later(
    r"^[A-Za-z][a-z]{2,11}(?:([ \-_.+])[A-Za-z][a-z]{2,11})(?:\1[A-Za-z][a-z]{2,11}){2,8}$"
)
"""Four words or more in a row, as dice choose them."""

_SENTENCE = frozenset(
    """the and for with that this from you your are not have has was were can may must will when
    where which what how then than them they into before after its our his her their there here
    been being but all any each some who why does did should would could about only also just very
    more most such over under again once own same too out off per via yes please see ask use used
    using set get let put keep make made need needs want same must stored saved shown given sent
    found wrong correct required missing expired optional empty unset field least long short new
    old one two three first last next none""".split()
)
"""Words of sentences: dice throw them too, but seldom, and a sentence is made of them."""

_INTERLEAVED = compile_later(r"^[a-z0-9]{8,24}$|^[A-Z0-9]{8,24}$")
_INTERLEAVED_GROUPS = 3
"""Groups of digits between letters: versions and names have fewer."""

_DIGITS = compile_later(r"\d+")

_WORD_NUMBER = compile_later(
    r"^[A-Za-z][a-z]{3,11}(?:[!@#$%&*+_\-.,:^~?]{1,2}\d{2,6}|=\d{4,6}|\d{3,6})[!@#$%&*+=_\-.^~?]{0,3}$"
)
"""One word and a number, as people make up a password that must have one."""

_LEET = compile_later(r"^(?:[A-Z][a-z]*(?:[013457@$][a-z]+)+){1,3}\d{0,4}[!?#*$%]*$")
"""A word with some letters written as digits: Cl0v3rM0nk3y35."""

_HUMP = compile_later(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_VOWEL = compile_later(r"[aeiouyAEIOUY]")
_NO_SCATTER = compile_later(r"[\s\"'`()<>\[\]{}\\/|;]|::|->|^[$%]|\.\w{1,4}$")
_SHORTEST_SCATTERED = 8
_SCATTERED_HUMPS = 3

_WORDS = compile_later(r"[A-Za-z]+")
_TECHNICAL = frozenset(
    """access account admin alpha alpine amd api app apps arch arm auth aws azure backup base beta
    bookworm branch broker bucket build bullseye bundle byte bytes cache case central chapter char
    chars chart chat check class claude cli client cloud cluster code codex column commit config
    configmap container count credential credentials cron daily data database date debian debug
    default demo deploy deployment dev docker document draft east email entry env environment error
    errors event example exp expires false feature field figure file final fix flash form frontend
    backend gateway gcp gemini generated github gitlab global gpt group haiku hash header health
    hook host hotfix http https image index info input instance instruct int internal issue item
    java job key keys kube lambda large latest layer level lib limit line link linux list llama
    local lock log login main major manager master max medium member message method migration min
    mini minor mistral mobile mock mode model module monitor mysql name nano network next nginx
    node none north notes null number object only opus option options org page param parser part
    patch path phase php ping pipeline plan plugin pod policy port postgres pre preview private pro
    prod production profile project proxy public pull python query queue random read ready redis
    ref region release remote replica repo request required reset response rest review role room
    root route rule run runner sample schema scram script secret section secure server service
    session set setting settings sha shard sheet signing small snapshot sonnet source south spec
    sprint sql ssh stable stack stage staging start state static status step storage store stream
    string style sub subnet svc system table tag task team temp template tenant test tests text
    theme thread ticket tier time title todo token tool topic trace train true turbo type unit
    update upload url user username users utf uuid value var version video view volume vpc web
    week west widget window windows worker workflow write year zone
    password passwd passphrase passwort unicode ascii iso rfc cve sprint january february march
    april june july august september october november december monday tuesday wednesday thursday
    friday saturday sunday hours minutes seconds days characters letters digits""".split()
)
"""Words of the names that systems and people give to things; dice rarely throw them."""


def is_passphrase(value: str) -> bool:
    """Tell whether a value is words and a number in a row, none of them a word of the trade."""
    return bool(_PASSPHRASE.match(value)) and _is_untechnical(value)


def is_short_phrase(value: str) -> bool:
    """Tell whether a value is two words and a number, none of them a word of the trade."""
    return bool(_SHORT_PHRASE.match(value)) and _is_untechnical(value)


def is_plain_phrase(value: str) -> bool:
    """Tell whether a value is words in a row that make no sentence and name nothing technical."""
    if not _PLAIN_PHRASE.match(value) or not _is_untechnical(value):
        return False
    return _SENTENCE.isdisjoint(word.lower() for word in _WORDS.findall(value))


def is_interleaved(value: str) -> bool:
    """Tell whether digits stand between letters of one case so often that it is no name."""
    return bool(_INTERLEAVED.match(value)) and len(_DIGITS.findall(value)) >= _INTERLEAVED_GROUPS


def is_word_and_number(value: str) -> bool:
    """Tell whether a value is a word with a number behind it or in it."""
    shaped = len(value) >= 7 and _WORD_NUMBER.match(value)
    if not shaped and len(value) >= _SHORTEST_SCATTERED:
        shaped = _LEET.match(value)
    return bool(shaped) and _is_untechnical(value)


def is_scattered(value: str) -> bool:
    """Tell whether capitals and small letters change so often that nobody reads words in them."""
    if len(value) < _SHORTEST_SCATTERED or _NO_SCATTER.search(value):
        return False
    if value.islower() or value.isupper():
        return False
    humps = _HUMP.findall(value)
    odd = sum(len(hump) <= 2 or not _VOWEL.search(hump) for hump in humps)
    share = 0.5 if len(humps) > _SCATTERED_HUMPS else 0.6
    return len(humps) >= _SCATTERED_HUMPS and odd >= share * len(humps)


def _is_untechnical(value: str) -> bool:
    return _TECHNICAL.isdisjoint(word.lower() for word in _WORDS.findall(value))
