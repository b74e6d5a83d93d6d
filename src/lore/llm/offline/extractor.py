"""Extract knowledge from an exchange: statements that are worth keeping, and tool traffic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore.llm.offline import sentence_rules, session_states, statement_text, tool_evidence
from lore.llm.offline.finding_judge import FindingJudge, Judgement, shipped_judge
from lore.llm.offline.sentence_rules import Finding
from lore.llm.offline.statement_classifier import (
    Embed,
    Read,
    Score,
    SpokenStatement,
    StatementClassifier,
    Turn,
    describe_message,
    shipped_classifier,
)
from lore.llm.offline.statement_text import MAX_LEAD_CHARS
from lore.records import ROLES, TRUST, UNASKED_TRUST, Extract, FragmentKind, MessageText, Segment
from lore.text import (
    entities,
    goals,
    instructions,
    pasted_text,
    question_list,
    sentences,
    statements,
    words,
)
from lore.text.question_list import Answer
from lore.text.statements import Statement, is_whole
from lore.text.transcript_text import COMMIT_HEADING

WORK_THRESHOLD, TALK_THRESHOLD = 0.5, 0.85
"""A statement is kept from this probability on that it is worth something.

`benchmarks/train_statements.py` prints precision and recall on projects that were left out. In talk
two of three statements are worth something to somebody; the threshold is higher there.
"""

JOINED_THRESHOLD = 0.4
"""Enough at work for a sentence right after one that is kept: a fix after its cause, a reason."""

PROPOSED_THRESHOLD, PROPOSED_NEXT_THRESHOLD = 0.3, 0.25
"""Enough in place of these two where what is found is judged: then `KEPT_THRESHOLD` decides."""

ANSWER_THRESHOLD = 0.25
"""Enough for a person's answer to a numbered question of the agent, with that question: it says
what is to be built. Chosen on 165 such pairs of two projects: see `docs/reference/digest.md`.
"""

COMMIT_THRESHOLD = 0.4
"""Enough for a sentence of a commit message to be kept: an agent wrote it to be read later."""

KEPT_THRESHOLD = 0.4
"""What is found is kept from this probability on that a reader would keep it.

