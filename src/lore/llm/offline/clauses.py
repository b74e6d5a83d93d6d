"""Clauses: the pieces that talk is made of, and how much each of them says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lore.text import instructions, sentences, words

LONGEST = 240
"""A clause that is longer is cut: no single statement takes the room of all others."""

STANDING, CHANGES, EXPLAINS = 3.0, 2.0, 0.8
"""What a lasting instruction, a decision, and a reason or an error count beside their words."""

LEAST_WEIGHT = 2.0
"""What says less than two words' worth is a greeting, a heading or a name."""

_READ_CHARS = 24_000
_SPLIT_CHARS = 90
"""A sentence that is longer is taken apart at its joints."""

_SHORT_CHARS = 25

_FENCE = re.compile(r"```[^\n]{0,200}\n.*?(?:```|\Z)", re.DOTALL)
_TAG = re.compile(r"</?[a-zA-Z][\w:-]{0,40}(?:\s[^<>]{0,200})?/?>")
_RULE = re.compile(r"[\s|:=*_~-]+")
_BULLET = re.compile(r"\s*(?:[-*+•>]+|\d{1,2}[.)]|#{1,6}|\|)\s*")
_NUMBERED = re.compile(r"\(?\d{1,3}[.)]\s+(?=[A-Z0-9])")
_MARKUP = re.compile(
    r"\*\*|__|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)|`|\[(?=[^\]]{0,200}\]\()|\]\([^)]{0,300}\)"
)
_JOINT = re.compile(
    r";\s+|\s[–—-]\s+|:\s+(?=\w)|\s(?=(?:can|could|would) you\b)|,\s+(?=(?:and|but|so|or|because"
    r"|since|while|which|where|although|though|can you|could you|would you|how|what|is there|i|we"
    r"|it|they|he|she|then|with|using|including)\b)",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:(?:sure|certainly|absolutely|of course|okay|ok|great|perfect|thanks?(?: you)?|yes|yeah"
    r"|hey|hi|hello|wow|well|now|also|and|but|so|oh|please|got it|alright|that's great"
    r"|sounds good|good)\b[,.!]*\s+)+",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"(?:(?:can|could|would) you (?:please )?(?:help me (?:to )?|also )?|i want (?:you )?to "
    r"|i(?:'d| would) like (?:you )?to |i(?:'m| am) (?:trying|looking) to |help me (?:to )?"
    r"|i need (?:you )?(?:help )?to |let me |let's |i(?:'ll| will) (?:now )?)",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:decided|switch(?:ed|ing)?|instead of|replac(?:ed|es|ing)|never|always|from now on"
    r"|no longer|prefer|chose|chosen|migrat(?:ed|ing)|renam(?:ed|ing)|moved to|rather than"
    r"|root cause|turns out|agreed|the (?:problem|issue|bug|fix) (?:is|was))\b",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:changed|upgraded|must(?: not)?|don't|because|fixed|works now|deadline|due)\b",
    re.IGNORECASE,
)
_WRONG = re.compile(
    r"\b\w*(?:Error|Exception)\b"
    r"|\b(?:error|failed|fails|failure|panic|traceback|denied|broken|crash(?:es|ed)?)\b"
)
_NOTHING = re.compile(
    r"\\[a-zA-Z]+[{(\s]|\\[()\[\]]|[\d)]\s?[=+*/]\s?[\d(].*=|\[Request interrupted"
)
"""Steps of a calculation and what an agent's program says: nobody asks for these."""

_TOOL = re.compile(r"\[([A-Za-z][\w.-]{0,60})\] ")
_WENT = re.compile(
    r"\b\w*(?:Error|Exception)\b|^\s*(?:E  |FAIL|--- FAIL|error|fatal|panic)"
    r"|\b\d+ (?:passed|failed)|: \d+ lines(?:;|$)|\b(?:not found|denied|No such file)\b"
)
"""Lines of an output that say how it went, and the note that stands for a long one."""

_NUMBER = re.compile(r"\d")
_TELLING = re.compile(r"[A-Za-z]*[\d_/.][\w/.:-]*\w|\w*[a-z][A-Z]\w*|[A-Z]{2,}\w*")
_NAME = re.compile(r"(?<=[\w,] )[A-Z][a-z]+")

_EMPTY = frozenset(
    """able add already another anything appreciate around best better bit came come comes
    create course day different done easily easy effective ensure even every everything
    example feel find first follow following forward go going good great happy help helpful here's
    hope i'm idea implement important improve include including keep know like look looking
    lot make makes making many may maybe might much must need needed needs new nice now ok
    okay one please point possible provide put really right say see set show something
    start step steps still sure take thank thanks thing things think time try trying two use
    used useful using want wants way ways well work working works would yes yet""".split()
)
"""Words that say little of what a text is about."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One statement, word for word, with the words that it would be found by.

    `used` says that it is a call of a tool or what came back.
    """

    text: str
    weights: dict[str, float]
    bonus: float
    used: bool = False


def clauses(text: str, *, person: bool) -> list[Clause]:
    """Return the statements of a message in order; code blocks are left out.

    Of what a tool was told the command is kept, of what it gave back what says how it went.
    """
    spoken, used = _apart(text[:_READ_CHARS])
    found = []
    for line in _lines(spoken):
        for sentence in sentences.cut(line):
            found += [_clause(piece, person=person) for piece in _pieces(sentence)]
    found += [_clause(line, person=False, used=True) for line in used]
    return [clause for clause in found if clause]


def _apart(text: str) -> tuple[str, list[str]]:
    """Return what was said in words, and the lines of tool traffic that are worth telling."""
    if "[" not in text:
        return text, []
    spoken, used = [], []
    inside = False
    for line in text.splitlines():
        tool = _TOOL.match(line)
        if tool and tool[1] != "result":
            inside = False
            used.append(line)
        elif tool or inside:
            inside = True
            told = line.removeprefix("[result] ")
            if _WENT.search(told[:400]):
                used.append(told.strip())
        else:
            spoken.append(line)
    return "\n".join(spoken), used


def _lines(text: str) -> list[str]:
    plain = _TAG.sub(" ", _FENCE.sub("\n", text))
    kept = []
    for line in plain.splitlines():
        bare = _BULLET.sub("", line, count=1).strip() if _BULLET.match(line) else line.strip()
        if bare and not _RULE.fullmatch(bare):
            told = _MARKUP.sub("", bare)
            numbered = _NUMBERED.match(told)
            kept.append(told[numbered.end() :] if numbered else told)
    return kept


def _pieces(sentence: str) -> list[str]:
    """Return a long sentence taken apart at its joints; what is too short stays where it is."""
    if len(sentence) <= _SPLIT_CHARS:
        return [sentence]
    spans: list[tuple[int, int]] = []
    start = 0
    for joint in (*_JOINT.finditer(sentence), None):
        end, following = (joint.start(), joint.end()) if joint else (len(sentence), 0)
        if spans and min(end - start, spans[-1][1] - spans[-1][0]) < _SHORT_CHARS:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
        start = following
    return [sentence[begin:end] for begin, end in spans]


def _clause(piece: str, *, person: bool, used: bool = False) -> Clause | None:
    text = _without(_LEAD, piece.strip(" ,;-"))
    text = _without(_ASKING, text.strip(" ,;-:"))
    if len(text) > LONGEST:
        text = text[:LONGEST].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"
    weights = weigh(text)
    if sum(weights.values()) < LEAST_WEIGHT or _NOTHING.search(text):
        return None
    bonus = 0.0
    if person and instructions.standing(text):
        bonus += STANDING
    if _CHANGE.search(text):
        bonus += CHANGES
    if _REASON.search(text) or _WRONG.search(text):
        bonus += EXPLAINS
    return Clause(text, weights, bonus, used)


def _without(lead: re.Pattern[str], text: str) -> str:
    """Return a text without what stands before its first telling word."""
    found = lead.match(text)
    return text[found.end() :].strip(" ,;-:") if found else text


def weigh(text: str) -> dict[str, float]:
    """Return the words that a text would be found by, with how telling each is."""
    telling = {word for found in _TELLING.findall(text) for word in words.split(found)}
    names = {word for found in _NAME.findall(text) for word in words.split(found)}
    weights: dict[str, float] = {}
    for word in words.split(text):
        if word in words.STOP_WORDS or (len(word) < 2 and not word.isdigit()):
            continue
        if _NUMBER.search(word):
            weight = 1.5
        elif word in telling:
            weight = 1.6
        elif word in names:
            weight = 1.4
        elif word in _EMPTY:
            weight = 0.15
        else:
            weight = 1.0
        weights[word[:7]] = max(weight, weights.get(word[:7], 0.0))
    return weights
