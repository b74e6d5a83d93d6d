"""Tone of a statement: wishes, doubts and moods, and words too vague to store."""

from __future__ import annotations

import re

from lore.llm.offline.sentence_rules import has_statement_length
from lore.text import entities
from lore.text.statements import assertion_part

_HOW = (
    r"(?:(?:kinda|kind of|a bit|a little|really|still|also|so|pretty|getting|currently|just"
    r"|feeling|quite|very|super|actually|now|always|mostly|definitely|totally|honestly)\s)*"
)
_I_AM = r"(?:I'm|I’m|I am|I've been|I’ve been|I have been|I was|I feel|I felt|I get)\s"
_MOOD_WORD = (
    r"(?:worried|stressed|stuck|concerned|nervous|anxious|overwhelmed|torn|struggling|confused"
    r"|frustrated|excited|thrilled|stoked|pumped|confident|motivated|grateful|unsure|scared|afraid|tired|hesitant|conflicted|wondering|hoping|curious"
    r"|having (?:some )?(?:trouble|issues|difficulty|doubts|problems|a hard time)|second-guessing)"
)
_MOOD = re.compile(rf"^{_I_AM}{_HOW}{_MOOD_WORD}\b(?: out)?", re.IGNORECASE)
_INTENTION = re.compile(
    rf"^(?:{_I_AM}{_HOW}(?:considering|thinking (?:of|about)|trying|planning|looking (?:to|into|at"
    r"|for|forward)|aiming|working on|debating|wanting|interested in|gonna|going to)|I (?:also "
    r"|really |just |still )*(?:want|need|hope|plan|would like|wanna|have) to(?! (?:visit|learn"
    r"|become|travel|live|move|own|retire))|I'd (?:also |really )*(?:like|love) to)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"considering|thinking|debating|interested|looking|hope|like|love", re.IGNORECASE
)
"""Intentions that may never be carried out."""

_SUBJECT = (
    r"(?:(?-i:I)\b|I'|I’|we\b|we'|my\b|our\b|he\b|she\b|they\b"
    r"|(?-i:[A-Z][a-z]+ (?!and\b|or\b)[a-z]))"
)
_JOINT = re.compile(
    r",? (?:and |but |so |like )?(?:especially |particularly )?(?:since|because|after|considering"
    rf"|given(?: that)?|even though|now that|as|seeing as) (?={_SUBJECT})"
    rf"|, (?:(?:and|but|so|like) )?(?={_SUBJECT}|it\b|it's\b)",
    re.IGNORECASE,
)
"""Where the mood ends and its reason begins: a comma or a conjunction, with a subject after it."""

_MATTER = re.compile(
    r"(?:about|with|on|over)\s+(?:\w+ing\s)?(?P<what>(?:my|our|the)\s(?:(?!(?:that|which|who|to|if|and|for"
    r"|being|not)\b)[\w'’$%,./&-]+\s?){1,8})$",
    re.IGNORECASE,
)
_TRAILING = re.compile(
    rf",?\s(?:and|but|so|though|although)\s(?:now\s)?(?:{_I_AM}{_HOW}{_MOOD_WORD}\b"
    r"|I(?:'d| would)?\s(?:also |just |really )*(?:want|need|hope|like|love|wanna)\s(?:to\s)?"
    r"(?:make sure|ensure|know|see|understand|be sure|get|hear|some|your|any|advice)"
    rf"|I'm\s{_HOW}not\s(?:sure|certain)\b|it's\s(?:also\s)?(?:kinda|so|really|been)\b).*$",
    re.IGNORECASE,
)
_WISH_BEHIND = re.compile(
    r",?\s(?:and|but|so)\s(?P<wish>I'm\s(?:also\s|now\s)?(?:planning|hoping|looking|thinking"
    r"|considering|trying|excited)\b.*)$",
    re.IGNORECASE,
)
_ACT = re.compile(
    r"\b(?:I|we|I've|we've|I’ve|I have|we have|I had)\s(?:(?:just|also|already|recently|only"
    r"|finally|even|then|both)\s)*(?:\w{2,}ed|met|took|bought|built|(?:re)?wrote|won(?!')|spent|found|sent"
    r"|began|chose|ran|paid|lost|left|kept|became|made|got|gave|read|sold|set|hit|cut|had|went)\b",
    re.IGNORECASE,
)
_FEARED = re.compile(rf"\s(?:that\s)?(?={_ACT.pattern})", re.IGNORECASE)
"""Who worries that they did something did it."""