`benchmarks/train_findings.py` prints what each threshold gives on projects that were left out: see
'How good it is' in `docs/reference/digest.md`.
"""

MAX_FACTS = 10
"""Statements per exchange, as specified."""

MIN_WORDS, MAX_CHARS, MAX_JOINED_CHARS = 4, 600, 900
"""Shorter sentences say too little alone, longer ones are documents."""

MAX_OWN_CHARS = 700
"""A longer message of a user holds a pasted plan or review: nothing in it is a lasting rule."""

WISH_IMPORTANCE, COMMIT_IMPORTANCE, RULE_IMPORTANCE = 0.3, 0.3, 0.6
"""The labels have too few wishes ('I prefer tabs') to learn them; chosen by hand. The least
importance of a person's wishes and answers, of what was committed, and of rules and changes: up to
half as much again if new."""

KEYWORDS, SYMPTOM_CHARS = 8, 200

NEAR_COSINE, NEAR_WORDS = 0.45, 0.3
"""From here on two statements of one exchange have the same topic."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A statement of a message; `previous` is the sentence before it in the same section.

    An answer has the `question` that an agent asked in the message `asked_in`.
    """

    message: MessageText
    statement: Statement
    spoken: SpokenStatement
    number: int
    previous: str = ""
    question: str = ""
    asked_in: str = ""


def extract(
    exchange: Segment,
    *,
    embed: Embed | None = None,
    encoder: str = "",
    read: Read | None = None,
    classifier: StatementClassifier | None = None,
    judge: FindingJudge | None = None,
) -> list[Extract]:
    """Return the knowledge in an exchange that is worth keeping, broad before specific.

    `encoder` names the model of `embed`: the classifier and the judge only read vectors of their
    own encoder. `read` is the pair model's.
    """
    messages = [one for one in exchange.messages if not goals.is_repeated(one.text)]
    if any(sentence_rules.orders_review(one.text) for one in messages if one.voice == "user"):
        messages = [one for one in messages if one.voice != "assistant"]
    classifier, judge = classifier or shipped_classifier(), judge or shipped_judge()
    vectors = embed if encoder == classifier.encoder else None
    at_work = tool_evidence.is_work_session(messages)
    candidates = list(_candidates(messages, exchange.earlier))
    spoken = [one.spoken for one in candidates]
    scores = classifier.score(spoken, vectors, read=read, at_work=at_work)
    judged_by = embed if at_work and encoder == judge.encoder else None
    chosen = _choose(candidates, scores, at_work=at_work, is_judged=judged_by is not None)
    proposals = list(_propose(chosen, messages, exchange.later))
    whole = [replace(group[0][0].spoken, text=one.text) for group, one in proposals]
    judgements = judge.judge(whole, judged_by, read=read, at_work=at_work)
    findings = _deduplicate([
        *_keep(proposals, judgements),
        *tool_evidence.find_evidence(_filter_trusted(messages), _filter_trusted(exchange.later)),
    ])
    best = sorted(findings, key=lambda one: -one.score)[:MAX_FACTS]
    selected = [one for one in findings if one in best]
    groups = group_by_topic([one.text for one in selected], embed)
    return [_build_extract(selected[root], [selected[i] for i in below]) for root, below in groups]


_Chosen = list[tuple[_Candidate, Score]]
_Proposal = tuple[_Chosen, Finding]


def _choose(
    candidates: Sequence[_Candidate], scores: Sequence[Score], *, at_work: bool, is_judged: bool
) -> _Chosen:
    """Return the statements that may be worth keeping, with their scores."""
    chosen: _Chosen = []
    for one, score in zip(candidates, map(_by_rule, candidates, scores), strict=True):
        is_next = bool(chosen) and _belongs(chosen[-1:], one)
        least = _threshold(one, is_next=is_next, at_work=at_work, is_judged=is_judged)
        if score.worth >= least:
            chosen.append((one, score))
    return chosen


def _threshold(one: _Candidate, *, is_next: bool, at_work: bool, is_judged: bool) -> float:
    """Return from which probability on a statement may be kept."""
    if one.question:
        return ANSWER_THRESHOLD
    if not at_work:
        return TALK_THRESHOLD
    if _is_committed(one):
        return COMMIT_THRESHOLD
    if is_judged:
        return PROPOSED_NEXT_THRESHOLD if is_next else PROPOSED_THRESHOLD
    return JOINED_THRESHOLD if is_next else WORK_THRESHOLD


def _is_committed(one: _Candidate) -> bool:
    """Return whether a statement is of a commit message."""
    return not one.spoken.is_user and one.statement.heading.startswith(COMMIT_HEADING)


def _filter_trusted(messages: Sequence[MessageText]) -> list[MessageText]:
    """Return the messages without those of untrusted origins; tool messages stay."""
    return [one for one in messages if one.voice == "tool" or TRUST[one.origin] >= UNASKED_TRUST]


def _propose(
    chosen: _Chosen, messages: Sequence[MessageText], later: Sequence[MessageText]
) -> Iterator[_Proposal]:
    """Yield what people and agents said that may be worth keeping, neighbours joined."""
    for joined in _join_neighbours(chosen):
        group = joined
        finding = _finding(group, messages)
        while not finding and len(group) > 1:
            group = group[1:]
            finding = _finding(group, messages)
        ordinal = group[0][0].message.ordinal
        after = _filter_trusted([one for one in (*messages, *later) if one.ordinal > ordinal])
        if (
            finding
            and not session_states.is_changed_later(finding.text, finding.kind, after)
            and not sentence_rules.is_withdrawn(finding.text, after)
        ):
            yield group, finding


def _keep(
    proposals: Sequence[_Proposal], judgements: Sequence[Judgement | None]
) -> Iterator[Finding]:
    """Yield what a reader would keep, commit messages, and people's answers, rules and changes."""
    for (group, finding), judged in zip(proposals, judgements, strict=True):
        first = group[0][0]
        if judged is None or finding.kind == "preference" or finding.corrects:
            yield finding
        elif _is_committed(first) or first.question:
            yield replace(finding, score=judged.chance)
        elif judged.chance >= KEPT_THRESHOLD:
            importance = (finding.importance + judged.importance) / 2
            yield replace(finding, score=judged.chance, importance=importance)


def _candidates(
    messages: Sequence[MessageText], earlier: Sequence[MessageText]
) -> Iterator[_Candidate]:
    """Yield the statements that may be worth keeping; questions and leads never are."""
    turns: list[Turn] = []
    spoken: list[tuple[MessageText, str, int]] = []
    for one in messages:
        text = sentence_rules.strip_inserted(one.text, is_agent=one.voice == "assistant")
        text = statement_text.as_list(text)
        if one.voice == "tool":
            turns.append("result")
            continue
        if text.strip():
            spoken.append((one, text, len(turns)))
            turns.append("assistant" if one.voice == "assistant" else "user")
        turns += ["call"] * len(sentence_rules.parse_tool_calls(one.text))
    last = max((i for i, one in enumerate(earlier, 1) if one.voice != "assistant"), default=0)
    asking = list(earlier[last:])
    for one, text, at in spoken:
        if one.voice == "system" or TRUST[one.origin] < UNASKED_TRUST:
            continue
        around = describe_message(text, turns, at)
        if one.voice == "assistant":
            asking.append(one)
            yield from _candidates_of(one, text, around)
        else:
            asked, answers = _find_asked(text, asking)
            text = question_list.leave_out(text, answers)
            yield from _answers(one, asked, answers, around)
            yield from _candidates_of(one, text, around)
            asking = []


