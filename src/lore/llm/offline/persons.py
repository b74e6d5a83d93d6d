"""What people say that lasts: rules and preferences, decisions, corrections, facts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from lore.llm.offline import changing, exercises, moods, orders, reasons, vague
from lore.llm.offline.finding import HIGH, LOW, MEDIUM, Found, fits
from lore.records import FragmentKind, Said
from lore.text import instructions, specifics, statements, withdrawals
from lore.text.told import behind, day_asked, is_whole, stands_alone, strip_opening, told

PASTED_CHARS = 700
"""At work, a longer message is a plan or a review that someone pasted, not the person's words."""

_DECIDED = re.compile(
    r"""\b(?:i|we|i've|we've|i\ have|we\ have)\ (?:just\ |finally\ |also\ |already\ |now\ |then\ )*
          (?:decided|chose|chosen|opted|settled\ on|picked|agreed|switched|migrated|replaced|adopted
          |moved\ (?:to|from|away)|went\ with|upgraded|dropped|declined|accepted|rejected|selected
          |rescheduled|postponed|committed\ to)\b
      | \b(?:i'll|we'll|i\ will|we\ will|i'm\ gonna|let's|lets|i\ think\ i'll
          |we\ should)\ (?:just\ )?
          (?:go\ with|stick\ with|stick\ to|keep\ using|use|drop|switch\ to|standardi[sz]e\ on)\b
      | \bwe're\ (?:going\ with|using|moving\ to|switching\ to)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_FUTURE = re.compile(
    r"^(?:i'll|i\ will|i'm\ going\ to|i'm\ gonna|gonna|we'll|let's|lets|let\ me|maybe|perhaps|if"
    r"|once|when|i\ might|i\ may|i\ could|i\ should|i\ guess|we\ could|we\ might|for\ example"
    r"|for\ instance|imagine|suppose|then|first|next|after\ that|finally|lastly|assuming"
    r"|i\ hope|hopefully|i'd\ love|i'd\ like|i\ would\ like|i\ can|some|step|good|sounds|makes"
    r"|looks|no\ need|can't\ wait|looking\ forward|glad|happy\ to|sorry|hope)\b".replace(
        "\\ ", " "
    ),
    re.IGNORECASE,
)
_OWN = re.compile(r"\b(?:I|I'm|I've|I'd|we|We|we've|we're|We've|We're|my|My|our|Our|mine|myself)\b")
_HAPPENED = re.compile(
    r"""\b(?:i|we|he|she|they|[A-Z][a-z]+)(?:'ve|\ have|\ has|'s)?\ (?:just\ |also\ |already\ "
    r"|recently
          \ |only\ |finally\ |never\ |always\ |actually\ |even\ )*(?:\w+ed|was|were|had|got|went
          |made|met|took|bought|built|wrote|won|spent|found|set|read|saw|gave|told|said|sent
          |began|chose|ran|paid|lost|left|kept|felt|became|came|did|grew|taught|thought|drew|sold
          |been|done|gone|am|is|are|have|has|own|use|work|live|teach|like|love|enjoy|prefer|plan
          |started|need|want|believe|think)\b
      | \b(?:I'm|I'm\ |we're|we've|I've)\b
      | \b(?:my|our)\ (?:\w+\ ){1,4}?(?:is|are|was|were|has|have|will|had|\w+ed|\w+s)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_ABOUT_TALK = re.compile(
    r"""\b(?:you're|you\ are|you've|you\ have|your|you'd|you)\ (?:\w+\ ){0,3}?(?:right|wrong|welcome
          |awesome|amazing|great|sweet|kind|so|really|such|an?|got|did|made|said|mentioned
          |suggested|can|should|have|look|inspire|support|help)\b
      | \bi'm\ (?:so\ |really\ |very\ |super\ )*(?:glad|happy|proud|sorry|excited)\ (?:for|of|to
          \ hear|that|you|about)\b
      | \b(?:makes\ sense|sounds\ (?:like|good|great)|can't\ wait|good\ luck|take\ care|talk\ (?:to
          \ you\ )?(?:soon|later)|let\ me\ know|keep\ me\ posted|i\ agree|i\ see|i\ know,?\ right
          |no\ problem|same\ here|see\ you|have\ (?:fun|a\ great))\b""",
    re.IGNORECASE | re.VERBOSE,
)
_WORKING = re.compile(
    r"\bI(?:'m| am) (?:currently |also |still |now )*(?:trying|having|getting|stuck|struggling"
    r"|working|planning|looking|thinking|considering|feeling|kinda|worried|concerned)\b",
    re.IGNORECASE,
)
_RULE = re.compile(
    r"""\b(?:should|must|needs?\ to|has\ to|have\ to|shouldn't|mustn't|ought\ to|is\ supposed\ to)\b
      | \b(?:only|never|always|every|by\ default|instead\ of|rather\ than|because|so\ that)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_ASIDE = re.compile(
    r"(?:session \d|for a first|the function|we should|we are back|ah|we didn't|we updated"
    r"|we have found|I don't need|until recently|previously|formerly)\b|(?:I'm|I would|I do|I did"
    r"|you|mmm|now|continuing|looking|user|need|critical|linear)\b",
    re.IGNORECASE,
)
_ASIDE_IN = re.compile(
    r"\b(?:(?:these|those) \w+|also duplicated|would be (?:great|nice)|as well)\b",
    re.IGNORECASE,
)
_OF_US = re.compile(r"\b(?:we|our|in my head)\b|==", re.IGNORECASE)
_MODAL = re.compile(r"\b(?:should|must|needs? to|has to|have to)\b", re.IGNORECASE)
_ABOUT_TESTS = re.compile(r"\b(?:tests?|Test\w+|\w+_test)\b")
_FAILING = re.compile(
    r"\b(?:still (?:not|getting|having|doesn't)|not working|doesn't work|no luck|(?:as"
    r"|like) (?:we|you|I)"
    r" (?:discussed|mentioned|said|talked|suggested)|for this purpose)\b",
    re.IGNORECASE,
)
_LOST = re.compile(
    r"(?:m+m|ah|hm+)\b|now i'm (?:getting|seeing)\b|i'm confused\b|more what\b", re.IGNORECASE
)
_IS = re.compile(
    r"\b(?:is|are|was|were|has|have|uses?|runs?|lives?|returns?|means|contains|requires|depends"
    r"|supports?|comes|belongs|points|goes|works?|doesn't|don't|isn't|aren't|can't|cannot)\b"
)
_MOMENT = re.compile(
    r"\b(?:i see|i get|i got|i'm getting|i'm seeing|seems?|looks? like|not working|still|for now"
    r"|right now|at the moment|i think|maybe|probably|wondering|not sure|i guess|might|perhaps"
    r"|failing|fails now|just (?:ran|tried|pushed|merged|noticed))\b",
    re.IGNORECASE,
)
_CATEGORIES = (
    ("style", re.compile(r"\b(?:format|style|name|naming|comment|type|indent|wording|tone|concise"
                         r"|brief|short|bullet|syntax|highlight)", re.IGNORECASE)),
    ("testing", re.compile(r"\btest", re.IGNORECASE)),
    ("workflow", re.compile(r"\b(?:commit|push|merge|rebase|branch|pr|review|deploy|release)\b",
                            re.IGNORECASE)),
    ("tools", re.compile(r"\b(?:use|using|library|framework|tool|package|app)\b", re.IGNORECASE)),
)  # fmt: skip


def find(one: Said, *, named: bool, in_code: bool) -> Iterator[Found]:
    """Yield what a person's message holds that is worth keeping.

    `named` is for talk between people, each with a name; `in_code` for work on a project, where
    most sentences are orders of the moment.
    """
    own = own_words(one.text)
    if (in_code and len(own) > PASTED_CHARS) or restates(own):
        return
    cut = statements.cut(own, by_line=True)
    joined = ""
    for place, statement in enumerate(cut):
        part = told(statement.text)
        if joined and part and joined.endswith(part):
            continue
        if is_asked_of_code(statement.text, part):
            continue
        following = cut[place + 1].text if place + 1 < len(cut) else ""
        several = (
            rule_of(statement.text, part)
            or _settled(part, statement.text, following, in_code=in_code),
            None if in_code else _settled(behind(statement.text), "", "", in_code=in_code),
        )
        for found in several:
            if found is not None and (not named or _tells_of_self(found[0])):
                joined = found[0]
                kept = _kept(one, *found, named=named)
                before = "" if kept.corrects else _named_before(statement.before, found[0])
                yield replace(kept, corrects=before) if before else kept


def _named_before(sentence: str, rule: str) -> str:
    """Return what the sentence before a rule takes back by its name."""
    found = withdrawals.find_beside(sentence, rule)
    return found.gone if found and found.form == "name" else ""


def _settled(
    part: str, sentence: str, following: str, *, in_code: bool
) -> tuple[str, FragmentKind, float, float] | None:
    """Return a decision or a fact, whole: with the day and the outcome that stand elsewhere."""
    found = statement_of(part, in_code=in_code)
    if found is None or in_code or found[1] != "fact":
        return found
    text = moods.stated(part)
    if not text or exercises.is_one(text) or vague.is_unclear(text):
        return None
    if vague.announces(text):
        text = vague.with_outcome(text, following)
    elif part.startswith(text) and statement_of(text, in_code=False) is None:
        text = part
    if not fits(text) or not is_whole(text) or not stands_alone(text):
        return None
    day = day_asked(sentence)
    return (f"{text} ({day})" if day and day not in text else text, *found[1:])


def restates(text: str) -> bool:
    """Tell whether a message says something again to see whether it was understood."""
    return bool(_RESTATED.match(text.lstrip()))


_RESTATED = re.compile(
    r"(?:(?:ok(?:ay)?|and|but|right|hmm*|just)\b[, ]*)*(?:so (?:that )?i (?:understand|get this)"
    r"|if i(?:'m)? understand\w*|(?:so )?in other words|(?:so )?you mean\b"
    r"|to (?:be clear|clarify|confirm)|let me (?:rephrase|repeat))\b",
    re.IGNORECASE,
)


def is_asked_of_code(sentence: str, part: str) -> bool:
    """Tell whether a statement is a clause of a question about code: it asks whether it is so.

    A person who asks something of their own life states what stands behind 'since' or 'because'.
    """
    asks = sentence.rstrip().endswith("?") and bool(specifics.identifiers(part))
    return asks and (
        not strip_opening(sentence).startswith(part) or bool(_SUPPOSED.match(sentence))
    )


_SUPPOSED = re.compile(
    r"^(?:(?:ok(?:ay)?|ah|right|hmm*|and)\b[, ]*)*(?:so|then) (?:we|it|this|that|you|i)\b",
    re.IGNORECASE,
)


def former_of(text: str) -> str:
    """Return what a statement says is no longer so; empty if it says nothing of the kind."""
    withdrawal = withdrawals.find(text)
    if withdrawal:
        return withdrawal.gone
    return changing.replaced(text) if changing.says_so(text) else ""


def ended(text: str) -> str:
    """Return a sentence with a full stop."""
    return text if text[-1:] in ".!" else f"{text}."


def _tells_of_self(part: str) -> bool:
    """Tell whether someone speaks of themselves: talk between people is full of kindness."""
    if _NO_RULE.match(part) or vague.points(part):
        return False
    return bool(_OWN.search(part)) and not _YOU.search(part)


_NO_RULE = re.compile(r"^(?:always|never) (?:\w+ing|\w+ed|been)\b", re.IGNORECASE)
"""Among people 'always been …' tells of someone, and orders nothing."""


_YOU = re.compile(r"\b(?:you|your|you're|you've|no matter what)\b", re.IGNORECASE)


def own_words(text: str) -> str:
    """Return a message without what programs put between marks."""
    return _PASTED.sub("\n", text)


_PASTED = re.compile(
    r"<([a-z][\w-]{2,40})\b[^>]{0,200}>.*?(?:</\1>|\Z)|^[ \t]*\[[^\]\n]{2,80}\][ \t]*$"
    r"|^[ \t]*(?:at \S{1,200}\(|File \"|\d+[→|]|[+-]{3} |@@ |=== |--- "
    r"|\S{1,200}\.\w{1,5}:\d+)[^\n]*$",
    re.MULTILINE | re.DOTALL,
)


def rule_of(whole: str, part: str) -> tuple[str, FragmentKind, float, float] | None:
    """Return a standing instruction or preference as it is kept, if the sentence has one."""
    if withdrawals.find_beside(part):
        # Behind a comma stands why: "…, CI does it".
        rule = part if _is_clear(part) else part.partition(",")[0]
    else:
        rule = part if instructions.standing(part) else _standing_clause(whole)
    if not rule or not fits(rule) or not _is_clear(rule):
        return None
    if _DECIDED.search(rule) and not _PREFERS.search(rule):
        return rule, "decision", HIGH, 3.0
    return rule, "preference", HIGH, 4.0


def _is_clear(rule: str) -> bool:
    """Tell whether a rule can be understood alone; a swap names what its 'it' stands for."""
    found = withdrawals.find(rule)
    return stands_alone(rule) or (found is not None and found.form == "swap")


def _standing_clause(whole: str) -> str:
    """Return the clause of a longer sentence that is meant to last."""
    for start in _CLAUSE.finditer(whole):
        clause = told(whole[start.end() :])
        if _SUBJECT.match(clause) and instructions.standing(clause):
            return clause
    return ""


_CLAUSE = re.compile(r", (?:(?:and|but|so|since|because) )?| (?:and|but|since|because) (?=I\b)")
_SUBJECT = re.compile(
    r"(?:I|I'd|I'm|I've|We|Always|Never|From|Please|Going|Whenever|My \w+ (?:is|are))\b"
)
_PREFERS = re.compile(
    r"\b(?:prefer\w*|always|never|from now on|going forward|rather|like|hate|love|whenever"
    r"|in future"
    r"|insist)\b",
    re.IGNORECASE,
)
_HEARSAY = re.compile(
    r"^I(?:'ve| have) (?:heard|tried|been trying|looked|read)\b|^(?:I|We) (?:want|need"
    r"|'d like) to (?:make sure"
    r"|ensure|know|see|understand)\b|^I'm (?:not|just|also|still) |^I think (?!I'll|we'll)"
    r"|^[\"“‘'*(]"
    r"|^I'm (?:trying|having trouble|stuck|struggling)[^,]{0,24}\b(?:apply|verify|calculat|solve"
    r"|prove|find"
    r"|comput|determin|understand|simplify)\w*",
    re.IGNORECASE,
)


def statement_of(part: str, *, in_code: bool) -> tuple[str, FragmentKind, float, float] | None:
    """Return a decision or a fact as it is kept, if the sentence tells one."""
    if not fits(part) or not is_whole(part):
        return None
    found = _judged(part, in_code=in_code)
    return None if found is None else (part, *found)


def _judged(part: str, *, in_code: bool) -> tuple[FragmentKind, float, float] | None:
    said = specifics.of(part)
    if not stands_alone(part) or _ABOUT_TALK.search(part):
        return None
    if in_code:
        return _judged_in_code(part, said)
    if _DECIDED.search(part) and said.total and not _FUTURE.match(part):
        return "decision", HIGH if changing.says_so(part) else MEDIUM, 2.5 + 0.2 * said.total
    if orders.is_order(part) or not _OWN.search(part) or not _HAPPENED.search(part):
        return None
    if _FAILING.search(part) or _LOST.match(part) or (_HEARSAY.match(part) and not said.dates):
        return None
    return _fact_of_life(part, said)


def _fact_of_life(part: str, said: specifics.Specifics) -> tuple[FragmentKind, float, float] | None:
    """Return how a fact of a person's own is kept: it says when, how much, who or what."""
    hard = said.numbers + said.dates + said.quoted + said.code
    if _FUTURE.match(part):
        told_when = said.dates and said.names and not _MEANT.match(part)
        planned = _PLANNED.match(part) and (_MONEY.search(part) or told_when)
        return ("fact", LOW, 1.0) if planned else None
    if _NEVER.search(part):
        return "fact", MEDIUM, 1.5
    told = bool(_DONE.search(part)) or said.dates > 0 or said.quoted > 0
    needed = 1 if told else 2
    needed += 1 if _WORKING.search(part) and not said.dates else 0
    if hard + said.names < needed or (not hard and said.names < 2 and not _when(part)):
        return None
    return "fact", MEDIUM, 1.0 + 0.3 * min(said.total, 5)


def _when(part: str) -> bool:
    return specifics.is_relative(part)


_MONEY = re.compile(r"[$€£]\d")
_MEANT = re.compile(r"(?:I'll|I will|We'll|I'm gonna)\b", re.IGNORECASE)
"""What someone says they will do next is over the same day; what they are going to do is set."""

_PLANNED = re.compile(r"(?:I'll|I will|I'm going to|We'll|I'm gonna)\b", re.IGNORECASE)
_NEVER = re.compile(r"\bI(?:'ve| have)? never \w+", re.IGNORECASE)
_DONE = re.compile(
    r"\b(?:I|We|He|She|They|[A-Z][a-z]+)(?:'ve| have| has|'d| had)? (?:just |also |already "
    r"|recently "
    r"|only |finally |actually )*(?:\w+ed|was|were|got|went|made|met|took|bought|built|wrote|won"
    r"|spent"
    r"|found|set|read|saw|gave|told|said|sent|began|chose|ran|paid|lost|left|kept|became|came|did"
    r"|grew"
    r"|taught|drew|sold|been|done|gone)\b|\bI've\b|\bI'm \d\d\b"
)


def _judged_in_code(
    part: str, said: specifics.Specifics
) -> tuple[FragmentKind, float, float] | None:
    if orders.is_order(part) or _MOMENT.search(part) or _FUTURE.match(part):
        return None
    if _ASIDE.match(part) or _ASIDE_IN.search(part) or _ABOUT_TESTS.search(part):
        return None
    if _DECIDED.search(part) and (said.code or said.names):
        return "decision", HIGH, 3.0
    if said.code and _RULE.search(part) and (_OWN.search(part) or _MODAL.search(part)):
        return "decision", MEDIUM, 2.0
    if said.code and _IS.search(part) and _OF_US.search(part) and not _WORKING.search(part):
        return "fact", MEDIUM if said.code > 1 else LOW, 1.0
    return None


def _kept(
    one: Said, part: str, kind: FragmentKind, importance: float, score: float, *, named: bool
) -> Found:
    text = ended(part)
    content = _told_by(one, text) if named else dated(one.at, text)
    return Found(
        content, kind, importance, score, (one.id,), payload_of(kind, part), former_of(part)
    )


def _told_by(one: Said, text: str) -> str:
    if specifics.is_relative(text):
        return f"{one.voice} ({_day(one.at)}): {text}"
    return f"{one.voice}: {text}"


def dated(at: datetime, text: str) -> str:
    """Return a statement with the day on which it was said, where it says 'yesterday'."""
    return f"{text} (said on {_day(at)})" if _BY_DAY.search(text) else text


_BY_DAY = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|(?:last|next|this) (?:week|weekend|month|year|\w+day)"
    r"|(?:days?|weeks?|months?|years?) ago|on the \d{1,2}(?:st|nd|rd|th)(?! of))\b",
    re.IGNORECASE,
)


def _day(at: datetime) -> str:
    return f"{at.day} {at:%B %Y}"


def payload_of(kind: FragmentKind, part: str) -> dict[str, Any]:
    """Return what is stored of a statement beside its words."""
    if kind == "preference":
        category = next((name for name, form in _CATEGORIES if form.search(part)), "general")
        return {"category": category}
    if kind == "decision":
        return reasons.decision(part)
    return {}
