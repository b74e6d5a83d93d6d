"""Split messages into clauses, and weigh how informative each is."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lore.text import instructions, sentences, words

MAX_CHARS = 240
"""Longer clauses are cut, so that no single statement takes all the room."""

STANDING_BONUS, CHANGE_BONUS, REASON_BONUS = 3.0, 2.0, 0.8
"""Bonus of a standing instruction, of a decision, and of a reason or an error."""

MIN_WEIGHT = 2.0
"""Clauses below the weight of two words are greetings, headings or names."""

_READ_CHARS = 24_000
_SPLIT_CHARS = 90
"""A longer sentence is split at its joints."""

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
_IRRELEVANT = re.compile(
    r"\\[a-zA-Z]+[{(\s]|\\[()\[\]]|[\d)]\s?[=+*/]\s?[\d(].*=|\[Request interrupted"
)
"""Steps of a calculation, and messages of the agent program itself."""

_TOOL = re.compile(r"\[([A-Za-z][\w.-]{0,60})\] ")
_OUTCOME = re.compile(
    r"\b\w*(?:Error|Exception)\b|^\s*(?:E  |FAIL|--- FAIL|error|fatal|panic)"
    r"|\b\d+ (?:passed|failed)|: \d+ lines(?:;|$)|\b(?:not found|denied|No such file)\b"
)
"""Lines of tool output that report a result, and the note that replaces long output."""

_NUMBER = re.compile(r"\d")
_IDENTIFIER = re.compile(r"[A-Za-z]*[\d_/.][\w/.:-]*\w|\w*[a-z][A-Z]\w*|[A-Z]{2,}\w*")
_NAME = re.compile(r"(?<=[\w,] )[A-Z][a-z]+")

_FILLER = frozenset(
    """able add already another anything appreciate around best better bit came come comes
    create course day different done easily easy effective ensure even every everything
    example feel find first follow following forward go going good great happy help helpful here's
    hope i'm idea implement important improve include including keep know like look looking
    lot make makes making many may maybe might much must need needed needs new nice now ok
    okay one please point possible provide put really right say see set show something
    start step steps still sure take thank thanks thing things think time try trying two use
    used useful using want wants way ways well work working works would yes yet""".split()
)
"""Words that say little about the topic of a text."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One statement, verbatim, with the weights of its search words.

    `is_tool_line` marks a tool call or a line of its output.
    """

    text: str
    weights: dict[str, float]
    bonus: float
    is_tool_line: bool = False


def split_clauses(text: str, *, person: bool) -> list[Clause]:
    """Return the statements of a message in order, without code blocks.

    Tool calls are kept as commands; of their output only the lines that report a result.
    """
    spoken, used = _split_tool_lines(text[:_READ_CHARS])
    clauses = []
    for line in _plain_lines(spoken):
        for sentence in sentences.split_sentences(line):
            clauses += [_clause(piece, person=person) for piece in _split_at_joints(sentence)]
    clauses += [_clause(line, person=False, used=True) for line in used]
    return [clause for clause in clauses if clause]


def _split_tool_lines(text: str) -> tuple[str, list[str]]:
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
            output = line.removeprefix("[result] ")
            if _OUTCOME.search(output[:400]):
                used.append(output.strip())
        else:
            spoken.append(line)
    return "\n".join(spoken), used


def _plain_lines(text: str) -> list[str]:
    plain = _TAG.sub(" ", _FENCE.sub("\n", text))
    lines = []
    for line in plain.splitlines():
        bare = _BULLET.sub("", line, count=1).strip() if _BULLET.match(line) else line.strip()
        if bare and not _RULE.fullmatch(bare):
            plain_line = _MARKUP.sub("", bare)
            numbered = _NUMBERED.match(plain_line)
            lines.append(plain_line[numbered.end() :] if numbered else plain_line)
    return lines


def _split_at_joints(sentence: str) -> list[str]:
    """Split a long sentence at its joints; short pieces stay with their neighbour."""
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
    text = _strip_lead(_LEAD, piece.strip(" ,;-"))
    text = _strip_lead(_ASKING, text.strip(" ,;-:"))
    if len(text) > MAX_CHARS:
        text = text[:MAX_CHARS].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"
    weights = weigh_words(text)
    if sum(weights.values()) < MIN_WEIGHT or _IRRELEVANT.search(text):
        return None
    bonus = 0.0
    if person and instructions.find_standing(text):
        bonus += STANDING_BONUS
    if _CHANGE.search(text):
        bonus += CHANGE_BONUS
    if _REASON.search(text) or _WRONG.search(text):
        bonus += REASON_BONUS
    return Clause(text, weights, bonus, used)


def _strip_lead(lead: re.Pattern[str], text: str) -> str:
    match = lead.match(text)
    return text[match.end() :].strip(" ,;-:") if match else text


def weigh_words(text: str) -> dict[str, float]:
    """Return the search words of a text with their weights."""
    identifiers = {word for match in _IDENTIFIER.findall(text) for word in words.split(match)}
    names = {word for match in _NAME.findall(text) for word in words.split(match)}
    weights: dict[str, float] = {}
    for word in words.split(text):
        if word in words.STOP_WORDS or (len(word) < 2 and not word.isdigit()):
            continue
        if _NUMBER.search(word):
            weight = 1.5
        elif word in identifiers:
            weight = 1.6
        elif word in names:
            weight = 1.4
        elif word in _FILLER:
            weight = 0.15
        else:
            weight = 1.0
        weights[word[:7]] = max(weight, weights.get(word[:7], 0.0))
    return weights