def _find_asked(text: str, asking: Sequence[MessageText]) -> tuple[str, list[Answer]]:
    """Return the message of an agent whose numbered questions a person answers, and the answers."""
    for asked in reversed(asking):
        answers = question_list.find_answers(text, asked.text)
        if answers and TRUST[asked.origin] >= UNASKED_TRUST:
            voices = pasted_text.find_voices(text, [answer.text for answer in answers])
            paired = zip(answers, voices, strict=True)
            return asked.id, [each for each, voice in paired if voice != "pasted" and _states(each)]
    return "", []


def _states(answer: Answer) -> bool:
    return not answer.text.endswith("?") and len(answer.whole) <= MAX_CHARS


def _answers(
    one: MessageText, asked: str, answers: Sequence[Answer], around: tuple[float, ...]
) -> Iterator[_Candidate]:
    for number, answer in enumerate(answers):
        spoken = SpokenStatement(
            answer.whole, is_user=True, place=number, count=len(answers), around=around
        )
        statement = Statement(answer.text, is_item=True)
        yield _Candidate(one, statement, spoken, number, question=answer.question, asked_in=asked)


def _candidates_of(one: MessageText, text: str, around: tuple[float, ...]) -> Iterator[_Candidate]:
    is_agent = one.voice == "assistant"
    parts = statements.split_statements(text, by_line=not is_agent)
    before = previous = heading = ""
    voices = [] if is_agent else pasted_text.find_voices(text, [part.text for part in parts])
    for place, part in enumerate(parts):
        spoken = SpokenStatement(
            part.text, part.before or part.lead or part.heading or before, not is_agent,
            one.voice not in ROLES, place, len(parts), part.is_item, around,
        )  # fmt: skip
        is_prose = place and part.is_item >= parts[place - 1].is_item
        previous = before if is_prose and part.heading == heading else ""
        before, heading = part.text, part.heading
        is_own = is_agent or (voices[place] != "pasted" and _is_stated(part.text))
        if is_own and _may_be_kept(part):
            yield _Candidate(one, part, spoken, place, previous)


def _is_stated(sentence: str) -> bool:
    """Return whether a person's sentence states something: no question and no mere name."""
    return statement_text.is_sentence(sentence) and not sentence_rules.is_asked(sentence)


_PUNCTUATION = ".,;:!?()[]\"'“”’…–—"


def _may_be_kept(one: Statement) -> bool:
    text = one.text
    return (
        len(text) <= MAX_CHARS
        and len(text.split()) >= MIN_WORDS
        and not text.endswith("?")
        and not (text.endswith(":") and not statement_text.introduced_code(one))
        and sum(word.strip(_PUNCTUATION).isalpha() for word in text.split()) >= MIN_WORDS
        and is_whole(text)
    )


def _by_rule(one: _Candidate, score: Score) -> Score:
    """Return the score of a statement, or of what is kept whatever the classifier says.

    A person's lasting rule, its withdrawal, a wish, and a statement of what replaces what. All
    preferences have the form of one, because they may be given to agents as instructions.
    """
    text, size = one.statement.text, len(one.message.text)
    is_wish = one.spoken.is_user and instructions.is_wish(text)
    if score.kind == "preference" and not is_wish:
        score = score._replace(kind="decision")
    if _is_committed(one):
        return score._replace(importance=max(score.importance, COMMIT_IMPORTANCE))
    if not one.spoken.is_user or size > MAX_OWN_CHARS:
        return score
    if instructions.find_paired_withdrawal(text) or (
        instructions.judge_sentence(text, message_chars=size) != "passing"
    ):
        return Score("preference", 1.0, max(score.importance, RULE_IMPORTANCE))
    if one.question or (is_wish and statements.stands_alone(text)):
        least = max(score.importance, WISH_IMPORTANCE)
        return score._replace(importance=least) if one.question else Score("preference", 1.0, least)
    if sentence_rules.replaced_by(text):
        return Score("decision", 1.0, max(score.importance, RULE_IMPORTANCE))
    return score


