"""A digester that asks a chat: six prompts, answers held against their forms, and a ledger."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from lore.errors import ProviderError, ProviderUnavailable
from lore.llm import extracts, prompts, recording
from lore.llm.chat import Ask, Chat, ChatMessage, Reply, Usage
from lore.llm.grounding import Grounds
from lore.llm.ledger import Ledger
from lore.llm.patience import Patience, ask_patiently
from lore.llm.replies import Facts, Insight, Verdicts
from lore.records import Extract, Fragment, Log, LogLine, Segment, Verdict
from lore.text import tokens, words

V = TypeVar("V", bound=BaseModel)

PAIRS_AT_ONCE = 10
"""Pairs that are judged in one question; with more of them a chat begins to mix them up."""

WORDS_PER_TOKEN = 0.7
"""English prose has some 0.75 words a token, paths and numbers fewer."""

THINKING_TOKENS = 4096
"""Room beyond the answer itself: models that think first spend it from the same limit."""

EXTRACT_TOKENS = 4096
SHORT_TOKENS = 1024
OVERVIEW_TOKENS = 400
INSIGHT_TOKENS = 200

_FORM_TOKENS = 600
"""A schema counts as prompt; the largest has some 500 tokens."""

_NUMBERED = re.compile(r"\s*(?:[-*•]\s*)?\[([\d\s,;–-]{1,200})\]\s*(.*)")
_LONGEST_RANGE = 200
_LONGEST_LINE_TOKENS = 600
_FENCE = re.compile(r"<<<(?:end of )?record\b[^\n>]*>>>")


class ChatDigester:
    """Reads text for the digest by asking a chat; believes no more of the answer than it must."""

    def __init__(
        self,
        chat: Chat,
        ledger: Ledger,
        *,
        patience: Patience | None = None,
        boundary: prompts.Boundary = prompts.new_boundary,
    ) -> None:
        self._chat = chat
        self._ledger = ledger
        self._patience = patience or Patience()
        self._boundary = boundary

    @property
    def identity(self) -> str:
        """Return the provider and model of the chat."""
        return self._chat.identity

    def close(self) -> None:
        """End what is under way."""
        self._chat.close()

    def observe(self, segment: Segment, *, limit_tokens: int) -> Log:
        """Write a dated log of a segment in which nothing operational is lost."""
        if not segment.said:
            return Log(())
        record = recording.messages(segment)
        text = self._ask_text(prompts.OBSERVE, record, limit_tokens)
        return Log(tuple(_fitting(_dated(text, segment), limit_tokens)))

    def condense(self, logs: Sequence[str], former: str, *, limit_tokens: int) -> Log:
        """Write one log of several: current state, decisions, changes, timeline."""
        record = recording.logs(logs, former)
        text = self._ask_text(prompts.CONDENSE, record, limit_tokens)
        lines = (LogLine(line.strip()) for line in text.splitlines() if line.strip())
        return Log(tuple(_fitting(lines, limit_tokens)))

    def extract(self, exchange: Segment) -> list[Extract]:
        """Return the knowledge in an exchange that is worth keeping, broad before specific."""
        if not exchange.said:
            return []
        record = recording.messages(exchange)
        facts = self._ask_value(prompts.EXTRACT, record, Facts, EXTRACT_TOKENS)
        return extracts.from_facts(facts, Grounds(exchange.said), cleaned)

    def overview(self, root: Fragment, children: Sequence[Fragment]) -> str:
        """Return a fresh text for a root whose children changed."""
        record = recording.fragments([root, *children])
        text = self._ask_text(prompts.OVERVIEW, record, OVERVIEW_TOKENS)
        return tokens.clip(text.strip(), OVERVIEW_TOKENS)

    def reflect(self, cluster: Sequence[Fragment]) -> str:
        """Return the insight that several linked roots yield together; empty if there is none."""
        record = recording.fragments(cluster, first=1)
        answer = self._ask_value(prompts.REFLECT, record, Insight, SHORT_TOKENS)
        known = {number for number in answer.from_items if 1 <= number <= len(cluster)}
        if len(known) < min(2, len(cluster)):
            return ""
        return tokens.clip(cleaned(answer.insight).strip(), INSIGHT_TOKENS)

    def judge(self, pairs: Sequence[tuple[Fragment, Fragment]]) -> list[Verdict | None]:
        """Say for each pair (older, newer) what the newer one does to the older, if it is known."""
        verdicts: list[Verdict | None] = []
        for start in range(0, len(pairs), PAIRS_AT_ONCE):
            verdicts += self._judge(pairs[start : start + PAIRS_AT_ONCE])
        return verdicts

    def _judge(self, pairs: Sequence[tuple[Fragment, Fragment]]) -> list[Verdict | None]:
        """Judge some pairs; one without a verdict, or with several, was not judged."""
        record = recording.pairs(pairs)
        answer = self._ask_value(prompts.JUDGE, record, Verdicts, SHORT_TOKENS, pairs=len(pairs))
        given: dict[int, set[Verdict]] = {}
        for judged in answer.verdicts:
            given.setdefault(judged.pair, set()).add(judged.verdict)
        found: list[Verdict | None] = []
        for number, (older, newer) in enumerate(pairs, 1):
            verdict: Verdict | None = None
            if len(given.get(number, ())) == 1:
                (verdict,) = given[number]
            if verdict == "changes" and newer.trust < older.trust:
                verdict = "contradicts"
            found.append(verdict)
        return found

    def _ask_text(self, prompt: prompts.Prompt, record: str, limit_tokens: int) -> str:
        most_words = int(limit_tokens * WORDS_PER_TOKEN)
        ask = self._asked(prompt, record, limit_tokens, most_words=most_words)
        return cleaned(self._answer(prompt, ask).text)

    def _ask_value(
        self,
        prompt: prompts.Prompt,
        record: str,
        schema: type[V],
        limit_tokens: int,
        **values: object,
    ) -> V:
        ask = replace(self._asked(prompt, record, limit_tokens, **values), schema=schema)
        value = self._answer(prompt, ask).value
        assert isinstance(value, schema)
        return value

    def _asked(
        self, prompt: prompts.Prompt, record: str, limit_tokens: int, **values: object
    ) -> Ask:
        rendered = prompts.render(prompt, record, boundary=self._boundary(), **values)
        told = (ChatMessage("user", rendered.user),)
        return Ask(rendered.system, told, limit_tokens + THINKING_TOKENS)

    def _answer(self, prompt: prompts.Prompt, ask: Ask) -> Reply:
        def attempt(asked: Ask) -> Reply:
            return self._paid(prompt.name, asked)

        return ask_patiently(self._chat, ask, attempt, self._patience)

    def _paid(self, question: str, ask: Ask) -> Reply:
        """Ask once, with the money for it set aside before and settled after."""
        given = sum(tokens.count(one.text) for one in ask.messages) + tokens.count(ask.system)
        most = Usage(given + (_FORM_TOKENS if ask.schema else 0), ask.max_tokens)
        reserved = self._ledger.reserve(question, self.identity, most)
        try:
            reply = self._chat.ask(ask)
        except ProviderError as error:
            # An answer that came too late was written, and will be charged for.
            late = isinstance(error, ProviderUnavailable) and error.billed
            if isinstance(error.usage, Usage) or late:
                used = error.usage if isinstance(error.usage, Usage) else most
                self._ledger.settle(reserved, used)
            else:
                self._ledger.release(reserved)
            raise
        except BaseException:
            self._ledger.release(reserved)
            raise
        self._ledger.settle(reserved, reply.usage)
        return reply


def cleaned(text: str) -> str:
    """Return what a chat wrote as text that can be stored, without lines of our own fence."""
    return _FENCE.sub("", words.clean(text))


def _dated(text: str, segment: Segment) -> Iterator[LogLine]:
    """Read a log: lines with the messages that they tell, and a line for each new day."""
    grounds = Grounds(segment.said)
    days = {one.ordinal: f"{one.at:%Y-%m-%d}" for one in segment.said}
    day = ""
    sources: tuple[int, ...] = ()
    for line in text.splitlines():
        told, sources = _read_line(line, grounds, sources)
        if not told or not sources:
            continue
        if days[sources[0]] != day:
            day = days[sources[0]]
            yield LogLine(day)
        yield LogLine(tokens.clip(told, _LONGEST_LINE_TOKENS), grounds.sources_of(told, sources))


def _read_line(line: str, grounds: Grounds, former: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """Return a line without its numbers, and those of them that are messages.

    A line without numbers goes on with the one before it; what comes before the first numbers, or
    has only numbers that nobody gave it, has no sources.
    """
    numbered = _NUMBERED.match(line)
    if numbered is None:
        return line.strip(), former
    return numbered[2].strip(), grounds.known(_numbers(numbered[1]))


def _numbers(told: str) -> Iterator[int]:
    for piece in re.split(r"[,;]", told):
        ends = [int(end[:9]) for end in re.split(r"[–-]", piece) if end.strip().isdecimal()]
        if len(ends) == 2 and 0 <= ends[1] - ends[0] <= _LONGEST_RANGE:
            yield from range(ends[0], ends[1] + 1)
        else:
            yield from ends


def _fitting(lines: Iterator[LogLine], limit_tokens: int) -> Iterator[LogLine]:
    """Yield lines while they fit; a day that has none left is not told."""
    left = limit_tokens
    held: list[LogLine] = []
    for line in lines:
        left -= tokens.count(line.text) + 1
        if left < 0:
            return
        held.append(line)
        if line.sources or not _is_day(line.text):
            yield from held
            held = []


def _is_day(text: str) -> bool:
    return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text))
