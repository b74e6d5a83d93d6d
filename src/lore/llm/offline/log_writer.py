"""Write logs by rules: quote the most informative clauses of a segment or of older logs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from math import log1p
from typing import NamedTuple

from lore.records import Log, LogLine, Segment
from lore.text import call_text, instructions, sentences, statements, tokens, words
from lore.text.regex import PatternFile

_re = PatternFile("log_writer")

MAX_CHARS = 240
"""Longer clauses are cut, so that no single statement takes all the room."""

STANDING_BONUS, CHANGE_BONUS, REASON_BONUS = 3.0, 2.0, 0.8
"""Bonus of a standing instruction, of a decision, and of a reason or an error."""

MIN_WEIGHT = 2.0
"""Clauses below the weight of two words are greetings, headings or names."""

SHORT_MESSAGE_WEIGHT, _SHORT_MESSAGE_WORDS = 1.0, range(2, 7)
"""The weight and the words of a person's whole message that asks or orders: 'did you push?'"""

_READ_CHARS = 24_000
_SPLIT_CHARS = 90
"""A longer sentence is split at its joints."""

_SHORT_CHARS = 25


_IDENTIFIER = re.compile(r"[A-Za-z]*[\d_/.][\w/.:-]*\w|\w*[a-z][A-Z]\w*|[A-Z]{2,}\w*")

_FILLER = _re.words("filler")
_RETRACTION_WORDS = _re.words("retraction_words")


OPTION_MARK, RETRACTED_MARK = "option: ", "retracted: "
"""Before a statement that was only an option, or that was taken back later."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One statement, verbatim, with the weights of its search words.

    `is_tool_line` marks a tool call or a line of its output, `is_option` a question, a condition or
    a proposal.
    """

    text: str
    weights: dict[str, float]
    bonus: float
    is_tool_line: bool = False
    is_option: bool = False


class _Line(NamedTuple):
    text: str
    is_option: bool = False


def split_clauses(text: str, *, person: bool, is_output: bool = False) -> list[Clause]:
    """Return the statements of a message in order, without code blocks.

    Tool calls are kept as commands; of their output, which a message of a tool consists of, only
    the lines that report a result. Nothing is altered inside a statement but Markdown emphasis.
    """
    spoken, used = _split_tool_lines(_clip_at_space(text, _READ_CHARS), is_output=is_output)
    clauses = []
    for line in _plain_lines(spoken):
        for sentence in sentences.split_sentences(line.text):
            is_option = line.is_option or bool(_re.option.search(sentence))
            pieces = [sentence] if is_option else _split_at_joints(sentence)
            for piece in pieces:
                clause = _clause(piece, person=person, is_option=is_option)
                if clause and line.is_option:
                    clause = replace(clause, text=OPTION_MARK + clause.text)
                clauses.append(clause)
    clauses += [_clause(line, person=False, used=True) for line in used]
    if person and not any(clauses) and len(spoken.split()) in _SHORT_MESSAGE_WORDS:
        whole = sentences.one_line(statements.strip_markup(spoken), MAX_CHARS)
        clauses = [_clause(whole, person=True, min_weight=SHORT_MESSAGE_WEIGHT)]
    return [clause for clause in clauses if clause]


def _split_tool_lines(text: str, *, is_output: bool) -> tuple[str, list[str]]:
    if "[" not in text:
        return text, []
    spoken, used = [], []
    inside = False
    for line in text.splitlines():
        tool = None if inside and is_output else _re.tool.match(line)
        if tool and tool[1] != "result":
            inside = False
            used.append(line)
        elif tool or inside:
            inside = True
            output = line.removeprefix("[result] ")
            if _re.outcome.search(output[:400]) or call_text.is_error_message(output):
                used.append(output.strip())
        else:
            spoken.append(line)
    return "\n".join(spoken), used


def _plain_lines(text: str) -> list[_Line]:
    """Return the lines of a message without code, rules, bullets and lone tags.

    Items of a list are options if the line before the list says so.
    """
    lines: list[_Line] = []
    prose = _re.fence.sub("\n", text)
    lists_options = False
    for line in prose.splitlines():
        bullet = _re.bullet.match(line)
        bare = (line[bullet.end() :] if bullet else line).strip()
        enclosed = _re.enclosed.fullmatch(bare)
        bare = enclosed["inner"].strip() if enclosed else bare
        if not bare or _re.rule.fullmatch(bare) or _re.lone_tag.fullmatch(bare):
            continue
        plain = statements.strip_markup(bare)
        is_item = _re.item.match(line) is not None
        lists_options = lists_options if is_item else bool(_re.lists_options.search(plain))
        is_option = is_item and lists_options and not _re.states_itself.match(plain)
        lines.append(_Line(plain, is_option))
    return lines