def _join_neighbours(chosen: _Chosen) -> Iterator[_Chosen]:
    """Yield statements that belong together: a cause and its fix, a decision and its reason."""
    group: _Chosen = []
    for one in chosen:
        rules = {score.kind for _, score in (*group, one)} & {"preference"}
        if group and (rules or not _belongs(group, one[0])):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _belongs(group: _Chosen, one: _Candidate) -> bool:
    last = group[-1][0]
    if last.question or one.question:
        return False
    size = sum(len(other.statement.text) + 1 for other, _ in group) + len(one.statement.text)
    if one.message.id != last.message.id or one.number != last.number + 1 or size > MAX_CHARS:
        return False
    if one.statement.is_item and last.statement.is_item:
        return bool(one.statement.lead) and one.statement.lead == last.statement.lead
    return one.statement.before == last.statement.text or (
        last.statement.text == one.statement.lead
    )


def _finding(group: _Chosen, messages: Sequence[MessageText]) -> Finding | None:
    """Return the finding of statements that belong together; None if they do not stand alone."""
    first = group[0][0]
    is_answer = bool(first.question) and group[0][1].kind != "preference"
    text = first.spoken.text if is_answer else _complete(group)
    if not text or (len(group) == 1 and statement_text.is_former(first.statement.text)):
        return None
    best = max(group, key=lambda pair: pair[1].importance)[1]
    kinds = {score.kind for _, score in group}
    kind: FragmentKind = "bug_fix" if "bug_fix" in kinds and len(group) > 1 else best.kind
    own_sentences = [one.statement.text for one, _ in group]
    if kind == "bug_fix" and not session_states.is_explained(text):
        if _is_symptom(first, text):
            return None
        kind = "fact"
    symptom, source = _symptom(messages, first, text) if kind == "bug_fix" else ("", "")
    kind, payload = _payload(kind, text, own_sentences, symptom)
    if first.spoken.is_user:
        text = sentence_rules.with_speaker(first.message, text)
    corrects = sentence_rules.replaced_by(" ".join(own_sentences)) if first.spoken.is_user else ""
    sources = tuple(filter(None, (first.message.id, source, first.asked_in if is_answer else "")))
    return Finding(text, kind, best.importance, best.worth, sources, payload, corrects)


def _is_symptom(first: _Candidate, text: str) -> bool:
    return session_states.is_failure(text) or statement_text.is_problem(first.statement.text)


def _complete(group: _Chosen) -> str:
    """Return the text of statements with the words that they need to stand alone."""
    first = group[0][0]
    head = first.statement
    own = statement_text.strip_labels(head.text)
    own = statements.strip_opening(own) if first.spoken.is_user else own
    is_contrast = statement_text.is_contrast(own) and _is_short(head.before, own)
    own = own if is_contrast else statement_text.strip_connective(own)
    refers = is_contrast or not statement_text.stands_alone(own)
    needs = refers and not sentence_rules.replaced_by(head.text)
    before = _introduction(first, needs=needs)
    if not _is_short(before):
        before = ""
    texts = [own, *(statement_text.strip_marks(one.statement.text) for one, _ in group[1:])]
    is_list = head.is_item and len(group) > 1
    if is_list and before:
        texts = [f"- {text}" for text in texts]
    texts[-1] += statement_text.introduced_code(group[-1][0].statement)
    joint = "\n" if is_list else " "
    text = joint.join((before, *texts) if before else texts)
    needs = needs and not (before and statement_text.stands_alone(before))
    if needs or len(text) > MAX_JOINED_CHARS:
        return ""
    return text if text.startswith(head.text) else statement_text.capitalize(text)


def _is_short(before: str, own: str = "") -> bool:
    """Return whether a sentence may be repeated before another one."""
    return bool(before) and max(len(before), len(own)) <= MAX_LEAD_CHARS and before[-1] != "?"


def _introduction(first: _Candidate, *, needs: bool) -> str:
    """Return what stands before a statement: the lead of its list, a sentence, a heading."""
    head = first.statement
    lead = statement_text.subject_of(head.lead) if head.is_item else ""
    if lead:
        return _with_colon(statement_text.strip_connective(lead))
    previous = head.before or first.previous
    if needs and previous.endswith((".", "!", ")")) and len(previous.split()) >= MIN_WORDS:
        return statement_text.strip_connective(statement_text.strip_labels(previous))
    subject = statement_text.subject_of(head.heading)
    if _is_committed(first):
        return f"{subject}." if needs and subject else ""
    return _with_colon(subject) if subject and (needs or head.is_item) else ""