_CUT_OFF = re.compile(
    rf"^{_I_AM}{_HOW}{_MOOD_WORD} that \w+ing\b(?!.*\b(?:is|are|was|were|will|won't|might|may|could"
    r"|would|can|can't|has|have|had|isn't|doesn't|makes?|made)\b)",
    re.IGNORECASE,
)
"""The end of the sentence is missing."""

_IDLE_ACT = re.compile(
    r"\b(?:I|we)(?:'ve|’ve| have)?\s(?:just |also |already )*(?:learned|heard|noticed|realized"
    r"|wanted|needed|tried|hoped|wondered|discussed|talked)\s(?:about\s)?(?:it|that|this|them|to"
    r"|a lot|how|if)\b",
    re.IGNORECASE,
)
_KIN = re.compile(
    r"\b(?:my|our)\s(?:[\w'’-]+\s){0,3}(?:friend|sister|brother|wife|husband|partner|mother|father"
    r"|mom|dad|son|daughter|child|kids?|cousin|uncle|aunt|mentor|boss|supervisor|manager|colleague"
    r"|coworker|assistant|accountant|lawyer|attorney|neighbou?r|teacher|professor|girlfriend"
    r"|boyfriend|producer|client|roommate|fianc\w+|parent|famil(?:y|ie)|grand\w+|sibling|doctor"
    r"|therapist|editor)s?\b",
    re.IGNORECASE,
)
_SHARE = re.compile(
    r"\b\d+(?:\.\d+)?\s?%|\b\d{1,2}(?::\d\d)?\s?(?:AM|PM)\b|\b\d{1,2}:\d\d\b", re.IGNORECASE
)
_YEAR = re.compile(r",? (?:19|20)\d\d\b|(?<=\d)-\d{1,2}\b")
"""The year and the last day of a date are not amounts."""

_EXACT = re.compile(r"`[^`]+`|\bv\d+(?:\.\d+)*\b|\bnever\b|\b(?:aim\w*|goal|target)\b.*\d")
"""A file, a version, a denial and a goal with its figure are facts in themselves."""

_SEEKING = re.compile(rf"^{_I_AM}{_HOW}looking for\b", re.IGNORECASE)
"""A title beside what someone looks for is an example, not theirs."""

_SET_DAY = re.compile(
    r"\bdeadlines? (?:for|of|on)\b|\bdue (?:on |by )?[A-Z]|\bdate\b|\bscheduled\b"
    r"|\b(?:declin|reject|accept|cancel|miss|turn|mov|push|postpon)(?:ed|ing)\b",
    re.IGNORECASE,
)
_UNCLEAR = re.compile(r"^(?:he|she|they|this|that)\b|\bit\b", re.IGNORECASE)
"""Without the mood's subject, the reference is unclear."""


def strip_sentiment(sentence: str) -> str:
    """Return the facts of a sentence without its mood or intention; empty if there are none."""
    text = _strip_tail(sentence)
    mood = _MOOD.match(text)
    feared = _FEARED.match(text, mood.end()) if mood else None
    if feared:
        return _capital(text[feared.end() :])
    if _CUT_OFF.match(text):
        return ""
    if mood:
        enclosed = _enclosed_statement(text, mood.end())
        if enclosed:
            return enclosed
    planned = _INTENTION.match(text)
    if planned and not _OPEN.search(planned.group()) and entities.count_specifics(text).dates:
        return text  # plans for a date are asked for later
    if (mood or planned) and not _has_substance(text):
        return ""
    return text