def _split_at_joints(sentence: str) -> list[str]:
    """Split a long sentence at its joints outside code; short pieces stay with their neighbour."""
    if len(sentence) <= _SPLIT_CHARS:
        return [sentence]
    masked = _re.ticked.sub(lambda code: "\x01" * len(code.group()), sentence)
    spans: list[tuple[int, int]] = []
    start = 0
    for joint in (*_re.joint.finditer(masked), None):
        end, following = (joint.start(), joint.end()) if joint else (len(sentence), 0)
        if spans and min(end - start, spans[-1][1] - spans[-1][0]) < _SHORT_CHARS:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
        start = following
    return [sentence[begin:end] for begin, end in spans]


def _clause(
    piece: str,
    *,
    person: bool,
    used: bool = False,
    is_option: bool = False,
    min_weight: float = MIN_WEIGHT,
) -> Clause | None:
    text = piece.strip(" ,;")
    if not used:
        text = _strip_lead(_re.asking, _strip_lead(_re.lead, text))
    if len(text) > MAX_CHARS:
        mark = "…?" if text.endswith("?") else "…"
        text = _clip_at_space(text, MAX_CHARS - 1)
        if text.count("`") % 2:
            text = text.rpartition("`")[0]  # no half of a code span
        text = text.rstrip(" ,;:") + mark
    weights = weigh_words(text)
    if sum(weights.values()) < min_weight or _re.irrelevant.search(text):
        return None
    bonus = 0.0
    if person and instructions.find_wishes(text):
        bonus += STANDING_BONUS
    if not is_option and _re.change.search(text):
        bonus += CHANGE_BONUS
    if _re.reason.search(text) or _re.wrong.search(text):
        bonus += REASON_BONUS
    return Clause(text, weights, bonus, used, is_option)


def _strip_lead(lead: re.Pattern[str], text: str) -> str:
    match = lead.match(text)
    return text[match.end() :].strip(" ,;") if match else text


def _clip_at_space(text: str, most: int) -> str:
    """Return the beginning of a text without a cut word; nothing if its first word is longer."""
    return text if len(text) <= most else text[:most].rpartition(" ")[0]


def weigh_words(text: str) -> dict[str, float]:
    """Return the search words of a text with their weights."""
    identifiers = {word for match in _IDENTIFIER.findall(text) for word in words.split(match)}
    names = {word for match in _re.name.findall(text) for word in words.split(match)}
    weights: dict[str, float] = {}
    for word in words.split(text):
        if word in words.STOP_WORDS or (len(word) < 2 and not word.isdigit()):
            continue
        if not word.isalpha() and _re.number.search(word):
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


PERSON_WEIGHT, ASSISTANT_WEIGHT, TOOL_WEIGHT = 1.5, 0.7, 0.4
"""Weight of each speaker's words: what a person says is searched for most often."""

FIRST_WEIGHT = 1.5
"""The first statement of a message counts more, so that each message gets a line."""

REPEATED_WEIGHT = 0.35
"""The remaining value of a word that another line of the log already has."""