def _with_colon(lead: str) -> str:
    return lead if lead.endswith((".", "!")) else f"{lead}:"


SHORT_WORD = 3
"""Characters of words such as 'now', which approvals share with reports."""


def _symptom(messages: Sequence[MessageText], one: _Candidate, text: str) -> tuple[str, str]:
    """Return what went wrong before a fix, and the message that says so.

    An error of a tool that names the same thing, or what the person last reported, if it is short
    and about the same: 'yes, do it' reports nothing.
    """
    at = one.message.ordinal
    error, source = tool_evidence.find_error(messages, at)
    names = (name.strip("`()").lower() for name in entities.identifiers(text))
    if error and any(name in error.lower() for name in names):
        return error, source
    asked = [m for m in messages if m.voice == "user" and m.ordinal < at]
    if one.spoken.is_user or not asked or len(asked[-1].text) > MAX_OWN_CHARS:
        return "", ""
    shared = _telling_words(asked[-1].text) & _telling_words(text)
    if any(len(word) > SHORT_WORD for word in shared):
        return sentences.one_line(asked[-1].text, SYMPTOM_CHARS), asked[-1].id
    return "", ""


def _telling_words(text: str) -> set[str]:
    return set(words.split(text)) - words.STOP_WORDS


def _payload(
    kind: FragmentKind, text: str, own_sentences: Sequence[str], symptom: str
) -> tuple[FragmentKind, dict[str, Any]]:
    """Return the payload of a statement, and the kind whose fields it can fill."""
    if kind in ("decision", "architecture"):
        return kind, sentence_rules.decision_payload(text)
    if kind == "config":
        setting = sentence_rules.config_payload(text)
        return ("config", setting) if setting else ("fact", {})
    if kind == "workflow":
        return kind, sentence_rules.command_payload(text)
    if kind == "bug_fix":
        cause = {"root_cause": own_sentences[0]} if len(own_sentences) > 1 else {}
        return kind, {
            "symptom": symptom or own_sentences[0],
            "solution": own_sentences[-1],
            **cause,
        }
    return kind, {}


def group_by_topic(texts: Sequence[str], embed: Embed | None) -> list[tuple[int, list[int]]]:
    """Return roots with their children: each root is the statement nearest to most of its group."""
    near = _similarity_matrix(texts, embed) >= (NEAR_COSINE if embed else NEAR_WORDS)
    ungrouped = list(range(len(texts)))
    groups: list[tuple[int, list[int]]] = []
    while ungrouped:
        root = max(ungrouped, key=lambda i: (int(near[i, ungrouped].sum()), -i))
        below = [i for i in ungrouped if i != root and near[root, i]]
        groups.append((root, below))
        ungrouped = [i for i in ungrouped if i != root and i not in below]
    return sorted(groups, key=lambda tree: min(tree[0], *tree[1], tree[0]))


def _similarity_matrix(texts: Sequence[str], embed: Embed | None) -> NDArray[np.float32]:
    if embed is not None and len(texts) > 1:
        rows = embed(texts)
        near: NDArray[np.float32] = rows @ rows.T
        return near
    word_sets = [_telling_words(text) for text in texts]
    overlaps = [[overlap(one, other) for other in word_sets] for one in word_sets]
    return np.array(overlaps, np.float32).reshape(len(texts), len(texts))


def overlap(one: set[str], other: set[str]) -> float:
    """Return the share of words that two texts have in common."""
    both = one | other
    return len(one & other) / len(both) if both else 0.0


def _deduplicate(findings: Sequence[Finding]) -> list[Finding]:
    distinct: list[Finding] = []
    known_words: list[frozenset[str]] = []
    for one in findings:
        word_set = frozenset(words.split(one.text))
        if word_set not in known_words:
            known_words.append(word_set)
            distinct.append(one)
    return distinct


BRIEF_CHARS = 40
"""A shorter first sentence is no summary: the next one is added."""


def _build_extract(one: Finding, below: Sequence[Finding]) -> Extract:
    first = sentences.summary(one.text)
    summary = (
        first
        if len(first) >= BRIEF_CHARS and not first.endswith((":", "?"))
        else sentences.one_line(one.text, sentences.SUMMARY_CHARS)
    )
    keywords = list(entities.identifiers(one.text)[:KEYWORDS])
    payload = {"summary": summary, "keywords": keywords, **one.payload}
    children = tuple(_build_extract(child, []) for child in below)
    return Extract(one.text, summary, one.kind, one.importance, one.sources, payload,
                   one.corrects, children=children)  # fmt: skip