def _strip_tail(sentence: str) -> str:
    for _ in range(2):
        tail = _TRAILING.search(sentence)
        if (
            tail
            and has_statement_length(sentence[: tail.start()])
            and not _is_specific(tail.group())
        ):
            sentence = sentence[: tail.start()]
    plan = _WISH_BEHIND.search(sentence)
    if plan and has_statement_length(sentence[: plan.start()]) and not _is_specific(plan["wish"]):
        sentence = sentence[: plan.start()]
    return sentence.rstrip(" ,;")


def _enclosed_statement(text: str, start: int) -> str:
    """Return the statement after a mood, prefixed with the mood's subject.

    Return '' if the mood itself names a day, an amount or a person.
    """
    joint = _JOINT.search(text, start)
    if joint is None or _is_specific(text[start : joint.start()]):
        return ""
    rest = text[joint.end() :].strip()
    matter = _MATTER.search(text[start : joint.start()])
    if _INTENTION.match(rest) or _MOOD.match(rest) or not _has_substance(rest):
        return ""
    if matter is None and "like" in joint.group():
        return ""
    if matter:
        return _capital(f"{matter['what'].strip()}: {rest}")
    return "" if _UNCLEAR.search(rest) else _capital(rest)


def _has_substance(text: str) -> bool:
    """Return whether a text has an amount, a title, a person, a set date or a completed act."""
    specifics = entities.count_specifics(_YEAR.sub("", _SHARE.sub(" ", text)))
    quoted = specifics.quoted and not _SEEKING.match(text)
    if specifics.numbers or quoted or _KIN.search(text) or _EXACT.search(text):
        return True
    name_count = specifics.names + specifics.code
    if specifics.dates and (name_count or _SHARE.search(text) or _SET_DAY.search(text)):
        return True
    if name_count > 1 and _YEAR.search(text):
        return True
    return bool(_ACT.search(_IDLE_ACT.sub(" ", text))) and entities.count_specifics(text).total > 0


def _is_specific(text: str) -> bool:
    return entities.count_specifics(text).total > 0


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


_ANNOUNCED = re.compile(
    r"\bsomething (?:\w+ )?happened\b(?! ?[-–—:,] ?\w)"
    r"|\b(?:had|have|got|hit|reached|made|achieved) (?:a|an|some|my) (?:[a-z]+ ){0,3}?(?:milestone"
    r"|accomplishment|achievement|surprise|news|breakthrough|setback)(?: moment)?"
    r"(?=[.!]|$| (?:this|last|yesterday|today|recently|at|on)\b)",
    re.IGNORECASE,
)
_NO_OBJECT = re.compile(
    r"\bmade the (?:update|change|switch|decision|call)(?= on\b|[.,]|$)|\bboth (?:errors|cases"
    r"|ones)\b|\blearned (?:a lot|so much|a ton|many things)\b|\bmade me think\b|\bhad (?:a blast"
    r"|so much fun)\b|^I(?:'ve| have) been (?:playing|doing|using|reading|watching|practi[cs]ing"
    r"|working|training) (?:for|since|lately|recently)\b",
    re.IGNORECASE,
)
_ALSO = re.compile(
    r"^(?:I|we)(?:'ve|'m|’ve| have| am)? also\b|\btoo[.!]?$|\bas well(?=[.,;!]|$)", re.IGNORECASE
)
_THIS = re.compile(
    r"\b(?:this|these|those) (?!week|weekend|month|year|morning|afternoon|evening|summer|winter"
    r"|spring|fall|autumn|season|time|way|\w+day\b)[a-z]+"
    r"(?=[.,;!]|$| (?:with|for|and|but|in|on|at|from|since|when)\b)",
    re.IGNORECASE,
)
_SHOWN = re.compile(
    r"\b(?:this|that) (?:pic|picture|photo|shot|jam|song|thing|stuff|trip|one)\b"
    r"|(?:^|[-–—] )check out\b|\b(?:painted|drew|made|took|wrote|baked|built) (?:this|that|it)\b",
    re.IGNORECASE,
)
"""References to something shown or named before."""