LINE_TOKENS = 2.0
"""The cost of a line besides its words."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    place: int
    order: int
    clause: Clause
    share: float


def observe(segment: Segment, *, limit_tokens: int) -> Log:
    """Write a dated log of a segment within a token limit."""
    chosen = _choose_clauses(_candidates(segment), segment, limit_tokens)
    log = _segment_log(segment, chosen)
    while chosen and tokens.count(log.text) > limit_tokens:
        chosen.pop()
        log = _segment_log(segment, chosen)
    return log


def _candidates(segment: Segment) -> list[_Candidate]:
    candidates = []
    for place, one in enumerate(segment.messages):
        share = _voice_weight(one.voice)
        clauses = split_clauses(
            one.text, person=one.origin == "user", is_output=one.voice == "tool"
        )
        for order, clause in enumerate(clauses):
            candidates.append(_Candidate(place, order, clause, share))
    voices = [segment.messages[candidate.place].voice for candidate in candidates]
    for taken_back in find_retracted([one.clause for one in candidates], voices):
        candidate = candidates[taken_back]
        clause = replace(candidate.clause, text=RETRACTED_MARK + candidate.clause.text)
        candidates[taken_back] = replace(candidate, clause=clause)
    return candidates


_RETRACTION_DISTANCE = 40
"""Statements back in which the one that is taken back is searched for."""

_MIN_SHARED_WEIGHT, _MIN_SHARED = 3.0, 0.4
"""The weight of shared words, and their share of the earlier statement, that name it."""

_MIN_WORDS = 4
"""A shorter statement, such as a path in a list, claims nothing that can be taken back."""


def find_retracted(clauses: Sequence[Clause], voices: Sequence[str]) -> set[int]:
    """Return the indexes of statements that a later one takes back, such as a reverted change.

    The later one names the earlier by its words; without words of its own it means the statement
    of the same speaker right before it.
    """
    retracted: set[int] = set()
    for at, clause in enumerate(clauses):
        if clause.is_tool_line or clause.is_option or not _re.retracts.search(clause.text):
            continue
        own = clause.weights.keys() - _RETRACTION_WORDS
        earlier = range(at - 1, max(-1, at - 1 - _RETRACTION_DISTANCE), -1)
        targets = [
            place
            for place in earlier
            if not clauses[place].is_tool_line
            and not clauses[place].is_option
            and len(clauses[place].text.split()) >= _MIN_WORDS
            and not _re.retracts.search(clauses[place].text)
        ]
        if not own:
            target = next((one for one in targets if voices[one] == voices[at]), None)
        else:
            target = max(targets, key=lambda one: _shared_weight(clauses[one], own), default=None)
            if target is not None and not _shared_weight(clauses[target], own):
                target = None
        if target is not None:
            retracted.add(target)
    return retracted


def _shared_weight(clause: Clause, other: AbstractSet[str]) -> float:
    """Return the weight of the words that a clause shares; 0 if that is too little to name it."""
    shared = sum(weight for word, weight in clause.weights.items() if word in other)
    enough = shared >= max(_MIN_SHARED_WEIGHT, _MIN_SHARED * sum(clause.weights.values()))
    return shared if enough else 0.0


def _voice_weight(voice: str) -> float:
    if voice in ("tool", "system"):
        return TOOL_WEIGHT
    return ASSISTANT_WEIGHT if voice == "assistant" else PERSON_WEIGHT


def _choose_clauses(
    candidates: list[_Candidate], segment: Segment, limit_tokens: int
) -> list[_Candidate]:
    """Choose clauses greedily by value per cost while they fit the limit.

    A choice makes others worth less, except those of its own message, which need no further line.
    So only the best of the queue and the clauses of that message are valued again.
    """
    values = _Values(candidates, segment)
    tokens_left = float(limit_tokens - 4)
    chosen: list[_Candidate] = []
    chosen_texts: set[str] = set()
    by_place: dict[int, list[int]] = {}
    for number, candidate in enumerate(candidates):
        by_place.setdefault(candidate.place, []).append(number)
    queue = [(-values.of(one), number) for number, one in enumerate(candidates)]
    heapify(queue)
    while queue:
        expected, number = heappop(queue)
        candidate = candidates[number]
        cost = values.cost(candidate)
        if candidate.clause.text in chosen_texts or cost > tokens_left:
            continue
        worth = values.of(candidate)
        if worth < -expected:
            heappush(queue, (-worth, number))
            continue
        if worth <= 0:
            break
        chosen.append(candidate)
        chosen_texts.add(candidate.clause.text)
        tokens_left -= cost
        values.use(candidate)
        for other in by_place[candidate.place]:
            heappush(queue, (-values.of(candidates[other]), other))
    return chosen


class _Values:
    """What clauses are worth and cost beside those that are used."""

    def __init__(self, candidates: Sequence[_Candidate], segment: Segment) -> None:
        uses = Counter(word for one in candidates for word in one.clause.weights)
        self._factors = {word: 1 + 0.3 * log1p(count - 1) for word, count in uses.items()}
        texts = {one.clause.text for one in candidates}
        self._text_tokens = {text: tokens.count(text) + 0.5 for text in texts}
        self._line_tokens = [LINE_TOKENS + tokens.count(one.voice) for one in segment.messages]
        self._used_here: dict[int, set[str]] = {}
        self._used_words: set[str] = set()

    def use(self, candidate: _Candidate) -> None:
        """Add a clause to those that are used."""
        words_ = candidate.clause.weights
        self._used_here.setdefault(candidate.place, set()).update(words_)
        self._used_words.update(words_)

    def cost(self, candidate: _Candidate) -> float:
        """Return the tokens of a clause, with those of its line if that is new."""
        cost = self._text_tokens[candidate.clause.text]
        if candidate.place not in self._used_here:
            cost += self._line_tokens[candidate.place]
        return cost

    def of(self, candidate: _Candidate) -> float:
        """Return the value of a clause per cost."""
        cost: float = self.cost(candidate) ** 0.8
        return self._worth(candidate) / cost

    def _worth(self, candidate: _Candidate) -> float:
        here = self._used_here.get(candidate.place, ())
        total = candidate.clause.bonus
        for word, weight in candidate.clause.weights.items():
            if word not in here:
                value = weight * self._factors[word]
                total += value * (REPEATED_WEIGHT if word in self._used_words else 1.0)
        if candidate.clause.is_tool_line:
            return total * TOOL_WEIGHT
        return total * candidate.share * (1.0 if here else FIRST_WEIGHT)


def _segment_log(segment: Segment, chosen: list[_Candidate]) -> Log:
    by_place: dict[int, list[_Candidate]] = {}
    for candidate in chosen:
        by_place.setdefault(candidate.place, []).append(candidate)
    lines: list[LogLine] = []
    day = ""
    for place in sorted(by_place):
        one = segment.messages[place]
        if f"{one.at:%Y-%m-%d}" != day:
            day = f"{one.at:%Y-%m-%d}"
            lines.append(LogLine(day))
        parts = sorted(by_place[place], key=lambda candidate: candidate.order)
        text = "; ".join(_without_stop(candidate.clause) for candidate in parts)
        lines.append(LogLine(f"{one.voice}: {text}", (one.ordinal,)))
    return Log(tuple(lines))


def _without_stop(clause: Clause) -> str:
    return clause.text if clause.is_tool_line else clause.text.removesuffix(".").removesuffix(";")


STATE, DECISIONS, CHANGES, TIMELINE = "Current state", "Decisions", "Changes", "Timeline"
SECTIONS = (STATE, DECISIONS, CHANGES, TIMELINE)

FORMER_WEIGHT = 0.8
"""Lines of a former log count a little less each time they are repeated."""


@dataclass(frozen=True, slots=True)
class _LogLine:
    order: int
    day: str
    text: str
    section: str
    weights: dict[str, float]
    share: float


def condense(logs: Sequence[str], former: str, *, limit_tokens: int) -> Log:
    """Condense several logs into one within a token limit, by section and day.

    The current state is that of the last log; what earlier ones call a state is history.
    """
    parsed = [_parse_log(former, FORMER_WEIGHT), *(_parse_log(log, 1.0) for log in logs)]
    parsed = [lines for lines in parsed if lines]
    last = _with_state(parsed.pop()) if parsed else []
    history = [_as_history(line) for lines in parsed for line in lines]
    lines = [replace(line, order=order) for order, line in enumerate((*history, *last))]
    chosen = _choose_lines(_mark_retracted(lines), limit_tokens)
    condensed = _condensed_log(chosen)
    while chosen and tokens.count(condensed.text) > limit_tokens:
        chosen.remove(min(chosen, key=lambda line: _line_worth(line, set())))
        condensed = _condensed_log(chosen)
    return condensed


def _as_history(line: _LogLine) -> _LogLine:
    return replace(line, section=TIMELINE) if line.section == STATE else line


def _with_state(lines: list[_LogLine]) -> list[_LogLine]:
    """Return the lines of the last log, whose last line is the state if no other one is."""
    if any(line.section == STATE for line in lines):
        return lines
    return [*lines[:-1], replace(lines[-1], section=STATE)]


def _mark_retracted(lines: Sequence[_LogLine]) -> list[_LogLine]:
    """Mark lines of one statement that a later line takes back."""
    clauses = [
        Clause(line.text, line.weights, 0.0, is_option="; " in line.text or _is_marked(line.text))
        for line in lines
    ]
    voices = [line.text.partition(": ")[0] for line in lines]
    marked = list(lines)
    for place in find_retracted(clauses, voices):
        voice, _, text = lines[place].text.partition(": ")
        marked[place] = replace(
            lines[place], text=f"{voice}: {RETRACTED_MARK}{text}", section=TIMELINE
        )
    return marked


def _is_marked(text: str) -> bool:
    return text.partition(": ")[2].startswith((OPTION_MARK, RETRACTED_MARK))


def _condensed_log(chosen: Sequence[_LogLine]) -> Log:
    lines: list[LogLine] = []
    for section in SECTIONS:
        inside = [line for line in chosen if line.section == section]
        if inside:
            lines.append(LogLine(f"{section}:"))
            lines += [LogLine(f"{line.day} {line.text}".strip()) for line in inside]
    return Log(tuple(lines))


def _parse_log(log: str, share: float) -> list[_LogLine]:
    """Parse the lines of a log with their days, and of a condensed log with their sections."""
    lines: list[_LogLine] = []
    day, section = "", ""
    for text in log.splitlines():
        if text.rstrip(":") in SECTIONS:
            section = text.rstrip(":")
        elif _re.day.fullmatch(text):
            day = text
        elif text.strip():
            dated = _re.dated.fullmatch(text)
            own, body = (dated[1], dated[2]) if dated else (day, text)
            kind = section or _section_of(body)
            worth = share * _voice_weight(body.partition(": ")[0])
            lines.append(_LogLine(0, own, body, kind, weigh_words(body), worth))
    return lines


def _section_of(line: str) -> str:
    """Return the section of a line by its statements, without options and what was taken back."""
    text = line.partition(": ")[2] or line
    stated = [
        part
        for part in text.split("; ")
        if not part.startswith((OPTION_MARK, RETRACTED_MARK)) and not _re.option.search(part)
    ]
    if any(_re.changed.search(part) for part in stated):
        return CHANGES
    if any(_re.decided.search(part) or instructions.find_wishes(part) for part in stated):
        return DECISIONS
    return STATE if any(_re.states.search(part) for part in stated) else TIMELINE


def _choose_lines(lines: Sequence[_LogLine], limit_tokens: int) -> list[_LogLine]:
    """Choose lines greedily by value while they fit the limit; return them in order.

    What persons said is chosen first, from half of the limit: without the requests, the rest of a
    log does not say what it was for.
    """
    tokens_left = float(limit_tokens - 12)
    used_words: set[str] = set()
    chosen: dict[int, _LogLine] = {}
    persons = [line for line in lines if _is_by_person(line)]
    for candidates, kept_free in ((persons, tokens_left / 2), (lines, 0.0)):
        remaining = [line for line in candidates if line.order not in chosen]
        while remaining:
            worth = [_line_worth(line, used_words) for line in remaining]
            best = remaining.pop(max(range(len(remaining)), key=worth.__getitem__))
            cost = _line_cost(best)
            if cost <= tokens_left - kept_free:
                tokens_left -= cost
                chosen[best.order] = best
                used_words.update(best.weights)
            elif kept_free:
                break  # a lesser line of a person must not displace a better one of anybody
    return [chosen[order] for order in sorted(chosen)]


def _is_by_person(line: _LogLine) -> bool:
    voice, colon, _ = line.text.partition(": ")
    return bool(colon) and _voice_weight(voice) == PERSON_WEIGHT


_SECTION_WEIGHTS = {STATE: 1.0, DECISIONS: 1.4, CHANGES: 1.3, TIMELINE: 0.8}


_DATE_TOKENS = 4.0

_COST_POWER: float = 0.8
"""A compromise: value per token prefers scraps, value alone prefers long lines."""


def _line_worth(line: _LogLine, used_words: set[str]) -> float:
    """Return the value of a line per cost; words that are in the log already add little."""
    new = sum(
        weight * (0.3 if word in used_words else 1.0) for word, weight in line.weights.items()
    )
    worth: float = (
        line.share * _SECTION_WEIGHTS[line.section] * new / _line_cost(line) ** _COST_POWER
    )
    return worth


def _line_cost(line: _LogLine) -> float:
    return tokens.count(line.text) + _DATE_TOKENS