_IT = re.compile(
    r"^(?:I|we|I've|we've|I'm|I'll|we'll|a \w+|the \w+|my \w+)\s(?:\w+\s){0,3}?(?<!that )"
    r"(?:it|one|them)\b(?! (?:was|is|takes|feels|of|hard|difficult|easy|helpful|clear))",
    re.IGNORECASE,
)
_UNNAMED = re.compile(
    r"\b(?:a|an) (?:[a-z]+ )?(?:project|festival|meeting|event|deadline|workshop|interview"
    r"|presentation|session|trip|party)"
    r"(?: coming up\b| that was\b| (?:coming up )?on [A-Z][a-z]+ \d{1,2}$)"
)
_BARE_SHARE = re.compile(
    r"\b(?:I'm|we're|it's)(?: currently| now)? at \d+%(?=[.,;!]|$| and\b| but\b)", re.IGNORECASE
)
_PROGRESS = re.compile(
    r"\bma(?:de|king) (?:\w+ ){0,2}progress\b(?! (?:on|in|with|toward))", re.IGNORECASE
)
_WANTED = re.compile(
    r"^(?:[\w ]{3,20} ago,? |yesterday,? |last \w+,? )?I (?:wanted|needed|hoped) to\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\bnever\b", re.IGNORECASE)
_DENIES_IT = re.compile(r"\bnever (?:\w+ )?\w+ (?:one|it|that|them)\b(?! \w+ly)", re.IGNORECASE)
_SEEN = re.compile(
    r"\bI'm (?:getting|seeing) (?:an?|this|the) (?:[\w-]+ ){0,2}(?:errors?|message|warning)\b",
    re.IGNORECASE,
)
_NEW = re.compile(
    r"\bthe (?:new|same|other|next|final|revised|original|updated) (?:[A-Z][a-z]+ \d{1,2} )?"
    r"(?:deadline|version|plan|one|schedule|date|goal|target)s?(?=[.,;!]|$| and\b| but\b)"
)


def is_announcement(sentence: str) -> bool:
    """Return whether a sentence announces something without saying what."""
    return bool(_ANNOUNCED.search(sentence))


def join_outcome(sentence: str, following: str) -> str:
    """Return an announcement joined with the sentence that says what; empty without one."""
    outcome = assertion_part(following)
    if (
        not has_statement_length(outcome)
        or not _FIRST_PERSON.search(outcome)
        or following.rstrip().endswith("?")
    ):
        return ""
    ended = sentence if sentence[-1:] in ".!" else f"{sentence}."
    return f"{ended} {outcome}"


_FIRST_PERSON = re.compile(r"\b(?:I|we|my|our)\b", re.IGNORECASE)


def refers_back(sentence: str) -> bool:
    """Return whether a sentence refers to something shown or named before it."""
    return bool(_SHOWN.search(sentence))


def is_unclear(sentence: str) -> bool:
    """Return whether a sentence depends on earlier words, or lacks an object."""
    specifics = entities.count_specifics(sentence)
    if _DENIED.search(sentence):
        return bool(_DENIES_IT.search(sentence)) and not specifics.names
    is_named = bool(specifics.names or specifics.quoted or specifics.dates > 1)
    also = _ALSO.search(sentence) and not (specifics.numbers or specifics.dates or specifics.quoted)
    return bool(
        any(form.search(sentence) for form in (_BARE_SHARE, _PROGRESS, _WANTED, _SHOWN, _SEEN))
        or (_NO_OBJECT.search(sentence) and not specifics.quoted)
        or (also and specifics.names < 2)
        or (_IT.match(sentence) and not (specifics.quoted or specifics.code))
        or (_NEW.search(sentence) and not specifics.names)
        or ((_THIS.search(sentence) or _UNNAMED.search(sentence)) and not is_named)
    )
